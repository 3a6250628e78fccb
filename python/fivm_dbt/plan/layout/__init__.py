"""How the rows of a view are stored: its keys and payload, its partitions, their order."""
