"""Running a plan: observe versions, stage deltas, apply them, and survive being interrupted."""
