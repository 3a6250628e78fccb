"""A refresh of a viewdf model computes parts, and each of its commits has a head."""
