"""How kept sessions change."""
