"""Aggregates that are correlated by an inequality: three ways to keep them."""
