"""``fivm_apply`` merges a delta into a state, writes its partitions anew, or appends it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fivm_dbt.delta.term import scans
from fivm_dbt.plan.model.plan import FactorisedPlan, MaintainedPlan, Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.viewtree.statistics import APPENDED_ROWS

TAIL_PARTITIONS = 500
"""So many partitions of a view have something in the tail, at most: they are literals when it is folded in."""

REPLACED_ROWS = 1_000_000
"""Rows of a partition, on average, up to which ``auto`` writes it anew: about those of a file."""

REPLACED_FILES = 10
"""The same in files, where so many rows of the partition change: a MERGE would hardly leave a file as it is."""

READ_ROWS = 1_000
"""The same where other models read the change feed, and it has all of these rows twice: as it was, and as it is."""

FOLDED_ROWS, FOLDED_SHARE = 100_000, 0.2
"""So many rows of a delta, or of the tail, are not appended, and not this share of the rows of all states."""

ONE_TASK_ROWS = 200_000
"""So many rows one task writes anew: it plans and runs one stage, where a shuffle by which several tasks share the rows
is a second one. Spark would have few tasks of so few rows anyway."""

ROWS_OF_A_FILE = 5_000
"""What it takes to read and to write a file, in rows."""


WRITTEN_FOR_ADDED_UP = 5
"""To write a row takes so many times what it takes to read it and to add it to others of its key."""

FOLDED_PART = WRITTEN_FOR_ADDED_UP / 20
"""The share of a partition's rows from which its rows in the tail are folded in.

Until the next fold they would be read ``fivm_fold_after`` times, 20 by default; to write one of the partition costs
:data:`WRITTEN_FOR_ADDED_UP` times as much: ``20 · tail = 5 · partition``."""


@dataclass(frozen=True)
class StateSize:
    """Rows and partitions of a state when it was built, or of what was written anew of it, if that was larger."""

    rows: int
    partitions: int

    def grown(self, rows: int, partitions: int) -> StateSize:
        """What is known after so many partitions have been written anew, with so many rows together."""
        is_larger = rows * max(1, self.partitions) > self.rows * partitions
        return StateSize(rows, partitions) if is_larger else self


def replaced_states(
    plan: Plan,
    sizes: Mapping[str, StateSize],
    changed: Mapping[str, float],
    *,
    writes_changes: bool,
    deletes_rows: bool = False,
) -> frozenset[str]:
    """The states whose touched partitions are written anew instead of merged into, by ``fivm_apply``.

    ``auto`` takes those of known ``sizes`` with few rows a partition for those that are ``changed`` in each, on
    average. Of such a MERGE would write most files anew too, and read them twice. They have to be smaller where the
    change feed is read, and every row of such a partition is in it: that depends on whether the engine
    ``writes_changes``. With an engine that ``deletes_rows`` they may have any size: where few rows change, these are
    deleted, and where many do, a MERGE would write nearly all files too.
    """
    if plan.config.fivm_apply != "auto":
        return frozenset(v.name for v in plan.views if plan.config.fivm_apply == "replace")
    return frozenset(
        view.name
        for view in plan.views
        if (size := sizes.get(view.name)) is not None
        and (
            (deletes_rows and not _is_read_whole(plan, view, writes_changes=writes_changes))
            or _rows_per_partition(size)
            <= anew_up_to(plan, view, changed.get(view.name, 0), writes_changes=writes_changes)
        )
    )


def anew_up_to(plan: Plan, view: View, changed: float, *, writes_changes: bool) -> float:
    """Rows of a partition of a view's state, on average, up to which ``auto`` writes it anew: by how many change."""
    if _is_read_whole(plan, view, writes_changes=writes_changes):
        return READ_ROWS
    return REPLACED_ROWS * min(REPLACED_FILES, max(1.0, changed))


def _is_read_whole(plan: Plan, view: View, *, writes_changes: bool) -> bool:
    """Whether other models read all rows of each partition that is written anew."""
    return has_readers(plan, view) and not tells_changes(plan, writes_changes=writes_changes)


def tells_changes(plan: Plan, *, writes_changes: bool) -> bool:
    """Whether a commit that writes partitions of the root anew says which of its rows have changed.

    The engine has to be one that ``writes_changes``. Of doubles the sums of two queries might differ in their last
    digits: that of the transaction, and that of the statement where it is not taken.
    """
    state = plan.top.state
    return writes_changes and plan.is_read and state.bounded_by is None and state.is_exact


def fits_one_task(added: int, places: Iterable[tuple[StateSize | None, int | None]]) -> bool:
    """Whether one task reads some partitions of states, each of them a file, and adds so many rows to theirs.

    ``places`` are the size of each state, and how many of its partitions: False where one of these is not known.
    """
    rows, files = float(added), 0
    for size, partitions in places:
        if size is None or partitions is None:
            return False
        rows += size.rows / max(1, size.partitions) * partitions
        files += partitions
    return rows + files * ROWS_OF_A_FILE <= ONE_TASK_ROWS


