"""What a plan will do, in words: made from the very plan and statements that run, so that it cannot drift."""
