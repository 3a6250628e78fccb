"""The frozen Plan has every decision about how a model is built and refreshed, printable and deterministic."""
