"""A model that learns is trained anew when it is its turn and the moments that it learns from have changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from fivm_dbt.catalog import Column
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.learning.config import LearningConfig, load
from fivm_dbt.learning.moments import Term
from fivm_dbt.learning.payload import Key, Shape, groups_of
from fivm_dbt.learning.training import KINDS
from fivm_dbt.refresh.engine import Row
from fivm_dbt.spark.trained import (
    LEARNED_FROM,
    SKIPPED,
    TRAINED,
    coefficients_query,
    moments_query,
    skipping,
    trained_rows,
    trained_table,
)
from fivm_dbt.sql.functions import is_non_deterministic
from fivm_dbt.sql.parse import parse
from fivm_dbt.sql.relations import relations_read

_NUMBER = "refresh"
"""Column of a trained table: how often it has been trained."""


@dataclass(frozen=True)
class Trained:
    """What a run has done, in one line: ``trained``, ``no change`` of the moments, or ``waiting`` for its turn."""

    action: str
    rows: int
    line: str


@dataclass(frozen=True)
class _Before:
    """What the last training has left."""

    number: int = 0
    learned_from: str = ""
    skipped: int = 0


def train_model(
    engine: SparkEngine,
    relation: str,
    *,
    kind: str,
    sql: str,
    meta: Mapping[str, object],
    full_refresh: bool,
    make_way: Callable[[], None] | None = None,
) -> Trained:
    """Write the table ``relation`` of a model of a kind, which learns from the rows of ``sql``.

    ``make_way`` drops what is no table and has its name, when everything has been learned.

    Raises FIVM201 for a wrong configuration and FIVM208 for a query that cannot be learned from, before anything is
    written.
    """
    of_kind = KINDS[kind]
    config = load(of_kind.config, meta, model=relation)
    shape = Shape.of(engine.describe(sql), config, getattr(config, "fivm_holdout", None))
    columns = {**of_kind.columns, _NUMBER: "bigint"}
    before = _Before() if full_refresh else _left(engine, relation, shape, columns)
    if before.number and (config.fivm_every == "never" or before.skipped + 1 < config.fivm_every):
        engine.run(skipping(relation, before.skipped + 1).sql(dialect="spark"))
        return Trained("waiting", 0, f"{relation}: waiting, fivm_every is {config.fivm_every}")
    rows = _moments(engine, sql, shape)
    learned_from = _digest(rows, config)
    if before.learned_from == learned_from:
        return Trained("no change", 0, f"{relation}: no change")
    groups = groups_of(rows, shape)
    is_continued = before.number > 0 and getattr(config, "fivm_solver", None) == "gradient_descent"
    last = _coefficients(engine, relation, shape) if is_continued else {}
    found = [(key, (*row, before.number + 1)) for key, row in of_kind.learn(groups, config, last)]
    properties = {LEARNED_FROM: learned_from, TRAINED: str(before.number + 1)}
    learned = trained_rows(shape.keys, columns, found)
    if make_way is not None:
        make_way()
    written = trained_table(relation, learned, properties).sql(dialect="spark")
    if before.number:
        instead = {**properties, SKIPPED: "0"}
        engine.replace(relation, learned.sql(dialect="spark"), instead, written)
    else:
        engine.run(written)
    many = "1 group" if len(groups) == 1 else f"{len(groups):,} groups"
    return Trained("trained", len(found), f"{relation}: trained from {many}; {len(found):,} rows written")


def _moments(engine: SparkEngine, sql: str, shape: Shape) -> Sequence[Row]:
    """What is learned from. Models of one run that learn from the same versions read them once."""
    query = moments_query(sql, shape.keys, shape.holdout, shape.moments).sql(dialect="spark")
    if any(is_non_deterministic(node) for node in parse(sql).walk()):
        return engine.query(query)
    versions = engine.newest(read.name for read in relations_read(sql))
    return engine.query(query) if versions is None else engine.answers.of(query, versions, engine.query)


def _left(engine: SparkEngine, relation: str, shape: Shape, columns: Mapping[str, str]) -> _Before:
    """What the last training has left, nothing where it was of other columns or groups."""
    described = engine.described(relation)
    if described is None or described.is_view or not _is_of(described.columns, shape, columns):
        return _Before()
    properties = dict(described.properties)
    number, skipped = (int(properties.get(name, "0")) for name in (TRAINED, SKIPPED))
    return _Before(number, properties.get(LEARNED_FROM, ""), skipped)


def _coefficients(engine: SparkEngine, relation: str, shape: Shape) -> dict[Key, dict[Term, float]]:
    """Where gradient descent goes on: by group the coefficients of the last training."""
    found: dict[Key, dict[Term, float]] = {}
    for row in engine.query(coefficients_query(relation, shape.keys).sql(dialect="spark")):
        *key, variable, category, value = row
        texts = tuple(None if part is None else str(part) for part in key)
        term = Term(str(variable), None if category is None else str(category))
        found.setdefault(texts, {})[term] = 0.0 if value is None else float(str(value))
    return found


def _is_of(found: Sequence[Column], shape: Shape, columns: Mapping[str, str]) -> bool:
    """Whether a table has these keys and columns, with these types."""
    wanted = [(c.name.lower(), c.type.text) for c in shape.keys] + list(columns.items())
    return [(c.name.lower(), c.type.text) for c in found] == wanted


def _digest(rows: Sequence[Sequence[object]], config: LearningConfig) -> str:
    """What a model is trained from, whatever the order of the rows."""
    texts = sorted(json.dumps([None if v is None else str(v) for v in row]) for row in rows)
    told = json.dumps([config.model_dump(mode="json"), texts], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]
