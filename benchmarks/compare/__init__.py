"""Refreshes by every way beside what users would do instead, over TPC-H: ``python -m benchmarks.compare``."""
