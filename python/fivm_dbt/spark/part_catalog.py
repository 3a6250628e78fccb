"""The catalog of parts has one table per schema, with a row for each part that a model knows.

Rows of a model lie in a partition of their own, those of its inputs as this model has seen them among them: so models
that run side by side never write to the same files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from sqlglot import exp

from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.ir.scalar import as_type
from fivm_dbt.naming import part_catalog
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.spark.formats import FORMAT, Need
from fivm_dbt.spark.part_time import in_numbers, instant, whole
from fivm_dbt.spark.pieces import table, union_all
from fivm_dbt.spark.properties import storage
from fivm_dbt.spark.reads import written

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
this day. ``last_updated`` moves when the content changes. ``input_versions``: those of all inputs, as JSON, from
which a part was computed the last time, or at which the last change of an input's part was seen."""


@dataclass(frozen=True)
class PartEntry:
    """What is to be recorded of a part. ``is_changed``: its content is another than before, or new."""

    part: int
    rows: int
    is_changed: bool


@dataclass(frozen=True)
class InputParts:
    """Parts of an input in which rows have changed: each with how many more there are, or fewer."""

    relation: str
    length: Length
    changes: tuple[tuple[int, int], ...]

    @property
    def parts(self) -> Intervals:
        return Intervals.numbers(part for part, _ in self.changes)

    def among(self, parts: Intervals, is_among: bool) -> InputParts:
        """Those that are among some parts, or those that are not."""
        return replace(self, changes=tuple(c for c in self.changes if (c[0] in parts) is is_among))

    def groups(self, many: int) -> list[InputParts]:
        """The same in pieces of so many parts."""
        starts = range(0, len(self.changes), many)
        return [InputParts(self.relation, self.length, self.changes[at : at + many]) for at in starts]


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
    return exp.Create(
        this=exp.Schema(this=catalog_of(plan), expressions=columns),
        kind="TABLE",
        exists=True,
        properties=storage(FORMAT.properties([Need.MANY_COMMITS]), ["model"]),
    )


def forget_model(plan: Plan) -> exp.Delete:
    """Take out what is recorded of a model: it is built anew."""
    return exp.Delete(
        this=catalog_of(plan), where=exp.Where(this=equals("model", exp.Literal.string(plan.relation)))
    )


def record_parts(
    plan: Plan,
    length: Length,
    entries: Sequence[PartEntry],
    inputs: Sequence[InputParts],
    by: Recorded,
    *,
    is_counted: bool = False,
) -> exp.Merge:
    """Record parts of the model itself, which have been computed, and by how many rows those of inputs have changed.

    What is repeated changes nothing more. ``is_counted`` says that inputs come with how many rows they have.
    """
    # As literals, by which Delta skips the files of all other parts: a source's columns tell it nothing.
    own = Intervals.numbers(e.part for e in entries)
    numbers = [own, *(Intervals.numbers(part for part, _ in i.changes) for i in inputs)]
    among = Intervals.of(*((parts.first, parts.last) for parts in numbers if parts))
    source = named_parts(plan, length, entries, inputs)
    again = _input_again(by, is_counted=is_counted)
    return _merge(plan, source, by, again, in_numbers(exp.column("part", table="target"), among))


def named_parts(
    plan: Plan, length: Length, entries: Sequence[PartEntry], inputs: Sequence[InputParts]
) -> exp.Query:
    """The rows of named parts."""
    rows = [
        _entries(i.relation, i.length, [(part, change, True) for part, change in i.changes], is_own=False)
        for i in inputs
        if i.changes
    ]
    if entries:
        own_rows = [(e.part, e.rows, e.is_changed) for e in entries]
        rows.insert(0, _entries(plan.relation, length, own_rows, is_own=True))
    return union_all(rows)


def _entries(
    relation: str, length: Length, rows: Sequence[tuple[int, int, bool]], *, is_own: bool
) -> exp.Select:
    """Parts of a relation, each with its rows and whether it has changed."""
    columns = {
        "part": "bigint",
        "part_timestamp": "timestamp_ltz",
        "row_count": "bigint",
        "is_changed": "boolean",
    }
    values = [
        (
            whole(part),
            instant(length.start_of(part), TIMESTAMP),
            whole(count),
            exp.Boolean(this=is_changed),
        )
        for part, count, is_changed in rows
    ]
    return written(values, columns, "parts").select(
        exp.alias_(exp.Literal.string(relation), "relation"),
        exp.alias_(exp.Literal.string(str(length)), "length"),
        exp.alias_(exp.Boolean(this=is_own), "is_own"),
        copy=False,
    )


