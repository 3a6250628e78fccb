"""How kept marks of a pattern change."""
