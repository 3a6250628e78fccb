"""Scenarios and their replay (``fivm replay``), the random generator, and the comparison of bags."""
