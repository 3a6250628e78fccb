"""The Plan is frozen data that a refresh reads, and of which it decides nothing."""
