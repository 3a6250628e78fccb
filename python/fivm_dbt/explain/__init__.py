"""Explaining says what a plan will do; it reads the plan and statements that run, so it cannot drift."""
