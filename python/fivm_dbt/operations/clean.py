"""Models that a project no longer has leave things behind: their view, its states, own snapshots.

So do models whose states are in another schema now (``fivm_helper_schema``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fivm_dbt.engines.spark.engine import Execute
from fivm_dbt.engines.spark.introspect import Described, describe_relation
from fivm_dbt.naming import PREFIX, canonical, owner_of, parts_of, relation_name, split_name
from fivm_dbt.spark.properties import MODEL_PROPERTY, PROJECT_PROPERTY


@dataclass(frozen=True)
class Leftover:
    """A relation that belongs to ``model``, which is gone."""

    name: str
    is_view: bool
    model: str


def leftovers(
    execute: Execute, schemas: Iterable[str], project: str, models: Mapping[str, str]
) -> list[Leftover]:
    """What there is in ``schemas`` of models of ``project`` that are not among ``models``; views first.

    Each of these has the relation beside which its states are. What lies elsewhere is left over too, once the model
    shows the states that are there. Only what says by its properties that it is of this project: tables of others stay
    out of it, also those of fivm models of other projects in the same schema.
    """
    known = {canonical(model): kept for model, kept in models.items()}
    views: list[Leftover] = []
    tables: list[Leftover] = []
    for schema in sorted({relation_name(*split_name(s)) for s in schemas}):
        gone = {}
        for name, described in _states(execute, schema):
            facts = dict(described.properties)
            model = canonical(facts.get(MODEL_PROPERTY, ""))
            if facts.get(PROJECT_PROPERTY) != project or not model:
                continue
            if model not in known:
                gone[name] = model
            if model not in known or _is_elsewhere(execute, name, model, known[model]):
                found = Leftover(name, described.is_view, model)
                (views if described.is_view else tables).append(found)
        for name, described in _views(execute, schema):
            root = described.presentation.root if described.presentation is not None else ""
            if root and canonical(root) in gone:
                views.append(Leftover(name, True, gone[canonical(root)]))
            elif described.is_factorized and canonical(name) in gone.values():
                views.append(Leftover(name, True, canonical(name)))
    return views + tables


def _is_elsewhere(execute: Execute, name: str, model: str, kept: str) -> bool:
    """Whether what is kept of a model that is there is not beside ``kept``, where the states are that it shows."""
    if owner_of(name, kept) or name == parts_of(model):
        return False
    shown = describe_relation(execute, model, is_read=False)
    root = shown.presentation.root if shown is not None and shown.presentation is not None else ""
    return owner_of(root, kept) if root else False


def drop(execute: Execute, found: Iterable[Leftover]) -> None:
    """Drop leftovers, in their order: a view goes before the state that it reads."""
    for item in found:
        execute(f"DROP {'VIEW' if item.is_view else 'TABLE'} IF EXISTS {item.name}", fetch=False)


def _states(execute: Execute, schema: str) -> Iterator[tuple[str, Described]]:
    answer = execute(f"SHOW TABLES IN {schema}", fetch=True)
    shown = zip(answer.values("tableName"), answer.values("isTemporary"), strict=True)
    names = sorted(str(name) for name, is_temporary in shown if PREFIX in str(name) and not is_temporary)
    yield from _described(execute, schema, names)


def _views(execute: Execute, schema: str) -> Iterator[tuple[str, Described]]:
    answer = execute(f"SHOW VIEWS IN {schema}", fetch=True)
    shown = zip(answer.values("viewName"), answer.values("isTemporary"), strict=True)
    yield from _described(
        execute, schema, sorted(str(name) for name, is_temporary in shown if not is_temporary)
    )


def _described(execute: Execute, schema: str, names: Iterable[str]) -> Iterator[tuple[str, Described]]:
    for name in names:
        relation = relation_name(*split_name(schema), name)
        described = describe_relation(execute, relation, is_read=False)
        if described is not None:
            yield relation, described
