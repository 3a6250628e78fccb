"""Rewrites of a query before deltas are derived: one pass per file, node in, equivalent node out."""
