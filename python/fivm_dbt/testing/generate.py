"""Random scenarios: tables, models over them and over other models, a stream of changes and its reverse."""

from __future__ import annotations

import random

from fivm_dbt.testing.generate_scalars import type_of
from fivm_dbt.testing.generate_sql import Columns, Queries
from fivm_dbt.testing.generate_tables import Delta, Rows, Stream, random_rows, random_tables
from fivm_dbt.testing.scenario import Scenario

_CHAINED = 0.3


def random_scenario(seed: int, models: int = 5, steps: int = 5) -> Scenario:
    """A scenario of ``models`` models and twice ``steps`` steps, of which the second half undoes the first.

    The same seed always gives the same scenario.
    """
    rng = random.Random(seed)
    tables = random_tables(rng)
    initial = _initial(rng, tables)
    stream = Stream(rng, tables, initial)
    forward = [stream.step() for _ in range(steps)]
    backward = [{name: d.inverse for name, d in step.items()} for step in reversed(forward)]
    data = {
        "id": f"random-{seed}",
        "tables": tables,
        "initial": initial,
        "tables_options": {name: {"change_feed": rng.random() < 0.8} for name in tables},
        "models": _models(rng, tables, models),
        "steps": [{"delta": {name: _raw(d) for name, d in step.items()}} for step in (*forward, *backward)],
    }
    return Scenario.model_validate(data)


def _initial(rng: random.Random, tables: dict[str, tuple[tuple[str, str], ...]]) -> dict[str, Rows]:
    if rng.random() < 0.12:
        return {}  # everything arrives later
    return {
        name: random_rows(rng, columns, rng.choice((0, 4, 5, 6, 7, 8, 9))) for name, columns in tables.items()
    }


def _models(
    rng: random.Random, tables: dict[str, tuple[tuple[str, str], ...]], count: int
) -> list[dict[str, object]]:
    base: dict[str, Columns] = {
        name: tuple((column, type_of(text)) for column, text in columns) for name, columns in tables.items()
    }
    earlier: dict[str, Columns] = {}
    models: list[dict[str, object]] = []
    for number in range(count):
        chained = dict(list(earlier.items())[-1:]) if rng.random() < _CHAINED else {}
        query = Queries(rng, {**base, **chained}).query()
        name = f"v{number}"
        models.append({"name": name, "sql": query.sql, "config": _config(rng)})
        if any(type_.can_be_key for _, type_ in query.columns):
            earlier[name] = query.columns
    return models


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
