"""The Plan: frozen data that a refresh reads and decides nothing of."""
