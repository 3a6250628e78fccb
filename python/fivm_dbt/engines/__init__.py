"""Databases that run plans, and what is needed to reach them."""
