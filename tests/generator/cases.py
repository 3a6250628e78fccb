"""Random scenarios have tables, models over them and over other models, a stream of changes and its reverse."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from fivm_dbt.testing.scenario import Scenario
from generator.cells.composed import composed
from generator.constructs import CONSTRUCTS, Menu
from generator.queries.query import Columns, Query
from generator.queries.scalars import type_of
from generator.queries.sql import Queries
from generator.tables import Delta, Rows, Stream, random_rows, random_tables

_CHAINED = 0.3
_DIRECTED = 0.85
_Tables = dict[str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Case:
    """A random scenario, and what its models are made of."""

    scenario: Scenario
    queries: Mapping[str, Query]


def random_scenario(seed: int, models: int = 5, steps: int = 5) -> Scenario:
    """The scenario of :func:`random_case`, with what the planner maintains alone."""
    return random_case(seed, models, steps).scenario


def random_case(seed: int, models: int = 5, steps: int = 5, menu: Menu | None = None) -> Case:
    """A scenario of ``models`` models and twice ``steps`` steps, of which the second half undoes the first.

    Most queries are *directed*: they have to hold one construct with another one in a subquery, and ``seed`` after
    ``seed`` goes through all constructs, and all that may stand in their subqueries. The same
    seed always gives the same case.
    """
    menu = menu if menu is not None else Menu.accepted()
    rng = random.Random(seed)
    tables = random_tables(rng)
    initial = _initial(rng, tables)
    stream = Stream(rng, tables, initial)
    forward = [stream.step() for _ in range(steps - 1)]
    forward.append(stream.thinned() if rng.random() < 0.6 else stream.step())
    backward = [{name: d.inverse for name, d in step.items()} for step in reversed(forward)]
    queries = _queries(rng, tables, menu, seed, models)
    configs = {name: _config(rng) for name in queries}
    data = {
        "id": f"random-{seed}",
        "tables": tables,
        "initial": initial,
        "tables_options": {name: {"change_feed": rng.random() < 0.8} for name in tables},
        "models": [{"name": n, "sql": q.sql, "config": configs.get(n, {})} for n, q in queries.items()],
        "steps": [{"delta": {name: _raw(d) for name, d in step.items()}} for step in (*forward, *backward)],
        **_clock(menu, 2 * steps),
    }
    data["steps"] = [
        {**step, **clock}
        for step, clock in zip(data["steps"], data.pop("clock"), strict=True)  # type: ignore[call-overload]
    ]
    return Case(Scenario.model_validate(data), queries)


def _clock(menu: Menu, steps: int) -> dict[str, object]:
    """A clock that goes forward and back again with the tables, where queries read it."""
    if not menu.allows("clock"):
        return {"clock": [{}] * steps}
    days = [min(number, steps - number) for number in range(1, steps + 1)]
    return {
        "now": "2024-02-01T00:00:00",
        "clock": [{"now": f"2024-02-{1 + 4 * d:02}T00:00:00"} for d in days],
    }


def _initial(rng: random.Random, tables: _Tables) -> dict[str, Rows]:
    if rng.random() < 0.06:
        return {}  # everything arrives later
    return {
        name: random_rows(rng, columns, rng.choice((0, 6, 7, 8, 9, 10, 11)))
        for name, columns in tables.items()
    }


def base_relations(tables: Mapping[str, tuple[tuple[str, str], ...]]) -> dict[str, Columns]:
    """The tables as relations that queries can be generated over."""
    return {name: tuple((c, type_of(text)) for c, text in columns) for name, columns in tables.items()}


def _queries(rng: random.Random, tables: _Tables, menu: Menu, seed: int, count: int) -> dict[str, Query]:
    base = base_relations(tables)
    earlier: dict[str, Columns] = {}
    found: dict[str, Query] = {}
    for number in range(count):
        chained = dict(list(earlier.items())[-1:]) if rng.random() < _CHAINED else {}
        generator = Queries(rng, {**base, **chained}, menu)
        if rng.random() < _DIRECTED:
            parent, child = directed(menu, seed * count + number, rng)
            query = generator.query([parent], child)
        else:
            query = generator.query()
        name = f"v{number}"
        found[name] = query
        if any(type_.can_be_key for _, type_ in query.columns):
            earlier[name] = query.columns
    # Of their own numbers, so that the others are what they are without them.
    generator = Queries(random.Random(f"composed {seed}"), base, menu)
    for number in range(round(count * menu.composed)):
        found[f"w{number}"] = composed(generator)
    return found


def directed(menu: Menu, index: int, rng: random.Random) -> tuple[str, str]:
    """The constructs for the query of this index: consecutive ones go through all, each round with other children."""
    names, families = menu.names, menu.families
    number, turn = index % len(names), index // len(names)
    return names[number], _member(menu, families[(number + turn) % len(families)], rng)


def _member(menu: Menu, family: str, rng: random.Random) -> str:
    return rng.choice([name for name in menu.names if CONSTRUCTS[name].family == family])


def probe(rng: random.Random, tables: _Tables, menu: Menu, reason: str) -> Query | None:
    """A query with ``reason``, an entry of ``NOT_YET``, in it; None if it needs another one that is refused."""
    parent, _, child = reason.partition(" > ")
    allowed = menu.also(*(name for name in (parent, child) if name))
    for _ in range(8):
        query = Queries(rng, base_relations(tables), allowed).query([parent], child or None, depth=0)
        if reason in query.uses or (parent, child) in query.nestings:
            return query
    return None


def _config(rng: random.Random) -> dict[str, object]:
    """Now and then several hash buckets, or one MERGE per partition."""
    config: dict[str, object] = {}
    if rng.random() < 0.3:
        config["fivm_buckets"] = rng.choice((1, 3, 8))
    if rng.random() < 0.15:
        config["fivm_merge"] = "per_partition"
    return config


def _raw(delta: Delta) -> dict[str, Rows]:
    return {"insert": delta.insert, "delete": delta.delete}
