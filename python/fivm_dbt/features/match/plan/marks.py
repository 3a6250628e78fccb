"""A pattern that is advanced part by part has two inner views: the rows by period, and the marks.

A mark is the state of a pattern's fold at the end of a time part of its key (:class:`Runs`). Patterns whose
state cannot be kept are evaluated over whole partitions:

* NEXT in ONE ROW PER PART, for which a row would have to wait for a later part;
* an order that does not begin with a time, ascending, as then there are no parts.

Each has a partition per *period*, the part or, if that is shorter, its day, so that a late row reads from its own
period on. The last mark of each key lies apart, in buckets of keys, where a row that is appended finds it whatever time
has passed.
"""

from __future__ import annotations

from dataclasses import replace

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.features.match.delta.marks import marks_of
from fivm_dbt.features.match.ir.match import KEYS, Match
from fivm_dbt.features.match.ir.runs import DECIDED, OPEN, PART, SLOT, Runs
from fivm_dbt.features.match.plan.measured import chosen
from fivm_dbt.features.match.plan.rows import KeptColumns
from fivm_dbt.features.match.plan.separators import by_separators
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Explode, Map
from fivm_dbt.ir.part_columns import is_shorter_than_period, part_of, period_of
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import storable
from fivm_dbt.parts.length import DAY, Length
from fivm_dbt.plan.keep.kept_views import KeptViews, column_of
from fivm_dbt.plan.keep.time.time_class import TIME_CLASSES
from fivm_dbt.plan.keep.ways import KEPT_AS, WantedParts
from fivm_dbt.plan.model.view import TimeClass

_LATEST = 10**15
"""Above the slots of all periods: those of last marks."""


@KEPT_AS.add(Match)
def by_marks(kept: KeptViews, node: Match, parts: WantedParts) -> Node | None:
    """The rows of ``node`` from kept marks; None where it has to be evaluated over whole partitions."""
    if parts.length is None or not _is_advanced(node) or not kept.can_change(node.input):
        return None
    separated = by_separators(kept, node, parts, parts.length)
    if separated is not None:
        return separated
    length, buckets = chosen(kept, node, parts, parts.length)
    rows, runs = _over_rows(kept, node, length, parts.buckets or 1)
    if not all(i.type.is_groupable for i in (*rows.items, *node.items)):
        return None
    kept.part_length = kept.part_length or length
    has_short_parts = is_shorter_than_period(length)
    bounded_by = column_of(runs.part) if has_short_parts else None
    reason, period = "the rows of a pattern, by period", DAY if has_short_parts else length.by_clock
    closing = parts.closing(kept, node.input, _time(node).value, period, parts.buckets or 1)
    scan = kept.keep(rows, (), reason, column_of(runs.own), bounded_by, closing)
    runs = _with_rows(runs, scan, buckets)
    if closing is not None:
        runs = replace(runs, open_slots=closing.periods * closing.buckets)
    marks = kept.alias()
    reason = "the state of a pattern at the end of each time part"
    marked = kept.keep(marks_of(runs, marks), (), reason, SLOT, PART if has_short_parts else None)
    return _matches(node, runs, marked)


def _is_advanced(node: Match) -> bool:
    first = node.order[0]
    return (
        not (node.recognizer.per_part and any(s.offset > 0 for s in node.shifts))
        and _time(node).type.is_temporal
        and not first.desc
        and first.nulls_first
        and not any(i.type.is_floating for i in node.partition)
    )


def _time(node: Match) -> Item:
    """What rows are ordered by first."""
    return next(i for i in node.columns if i.name == node.order[0].column)


