"""The rows of a view are stored by a layout: keys and payload, partitions, their order."""
