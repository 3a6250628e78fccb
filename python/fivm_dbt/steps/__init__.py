"""Builds and refreshes have steps in an order: data that runner, explain and checker all read."""
