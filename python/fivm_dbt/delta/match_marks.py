"""The delta of a pattern's marks: each affected key is run again from its last mark before the change.

::

    changed   = γ_k(ΔR)                                      the keys, their first changed part and time
    starts    = changed ⟕ C_old[latest]                      the last mark of each
    places    = (k, slot) of what has to be read             of keys that are not only appended to
    marks     = C_old ⋉ places                               their mark before the change, and those behind it
    ΔC        = runs(ΔR, last marks) + runs(new R ⋉ places, marks before) − last marks − marks from there on

A key to which rows are appended, all behind its last one, is advanced from its last mark by its new rows alone. Of any
other nothing before its last mark in front of the change is read. (ViewDF, sections 4.3 and 5.1.)
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, BOOLEAN
from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.match import KEYS
from fivm_dbt.ir.match_types import array_type, struct_type
from fivm_dbt.ir.nodes import (
    Aggregate,
    AggregateCall,
    Distinct,
    Explode,
    Filter,
    Item,
    Join,
    Lookup,
    Map,
    Node,
    OuterJoin,
    Scan,
    Side,
    UnionAll,
)
from fivm_dbt.ir.runs import AT, BASE, HEADS, MARK, OPEN, OWN, PART, SLOT, Runs
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT, PREFIX

_FIRST_PART, _FIRST_AT, _IS_ADDED, _IS_APPENDED, _LOW, _OLDS = (
    "first_part", "first_at", "is_added", "is_appended", "low_part", "old_marks",
)  # fmt: skip
STORED = f"{PREFIX}rows"
"""What the rows of the delta of a state are called that has the columns of its state."""


def marks_of(runs: Runs, alias: str) -> Map:
    """The rows of ``runs``, one for each mark."""
    keys = (Item(k.name, Scalar.column(runs.alias, k.name), k.type) for k in runs.keys)
    parts = (Item(n, Scalar.column(runs.alias, MARK).field(n), t) for n, t in runs.mark_fields)
    return Map(runs, alias, (*keys, *parts))


def runs_in(core: Node) -> Runs | None:
    """The runs whose marks a view keeps, if it keeps any."""
    while isinstance(core, Map):
        core = core.input
    return core if isinstance(core, Runs) else None


@dataclass(frozen=True)
class MarksDelta:
    """Terms and staged sets for the state ``relation`` of the marks of ``runs``, which are over a scan of kept rows."""

    runs: Runs
    relation: str
    alias: str
    prefix: str

    def terms(self) -> tuple[Term, ...]:
        once, minus = Scalar.number(1), Scalar.number(-1)
        return (
            Term(marks_of(self._again(), self.alias), once),
            Term(self._last_marks(), minus),
            Term(self._old_marks(), minus),
        )

    def key_sets(self) -> tuple[KeySet, ...]:
        return (
            KeySet(self._name("changed"), self._changed()),
            KeySet(self._name("starts"), self._starts()),
            KeySet(self._name("places"), self._places(), is_looked_at=True),
            KeySet(self._name("marks"), self._marks()),
        )

    # Names and columns

    def _name(self, what: str) -> str:
        return f"{self.prefix}_{what}"

    @property
    def _rows(self) -> Scan:
        (rows,) = self.runs.inputs
        assert isinstance(rows, Scan)
        return rows

    @property
    def _keys(self) -> tuple[Item, ...]:
        return self.runs.keys

    def _staged(self, what: str, node: Node, alias: str) -> Scan:
        columns = tuple((f.name, f.type) for f in node.fields)
        return Scan(self._name(what), alias, columns, Side.DELTA)

    def _keys_of(self, alias: str) -> tuple[Item, ...]:
        return tuple(Item(k.name, Scalar.column(alias, k.name), k.type) for k in self._keys)

    def _same_key(self, one: str, other: str) -> tuple[Scalar, ...]:
        return tuple(
            _over("a.x <=> b.y", {"x": Scalar.column(one, k.name), "y": Scalar.column(other, k.name)})
            for k in self._keys
        )

    def _latest(self, alias: str) -> Scalar:
        return self.runs.latest.substitute(lambda c: Scalar.column(alias, c[1]) if c[0] == KEYS else None)

    @property
    def _delta_rows(self) -> Scan:
        rows = self._rows
        return Scan(rows.relation, f"{rows.alias}_delta", (*rows.columns, (COUNT, BIGINT)), Side.DELTA)

    def _of_delta(self, value: Scalar) -> Scalar:
        rows = self._rows.alias
        return value.substitute(lambda c: Scalar.column(f"{rows}_delta", c[1]) if c[0] == rows else None)

    # The staged sets

    def _changed(self) -> Map:
        delta, runs = self._delta_rows, self.runs
        part, at = self._of_delta(runs.part), self._of_delta(runs.at.value)
        count = Scalar.column(delta.alias, COUNT)
        known = {"part": part, "at": at, "n": count}
        is_added = _over("MIN(a.n) > 0 AND COUNT(*) = COUNT(a.at)", known)
        grouped = Aggregate(
            delta,
            "changed_keys",
            tuple(Item(k.name, self._of_delta(k.value), k.type) for k in self._keys),
            (
                _written(_FIRST_PART, _over("MIN(a.part)", known), BIGINT),
                _written(_FIRST_AT, _over("MIN(a.at)", known), runs.at.type),
                _written(_IS_ADDED, is_added, BOOLEAN),
            ),
        )
        firsts = (
            Item(f.name, f.scalar, f.type)
            for f in grouped.fields
            if f.name not in {k.name for k in self._keys}
        )
        slot = Item(SLOT, self._latest("changed_keys"), BIGINT)
        return Map(grouped, "changed", (*self._keys_of("changed_keys"), *firsts, slot))

    def _state(self, alias: str) -> Scan:
        columns = (*((k.name, k.type) for k in self._keys), *self.runs.mark_fields)
        return Scan(self.relation, alias, columns, Side.OLD)

    def _starts(self) -> Map:
        """The changed keys with their last marks, and from which part on others are needed."""
        changed = self._staged("changed", self._changed(), "changed")
        last = Lookup(self._state("last"), self._name("changed"), ((SLOT, SLOT),))
        predicates = (Scalar.equal(("changed", SLOT), ("last", SLOT)), *self._same_key("changed", "last"))
        known = {name: Scalar.column("changed", name) for name in (_FIRST_PART, _FIRST_AT, _IS_ADDED)}
        known |= {name: Scalar.column("last", name) for name in (PART, AT, HEADS)}
        is_appended = _over(
            f"COALESCE(a.{_IS_ADDED} AND (a.{PART} IS NULL OR a.{_FIRST_AT} > a.{AT}), FALSE)", known
        )
        low = _over(
            f"COALESCE(ARRAY_MAX(TRANSFORM(FILTER(a.{HEADS}, h -> h.{PART} < a.{_FIRST_PART}), h -> h.{PART})), "
            f"a.{_FIRST_PART})",
            known,
        )
        items = (
            *self._keys_of("changed"),
            Item(_FIRST_PART, known[_FIRST_PART], BIGINT),
            Item(_IS_APPENDED, is_appended, BOOLEAN),
            Item(_LOW, low, BIGINT),
            *(Item(_last(n), Scalar.column("last", n), t) for n, t in self.runs.mark_fields),
        )
        return Map(OuterJoin(changed, last, predicates), "starts", items)

    def _started(self, alias: str, *, is_appended: bool) -> Node:
        starts = self._staged("starts", self._starts(), alias)
        condition = Scalar.column(alias, _IS_APPENDED)
        return Filter(starts, (condition if is_appended else _over("NOT a.x", {"x": condition}),))

    def _places(self) -> Distinct:
        """Where marks and rows of keys lie that are not only appended to: in periods that they had, or have now."""
        late, rows = self._started("late", is_appended=False), self._delta_rows
        columns = (_FIRST_PART, _LOW)
        known = {name: Scalar.column("late", name) for name in (_last(HEADS), _LOW)}
        heads = _over(f"EXPLODE(FILTER(a.{_last(HEADS)}, h -> h.{PART} >= a.{_LOW}))", known)
        head_type = struct_type([(PART, BIGINT), (OWN, BIGINT)])
        before = Map(
            Explode(late, "period", heads, (("head", head_type),)),
            "places",
            (
                *self._keys_of("late"),
                *(Item(c, Scalar.column("late", c), BIGINT) for c in columns),
                Item(SLOT, Scalar.column("period", "head").field(OWN), BIGINT),
            ),
        )
        same = tuple(
            _over("a.x <=> b.y", {"x": self._of_delta(k.value), "y": Scalar.column("late", k.name)})
            for k in self._keys
        )
        now = Map(
            Join((rows, late), same),
            "places",
            (
                *self._keys_of("late"),
                *(Item(c, Scalar.column("late", c), BIGINT) for c in columns),
                Item(SLOT, self._of_delta(self.runs.own), BIGINT),
            ),
        )
        return Distinct(UnionAll((before, now), "places"))

    def _marks(self) -> Map:
        """Per key that is not only appended to its marks from the last one before the change on, and the first."""
        places = self._staged("places", self._places(), "places")
        late = self._staged("starts", self._starts(), "late")
        old = Lookup(self._state("old"), self._name("places"), ((SLOT, SLOT),))
        joined = OuterJoin(
            Join((places, late), self._same_key("places", "late")),
            old,
            (
                Scalar.equal(("places", SLOT), ("old", SLOT)),
                *self._same_key("places", "old"),
                _over("a.x >= b.y", {"x": Scalar.column("old", PART), "y": Scalar.column("places", _LOW)}),
            ),
        )
        fields = ", ".join(f"a.{n} AS {n}" for n, _ in self.runs.base_fields)
        known = {n: Scalar.column("old", n) for n, _ in self.runs.base_fields}
        olds = _over(
            f"SORT_ARRAY(COLLECT_LIST(CASE WHEN NOT a.{PART} IS NULL THEN STRUCT({fields}) END))", known
        )
        by_key = Aggregate(
            joined,
            "old_keys",
            self._keys_of("places"),
            (
                _written(_FIRST_PART, _call("MIN", Scalar.column("places", _FIRST_PART)), BIGINT),
                _written(
                    HEADS, _call("ANY_VALUE", Scalar.column("late", _last(HEADS))), self.runs.heads_type
                ),
                _written(_OLDS, olds, array_type(self.runs.base_type)),
            ),
        )
        known = {name: Scalar.column("old_keys", name) for name in (_OLDS, _FIRST_PART)}
        base = _over(f"ELEMENT_AT(FILTER(a.{_OLDS}, o -> o.{PART} < a.{_FIRST_PART}), -1)", known)
        stale = _over(
            f"FILTER(a.{_OLDS}, o -> o.{PART} >= COALESCE(ELEMENT_AT(FILTER(a.{_OLDS}, "
            f"i -> i.{PART} < a.{_FIRST_PART}), -1).{PART}, a.{_FIRST_PART}))",
            known,
        )
        return Map(
            by_key,
            "marks",
            (
                *self._keys_of("old_keys"),
                Item(BASE, base, self.runs.base_type),
                Item(HEADS, Scalar.column("old_keys", HEADS), self.runs.heads_type),
                Item(_OLDS, stale, array_type(self.runs.base_type)),
            ),
        )

    # The terms

    def _again(self) -> Runs:
        """The runs of the affected keys, from where they begin."""
        return replace(self.runs, inputs_=(self._new_rows(), self._beginnings()))

    def _beginnings(self) -> UnionAll:
        fields = ", ".join(f"a.{_last(n)} AS {n}" for n, _ in self.runs.base_fields)
        known = {_last(n): Scalar.column("appended", _last(n)) for n, _ in self.runs.base_fields}
        base = _over(f"CASE WHEN NOT a.{_last(PART)} IS NULL THEN STRUCT({fields}) END", known)
        appended = Map(
            self._started("appended", is_appended=True),
            "began",
            (
                *self._keys_of("appended"),
                Item(BASE, base, self.runs.base_type),
                Item(HEADS, Scalar.column("appended", _last(HEADS)), self.runs.heads_type),
            ),
        )
        marks = self._staged("marks", self._marks(), "late_marks")
        late = Map(
            marks,
            "began",
            (
                *self._keys_of("late_marks"),
                Item(BASE, Scalar.column("late_marks", BASE), self.runs.base_type),
                Item(HEADS, Scalar.column("late_marks", HEADS), self.runs.heads_type),
            ),
        )
        return UnionAll((appended, late), "began")

    def _new_rows(self) -> UnionAll:
        """The rows that are appended, and of other keys those from the first changed part on."""
        rows, delta = self._rows, self._delta_rows
        same = tuple(
            _over("a.x <=> b.y", {"x": self._of_delta(k.value), "y": Scalar.column("appended", k.name)})
            for k in self._keys
        )
        copies = _over("EXPLODE(SEQUENCE(1, a.n))", {"n": Scalar.column(delta.alias, COUNT)})
        joined = Join((delta, self._started("appended", is_appended=True)), same)
        appended = Explode(joined, f"{rows.alias}_copies", copies, (("copy", BIGINT),))
        places = self._staged("places", self._places(), "places")
        there = Lookup(
            Scan(rows.relation, f"{rows.alias}_new", rows.columns, Side.NEW),
            self._name("places"),
            ((_column(self.runs.own), SLOT),),
        )

        def of_new(value: Scalar) -> Scalar:
            return value.substitute(lambda c: Scalar.column(f"{rows.alias}_new", c[1]))

        matching = tuple(
            _over("a.x <=> b.y", {"x": of_new(k.value), "y": Scalar.column("places", k.name)})
            for k in self._keys
        )
        again = Join(
            (places, there),
            (
                _over("a.x = b.y", {"x": of_new(self.runs.own), "y": Scalar.column("places", SLOT)}),
                *matching,
                _over("a.x >= b.y", {"x": of_new(self.runs.part), "y": Scalar.column("places", _FIRST_PART)}),
            ),
        )
        branches = tuple(
            Map(node, rows.alias, tuple(Item(n, Scalar.column(alias, n), t) for n, t in rows.columns))
            for node, alias in ((appended, delta.alias), (again, f"{rows.alias}_new"))
        )
        return UnionAll(branches, rows.alias)

    def _last_marks(self) -> Map:
        """The last marks of the affected keys, as they are kept."""
        starts = self._staged("starts", self._starts(), "starts")
        there = _over("NOT a.x IS NULL", {"x": Scalar.column("starts", _last(PART))})
        items = (Item(n, Scalar.column("starts", _last(n)), t) for n, t in self.runs.mark_fields)
        return Map(Filter(starts, (there,)), self.alias, (*self._keys_of("starts"), *items))

    def _old_marks(self) -> Map:
        """The other marks that are replaced, as they are kept."""
        marks = self._staged("marks", self._marks(), "stale")
        old = Explode(
            marks,
            "stale_mark",
            _call("EXPLODE", Scalar.column("stale", _OLDS)),
            ((MARK, self.runs.base_type),),
        )
        mark = Scalar.column("stale_mark", MARK)
        parts = {n: mark.field(n) for n, _ in self.runs.base_fields}
        parts[SLOT] = mark.field(OWN)
        types = dict(self.runs.mark_fields)
        parts |= {n: Scalar.parse("ARRAY()").cast(types[n].text) for n in (OPEN, HEADS)}
        items = (Item(n, parts[n], t) for n, t in self.runs.mark_fields)
        return Map(old, self.alias, (*self._keys_of("stale"), *items))


def determined(runs: Runs) -> tuple[str, ...]:
    """What follows of a mark from its key and its part: these alone are compared by a MERGE."""
    return tuple(n for n, _ in runs.mark_fields if n != PART)


def _last(name: str) -> str:
    return f"latest_{name}"


def _column(value: Scalar) -> str:
    ((_, name),) = value.columns
    return name


def _written(name: str, value: Scalar, type_: SparkType) -> AggregateCall:
    return AggregateCall(name, "", None, None, type_, value)


def _over(sql: str, known: dict[str, Scalar]) -> Scalar:
    """An expression written over columns of a and b, which stand for others."""
    return Scalar.parse(sql).substitute(lambda c: known.get(c[1]))


def _call(name: str, *arguments: Scalar) -> Scalar:
    known = {f"x{n}": value for n, value in enumerate(arguments)}
    return _over(f"{name}({', '.join(f'a.{n}' for n in known)})", known)
