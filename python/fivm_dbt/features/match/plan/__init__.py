"""Which patterns are advanced part by part, and what is kept for them."""
