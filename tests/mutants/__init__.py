"""Breaks of the product, one by one, each of which the tests have to notice (``make mutants``, docs/testing.md)."""
