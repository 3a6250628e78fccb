"""What the models of one dbt invocation share of a journal: one read when it begins, one commit when it ends."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from fivm_dbt.refresh.journal import Entry


class Invocation:
    """The entries of all models that an invocation is about to refresh, and those that it has not written yet.

    A read costs Delta most of a second, and a commit a third of one, however few the rows.

    Of what was read each model is given its entries once, and not at all when somebody was at work on it: then only
    the table can tell whether it still is. Should another process refresh the model in between, the claim fails,
    because it names a refresh that has entries by then.

    What is noted is lost if the process is killed. That does no harm: the heads of the models say the same.
    """

    def __init__(self, models: Collection[str]) -> None:
        self._models = frozenset(models)
        self._guard = threading.Lock()
        self._entries: dict[str, list[Entry]] | None = None
        self._finished: dict[str, Entry] = {}
        self._noted: list[Entry] = []

    def take(self, model: str, read: Callable[[Collection[str]], list[Entry]]) -> list[Entry] | None:
        """The model's entries, newest first; None if the table has to be asked."""
        with self._guard:
            if self._entries is None:
                self._entries = {name: [] for name in self._models}
                for entry in read(self._models):
                    self._entries[entry.model].append(entry)
            entries = self._entries.pop(model, None)
        if entries and entries[0].event == "finished":
            self.finished(entries[0])
        return None if entries and entries[0].event != "finished" else entries

    def finished(self, entry: Entry) -> None:
        """Keep the entry of a refresh that is finished."""
        with self._guard:
            self._finished[entry.model] = entry

    def last_known(self, model: str) -> Entry | None:
        """The last finished refresh of a model that was given its entries, or has been refreshed since."""
        with self._guard:
            return self._finished.get(model)

    def note(self, entry: Entry) -> None:
        """Keep an entry that is to be written with the others."""
        with self._guard:
            self._noted.append(entry)

    def take_noted(self) -> list[Entry]:
        """What has been noted since this was asked last: whoever asks has to write it."""
        with self._guard:
            noted, self._noted = self._noted, []
        return noted
