"""Matches and marks as SQL: a fold over the sorted rows of a key."""
