"""The text of a viewdf model has two queries and references to parts."""
