"""The delta of a pattern's marks runs each affected key again from its last mark before the change.

::

    changed = γ_k(ΔR)                              the keys, their first and last changed part, their first time
    starts  = changed ⟕ C_old[latest]              the last mark of each
    places  = (k, slot) of what has to be read     of keys that are not only appended to
    marks   = C_old ⋉ places                       their mark before the change, and those behind it
    ΔC      = runs(ΔR, last marks) + runs(new R ⋉ places, marks before) − last marks − marks from there on

A key to which rows are appended, all behind its last one, is advanced from its last mark by its new rows alone. Of any
other nothing before its last mark in front of the change is read, and nothing behind the place where its state is again
what it was (:mod:`fivm_dbt.features.match.delta.reruns`). (ViewDF, sections 4.3 and 5.1.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fivm_dbt.catalog.types import BIGINT, BOOLEAN
from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.own_delta import OWN_DELTAS, STORED
from fivm_dbt.delta.rule import told_of
from fivm_dbt.delta.term import Term, read_by
from fivm_dbt.features.match.delta.columns import (
    FIRST_AT,
    FIRST_PART,
    IS_ADDED,
    IS_APPENDED,
    KEPT_HEADS,
    LAST_OWN,
    LAST_PART,
    LOW,
    UPTO,
    Columns,
    last,
    over,
    written,
)
from fivm_dbt.features.match.delta.reruns import Reruns
from fivm_dbt.features.match.ir.runs import AT, BASE, HEADS, MARK, OWN, PART, SLOT, Runs
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.node import Item
from fivm_dbt.ir.nodes import Explode, Filter, Join, Map, UnionAll
from fivm_dbt.ir.one_sided import OuterJoin
from fivm_dbt.ir.reads import Lookup
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT, split_name

_AHEAD = 3
"""How many periods behind the last change a key is run before it is asked whether its state is what it was."""


def marks_of(runs: Runs, alias: str) -> Map:
    """The rows of ``runs``, one for each mark."""
    keys = (Item(k.name, Scalar.column(runs.alias, k.name), k.type) for k in runs.keys)
    parts = (Item(n, Scalar.column(runs.alias, MARK).field(n), t) for n, t in runs.mark_fields)
    return Map(runs, alias, (*keys, *parts))


@told_of(Runs)
def told_of_runs(node: Runs, is_own: bool) -> str:
    return (
        f"affected keys, from their last mark before the change; rows behind it from {read_by(node)}, "
        "rows that are only appended as they come"
    )


@OWN_DELTAS.add(Runs)
@dataclass(frozen=True)
class MarksDelta:
    """Terms and staged sets for the state ``relation`` of the marks of ``runs``, which are over a scan of kept rows."""

    runs: Runs
    relation: str

    @property
    def prefix(self) -> str:
        """What staged sets are called by."""
        return split_name(self.relation)[-1]

    @property
    def determined(self) -> tuple[str, ...]:
        """What follows of a mark from its key and its part."""
        return tuple(n for n, _ in self.runs.mark_fields if n != PART)

    def terms(self) -> tuple[Term, ...]:
        once, minus = Scalar.number(1), Scalar.number(-1)
        inputs = (self._new_rows(), self._beginnings())
        return (
            Term(marks_of(replace(self.runs, inputs_=inputs), STORED), once),
            Term(self._last_marks(), minus),
            *self._reruns.terms(),
        )

    def key_sets(self) -> tuple[KeySet, ...]:
        name = self._columns.name
        return (
            KeySet(name("changed"), self._changed()),
            KeySet(name("starts"), self._starts()),
            *self._reruns.key_sets(),
        )

    @property
    def _columns(self) -> Columns:
        return Columns(self.runs, self.relation, self.prefix)

    @property
    def _reruns(self) -> Reruns:
        return Reruns(self._columns, self._starts(), STORED)

    def _changed(self) -> Map:
        columns, runs = self._columns, self.runs
        delta, keys = columns.delta, columns.keys("changed_keys")
        part, at = columns.of(delta.alias, runs.part), columns.of(delta.alias, runs.at.value)
        known = {"part": part, "at": at, "n": Scalar.column(delta.alias, COUNT)}
        calls: tuple[AggregateCall, ...] = (
            written(FIRST_PART, over("MIN(a.part)", **known), BIGINT),
            written(LAST_PART, over("MAX(a.part)", **known), BIGINT),
            written(FIRST_AT, over("MIN(a.at)", **known), runs.at.type),
            written(IS_ADDED, over("MIN(a.n) > 0 AND COUNT(*) = COUNT(a.at)", **known), BOOLEAN),
        )
        if runs.open_slots is not None:
            own = columns.of(delta.alias, runs.own)
            calls += (written(LAST_OWN, over("MAX(a.own)", own=own), BIGINT),)
        by = tuple(Item(k.name, columns.of(delta.alias, k.value), k.type) for k in runs.keys)
        grouped = Aggregate(delta, "changed_keys", by, calls)
        shown = (Item(c.name, Scalar.column("changed_keys", c.name), c.type) for c in calls)
        slot = Item(SLOT, columns.latest("changed_keys"), BIGINT)
        return Map(grouped, "changed", (*keys, *shown, slot))

    def _starts(self) -> Map:
        """The changed keys with their last marks, and the parts between which others are needed, if any."""
        columns = self._columns
        changed = columns.staged("changed", self._changed(), "changed")
        latest = Lookup(columns.state("last"), changed.relation, ((SLOT, SLOT),))
        predicates = (Scalar.equal(("changed", SLOT), ("last", SLOT)), *columns.same_key("changed", "last"))
        known = {n: Scalar.column("changed", n) for n in (FIRST_PART, LAST_PART, FIRST_AT, IS_ADDED)}
        known |= {name: Scalar.column("last", name) for name in (PART, AT, HEADS)}
        # Rows without a time are before all others: where the last mark has none, whatever has a time is behind it.
        is_behind = f"(a.{AT} IS NULL OR a.{FIRST_AT} > a.{AT})"
        is_appended = f"COALESCE(a.{IS_ADDED} AND {is_behind}, FALSE)"
        before = f"TRANSFORM(FILTER(a.{HEADS}, h -> h.{PART} < a.{FIRST_PART}), h -> h.{PART})"
        behind = f"TRY_ELEMENT_AT(FILTER(a.{HEADS}, h -> h.{PART} > a.{LAST_PART}), {_AHEAD + 1}).{PART}"
        low = f"COALESCE(ARRAY_MAX({before}), a.{FIRST_PART})"
        items = (
            *columns.keys("changed"),
            *(Item(n, known[n], BIGINT) for n in (FIRST_PART, LAST_PART)),
            Item(IS_APPENDED, over(is_appended, **known), BOOLEAN),
            Item(LOW, over(low, **known), BIGINT),
            Item(UPTO, over(behind, **known), BIGINT),
            *(Item(last(n), Scalar.column("last", n), t) for n, t in self.runs.mark_fields),
            *self._kept_heads(low, known),
        )
        return Map(OuterJoin(changed, latest, predicates), "starts", items)

    def _kept_heads(self, low: str, known: dict[str, Scalar]) -> tuple[Item, ...]:
        """Of the first parts of periods those that may be asked for yet: the last one that is closed, and later ones.

        The slot of the last changed row says what is closed, as it says for the whole model
        (:mod:`fivm_dbt.refresh.closed`): by a row that has come before, only a build may know of.
        """
        if self.runs.open_slots is None:
            return ()
        known = known | {LAST_OWN: Scalar.column("changed", LAST_OWN)}
        is_closed = f"h.{OWN} < a.{LAST_OWN} - {self.runs.open_slots}"
        closed = f"ARRAY_MAX(TRANSFORM(FILTER(a.{HEADS}, h -> {is_closed}), h -> h.{PART}))"
        # Found once, and not for each period.
        first = f"ARRAY(LEAST({low}, COALESCE({closed}, TRY_ELEMENT_AT(a.{HEADS}, 1).{PART})))"
        kept = f"ELEMENT_AT(TRANSFORM({first}, f -> FILTER(a.{HEADS}, head -> head.{PART} >= f)), 1)"
        return (Item(KEPT_HEADS, over(kept, **known), self.runs.heads_type),)

    def _appended(self) -> Filter:
        starts = self._columns.staged("starts", self._starts(), "appended")
        return Filter(starts, (Scalar.column("appended", IS_APPENDED),))

    def _beginnings(self) -> UnionAll:
        fields = ", ".join(f"a.{n} AS {n}" for n, _ in self.runs.base_fields)
        known = {n: Scalar.column("appended", last(n)) for n, _ in self.runs.base_fields}
        base = over(f"CASE WHEN NOT a.{PART} IS NULL THEN STRUCT({fields}) END", **known)
        items = (
            *self._columns.keys("appended"),
            Item(BASE, base, self.runs.base_type),
            Item(HEADS, Scalar.column("appended", self._columns.heads), self.runs.heads_type),
        )
        appended = Map(self._appended(), "began", items)
        return UnionAll((appended, self._reruns.beginnings()), "began")

    def _new_rows(self) -> UnionAll:
        """The rows that are appended, and of keys that are run again those from the first changed part on."""
        rows, delta = self._columns.rows, self._columns.delta
        joined = Join((delta, self._appended()), self._columns.row_of_key(delta.alias, "appended"))
        times = over("EXPLODE(SEQUENCE(1, a.n))", n=Scalar.column(delta.alias, COUNT))
        copies = Explode(joined, f"{rows.alias}_copies", times, (("copy", BIGINT),))
        items = tuple(Item(n, Scalar.column(delta.alias, n), t) for n, t in rows.columns)
        return UnionAll((Map(copies, rows.alias, items), self._reruns.new_rows()), rows.alias)

    def _last_marks(self) -> Map:
        """The last marks of the affected keys, as they are kept."""
        starts = self._columns.staged("starts", self._starts(), "starts")
        there = over("NOT a.x IS NULL", x=Scalar.column("starts", last(PART)))
        items = (Item(n, Scalar.column("starts", last(n)), t) for n, t in self.runs.mark_fields)
        return Map(Filter(starts, (there,)), STORED, (*self._columns.keys("starts"), *items))
