"""Random queries run alone: each must have one answer whatever the order of the rows.

Where a text has several, its completed one must have one: that is what refresh and recompute run. What fails here is a
mistake of the generator, of the translation to DuckDB or of the completion, not of maintenance.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.catalog.types import STRING
from fivm_dbt.config import load_config
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.errors import FivmError
from fivm_dbt.naming import canonical
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fivm_dbt.sql.splice import splice_inputs
from fivm_dbt.testing.compare import compare_rows, with_lists_sorted
from fivm_dbt.testing.values import to_rows
from generator.cases import base_relations, directed
from generator.constructs import Menu
from generator.queries.query import Query
from generator.queries.sql import Queries
from generator.tables import random_rows, random_tables


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
    menu = (menu if menu is not None else Menu()).without(("pattern",))
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
            done += _run(engine, query, tables)
    return done


def _run(engine: DuckDbEngine, query: Query, tables: Mapping[str, Sequence[tuple[str, str]]]) -> Alone:
    try:
        rows, others = _in_both_orders(engine, query.sql, tables)
    except Exception as error:  # whatever it is, the query cannot be used
        return Alone((query,), 0, (f"{type(error).__name__}: {error}\n{query.sql}",))
    if any(len(row) != len(query.columns) for row in rows):
        return Alone((query,), 0, (f"not {len(query.columns)} columns\n{query.sql}",))
    width, with_rows = len(query.columns), int(bool(rows))
    if not _not_equal(rows, others, width):
        return Alone((query,), with_rows)
    completed = _completed(query.sql, tables)
    if completed is None:
        return Alone((query,), with_rows)
    rows, others = _in_both_orders(engine, completed, tables)
    wrong = _not_equal(rows, others, width)
    return Alone((query,), with_rows, (f"{wrong}\n{completed}",) if wrong else ())


def _in_both_orders(
    engine: DuckDbEngine, sql: str, tables: Mapping[str, Sequence[tuple[str, str]]]
) -> list[list[Row]]:
    """The rows of a query over the tables in the one order and in the other; lists are bags."""
    answers = []
    for schema in ("one", "other"):
        rows = engine.query(splice_inputs(sql, {table: f"{schema}.{table}" for table in tables}))
        answers.append([with_lists_sorted(row) for row in rows])
    return answers


def _completed(sql: str, tables: Mapping[str, Sequence[tuple[str, str]]]) -> str | None:
    """The text that decides all ties, None of a query that is refused."""
    relations = [
        Relation(canonical(name), tuple(Column.of(column, type_) for column, type_ in columns))
        for name, columns in tables.items()
    ]
    try:
        return plan_model(ModelRequest("alone", sql, Catalog.of(relations), load_config({}))).completed_sql
    except FivmError:
        return None


def _not_equal(rows: Sequence[Row], others: Sequence[Row], width: int) -> str:
    """Both come from DuckDB, so that their values can be compared as they are."""
    difference = compare_rows(rows, others, [STRING] * width)
    return (
        "\n".join(["depends on the order of rows", *difference.lines("one", "other")]) if difference else ""
    )