@dataclass(frozen=True)
class Tail:
    """What has been appended to the states of a model and is not folded in, in so many commits.

    ``partitions`` are those that its rows go to, by view, with how many each gets: fewer where some have been added up
    since.
    """

    commits: int = 0
    partitions: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = ()

    @property
    def rows(self) -> int:
        return sum(rows for _, found in self.partitions for _, rows in found)

    @property
    def views(self) -> frozenset[str]:
        return frozenset(view for view, _ in self.partitions)

    def partitions_of(self, view: str) -> tuple[str, ...]:
        return tuple(partition for partition, _ in dict(self.partitions).get(view, ()))

    def longer(self, touched: Mapping[str, Mapping[str, int]]) -> Tail:
        """With one more commit: how many rows go to which ``touched`` partitions of views."""
        every = {view: Counter(dict(found)) for view, found in self.partitions}
        for view, found in touched.items():
            if found:
                every.setdefault(view, Counter()).update(found)
        return Tail(self.commits + 1, _in_order(every))

    def folded(self, sizes: Mapping[str, StateSize]) -> tuple[Tail, Tail]:
        """What of it pays to be folded in, and what stays, in one commit.

        Those partitions pay that get :data:`FOLDED_PART` of their rows or more; where too much would stay, also those
        that get the largest part of the others. A view with rows for too many goes as a whole.
        """
        parts = [
            (rows / max(1.0, _rows_per_partition(sizes.get(view))), view, partition, rows)
            for view, found in self.partitions
            for partition, rows in found
        ]
        parts.sort(key=lambda part: (-part[0], part[1:]))
        staying = self.rows
        goes: dict[str, Counter[str]] = {}
        stays: dict[str, Counter[str]] = {}
        wide = Counter({view: len(found) for view, found in self.partitions})
        too_wide = {view for view, count in wide.items() if count > TAIL_PARTITIONS}
        for share, view, partition, rows in parts:
            is_much = 2 * staying > _most_rows(sizes) or 2 * wide[view] > TAIL_PARTITIONS
            pays = share >= FOLDED_PART or is_much or view in too_wide
            (goes if pays else stays).setdefault(view, Counter())[partition] = rows
            if pays:
                staying -= rows
                wide[view] -= 1
        return Tail(1, _in_order(goes)), Tail(1, _in_order(stays)) if stays else Tail()

    def is_full(self, plan: Plan, sizes: Mapping[str, StateSize]) -> bool:
        """Whether it is too long to be read with every look at the model."""
        is_wide = any(len(found) > TAIL_PARTITIONS for _, found in self.partitions)
        return is_wide or self.commits > plan.config.fivm_fold_after or self.rows > _most_rows(sizes)

    def as_dict(self) -> dict[str, Any]:
        """As a head records it."""
        return {"commits": self.commits, "partitions": {view: dict(found) for view, found in self.partitions}}

    @staticmethod
    def of(data: Mapping[str, Any] | None) -> Tail:
        if not data:
            return Tail()
        return Tail(int(data["commits"]), _in_order({v: Counter(f) for v, f in data["partitions"].items()}))


def _in_order(rows: Mapping[str, Counter[str]]) -> tuple[tuple[str, tuple[tuple[str, int], ...]], ...]:
    return tuple((view, tuple(sorted(rows[view].items()))) for view in sorted(rows))


def _most_rows(sizes: Mapping[str, StateSize]) -> float:
    """So many rows a tail may have."""
    return max(FOLDED_ROWS, FOLDED_SHARE * sum(size.rows for size in sizes.values()))


def _rows_per_partition(size: StateSize | None) -> float:
    return 0.0 if size is None else size.rows / max(1, size.partitions)


def not_appended_to(plan: Plan) -> str | None:
    """Why deltas cannot be appended to the states of a model, None where they can.

    Who reads a tail has to add it up, which reading a change feed is not.
    """
    if not isinstance(plan, MaintainedPlan):
        return "it is not maintained"
    if isinstance(plan, FactorisedPlan):
        return "its result is joined when it is read"
    if plan.is_read:
        return "other models read its change feed"
    if plan.config.fivm_merge == "per_partition":
        return "fivm_merge is per_partition"
    for view in plan.stored:
        state = view.state
        if state.is_set or state.determined or state.bounded_by is not None or view.step is not None:
            return f"{view.name} is not a sum of its deltas"
    return None


def appends(plan: Plan, sizes: Mapping[str, StateSize]) -> bool:
    """Whether deltas are appended, as far as they are small; ``auto`` does so with small known ``sizes``.

    It costs one small file, however many views and partitions they touch. Views that are read by parts may be of any
    size: nobody adds up their rows. Of inner views that are placed by a hash most partitions are touched by some keys,
    and would be written: they may be larger.
    """
    if plan.config.fivm_apply not in ("auto", "append") or not_appended_to(plan) is not None:
        return False
    known = plan.config.fivm_apply == "append" or bool(sizes)
    by_parts = _read_by_parts(plan)
    hashed = {v.name for v in plan.stored if v is not plan.top and v.state.partitioning.kind == "bucket"}
    added_up = sum(
        size.rows / (WRITTEN_FOR_ADDED_UP if name in hashed else 1)
        for name, size in sizes.items()
        if name not in by_parts
    )
    return known and added_up <= APPENDED_ROWS


def _read_by_parts(plan: Plan) -> frozenset[str]:
    """The views with payload that every other view reads without adding up their rows first."""
    whole = {s.relation for v in plan.views for s in scans(v.core) if s.relation not in v.by_parts}
    return frozenset(v.name for v in plan.views if v.is_payload and v.name not in whole)


def has_readers(plan: Plan, view: View) -> bool:
    """Whether other models read the change feed of a view's state."""
    return plan.is_read and view is plan.top
