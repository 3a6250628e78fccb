"""Windows, frames and sequences of time: what of them is kept, and how far a change reaches."""
