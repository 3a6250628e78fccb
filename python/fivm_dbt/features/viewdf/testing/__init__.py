"""Scenarios have viewdf models too, with an oracle that computes every part from scratch."""
