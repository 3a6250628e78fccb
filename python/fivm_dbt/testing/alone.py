"""Random queries without a planner: do they run, and is there one answer whatever the order of the rows?

What fails here is a mistake of the generator or of the translation to DuckDB, not of the planner.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from fivm_dbt.catalog import Column
from fivm_dbt.catalog.types import STRING
from fivm_dbt.engines.duckdb import DuckDbEngine
from fivm_dbt.refresh.engine import Row
from fivm_dbt.sql.splice import splice_inputs
from fivm_dbt.testing.compare import compare_rows
from fivm_dbt.testing.constructs import Menu
from fivm_dbt.testing.generate import base_relations, directed
from fivm_dbt.testing.generate_query import Query
from fivm_dbt.testing.generate_sql import Queries
from fivm_dbt.testing.generate_tables import random_rows, random_tables
from fivm_dbt.testing.values import to_rows


@dataclass(frozen=True)
class Alone:
    """What became of some queries: all, those with rows, and what was wrong."""

    queries: tuple[Query, ...] = ()
    with_rows: int = 0
    failures: tuple[str, ...] = ()

    def __add__(self, other: Alone) -> Alone:
        return Alone(
            self.queries + other.queries, self.with_rows + other.with_rows, self.failures + other.failures
        )


def run_alone(seed: int, menu: Menu | None = None, count: int = 5) -> Alone:
    """Run ``count`` queries over all constructs, each over the same rows in two orders."""
    menu = menu if menu is not None else Menu()
    rng = random.Random(seed)
    tables = random_tables(rng)
    done = Alone()
    with closing(DuckDbEngine(tiny=True)) as engine:
        for name, columns in tables.items():
            typed = tuple(Column.of(column, type_) for column, type_ in columns)
            raw = random_rows(rng, columns, rng.choice((0, 4, 5, 6, 7, 8, 9)))
            rows = list(to_rows(raw, [c.type for c in typed]))
            engine.create_table(f"one.{name}", typed, rows)
            rng.shuffle(rows)
            engine.create_table(f"other.{name}", typed, rows)
        for number in range(count):
            parent, child = directed(menu, seed * count + number, rng)
            query = Queries(rng, base_relations(tables), menu).query([parent], child)
            done += _run(engine, query, list(tables))
    return done


def _run(engine: DuckDbEngine, query: Query, tables: list[str]) -> Alone:
    first, second = (
        splice_inputs(query.sql, {table: f"{schema}.{table}" for table in tables})
        for schema in ("one", "other")
    )
    try:
        rows, others = engine.query(first), engine.query(second)
    except Exception as error:  # whatever it is, the query cannot be used
        return Alone((query,), 0, (f"{type(error).__name__}: {error}\n{query.sql}",))
    if any(len(row) != len(query.columns) for row in rows):
        return Alone((query,), 0, (f"not {len(query.columns)} columns\n{query.sql}",))
    wrong = _not_equal(rows, others, len(query.columns))
    return Alone((query,), int(bool(rows)), (f"{wrong}\n{query.sql}",) if wrong else ())


def _not_equal(rows: Sequence[Row], others: Sequence[Row], width: int) -> str:
    """Both come from DuckDB, so that their values can be compared as they are."""
    difference = compare_rows(rows, others, [STRING] * width)
    return (
        "\n".join(["depends on the order of rows", *difference.lines("one", "other")]) if difference else ""
    )
