"""The catalog of a model's parts has a row for each part that the model knows.

That of a fivm model is a table, with the time partitions that refreshes have changed. Viewdf models show theirs from
the heads of their states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlglot import exp

from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.ir.scalar import as_type
from fivm_dbt.naming import parts_of
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.spark.formats import FORMAT, Need
from fivm_dbt.spark.part_time import in_numbers, instant, whole
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.properties import owner_properties
from fivm_dbt.spark.reads import written
from fivm_dbt.spark.state import create_table

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
"""``relation`` is the model, or an input whose parts it has seen. ``status``: there (of an input), computed, dropped,
or merged, ``merged_into`` the files of the period that begins on this day. ``row_count`` is known of own parts.
``last_updated`` moves when the content changes. ``input_versions``: those of all inputs, as JSON, from which a part was
computed the last time, or at which the last change of an input's part was seen."""


@dataclass(frozen=True)
class PartEntry:
    """A part with its rows, which have changed."""

    part: int
    rows: int


@dataclass(frozen=True)
class Recorded:
    """By which refresh something is recorded, when, and from which versions of the inputs."""

    refresh: int
    at: datetime
    versions: str


def create_catalog(plan: Plan, length: Length, entries: Sequence[PartEntry], by: Recorded) -> exp.Create:
    """The table with the parts of a build, in the place of one that is there."""
    properties = {**FORMAT.properties([Need.MANY_COMMITS]), **owner_properties(plan)}
    columns = [exp.alias_(as_type(v, COLUMNS[n].lower()), n) for n, v in _inserted(plan, length, by).items()]
    # A model without rows has a catalog without rows, with the same columns.
    source = _named(length, entries or [PartEntry(0, 0)])
    rows = exp.select(*columns).from_(source.subquery("source", copy=False), copy=False)
    rows = rows if entries else rows.where(exp.false(), copy=False)
    return create_table(parts_of(plan.relation), rows, properties)


def record_parts(plan: Plan, length: Length, entries: Sequence[PartEntry], by: Recorded) -> exp.Merge:
    """Record parts that have changed. What is repeated changes nothing more."""
    # As literals, by which Delta skips the files of all other parts: a source's columns tell it nothing.
    among = in_numbers(exp.column("part", table="target"), Intervals.numbers(e.part for e in entries))
    inserted = _inserted(plan, length, by)
    insert = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(c) for c in inserted]),
        expression=exp.Tuple(expressions=list(inserted.values())),
    )
    again = [
        exp.EQ(this=exp.column(c), expression=inserted[c].copy())
        for c in ("row_count", "last_updated", "input_versions", "refresh")
    ]
    is_same = exp.EQ(this=exp.column("part", table="target"), expression=exp.column("part", table="source"))
    return exp.Merge(
        this=table(parts_of(plan.relation)).as_("target", copy=False),
        using=_named(length, entries).subquery("source", copy=False),
        on=exp.and_(among, is_same, copy=False),
        whens=exp.Whens(
            expressions=[
                exp.When(matched=True, then=exp.Update(expressions=again)),
                exp.When(matched=False, then=insert),
            ]
        ),
    )


def _named(length: Length, entries: Sequence[PartEntry]) -> exp.Select:
    """Parts, each with when it begins and its rows."""
    columns = {"part": "bigint", "part_timestamp": "timestamp_ltz", "row_count": "bigint"}
    values = [(whole(e.part), instant(length.start_of(e.part), TIMESTAMP), whole(e.rows)) for e in entries]
    return written(values, columns, "parts")


def _inserted(plan: Plan, length: Length, by: Recorded) -> dict[str, exp.Expr]:
    """The row of a part that was not known."""
    return {
        "model": exp.Literal.string(plan.relation),
        "relation": exp.Literal.string(plan.relation),
        "part": exp.column("part", table="source"),
        "part_timestamp": exp.column("part_timestamp", table="source"),
        "length": exp.Literal.string(str(length)),
        "status": exp.Literal.string("computed"),
        "row_count": exp.column("row_count", table="source"),
        "last_updated": instant(by.at, TIMESTAMP),
        "input_versions": exp.Literal.string(by.versions),
        "refresh": exp.Literal.number(by.refresh),
        "merged_into": as_type(exp.Null(), "date"),
    }
