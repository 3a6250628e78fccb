"""The plans of models by time parts (ViewDF): each part is computed from parts."""
