"""Row patterns: the text behind PATTERN as a tree, and the tree as an automaton. No SQL is read or written here."""
