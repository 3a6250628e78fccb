"""What the models of a dbt invocation share, one for each journal that they have. dbt makes an adapter for each."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

from dbt.events.types import JinjaLogWarning
from dbt_common.events.functions import fire_event

from fivm_dbt.engines.spark_errors import first_line
from fivm_dbt.manifest import Nodes
from fivm_dbt.naming import canonical, journal_table
from fivm_dbt.refresh.invocation import Invocation
from fivm_dbt.refresh.journal import Entry

_GUARD = threading.Lock()
_INVOCATIONS: WeakKeyDictionary[Any, dict[str, Invocation]] = WeakKeyDictionary()


def invocation_of(adapter: Any, journal: str, selected: Sequence[str]) -> Invocation:
    """That of an adapter's models in a journal, of which those are ``selected`` whose ids are."""
    with _GUARD:
        of_journals = _INVOCATIONS.setdefault(adapter, {})
        if journal not in of_journals:
            chosen = set(selected)
            nodes = Nodes(adapter.get_macro_resolver()).fivm_models()
            relations = {
                canonical(adapter.Relation.create_from(adapter.config, node).render())
                for node in nodes
                if node.unique_id in chosen
            }
            of_journals[journal] = Invocation({r for r in relations if journal_table(r) == journal})
        return of_journals[journal]


def take_noted(adapter: Any) -> dict[str, list[Entry]]:
    """By journal what an adapter's models have noted since this was asked last."""
    with _GUARD:
        found = {name: invocation.take_noted() for name, invocation in _INVOCATIONS.get(adapter, {}).items()}
    return {name: entries for name, entries in found.items() if entries}


def tell_not_written(journal: str, entries: Sequence[Entry], error: Exception) -> None:
    """Warn of entries that may be missing. It is no error under ``--warn-error`` either: the models are refreshed."""
    missing = ", ".join(f"refresh {entry.refresh} of {entry.model}" for entry in entries)
    fire_event(
        JinjaLogWarning(
            msg=f"fivm: {journal} was not written ({first_line(error)}). It may lack {missing}. "
            "It tells what was done: no model depends on that, nor does a later refresh."
        )
    )
