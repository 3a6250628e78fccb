"""Queries give the rows of parts: of relations that are read, and of INITIALIZE and UPDATE (ViewDF, 4)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT, TIMESTAMP
from fivm_dbt.features.viewdf.plan.by_part import WANTED
from fivm_dbt.features.viewdf.plan.model import (
    PART,
    PartInput,
    PartQuery,
    PartRead,
    Together,
    ViewdfPlan,
    unit_of_periods,
)
from fivm_dbt.ir.reads import Read, Scan
from fivm_dbt.ir.scalar import as_type, cast_ast, column_ast, identifier
from fivm_dbt.naming import PARTITION
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import PART_TIMESTAMP
from fivm_dbt.parts.reference import Bound, PartReference
from fivm_dbt.spark.formats import FORMAT
from fivm_dbt.spark.part_time import floored, in_numbers, in_parts, instant, number_of, start_of, whole
from fivm_dbt.spark.pieces import table, union_all
from fivm_dbt.spark.reads import presented, read_version, whole_as_text, written
from fivm_dbt.spark.select import select
from fivm_dbt.spark.written_out import written_out
from fivm_dbt.sql.splice import splice_inputs

MAX_RANGES = 16
"""So many separate ranges are read at most, by filling the smallest gaps: conditions cost too. Writes are exact."""

_ENDS = ("first_part", "last_part")

_FEW = 8
"""So many parts are written down one by one where their times could be computed."""

Query = exp.Query
"""A query, for those who only pass it on."""

Versions = Mapping[str, int]
"""The version at which each relation is read. The own state is read as it is now where it is left out: parts are
computed from earlier ones that may have been written a moment before, and no change of it is read beside it."""


def all_rows(plan: ViewdfPlan, item: PartInput, versions: Versions) -> exp.Expr:
    """The whole of an input, for the first look at which parts it has."""
    return _whole(plan, item.relation, versions)


def rows_of(plan: ViewdfPlan, item: PartInput, parts: Intervals, versions: Versions) -> exp.Select:
    """The rows of some parts of an input, or of the model itself, all its columns."""
    where = in_parts(exp.column(identifier(item.column)), item.type, item.counted, parts)
    return exp.select("*").from_(_whole(plan, item.relation, versions)).where(where, copy=False)


def _whole(plan: ViewdfPlan, relation: str, versions: Versions) -> exp.Expr:
    if relation != plan.relation:
        return read_version(plan, relation, versions[relation], "whole")
    state = plan.state_relation
    own = FORMAT.pinned(state, versions[state]) if state in versions else table(state)
    return presented(plan.presentation, own).subquery(identifier("whole"), copy=False)


def part_query(plan: ViewdfPlan, query: PartQuery, part: int, versions: Versions) -> exp.Select:
    """INITIALIZE or UPDATE for one part, in the columns of the state: the user's text, each reference at its parts."""
    parts = plan.parts
    texts = {name: whole_as_text(plan, name, versions[name]) for name in parts.plain}
    for read in query.reads:
        wanted = read.reference.parts(part)
        rows = rows_of(
            plan,
            parts.input(read.reference.relation),
            Intervals.of((wanted.start, wanted.stop - 1)),
            versions,
        )
        texts[read.placeholder] = f"({rows.sql(dialect='spark')})"
    text = splice_inputs(written_out(query.sql, query.matches), texts)
    start = parts.length.start_of(part)
    keys = plan.root.keys[:-1]
    columns = [exp.alias_(cast_ast(column_ast("", k.name), k.type), identifier(k.name)) for k in keys]
    columns += [exp.alias_(instant(start, TIMESTAMP), PART_TIMESTAMP)]
    columns += [exp.alias_(_partition(plan, part), PARTITION)]
    # The text may end in a comment: the bracket goes on a line of its own.
    named = ", ".join(identifier(name).sql(dialect="spark") for name in query.names)
    source = exp.Var(this=f"(\n{text}\n) AS part({named})")
    chosen = exp.select(*columns)
    chosen.set("from_", exp.From(this=source))
    return chosen


def together_query(plan: ViewdfPlan, wanted: Intervals, versions: Versions) -> exp.Select:
    """UPDATE for many parts, in the columns of the state."""
    together = plan.parts.together
    assert together is not None
    return with_times(plan, rows_together(plan, together, wanted, versions), wanted)


