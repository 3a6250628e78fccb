"""Staged deltas reach their states by one statement, or by one per partition of the result."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.ir.build import text
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.refresh.engine import Row
from fivm_dbt.spark.merge import Way
from fivm_dbt.spark.pieces import Condition
from fivm_dbt.spark.places import Closed, Place
from fivm_dbt.spark.reads import Bounds
from fivm_dbt.steps.applying import ROWS_OF_A_FILE, StateSize, Tail, fits_one_task
from fivm_dbt.steps.deletion_vectors import VECTOR_PARTITIONS, DeletionVectors

MAX_LITERALS = 1000
"""Above this many touched partitions a MERGE is not restricted to them: the list would cost more than it saves."""


_MICROSECOND, _EPOCH = datetime.timedelta(microseconds=1), datetime.datetime(1970, 1, 1)
_FIRST = (datetime.datetime(1, 1, 2) - _EPOCH) // _MICROSECOND
_LAST = (datetime.datetime(9999, 12, 30) - _EPOCH) // _MICROSECOND
"""Between these microseconds times can be written down as literals."""


@dataclass(frozen=True)
class TouchedPartition:
    """What a staged delta has in one partition: how many keys, and the first and the last of its times, per column.

    ``least`` is the least change of a multiplicity, and ``low`` and ``high`` bound the delta, where its state is
    bounded: None where a row has no value.
    """

    value: str
    rows: int
    times: tuple[tuple[tuple[object, object], ...], ...] = ()
    least: int | None = None
    low: int | None = None
    high: int | None = None


def touched_partitions(plan: Plan, view: View, rows: Sequence[Row]) -> tuple[TouchedPartition, ...]:
    """The answer of :func:`fivm_dbt.spark.state.touched_query`, or its parts, by partition, in a stable order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row[0]), []).append(row)
    return tuple(_touched(plan, view, value, found[value]) for value in sorted(found))


def _touched(plan: Plan, view: View, value: str, rows: Sequence[Row]) -> TouchedPartition:
    columns = range(len(plan.times_of(view.name)))
    times = tuple(tuple((row[2 + 2 * n], row[3 + 2 * n]) for row in rows) for n in columns)
    count = sum(int(str(row[1])) for row in rows)
    if view.state.bounding is None:
        return TouchedPartition(value, count, times)
    least, low, high = ([row[place] for row in rows] for place in (-3, -2, -1))
    is_bound = not any(v is None for v in low)
    return TouchedPartition(
        value,
        count,
        times=times,
        least=min(int(str(v)) for v in least),
        low=min(int(str(v)) for v in low) if is_bound else None,
        high=max(int(str(v)) for v in high) if is_bound else None,
    )


@dataclass(frozen=True)
class Write:
    """A statement that brings so many ``rows`` of deltas into some places of the states."""

    places: tuple[Place, ...]
    rows: int
    way: Way
    is_small: bool = False
    """Whether one task writes the partitions anew."""
    is_told: bool = False
    """Whether the commit says which rows of the root change, where that is written by partitions."""
    left: tuple[Place, ...] = ()
    """What stays in the tail, added up, while other places are folded in."""
    deleted: tuple[Place, ...] = ()
    """Where only the rows of changed keys are written, and what was there of them is deleted in their files."""
    deleted_rows: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """How many keys these are, by view and partition."""
    adds_few: bool = False
    """Whether one task writes what comes then."""
    closed: tuple[Closed, ...] = ()
    """The partitions that go, where others are written anew."""

    @property
    def every(self) -> tuple[Place, ...]:
        """All places that it changes."""
        return (*self.places, *self.deleted)

    @property
    def partitions(self) -> int:
        """How many partitions it touches at most, where they are few enough to be written into the statement."""
        return sum(len(place.partitions or ()) for place in self.every)


def appended(plan: Plan, touched: Mapping[str, Sequence[TouchedPartition]]) -> tuple[Write, ...]:
    """The one statement that appends all deltas."""
    views = [view for view in plan.stored if touched.get(view.name)]
    places = tuple(_place(plan, view, touched[view.name], is_replaced=True) for view in views)
    return (Write(places, sum(t.rows for view in views for t in touched[view.name]), "append"),)


