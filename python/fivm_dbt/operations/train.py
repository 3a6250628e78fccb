"""A model that learns is trained anew when it is its turn and the moments that it learns from have changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from fivm_dbt.catalog import Column
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.learning.config import LearningConfig, load
from fivm_dbt.learning.moments import Term
from fivm_dbt.learning.payload import Key, Shape, groups_of
from fivm_dbt.learning.training import KINDS
from fivm_dbt.spark.trained import (
    LEARNED_FROM,
    SKIPPED,
    coefficients_query,
    moments_query,
    number_query,
    skipping,
    trained_table,
)

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
    coefficients: Mapping[Key, Mapping[Term, float]] = field(default_factory=dict)


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
    query = moments_query(sql, shape.keys, shape.holdout, shape.moments)
    rows = engine.query(query.sql(dialect="spark"))
    learned_from = _digest(rows, config)
    if before.learned_from == learned_from:
        return Trained("no change", 0, f"{relation}: no change")
    groups = groups_of(rows, shape)
    found = [
        (key, (*row, before.number + 1)) for key, row in of_kind.learn(groups, config, before.coefficients)
    ]
    written = trained_table(relation, shape.keys, columns, found, {LEARNED_FROM: learned_from})
    if make_way is not None:
        make_way()
    engine.run(written.sql(dialect="spark"))
    many = "1 group" if len(groups) == 1 else f"{len(groups):,} groups"
    return Trained("trained", len(found), f"{relation}: trained from {many}; {len(found):,} rows written")


def _left(engine: SparkEngine, relation: str, shape: Shape, columns: Mapping[str, str]) -> _Before:
    """What the last training has left, nothing where it was of other columns or groups."""
    described = engine.described(relation)
    if described is None or described.is_view or not _is_of(described.columns, shape, columns):
        return _Before()
    properties = dict(described.properties)
    ((number,),) = engine.query(number_query(relation, _NUMBER).sql(dialect="spark"))
    coefficients: dict[Key, dict[Term, float]] = {}
    if "coefficient" in columns:
        for row in engine.query(coefficients_query(relation, shape.keys).sql(dialect="spark")):
            *key, variable, category, value = row
            texts = tuple(None if part is None else str(part) for part in key)
            term = Term(str(variable), None if category is None else str(category))
            coefficients.setdefault(texts, {})[term] = 0.0 if value is None else float(str(value))
    return _Before(
        0 if number is None else int(str(number)),
        properties.get(LEARNED_FROM, ""),
        int(properties.get(SKIPPED, "0")),
        coefficients,
    )


def _is_of(found: Sequence[Column], shape: Shape, columns: Mapping[str, str]) -> bool:
    """Whether a table has these keys and columns, with these types."""
    wanted = [(c.name.lower(), c.type.text) for c in shape.keys] + list(columns.items())
    return [(c.name.lower(), c.type.text) for c in found] == wanted


def _digest(rows: Sequence[Sequence[object]], config: LearningConfig) -> str:
    """What a model is trained from, whatever the order of the rows."""
    texts = sorted(json.dumps([None if v is None else str(v) for v in row]) for row in rows)
    told = json.dumps([config.model_dump(mode="json"), texts], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:16]
