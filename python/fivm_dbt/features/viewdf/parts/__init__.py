"""Which parts of a model are ready, and which late data changes, follows from the references to parts."""
