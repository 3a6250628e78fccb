"""A refresh runs a plan: it observes versions, stages deltas, applies them, and survives interruptions."""
