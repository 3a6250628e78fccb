"""One table of functions says what Spark's functions give, and what of that an exact refresh may count on."""
