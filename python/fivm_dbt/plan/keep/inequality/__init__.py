"""Aggregates that are correlated by an inequality are kept in one of three ways."""
