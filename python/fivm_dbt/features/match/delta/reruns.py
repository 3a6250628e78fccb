"""Keys of a pattern run again from the last mark before their first change: these rows are read.

First as far as a few periods behind the last change; only keys whose state differs there from what it was are run to
their end (the early stop of ViewDF's late data, section 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.term import Term
from fivm_dbt.features.match.delta.columns import (
    END,
    FIRST_PART,
    IS_APPENDED,
    LAST_PART,
    LOW,
    OLDS,
    UPTO,
    Columns,
    last,
    over,
    written,
)
from fivm_dbt.features.match.ir.runs import BASE, HEADS, MARK, OPEN, OWN, PART, SLOT, STATE
from fivm_dbt.features.match.ir.types import array_type, struct_type
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Explode, Filter, Join, Map, UnionAll
from fivm_dbt.ir.one_sided import OuterJoin, SemiJoin
from fivm_dbt.ir.reads import Lookup, Scan
from fivm_dbt.ir.scalar import Scalar

_BOUNDS = (FIRST_PART, LAST_PART, LOW)


@dataclass(frozen=True)
class Reruns:
    """The reruns of those keys in ``starts`` that are not only appended to; ``alias`` is that of the marks."""

    columns: Columns
    starts: Map
    alias: str

    def key_sets(self) -> tuple[KeySet, ...]:
        name = self.columns.name
        return (
            KeySet(name("late"), self._late_starts(), is_looked_at=True),
            KeySet(name("near"), self._places(is_near=True), is_looked_at=True),
            KeySet(name("near_marks"), self._marks(is_near=True)),
            KeySet(name("near_runs"), self._near_runs()),
            KeySet(name("ends"), self._ends(), is_looked_at=True),
            KeySet(name("places"), self._places(is_near=False), is_looked_at=True),
            KeySet(name("marks"), self._marks(is_near=False)),
        )

    def terms(self) -> tuple[Term, ...]:
        """The marks that change beside those of runs to the end, and all last marks."""
        once, minus = Scalar.number(1), Scalar.number(-1)
        return (
            Term(self._old_marks(self._staged_marks("stale", is_near=False), "stale"), minus),
            Term(self._near_new(), once),
            Term(self._near_old(), minus),
            Term(self._new_heads(), once),
        )

    # Places and marks

    def _late_starts(self) -> Map:
        """The keys that are not only appended to; where there are none, nothing of what follows is asked."""
        starts = self.columns.staged("starts", self.starts, "starts")
        is_late = over("NOT a.x", x=Scalar.column("starts", IS_APPENDED))
        items = tuple(Item(f.name, f.scalar, f.type) for f in starts.fields)
        return Map(Filter(starts, (is_late,)), "late", items)

    def _late(self, *, is_near: bool) -> Node:
        late = self.columns.staged("late", self._late_starts(), "late")
        if is_near:
            return Filter(late, (over("NOT a.x IS NULL", x=Scalar.column("late", UPTO)),))
        ends = self.columns.staged("ends", self._ends(), "settled")
        return SemiJoin(late, ends, self.columns.same_key("late", "settled"), anti=True)

    def _places(self, *, is_near: bool) -> Distinct:
        """Where marks and rows of keys lie: in periods that they had, or have now."""
        columns, delta = self.columns, self.columns.delta
        late = self._late(is_near=is_near)
        heads = f"FILTER(a.heads, h -> h.{PART} >= a.low)"
        if is_near:
            heads = f"FILTER(a.heads, h -> h.{PART} >= a.low AND h.{PART} < a.upto)"
        known = {
            "heads": Scalar.column("late", columns.heads),
            "low": Scalar.column("late", LOW),
            "upto": Scalar.column("late", UPTO),
        }
        head = struct_type([(PART, BIGINT), (OWN, BIGINT)])
        periods = Explode(late, "period", over(f"EXPLODE({heads})", **known), (("head", head),))
        bounds = tuple(Item(c, Scalar.column("late", c), BIGINT) for c in _BOUNDS)
        slot = Item(SLOT, Scalar.column("period", "head").field(OWN), BIGINT)
        before = Map(periods, "places", (*columns.keys("late"), *bounds, slot))
        changed = Join((delta, late), columns.row_of_key(delta.alias, "late"))
        own = Item(SLOT, columns.of(delta.alias, columns.runs.own), BIGINT)
        now = Map(changed, "places", (*columns.keys("late"), *bounds, own))
        return Distinct(UnionAll((before, now), "places"))

    def _places_of(self, *, is_near: bool) -> Scan:
        return self.columns.staged("near" if is_near else "places", self._places(is_near=is_near), "places")

    def _marks(self, *, is_near: bool) -> Map:
        """Per key its last mark before the change, and the marks from there on as far as they are looked at."""
        columns, runs = self.columns, self.columns.runs
        places = self._places_of(is_near=is_near)
        late = columns.staged("late", self._late_starts(), "late")
        old = Lookup(columns.state("old"), places.relation, ((SLOT, SLOT),))
        is_behind = over("a.x >= a.y", x=Scalar.column("old", PART), y=Scalar.column("places", LOW))
        joined = OuterJoin(
            Join((places, late), columns.same_key("places", "late")),
            old,
            (
                Scalar.equal(("places", SLOT), ("old", SLOT)),
                *columns.same_key("places", "old"),
                is_behind,
            ),
        )
        fields = ", ".join(f"a.{n} AS {n}" for n, _ in runs.base_fields)
        marks = over(
            f"SORT_ARRAY(COLLECT_LIST(CASE WHEN NOT a.{PART} IS NULL THEN STRUCT({fields}) END))",
            **{n: Scalar.column("old", n) for n, _ in runs.base_fields},
        )
        bounds = tuple(
            written(name, over("MIN(a.x)", x=Scalar.column("places", name)), BIGINT)
            for name in (FIRST_PART, LAST_PART)
        )
        heads = over("ANY_VALUE(a.x)", x=Scalar.column("late", columns.heads))
        by_key = Aggregate(
            joined,
            "old_keys",
            columns.keys("places"),
            (
                *bounds,
                written(HEADS, heads, runs.heads_type),
                written(OLDS, marks, array_type(runs.base_type)),
            ),
        )
        return Map(by_key, "marks", (*columns.keys("old_keys"), *self._of_marks()))

    def _of_marks(self) -> tuple[Item, ...]:
        runs = self.columns.runs
        known = {"olds": Scalar.column("old_keys", OLDS), "first": Scalar.column("old_keys", FIRST_PART)}
        before = f"TRY_ELEMENT_AT(FILTER(a.olds, o -> o.{PART} < a.first), -1)"
        return (
            Item(LAST_PART, Scalar.column("old_keys", LAST_PART), BIGINT),
            Item(BASE, over(before, **known), runs.base_type),
            Item(HEADS, Scalar.column("old_keys", HEADS), runs.heads_type),
            Item(
                OLDS,
                over(f"FILTER(a.olds, i -> i.{PART} >= COALESCE({before}.{PART}, a.first))", **known),
                array_type(runs.base_type),
            ),
        )

    def _staged_marks(self, alias: str, *, is_near: bool) -> Scan:
        what = "near_marks" if is_near else "marks"
        return self.columns.staged(what, self._marks(is_near=is_near), alias)

    # What runs begin with, and over which rows

    def beginnings(self, *, is_near: bool = False) -> Map:
        """The marks that keys are run again from."""
        marks, runs = self._staged_marks("late_marks", is_near=is_near), self.columns.runs
        base = Item(BASE, Scalar.column(marks.alias, BASE), runs.base_type)
        heads = Item(HEADS, Scalar.column(marks.alias, HEADS), runs.heads_type)
        return Map(marks, "began", (*self.columns.keys(marks.alias), base, heads))

    def new_rows(self, *, is_near: bool = False) -> Map:
        """The rows of keys from their first change on, as far as they are looked at."""
        rows, runs, columns = self.columns.rows, self.columns.runs, self.columns
        places, alias = self._places_of(is_near=is_near), f"{self.columns.rows.alias}_new"
        own, part = columns.of(alias, runs.own), columns.of(alias, runs.part)
        ((_, slot),) = own.columns
        there = Lookup(Scan(rows.relation, alias, rows.columns, Side.NEW), places.relation, ((slot, SLOT),))
        conditions = (
            over("a.x = a.y", x=own, y=Scalar.column("places", SLOT)),
            *columns.row_of_key(alias, "places"),
            over("a.x >= a.y", x=part, y=Scalar.column("places", FIRST_PART)),
        )
        items = tuple(Item(n, Scalar.column(alias, n), t) for n, t in rows.columns)
        return Map(Join((places, there), conditions), rows.alias, items)

    # As far as the near end

    def _near_runs(self) -> Map:
        runs = self.columns.runs
        again = replace(runs, inputs_=(self.new_rows(is_near=True), self.beginnings(is_near=True)))
        marks = (Item(n, Scalar.column(runs.alias, MARK).field(n), t) for n, t in runs.mark_fields)
        return Map(again, "near_runs", (*self.columns.keys(runs.alias), *marks))

    def _ends(self) -> Map:
        """The keys whose state is what it was at the end of a part that is no earlier than their last change."""
        columns = self.columns
        runs = columns.staged("near_runs", self._near_runs(), "near_runs")
        marks = self._exploded(self._staged_marks("near_marks", is_near=True))
        mark = Scalar.column("stale_mark", MARK)
        first = written(END, over("MIN(a.x)", x=Scalar.column("near_runs", PART)), BIGINT)
        old = Map(marks, "near_marks", (*columns.keys("near_marks"), *self._mark_and_last(mark)))
        conditions = (
            *columns.same_key("near_runs", "near_marks"),
            over("a.x = a.y", x=Scalar.column("near_runs", PART), y=Scalar.column("near_marks", PART)),
            over("a.x <=> a.y", x=Scalar.column("near_runs", STATE), y=Scalar.column("near_marks", STATE)),
            over("a.x >= a.y", x=Scalar.column("near_runs", PART), y=Scalar.column("near_marks", LAST_PART)),
        )
        grouped = Aggregate(Join((runs, old), conditions), "ended", columns.keys("near_runs"), (first,))
        end = Item(END, Scalar.column("ended", END), BIGINT)
        return Map(grouped, "ends", (*columns.keys("ended"), end))

    def _mark_and_last(self, mark: Scalar) -> tuple[Item, ...]:
        return (
            Item(PART, mark.field(PART), BIGINT),
            Item(STATE, mark.field(STATE), self.columns.runs.state_type),
            Item(LAST_PART, Scalar.column("near_marks", LAST_PART), BIGINT),
        )

    def _exploded(self, marks: Scan) -> Explode:
        olds = over("EXPLODE(a.x)", x=Scalar.column(marks.alias, OLDS))
        return Explode(marks, "stale_mark", olds, ((MARK, self.columns.runs.base_type),))

    def _settled(self, node: Map) -> Map:
        """Marks of settled keys, up to where they are settled."""
        ends = self.columns.staged("ends", self._ends(), "ends")
        is_before = over("a.x <= a.y", x=Scalar.column(node.alias, PART), y=Scalar.column("ends", END))
        conditions = (*self.columns.same_key(node.alias, "ends"), is_before)
        items = tuple(Item(f.name, f.scalar, f.type) for f in node.fields)
        return Map(Join((node, ends), conditions), self.alias, items)

    def _near_new(self) -> Map:
        runs = self.columns.staged("near_runs", self._near_runs(), "near_new")
        parts = {n: Scalar.column("near_new", n) for n, _ in self.columns.runs.mark_fields}
        return self._settled(Map(runs, "made", (*self.columns.keys("near_new"), *self._plain(parts))))

    def _near_old(self) -> Map:
        marks = self._old_marks(self._staged_marks("near_stale", is_near=True), "near_stale")
        return self._settled(replace(marks, alias="gone"))

    def _new_heads(self) -> Map:
        """The last marks of settled keys, which know the first parts of all periods."""
        columns, runs = self.columns, self.columns.runs
        late = columns.staged("late", self._late_starts(), "late")
        near = columns.staged("near_runs", self._near_runs(), "near_last")
        ends = columns.staged("ends", self._ends(), "ends")
        is_last = over("SIZE(a.x) > 0", x=Scalar.column("near_last", HEADS))
        joined = Join(
            (ends, late, Filter(near, (is_last,))),
            (*columns.same_key("ends", "late"), *columns.same_key("ends", "near_last")),
        )
        heads = over(
            f"CONCAT(a.near, FILTER(a.heads, h -> h.{PART} >= a.upto))",
            near=Scalar.column("near_last", HEADS),
            heads=Scalar.column("late", columns.heads),
            upto=Scalar.column("late", UPTO),
        )
        parts = {n: Scalar.column("late", last(n)) for n, _ in runs.mark_fields} | {HEADS: heads}
        items = (Item(n, parts[n], t) for n, t in runs.mark_fields)
        return Map(joined, self.alias, (*columns.keys("late"), *items))

    def _plain(self, parts: dict[str, Scalar]) -> tuple[Item, ...]:
        """The columns of a mark that is not the last one."""
        types = dict(self.columns.runs.mark_fields)
        nothing = {n: Scalar.parse("ARRAY()").cast(types[n].text) for n in (OPEN, HEADS)}
        shown = parts | nothing | {SLOT: parts[OWN]}
        return tuple(Item(n, shown[n], t) for n, t in self.columns.runs.mark_fields)

    def _old_marks(self, marks: Scan, alias: str) -> Map:
        """Marks that are replaced, as they are kept."""
        mark = Scalar.column("stale_mark", MARK)
        parts = {n: mark.field(n) for n, _ in self.columns.runs.base_fields}
        return Map(self._exploded(marks), self.alias, (*self.columns.keys(alias), *self._plain(parts)))
