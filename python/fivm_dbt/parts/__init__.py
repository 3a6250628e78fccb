"""Relations have time parts (ViewDF): lengths, which parts others are computed from, and when these are there."""
