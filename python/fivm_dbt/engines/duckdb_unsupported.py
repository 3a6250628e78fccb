"""What the engine says of what it cannot run."""


class UnsupportedStatement(Exception):
    """The engine does not know this kind of statement, or a call in it."""
