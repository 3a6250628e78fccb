"""Passes rewrite a query before deltas are derived: one per file, node in, equivalent node out."""