def inserted_parts(plan: Plan, source: exp.Query, by: Recorded) -> exp.Insert:
    """Record parts that are new, the rows of ``source``."""
    columns = [exp.alias_(value, name) for name, value in _inserted(plan, by).items()]
    rows = exp.select(*columns).from_(source.subquery("source", copy=False), copy=False)
    named = exp.Schema(this=catalog_of(plan), expressions=[exp.to_identifier(c) for c in COLUMNS])
    return exp.Insert(this=named, expression=rows)


def _inserted(plan: Plan, by: Recorded) -> dict[str, exp.Expr]:
    """The row of a part that was not known."""
    is_own = exp.column("is_own", table="source")
    return {
        "model": exp.Literal.string(plan.relation),
        "relation": exp.column("relation", table="source"),
        "part": exp.column("part", table="source"),
        "part_timestamp": exp.column("part_timestamp", table="source"),
        "length": exp.column("length", table="source"),
        "status": exp.Case(
            ifs=[exp.If(this=is_own, true=exp.Literal.string("computed"))],
            default=exp.Literal.string("there"),
        ),
        "row_count": exp.column("row_count", table="source"),
        "last_updated": _at(by),
        "input_versions": exp.Literal.string(by.versions),
        "refresh": exp.Literal.number(by.refresh),
        "merged_into": as_type(exp.Null(), "date"),
    }


def _merge(
    plan: Plan, source: exp.Query, by: Recorded, again: Mapping[str, exp.Expr], where: exp.Expr
) -> exp.Merge:
    inserted = _inserted(plan, by)
    insert = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(c) for c in inserted]),
        expression=exp.Tuple(expressions=list(inserted.values())),
    )
    same = [
        exp.EQ(this=exp.column(c, table="target"), expression=exp.column(c, table="source"))
        for c in ("relation", "part")
    ]
    return exp.Merge(
        this=catalog_of(plan).as_("target", copy=False),
        using=source.subquery("source", copy=False),
        on=exp.and_(equals("model", exp.Literal.string(plan.relation), "target"), where, *same),
        whens=exp.Whens(
            expressions=[
                exp.When(
                    matched=True, condition=exp.column("is_own", table="source"), then=_update(_own_again(by))
                ),
                exp.When(matched=True, then=_update(again)),
                exp.When(matched=False, then=insert),
            ]
        ),
    )


def _update(values: Mapping[str, exp.Expr]) -> exp.Update:
    return exp.Update(expressions=[exp.EQ(this=exp.column(c), expression=v) for c, v in values.items()])


def _own_again(by: Recorded) -> dict[str, exp.Expr]:
    """What becomes of the row of a part that has been computed again."""
    is_changed = exp.column("is_changed", table="source")
    # Computed again, its rows lie where they lay.
    merged = exp.Literal.string("merged")
    return {
        "status": exp.Case(
            ifs=[exp.If(this=equals("status", merged, "target"), true=merged.copy())],
            default=exp.Literal.string("computed"),
        ),
        "row_count": exp.column("row_count", table="source"),
        "last_updated": exp.Case(
            ifs=[exp.If(this=is_changed, true=_at(by))], default=exp.column("last_updated", table="target")
        ),
        "input_versions": exp.Literal.string(by.versions),
        "refresh": exp.Literal.number(by.refresh),
    }


def _input_again(by: Recorded, *, is_counted: bool) -> dict[str, exp.Expr]:
    """What becomes of the row of an input's part in which rows have changed."""
    count = exp.column("row_count", table="source") if is_counted else _added_rows(by)
    return {
        "row_count": count,
        "last_updated": _at(by),
        "input_versions": exp.Literal.string(by.versions),
        "refresh": exp.Literal.number(by.refresh),
    }


def _added_rows(by: Recorded) -> exp.Expr:
    """The rows of a part of an input with those that came, unless this refresh has recorded them already."""
    is_new = exp.LT(this=exp.column("refresh", table="target"), expression=exp.Literal.number(by.refresh))
    total = exp.Add(
        this=exp.column("row_count", table="target"), expression=exp.column("row_count", table="source")
    )
    return exp.Case(ifs=[exp.If(this=is_new, true=total)], default=exp.column("row_count", table="target"))


def equals(column: str, value: exp.Expr, of: str = "") -> exp.Expr:
    """A column of the catalog has this value."""
    return exp.EQ(this=exp.column(column, table=of or None), expression=value)


def _at(by: Recorded) -> exp.Expr:
    return instant(by.at, TIMESTAMP)


def catalog_of(plan: Plan) -> exp.Table:
    """The table."""
    return table(part_catalog(plan.relation))
