"""Databases run plans; each package has one, and what is needed to reach it."""
