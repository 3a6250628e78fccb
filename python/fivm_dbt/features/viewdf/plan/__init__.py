"""A viewdf model has a plan of its own: each part is computed from parts."""
