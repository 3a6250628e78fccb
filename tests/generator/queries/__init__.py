"""A random query, clause by clause: each construct has a weight in the menu."""