def folded(
    plan: Plan,
    touched: Mapping[str, Sequence[TouchedPartition]],
    goes: Tail,
    stays: Tail,
    sizes: Mapping[str, StateSize],
) -> tuple[Write, ...]:
    """The one statement that adds what ``goes`` of the tail and of the deltas to partitions, which are written anew.

    What ``stays`` in the tail is added up there.
    """

    def places(part: Tail) -> tuple[Place, ...]:
        return tuple(
            Place(view, _known(found), is_staged=bool(touched.get(view.name)))
            for view in plan.stored
            if (found := part.partitions_of(view.name))
        )

    rows = sum(t.rows for delta in touched.values() for t in delta)
    anew = places(goes)
    is_small = _is_small(anew, goes.rows + stays.rows, sizes)
    return (Write(anew, rows, "replace", is_small=is_small, left=places(stays)),)


def writes(
    plan: Plan,
    touched: Mapping[str, Sequence[TouchedPartition]],
    replaced: Collection[str],
    sizes: Mapping[str, StateSize],
    *,
    tells_changes: bool,
    vectors: DeletionVectors | None = None,
    closed: Sequence[Closed] = (),
) -> tuple[Write, ...]:
    """The statements by which deltas are written, in an order that a repeated attempt has too: one, as a rule.

    ``touched`` has by view the partitions of its delta, ``replaced`` the views whose partitions may be written anew:
    that is done where all that are touched may. Where a state is bounded, and to some of its partitions keys only come,
    these are written within their bounds: as nothing of them is there yet, that adds files and reads none. Small ones,
    by the ``sizes`` of states, one task writes, and with ``tells_changes`` commits say what changes in the root.

    With ``vectors``, where few rows of a partition change, these are deleted in their files. Partitions that are
    ``closed`` go with the one statement that writes others anew, or else with one of a later refresh.
    """
    views = [view for view in plan.stored if touched.get(view.name)]
    groups = [[group for view in views for group in _groups(plan, view, touched[view.name])]]
    if plan.config.fivm_merge == "per_partition" and _is_by_partition(plan):
        inner = [g for g in groups[0] if g[0] is not plan.stored[-1]]
        each = [(view, [row]) for view, rows in groups[0] if view is plan.stored[-1] for row in rows]
        # The inner views go with the first partition: a statement of their own would be one commit more.
        groups = [[*inner, *each[:1]], *([one] for one in each[1:])]
    planned = []
    for group in filter(None, groups):
        write = _write(plan, group, replaced)
        if write.way == "replace":
            write = replace(write, is_small=_is_small(write.places, write.rows, sizes))
            if vectors is not None and not write.is_small and len(groups) == 1:
                write = _deleting(plan, write, group, sizes, vectors)
            is_told = tells_changes and _writes_root(plan, write.every)
            write = replace(write, is_told=is_told, closed=tuple(closed) if len(groups) == 1 else ())
        planned.append(write)
    return tuple(planned)


def _deleting(
    plan: Plan,
    write: Write,
    groups: Sequence[tuple[View, list[TouchedPartition]]],
    sizes: Mapping[str, StateSize],
    vectors: DeletionVectors,
) -> Write:
    """The same write where rows are deleted in the partitions in which that pays, if there are any.

    Where keys only come nothing is there to be deleted: it is looked for within their bounds.
    """
    places: list[Place] = []
    deleted: list[Place] = []
    rows: dict[str, dict[str, int]] = {}
    pays = False
    for view in dict.fromkeys(view for view, _ in groups):
        of_view = [row for one, group in groups if one is view for row in group]
        is_bounded = _may_append(plan, view)
        new = {row.value for row in of_view if is_bounded and _only_comes(row)}
        few = {
            row.value
            for row in of_view
            if row.value not in new and vectors.pays(plan, view, row.value, row.rows, sizes.get(view.name))
        }
        pays = pays or bool(few)
        if rest := [row.value for row in of_view if row.value not in new | few]:
            places.append(Place(view, _known(rest)))
        if found := [row for row in of_view if row.value in new | few]:
            deleted.append(_place(plan, view, found, is_replaced=not is_bounded))
            rows[view.name] = {row.value: row.rows for row in found}
    many = sum(len(partitions) for partitions in rows.values())
    if not pays or many > VECTOR_PARTITIONS:
        return write
    # Of a key that changes there are three rows: that of the table, and two of its change feed.
    added = 3 * sum(sum(partitions.values()) for partitions in rows.values()) + ROWS_OF_A_FILE * many
    return replace(
        write,
        places=tuple(places),
        adds_few=_is_small(places, added, sizes),
        deleted=tuple(deleted),
        deleted_rows=rows,
    )


