"""Scenarios are replayed (``fivm replay``), and their bags are compared with a recompute and a second oracle."""
