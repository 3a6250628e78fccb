"""Time parts of relations (ViewDF): their lengths, which parts others are computed from, and when these are there."""
