"""The plan of a viewdf model is told in words."""
