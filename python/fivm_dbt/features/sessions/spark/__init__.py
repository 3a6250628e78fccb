"""Sessions as SQL."""
