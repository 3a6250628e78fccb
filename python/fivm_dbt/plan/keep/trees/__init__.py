"""Joins below an aggregate have view trees, recursive maps, and results kept as factors."""
