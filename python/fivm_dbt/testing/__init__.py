"""Scenarios are replayed (``fivm replay``) and generated at random, and bags are compared."""