def _over_rows(kept: KeptViews, node: Match, length: Length, buckets: int) -> tuple[Map, Runs]:
    """What is kept of the rows, and the runs over it."""
    own_columns = KeptColumns(kept.alias())
    column = own_columns.column
    partition = node.partition or (Item("any", Scalar.number(1), SparkType("int")),)
    keys = tuple(Item(i.name, column(i.name, i.value, i.type), i.type) for i in partition)
    columns = tuple(Item(i.name, column(i.name, i.value, i.type), i.type) for i in node.columns)
    at = _time(node)
    part = column("time_part", part_of(at.value, at.type, length), BIGINT)
    period = period_of(at.value, at.type, length)
    slot = period
    if buckets > 1:
        bucket = _bucket([k.value for k in partition], buckets)
        slot = _over(f"a.p * {buckets} + a.b", {"p": period, "b": bucket})
    own = column("slot", slot, BIGINT)
    ordered = next(i for i in columns if i.name == at.name)
    names = _key_names(keys)
    rows = own_columns.of(node.input)
    runs = Runs(
        (rows,),
        kept.alias(),
        keys=tuple(Item(n, k.value, k.type) for n, k in zip(names, keys, strict=True)),
        part=part,
        own=own,
        at=Item("at", ordered.value, ordered.type),
        latest=Scalar.number(0),
        columns=columns,
        order=node.order,
        shifts=node.shifts,
        recognizer=node.recognizer,
        items=node.items,
    )
    return rows, runs


def _key_names(keys: tuple[Item, ...]) -> tuple[str, ...]:
    """Names beside those of a mark's columns."""
    return tuple(f"key_{n}_{storable(k.name)}" for n, k in enumerate(keys, start=1))


def _with_rows(runs: Runs, scan: Scan, buckets: int) -> Runs:
    """The runs over the kept rows, whose scan may have another alias."""
    (rows,) = runs.inputs
    assert isinstance(rows, Map)

    def moved(value: Scalar) -> Scalar:
        def place(column: ColumnId) -> Scalar | None:
            return Scalar.column(scan.alias, column[1]) if column[0] == rows.alias else None

        return value.substitute(place)

    def items(those: tuple[Item, ...]) -> tuple[Item, ...]:
        return tuple(Item(i.name, moved(i.value), i.type) for i in those)

    latest = _over(
        f"{_LATEST} + a.b", {"b": _bucket([Scalar.column(KEYS, k.name) for k in runs.keys], buckets)}
    )
    (at,) = items((runs.at,))
    return Runs(
        (scan,),
        runs.alias,
        keys=items(runs.keys),
        part=moved(runs.part),
        own=moved(runs.own),
        at=at,
        latest=latest,
        columns=items(runs.columns),
        order=runs.order,
        shifts=runs.shifts,
        recognizer=runs.recognizer,
        items=runs.items,
    )


def _matches(node: Match, runs: Runs, marks: Scan) -> Map:
    """A row for each match of each mark, with the columns of ``node``."""
    generator = _over(
        f"EXPLODE(CONCAT(a.{DECIDED}, a.{OPEN}))",
        {n: Scalar.column(marks.alias, n) for n in (DECIDED, OPEN)},
    )
    found = f"{node.alias}_found"
    exploded = Explode(marks, found, generator, (("found", runs.match_type),))
    keys = (
        Item(i.name, Scalar.column(marks.alias, k.name), i.type)
        for i, k in zip(node.partition, runs.keys, strict=False)
    )
    shown = (
        Item(i.name, Scalar.column(found, "found").field(f"item_{n}"), i.type)
        for n, i in enumerate(node.items, start=1)
    )
    return Map(exploded, node.alias, (*keys, *shown))


def _bucket(keys: list[Scalar], buckets: int) -> Scalar:
    if buckets == 1:
        return Scalar.number(0)
    known = {f"k{n}": key for n, key in enumerate(keys)}
    return _over(f"PMOD(XXHASH64({', '.join(f'a.{n}' for n in known)}), {buckets})", known)


def _over(sql: str, known: dict[str, Scalar]) -> Scalar:
    return Scalar.parse(sql).substitute(lambda c: known.get(c[1]))


@TIME_CLASSES.add(Runs)
def time_class_of_marks(node: Runs) -> TimeClass:
    """What is kept of each key is enough."""
    kept = "what is undecided, with its rows," if node.recognizer.all_rows else "its state"
    return TimeClass("constant extra state", f"rows advance the pattern from {kept}, kept of each key")
