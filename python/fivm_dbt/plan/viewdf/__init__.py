"""Models by time parts have plans (ViewDF): each part is computed from parts."""