def with_times(plan: ViewdfPlan, rows: exp.Query, wanted: Intervals) -> exp.Select:
    """Rows of the wanted parts, with PART, in the columns of the state."""
    columns = [column_ast("part", k.name) for k in plan.root.keys[:-1]]
    source = rows.subquery("part", copy=False)
    if plan.parts.length.zone == "UTC":
        start, partition = _made(column_ast("part", PART), plan.parts.length)
        return exp.select(*columns, start, partition, copy=False).from_(source, copy=False)
    columns += [column_ast("named", PART_TIMESTAMP), column_ast("named", PARTITION)]
    query = exp.select(*columns, copy=False).from_(source, copy=False)
    same = exp.EQ(this=column_ast("part", PART), expression=column_ast("named", PART))
    return query.join(named_parts(plan, wanted), on=same, join_type="inner", copy=False)


def rows_together(plan: ViewdfPlan, together: Together, wanted: Intervals, versions: Versions) -> exp.Select:
    """What a query gives for many parts: the columns of the state, and PART."""
    parts = plan.parts
    reads = {r.placeholder: r for r in parts.update.reads}

    def read(node: Read) -> exp.Expr:
        assert isinstance(node, Scan)
        if node.relation == WANTED:
            return (
                exp.select(exp.column(PART)).from_(named_parts(plan, wanted)).subquery(identifier(node.alias))
            )
        if node.relation not in reads:
            return read_version(plan, node.relation, versions[node.relation], node.alias)
        rows = _with_parts(plan, node, reads[node.relation], wanted, versions)
        return rows.subquery(identifier(node.alias), copy=False)

    rows = select(together.node, read)
    fields = [f.name for f in together.node.fields[:-1]]
    kept = {n.lower(): f for n, f in zip(together.names, fields, strict=True) if n.lower() != PART_TIMESTAMP}
    columns = [
        exp.alias_(cast_ast(column_ast("together", kept[c.name.lower()]), k.type), identifier(k.name))
        for c, k in zip(parts.columns, plan.root.keys, strict=False)
    ]
    columns.append(column_ast("together", PART))
    return exp.select(*columns, copy=False).from_(rows.subquery("together", copy=False), copy=False)


def parts_query(plan: ViewdfPlan, first: int | None, parts: Intervals, versions: Versions) -> exp.Query:
    """What INITIALIZE and UPDATE give for some parts, those before them taken as they are stored."""
    chosen = plan.parts
    queries: list[exp.Query] = []
    alone = Intervals.of((first, first)) if first is not None and first in parts else Intervals()
    if chosen.initialize is not None and alone:
        queries.append(part_query(plan, chosen.initialize, alone.first, versions))
        parts -= alone
    if chosen.together is not None and parts:
        queries.append(together_query(plan, parts, versions))
    else:
        queries += [part_query(plan, chosen.update, part, versions) for part in parts]
    return union_all(queries) if queries else _nothing(plan)


def _nothing(plan: ViewdfPlan) -> exp.Select:
    """No rows, with the columns of the state."""
    columns = [exp.alias_(cast_ast(exp.Null(), k.type), identifier(k.name)) for k in plan.root.keys]
    columns.append(exp.alias_(as_type(exp.Null(), "string"), PARTITION))
    return exp.select(*columns).where(exp.false(), copy=False)


def _with_parts(
    plan: ViewdfPlan, node: Scan, read: PartRead, wanted: Intervals, versions: Versions
) -> exp.Select:
    """The rows of a reference with each part of the model that they are read for: ``low(j) ≤ p ≤ high(j)``."""
    item, reference = plan.parts.input(read.reference.relation), read.reference
    needed = Intervals.of(*((reference.low.at(a), reference.high.at(b)) for a, b in wanted.ranges))
    needed = needed.coarser().at_most(MAX_RANGES)
    columns = [column_ast("", name) for name, _ in node.columns if name != PART]
    number = number_of(exp.column(identifier(item.column)), item.type, item.counted)
    rows = rows_of(plan, item, needed, versions).subquery("rows", copy=False)
    of = f"{PART}_of"
    numbered = exp.select(*(c.copy() for c in columns), exp.alias_(number, of)).from_(rows, copy=False)
    source = numbered.subquery("numbered", copy=False)
    least, greatest = _least(reference.high, of), _greatest(reference.low, of)
    if _is_one_to_one(reference):
        query = exp.select(*columns, exp.alias_(greatest, PART)).from_(source, copy=False)
        inner = query.subquery("dependent", copy=False)
    else:
        none = exp.GT(this=least.copy(), expression=greatest.copy())
        sequence: exp.Expr = exp.Anonymous(this="SEQUENCE", expressions=[least, greatest])
        if not _always_some(reference):
            sequence = exp.Case(ifs=[exp.If(this=none, true=exp.Array(expressions=[]))], default=sequence)
        generator = exp.Anonymous(this="EXPLODE", expressions=[sequence])
        alias = exp.TableAlias(this=identifier("dependents"), columns=[identifier(PART)])
        query = exp.select(*columns, column_ast("dependents", PART)).from_(source, copy=False)
        exploded = query.lateral(exp.Lateral(this=generator, view=True, alias=alias), copy=False)
        inner = exploded.subquery("dependent", copy=False)
    shown = exp.select(*(c.copy() for c in columns), column_ast("", PART)).from_(inner, copy=False)
    return shown.where(in_numbers(exp.column(PART), wanted), copy=False)


