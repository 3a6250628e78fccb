"""Windows, frames and sequences of time have their own inner views, and bounds on the reach of a change."""
