"""Which inner views of a join-aggregate block are worth keeping: hypergraph, variable orders, view trees, recursion."""
