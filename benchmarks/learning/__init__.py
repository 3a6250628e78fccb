"""Moments of a join kept up to date in several ways: ``python -m benchmarks.learning``."""
