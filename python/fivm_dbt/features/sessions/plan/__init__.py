"""What of sessions is kept, so that those near a change are found."""
