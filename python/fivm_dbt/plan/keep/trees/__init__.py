"""Joins below an aggregate: view trees, recursive maps, and results kept as factors."""
