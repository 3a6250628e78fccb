"""Row patterns: their text, their automata, and the operators that find matches and keep marks."""
