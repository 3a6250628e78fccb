"""A window's name stands for its definition: ``OVER w`` and ``WINDOW w AS (...)``."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.sql.parse import unsupported
from fivm_dbt.suggest import did_you_mean


def definition_of(window: exp.Window, definitions: Sequence[exp.Window]) -> exp.Window:
    """The window that says how rows are divided and ordered: ``window`` itself, or the one that it names.

    A definition may name another one, as in Spark once only: ``WINDOW v AS (ORDER BY x), w AS v``.
    FIVM102 for a name that no definition has.
    """
    named = _named(window, definitions)
    if named.args.get("alias") is None:
        return named
    found = _named(named, definitions)
    if found.args.get("alias") is not None:
        what = f"the window {named.this.name} is a name for a name"
        raise unsupported(window, what, f"write WINDOW {named.this.name} AS (...)")
    return found


def check_definitions(definitions: Sequence[exp.Window]) -> None:
    """Refuse a name with two definitions."""
    seen: set[str] = set()
    for definition in definitions:
        name = definition.this.name.lower()
        if name in seen:
            raise unsupported(definition, f"two windows are called {name}", "give each its own name")
        seen.add(name)


def _named(window: exp.Window, definitions: Sequence[exp.Window]) -> exp.Window:
    alias = window.args.get("alias")
    if alias is None:
        return window
    if any(window.args.get(key) for key in ("partition_by", "order", "spec")):
        what = f"a window that adds to {alias.name} is not Spark SQL"
        raise unsupported(window, what, "write its PARTITION BY, ORDER BY and frame out")
    found = next((d for d in definitions if d.this.name.lower() == alias.name.lower()), None)
    if found is None:
        remedy = did_you_mean(alias.name, [d.this.name for d in definitions])
        what = f"there is no window called {alias.name}"
        raise unsupported(window, what, remedy or "define it in WINDOW", code="FIVM102")
    return found
