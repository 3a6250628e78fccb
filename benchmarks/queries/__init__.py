"""Whole queries kept up to date through a stream of changes, compared with the full recompute after every batch."""
