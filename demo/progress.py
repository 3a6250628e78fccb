"""Progress on the terminal: what is being done now, and a line with the time for what is done."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console

# Without a terminal (a log file, CI) rich assumes 80 columns, too few for the tables.
_WIDTH = 132


@dataclass
class Timed:
    """Filled when the timed block ends."""

    seconds: float = 0.0


class Progress:
    def __init__(self) -> None:
        detected = Console()
        self.console = detected if detected.is_terminal else Console(width=_WIDTH)
        self._started = time.perf_counter()

    @property
    def elapsed(self) -> float:
        return time.perf_counter() - self._started

    def line(self, text: str) -> None:
        minutes, seconds = divmod(int(self.elapsed), 60)
        self.console.print(f"[dim]{minutes:02d}:{seconds:02d}[/]  {text}", highlight=False)

    def heading(self, text: str) -> None:
        self.console.print()
        self.line(f"[bold]{text}[/]")

    @contextmanager
    def doing(self, what: str) -> Iterator[Timed]:
        """A spinner while the block runs, which also tells how long it took."""
        timed = Timed()
        started = time.perf_counter()
        with self.console.status(what):
            yield timed
        timed.seconds = time.perf_counter() - started