def _is_small(places: Sequence[Place], added: int, sizes: Mapping[str, StateSize]) -> bool:
    """Whether one task writes these places anew, to which so many rows are added."""
    return fits_one_task(
        added,
        ((sizes.get(p.view.name), None if p.partitions is None else len(p.partitions)) for p in places),
    )


def _writes_root(plan: Plan, places: Sequence[Place]) -> bool:
    """Whether whole partitions are written, and some of them are the root's."""
    return all(p.bounds is None for p in places) and any(p.view is plan.top for p in places)


def _groups(
    plan: Plan, view: View, touched: Sequence[TouchedPartition]
) -> list[tuple[View, list[TouchedPartition]]]:
    """The touched partitions of a view; in two where some are appended to."""
    if not _may_append(plan, view) or len(touched) > MAX_LITERALS:
        return [(view, list(touched))]
    parts = [[row for row in touched if _only_comes(row) is comes] for comes in (False, True)]
    return [(view, part) for part in parts if part]


def _may_append(plan: Plan, view: View) -> bool:
    return view.state.bounded_by is not None and plan.config.fivm_apply != "merge"


def _write(
    plan: Plan, groups: Sequence[tuple[View, list[TouchedPartition]]], replaced: Collection[str]
) -> Write:
    rows = sum(row.rows for _, group in groups for row in group)
    is_replaced = all(
        view.name in replaced or (_is_appended(plan, view, group) and _bounds(view, group) is not None)
        for view, group in groups
    )
    places = tuple(_place(plan, view, group, is_replaced=is_replaced) for view, group in groups)
    is_known = all(place.partitions is not None for place in places)
    return Write(places, rows, "replace" if is_replaced and is_known else "merge")


def _place(plan: Plan, view: View, group: Sequence[TouchedPartition], *, is_replaced: bool) -> Place:
    bounds, known = _bounds(view, group), _known([row.value for row in group])
    return Place(view, known, bounds if not is_replaced or _is_appended(plan, view, group) else None)


def _known(partitions: Sequence[str]) -> tuple[Condition, ...] | None:
    """Partitions as literals, None where they are too many."""
    if len(partitions) > MAX_LITERALS:
        return None
    return tuple(text(partition).ast() for partition in partitions)


def _is_appended(plan: Plan, view: View, group: Sequence[TouchedPartition]) -> bool:
    """Whether keys only come to these partitions of a bounded state."""
    return _may_append(plan, view) and all(_only_comes(row) for row in group)


def _bounds(view: View, group: Sequence[TouchedPartition]) -> Bounds | None:
    """The bounds of a delta in some partitions of a bounded state; None where one of them has no time, or one that no
    literal has."""
    key = view.state.bounding
    bounds = [(row.low, row.high) for row in group if row.low is not None and row.high is not None]
    if key is None or len(bounds) < len(group):
        return None
    low, high = min(low for low, _ in bounds), max(high for _, high in bounds)
    is_written = key.type != TIMESTAMP or _FIRST <= low <= high <= _LAST
    return Bounds(key.name, key.type, low, high) if is_written else None


def _only_comes(row: TouchedPartition) -> bool:
    """Whether in a touched partition of a bounded state, which has bounds, no key of the delta loses rows."""
    return row.least is not None and row.least > 0 and row.low is not None


def _is_by_partition(plan: Plan) -> bool:
    """Whether each partition can have a MERGE of its own.

    Not where doubles are added up, or steps: a MERGE of nothing but their rest, or of steps that undo each other, is no
    commit, and those that are done are counted.
    """
    return not any(view.step is not None or not view.state.is_exact for view in plan.stored)