def _is_one_to_one(reference: PartReference) -> bool:
    """Whether each part is read for just one of the model: ranges of as many parts as j goes on by."""
    low, high = reference.low, reference.high
    return low.divisor == high.divisor == 1 and high.offset - low.offset + 1 == low.factor


def _always_some(reference: PartReference) -> bool:
    """Whether no part lies between two ranges, read for none."""
    low, high = reference.low, reference.high
    return low.divisor == high.divisor == 1 and high.offset - low.offset + 1 >= low.factor


def _least(high: Bound, number: str) -> exp.Expr:
    """The least j for which the range reaches the part: ``⌈(divisor × p − offset) / factor⌉``."""
    total = _linear(number, high.divisor, -high.offset + high.factor - 1)
    return floored(total, high.factor)


def _greatest(low: Bound, number: str) -> exp.Expr:
    """The greatest j whose range has begun at the part: ``⌊(divisor × (p + 1) − offset − 1) / factor⌋``."""
    total = _linear(number, low.divisor, low.divisor - low.offset - 1)
    return floored(total, low.factor)


def _linear(number: str, factor: int, offset: int) -> exp.Expr:
    column: exp.Expr = exp.column(number)
    product = column if factor == 1 else exp.Mul(this=column, expression=whole(factor))
    if offset == 0:
        return product
    kind = exp.Add if offset > 0 else exp.Sub
    return exp.paren(kind(this=product, expression=whole(abs(offset))))


def named_parts(plan: ViewdfPlan, wanted: Intervals) -> exp.Expr:
    """The wanted parts with what is written of each: number, PART_TIMESTAMP, partition.

    Many of them are ranges in the text, from which Spark makes the parts; the hours of a clock are written down.
    """
    length = plan.parts.length
    if len(wanted) > _FEW and length.zone == "UTC":
        return made_parts(length, wanted).subquery("named", copy=False)
    columns = {PART: BIGINT.text, PART_TIMESTAMP: "timestamp_ltz", PARTITION: "string"}
    rows = [
        (whole(part), instant(length.start_of(part), TIMESTAMP), _partition(plan, part)) for part in wanted
    ]
    return written(rows, columns, "part").subquery("named", copy=False)


def made_parts(length: Length, wanted: Intervals) -> exp.Select:
    """The rows of :func:`named_parts`, computed from ranges. ``length`` has to be one of UTC."""
    ranges = written(
        [(whole(a), whole(b)) for a, b in wanted.ranges], dict.fromkeys(_ENDS, BIGINT.text), "ranges"
    )
    first, last = (exp.column(name) for name in _ENDS)
    numbers = exp.Explode(this=exp.Anonymous(this="SEQUENCE", expressions=[first, last]))
    each = exp.select(exp.alias_(numbers, PART), copy=False).from_(ranges.subquery("ranges"), copy=False)
    return exp.select(exp.column(PART), *_made(exp.column(PART), length), copy=False).from_(
        each.subquery("each"), copy=False
    )


def _made(part: exp.Expr, length: Length) -> list[exp.Expr]:
    """PART_TIMESTAMP and partition of a part of UTC, from its number."""
    start = start_of(part, length)
    day = as_type(period_at(start.copy(), length), "string")
    partition = exp.Concat(expressions=[exp.Literal.string("v"), day])
    return [exp.alias_(start, PART_TIMESTAMP), exp.alias_(partition, PARTITION)]


def period_at(moment: exp.Expr, length: Length) -> exp.Expr:
    """The first day of the period in which a part that begins at a moment lies: as :func:`period_of` tells it."""
    seconds = exp.Anonymous(this="UNIX_SECONDS", expressions=[moment])
    first = as_type(exp.Literal.string("1970-01-01"), "date")
    day = exp.DateAdd(this=first, expression=as_type(floored(seconds, 86_400), "int"))
    unit = unit_of_periods(length)
    return day if unit == "DAY" else exp.func("TRUNC", day, exp.Literal.string(unit), dialect="spark")


def _partition(plan: ViewdfPlan, part: int) -> exp.Expr:
    return partition_of(plan.parts.period_of(part))


def partition_of(period: date) -> exp.Expr:
    """The partition in which the parts of a period lie: its first day, as text (:mod:`partition_text`)."""
    return exp.Literal.string(f"v{period.isoformat()}")
