"""The catalog of parts: one table per schema, a row for each part of each relation that a viewdf model knows.

Rows of a model lie in a partition of their own, those of its inputs as this model has seen them among them: so models
that run side by side never write to the same files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from sqlglot import exp

from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.naming import part_catalog
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.part_plan import PART
from fivm_dbt.plan.plan import Plan
from fivm_dbt.spark.part_time import in_numbers, instant
from fivm_dbt.spark.reads import table
from fivm_dbt.spark.state import table_properties

COLUMNS: Mapping[str, str] = {
    "model": "STRING",
    "relation": "STRING",
    "part": "BIGINT",
    "part_timestamp": "TIMESTAMP",
    "length": "STRING",
    "status": "STRING",
    "row_count": "BIGINT",
    "last_updated": "TIMESTAMP",
    "input_versions": "STRING",
    "refresh": "BIGINT",
    "merged_into": "DATE",
}
"""``status``: there (of an input), computed, dropped, or merged, ``merged_into`` the files of the period that begins on
this day. ``last_updated`` moves when the content changes."""


@dataclass(frozen=True)
class PartEntry:
    """What is to be recorded of a part. ``is_changed``: its content is another than before, or new."""

    part: int
    rows: int
    is_changed: bool


@dataclass(frozen=True)
class Recorded:
    """By which refresh something is recorded, when, and from which versions of the inputs."""

    refresh: int
    at: datetime
    versions: str


def create_catalog(plan: Plan) -> exp.Create:
    """The table, if it is not there."""
    columns = [
        exp.ColumnDef(this=exp.to_identifier(name), kind=exp.DataType.build(kind, dialect="spark"))
        for name, kind in COLUMNS.items()
    ]
    properties = [
        exp.FileFormatProperty(this=exp.Identifier(this="DELTA")),
        exp.PartitionedByProperty(this=exp.Tuple(expressions=[exp.to_identifier("model")])),
        *table_properties({"delta.checkpointInterval": "100"}),
    ]
    return exp.Create(
        this=exp.Schema(this=_catalog(plan), expressions=columns),
        kind="TABLE",
        exists=True,
        properties=exp.Properties(expressions=properties),
    )


def forget_model(plan: Plan) -> exp.Delete:
    """Take out what is recorded of a model: it is built anew."""
    return exp.Delete(
        this=_catalog(plan), where=exp.Where(this=_is("model", exp.Literal.string(plan.relation)))
    )


def record_own(plan: Plan, length: Length, entries: Sequence[PartEntry], by: Recorded) -> exp.Merge:
    """Record parts of the model itself, which have been computed."""
    rows = [_literal_row(length, e.part, {"row_count": e.rows, "is_changed": e.is_changed}) for e in entries]
    source: exp.Query = rows[0] if len(rows) == 1 else exp.union(*rows, distinct=False, copy=False)
    is_changed = exp.column("is_changed", table="source")
    # Computed again, its rows lie where they lay.
    merged = exp.Literal.string("merged")
    updated = {
        "status": exp.Case(
            ifs=[exp.If(this=_is("status", merged, "target"), true=merged.copy())],
            default=exp.Literal.string("computed"),
        ),
        "row_count": exp.column("row_count", table="source"),
        "last_updated": exp.Case(
            ifs=[exp.If(this=is_changed, true=_at(by))], default=exp.column("last_updated", table="target")
        ),
        "input_versions": exp.Literal.string(by.versions),
        "refresh": exp.Literal.number(by.refresh),
    }
    return _merge(plan, plan.relation, length, source, updated, by, "computed")


def record_input(plan: Plan, relation: str, length: Length, source: exp.Query, by: Recorded) -> exp.Merge:
    """Record by how many rows parts of an input have changed. An attempt that is repeated changes nothing more."""
    is_new = exp.LT(this=exp.column("refresh", table="target"), expression=exp.Literal.number(by.refresh))
    total = exp.Add(
        this=exp.column("row_count", table="target"), expression=exp.column("row_count", table="source")
    )
    updated: dict[str, exp.Expr] = {
        "row_count": exp.Case(
            ifs=[exp.If(this=is_new, true=total)], default=exp.column("row_count", table="target")
        ),
        "last_updated": _at(by),
        "refresh": exp.Literal.number(by.refresh),
    }
    return _merge(plan, relation, length, source, updated, by, "there")


def input_rows(length: Length, staged: str, parts: Sequence[Sequence[object]] | None) -> exp.Query:
    """The changes of an input per part: from what lies staged, or, of calendar parts, from the ``parts`` themselves."""
    if parts is not None:
        rows = []
        for part, came, gone in parts:
            change = int(str(came)) - int(str(gone))
            rows.append(_literal_row(length, int(str(part)), {"row_count": change}))
        return rows[0] if len(rows) == 1 else exp.union(*rows, distinct=False, copy=False)
    begins = exp.Mul(this=exp.column(PART), expression=exp.Literal.number(length.many))
    columns = [
        exp.alias_(exp.column(PART), "part"),
        exp.alias_(exp.Anonymous(this="TIMESTAMP_SECONDS", expressions=[begins]), "part_timestamp"),
        exp.alias_(exp.Sub(this=exp.column("came"), expression=exp.column("gone")), "row_count"),
    ]
    return exp.select(*columns, copy=False).from_(table(staged), copy=False)


def mark_dropped(plan: Plan, relation: str, parts: Intervals) -> exp.Update:
    """Record that parts of the model, or of an input of it, have been taken away."""
    return _mark(plan, relation, parts, {"status": exp.Literal.string("dropped")})


def mark_merged(plan: Plan, parts: Intervals, into: date) -> exp.Update:
    """Record that the rows of old parts lie in the files of a longer period, by its first day."""
    day = exp.cast(exp.Literal.string(into.isoformat()), "date", dialect="spark")
    return _mark(plan, plan.relation, parts, {"status": exp.Literal.string("merged"), "merged_into": day})


def _mark(plan: Plan, relation: str, parts: Intervals, values: Mapping[str, exp.Expr]) -> exp.Update:
    own = exp.and_(
        _is("model", exp.Literal.string(plan.relation)),
        _is("relation", exp.Literal.string(relation)),
        in_numbers(exp.column("part"), parts),
    )
    settings = [exp.EQ(this=exp.column(column), expression=value) for column, value in values.items()]
    return exp.Update(this=_catalog(plan), expressions=settings, where=exp.Where(this=own))


def _literal_row(length: Length, part: int, values: Mapping[str, int | bool]) -> exp.Select:
    columns = [
        exp.alias_(_bigint(part), "part"),
        exp.alias_(instant(length.start_of(part), TIMESTAMP, "UTC"), "part_timestamp"),
    ]
    for name, value in values.items():
        shown = exp.Boolean(this=value) if isinstance(value, bool) else _bigint(value)
        columns.append(exp.alias_(shown, name))
    return exp.select(*columns, copy=False)


def _bigint(value: int) -> exp.Expr:
    number: exp.Expr = exp.Literal.number(abs(value))
    return exp.cast(number if value >= 0 else exp.Neg(this=number), "bigint", dialect="spark")


def _merge(
    plan: Plan,
    relation: str,
    length: Length,
    source: exp.Query,
    updated: Mapping[str, exp.Expr],
    by: Recorded,
    status: str,
) -> exp.Merge:
    inserted: dict[str, exp.Expr] = {
        "model": exp.Literal.string(plan.relation),
        "relation": exp.Literal.string(relation),
        "part": exp.column("part", table="source"),
        "part_timestamp": exp.column("part_timestamp", table="source"),
        "length": exp.Literal.string(str(length)),
        "status": exp.Literal.string(status),
        "row_count": exp.column("row_count", table="source"),
        "last_updated": _at(by),
        "input_versions": exp.Literal.string(by.versions),
        "refresh": exp.Literal.number(by.refresh),
        "merged_into": exp.Null(),
    }
    insert = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(c) for c in inserted]),
        expression=exp.Tuple(expressions=list(inserted.values())),
    )
    assignments = [exp.EQ(this=exp.column(c), expression=value) for c, value in updated.items()]
    same = exp.EQ(this=exp.column("part", table="target"), expression=exp.column("part", table="source"))
    return exp.Merge(
        this=_catalog(plan).as_("target", copy=False),
        using=source.subquery("source", copy=False),
        on=exp.and_(
            _is("model", exp.Literal.string(plan.relation), "target"),
            _is("relation", exp.Literal.string(relation), "target"),
            same,
        ),
        whens=exp.Whens(
            expressions=[
                exp.When(matched=True, then=exp.Update(expressions=assignments)),
                exp.When(matched=False, then=insert),
            ]
        ),
    )


def _is(column: str, value: exp.Expr, of: str = "") -> exp.Expr:
    return exp.EQ(this=exp.column(column, table=of or None), expression=value)


def _at(by: Recorded) -> exp.Expr:
    return instant(by.at, TIMESTAMP, "UTC")


def _catalog(plan: Plan) -> exp.Table:
    return table(part_catalog(plan.relation))
