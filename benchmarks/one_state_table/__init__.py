"""One Delta table with all views of a model and what they cover: attacks on it, and what it costs (ADR 0028)."""
