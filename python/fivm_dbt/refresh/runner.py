"""The runner runs the steps of a build and of a refresh, and keeps what is learnt between them.

The steps and their order are :mod:`fivm_dbt.steps`, their statements :mod:`fivm_dbt.spark.statements`. What a step
finds, which keys there are, in which partitions, what a view's change is, comes into the binding of those after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeVar

from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.ir.build import text
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.refresh.decide import is_large
from fivm_dbt.refresh.factorise import Found, factorised
from fivm_dbt.refresh.own_rows import own_rows
from fivm_dbt.refresh.recorder import OwnRows, Recorder
from fivm_dbt.refresh.writes import (
    MAX_LITERALS,
    TouchedPartition,
    appended,
    folded,
    touched_partitions,
    writes,
)
from fivm_dbt.refresh.writes import Write as PlannedWrite
from fivm_dbt.spark.check import check_statements
from fivm_dbt.spark.merge import write_deltas, write_head
from fivm_dbt.spark.near_changes import spans_of, times_by_day, times_of
from fivm_dbt.spark.pieces import Query, Statement, union_all
from fivm_dbt.spark.places import Closed
from fivm_dbt.spark.statements import locate_query, locates, statement
from fivm_dbt.steps.applying import StateSize, Tail, fits_one_task, tells_changes
from fivm_dbt.steps.binding import (
    Binding,
    BoundInput,
    Span,
    Touched,
    is_own_change,
    staged_input,
    staged_state,
)
from fivm_dbt.steps.deletion_vectors import DeletionVectors
from fivm_dbt.steps.kinds import (
    Count,
    Factorise,
    Locate,
    StageChange,
    StageDelta,
    StageFactor,
    StageKeys,
    StageState,
    UpdateStep,
    Write,
)
from fivm_dbt.steps.order import builds, updates
from fivm_dbt.steps.read_once import shown_once

S = TypeVar("S", StageDelta, StageChange)


@dataclass(frozen=True)
class Merged:
    """What came to a view's state: keys that changed, and the partitions that they lie in."""

    view: str
    rows: int
    partitions: int
    touched: tuple[str, ...] = ()
    """These partitions, as the database gives them."""
    spans: tuple[Span, ...] = ()
    """When its changed rows were."""
    product: Found | None = None
    """What its staged change was found to be the product of."""
    anew: int = 0
    """How many partitions the last statement has written anew as a whole."""


def build_states(plan: Plan, engine: Recorder, binding: Binding) -> None:
    """Create the table of all states with everything in them, its change feed on from the first version."""
    check_statements(plan)
    staged = []
    for step in builds(plan):
        query = _needed(statement(plan, step, binding))
        if isinstance(step, StageState):
            engine.progress(f"building {step.view.name}: {step.view.reason}")
            staged.append(staged_state(plan, step.view))
            engine.stage(staged[-1], query)
        else:
            assert binding.head is not None
            engine.commit(query, binding.head.note(plan.state_relation))
    for name in reversed(staged):
        engine.unstage(name)


class Update:
    """One run of the steps of a refresh, over states of known ``sizes``.

    ``already`` statements of this refresh into the states are not repeated.
    """

    def __init__(
        self,
        plan: Plan,
        engine: Recorder,
        binding: Binding,
        sizes: Mapping[str, StateSize],
        already: int = 0,
    ) -> None:
        self._plan = plan
        self._engine = engine
        self.started_from = binding
        self._binding = binding
        self._sizes = sizes
        self._already = already
        self._steps = list(updates(plan))
        self.touched: dict[str, tuple[TouchedPartition, ...]] = {}
        """What was counted of the staged deltas, by view."""
        self._merged: dict[str, Merged] = {}
        self._planned: tuple[PlannedWrite, ...] = ()

    @property
    def merged(self) -> tuple[Merged, ...]:
        """What came to the views that changed."""
        return tuple(self._merged.values())

    def finds_a_change(self) -> bool:
        """Compute all deltas; whether one of them has rows, so that something is to be written."""
        while self._steps and not isinstance(self._steps[0], Write):
            if deltas := self._taken(StageDelta):
                self._stage_together(deltas)
            elif changes := self._taken(StageChange):
                self._stage_together(changes)
            else:
                self._run(self._steps.pop(0))
        return any(self.touched.values())

    def longer(self, tail: Tail) -> Tail:
        """The tail with the deltas appended to it."""
        return tail.longer({v: {t.value: t.rows for t in found} for v, found in self.touched.items()})

    @property
    def changed_per_partition(self) -> dict[str, float]:
        """How many keys the delta of each view has in a partition that it touches, on average."""
        return {
            view: sum(t.rows for t in found) / len(found) for view, found in self.touched.items() if found
        }

    def plan_append(self) -> Binding:
        """Have the deltas appended."""
        self._planned = appended(self._plan, self.touched)
        return self.started_from

    def plan_fold(self, goes: Tail, stays: Tail, sizes: Mapping[str, StateSize]) -> Binding:
        """Have partitions written with what ``goes`` there of the deltas and the tail, and the tail with the rest."""
        self._planned = folded(self._plan, self.touched, goes, stays, sizes)
        if not stays.views:
            self._note_anew()
        return self.started_from

    def plan_writes(
        self,
        replaced: frozenset[str],
        sizes: Mapping[str, StateSize],
        vectors: DeletionVectors | None = None,
        closed: Sequence[Closed] = (),
    ) -> Binding:
        """Decide by which statements the deltas are written, of which states by partitions; the binding with that.

        With ``vectors`` rows may be deleted in their files; partitions that are ``closed`` go.
        """
        self.started_from = replace(self.started_from, replaced=replaced)
        tells = tells_changes(self._plan, writes_changes=self._engine.writes_changes)
        self._planned = writes(
            self._plan, self.touched, replaced, sizes, tells_changes=tells, vectors=vectors, closed=closed
        )
        self._note_anew()
        return self.started_from

    def deleted(self, before: DeletionVectors) -> DeletionVectors:
        """What is deleted after this refresh."""
        if any(write.way != "replace" for write in self._planned):
            return before
        touched = {view: [t.value for t in found] for view, found in self.touched.items()}
        rows = {view: found for write in self._planned for view, found in write.deleted_rows.items()}
        return before.after(touched, rows)

    def _note_anew(self) -> None:
        for write in self._planned:
            for place in write.places if write.way == "replace" else ():
                anew = len(place.partitions or ()) if place.bounds is None else 0
                merged = self._merged.get(place.view.name)
                if merged is not None:
                    self._merged[place.view.name] = replace(merged, anew=anew)

    def writes(self) -> Iterator[tuple[int, int, Callable[[NextHead], None]]]:
        """The statements that are still to run: which of how many, and what runs it with the head that it sets.

        One that sets the head alone where no delta has rows.
        """
        count = len(self._planned)
        if not count:
            yield 0, 0, lambda head: self._commit(write_head(self._plan, head), head)
        for number, write in enumerate(self._planned, start=1):
            if number > self._already:
                yield number, count, partial(self._write, number, write)

    def _write(self, number: int, write: PlannedWrite, head: NextHead) -> None:
        count = len(self._planned)
        of = f" ({number}/{count})" if count > 1 else ""
        what = f"{write.rows:,} rows into {write.partitions} partitions"
        verb = "appending" if write.way == "append" else "merging"
        self._engine.progress(f"{self._plan.model}: {verb} {what}{of}")
        before, tails = self.started_from.version_before, self.started_from.tails
        written = write_deltas(
            self._plan,
            write.every,
            before,
            head,
            way=write.way,
            tails=tails,
            only_these=count > 1,
            is_small=write.is_small,
            left=write.left,
            closed=write.closed,
        )
        self._commit(written, head, own_rows(self._plan, self._engine, write, self.started_from, head))

    def _commit(self, statement_: Statement, head: NextHead, own: OwnRows | None = None) -> None:
        after = self.started_from.version_before
        note = head.note(self._plan.state_relation)
        self._engine.commit(statement_, note, after, own, reads_replaced=True)

    def _taken(self, kind: type[S]) -> Sequence[S]:
        """The next steps, as far as they are of one kind."""
        found: list[S] = []
        while isinstance(step := self._steps[0], kind):
            found.append(step)
            self._steps.pop(0)
        return found

    def _run(self, step: UpdateStep) -> None:
        match step:
            case Locate():
                self._locate(step)
            case StageKeys():
                self._stage_keys(step)
            case StageFactor(_, part, _):
                self._stage(staged_input(self._plan, part.factor.name), step)
            case Count(view):
                self._count(view, step)
            case Factorise(view):
                self._factorise(view)

    def _stage_together(self, steps: Sequence[StageDelta | StageChange]) -> None:
        """Stage what the views of a level do not read of each other."""
        staged: list[tuple[str, Statement]] = []
        for step in steps:
            is_delta = isinstance(step, StageDelta)
            if not is_delta:
                self._bind_change(step.view)
            name = (
                staged_state(self._plan, step.view) if is_delta else staged_input(self._plan, step.view.name)
            )
            query = statement(self._plan, step, self._binding)
            if query is None:
                continue
            if is_delta or step.view.name not in self._deferred:
                staged.append((name, query))
            else:
                assert isinstance(query, Query)
                self._engine.defer(name, query, ())
        self._engine.stage_all(staged)

    @cached_property
    def _deferred(self) -> frozenset[str]:
        """The inner views of which what they show is left to the delta that reads it."""
        if not self._engine.defers:
            return frozenset()
        large = partial(is_large, self._plan, self._engine, self._sizes)
        return shown_once(self._plan, self.started_from.moved, large)

    def _stage(self, name: str, step: UpdateStep) -> None:
        query = statement(self._plan, step, self._binding)
        if query is not None:
            self._engine.stage(name, query)

    def _locate(self, step: Locate) -> None:
        """Where the keys lie in states, as far as that is not known."""
        looked_up = locates(self._plan, step, self._binding)
        if not looked_up:
            return
        query = locate_query(self._plan, step.view, looked_up, self._binding)
        found: list[list[str]] = [[] for _ in looked_up]
        for number, partition in self._engine.query(query):
            found[int(str(number))].append(str(partition))
        touched = (
            Touched(lookup.key_set, state.relation, _literals(values))
            for (lookup, state), values in zip(looked_up, found, strict=True)
        )
        self._binding = self._binding.with_touched(touched)

    def _stage_keys(self, step: StageKeys) -> None:
        """Keys that are not there are as good as no change: what they would restrict is not read."""
        query = statement(self._plan, step, self._binding)
        if query is None:
            return
        if not step.key_set.is_inlined:
            name = staged_input(self._plan, step.key_set.name)
            self._engine.stage(name, query)
            if step.key_set.may_be_empty and not self._engine.has_rows(name):
                self._engine.unstage(name)
                return
            self._ask_times(step.key_set, name)
        self._binding = replace(self._binding, changed=self._binding.changed | {step.key_set.name})

    def _ask_times(self, key_set: KeySet, name: str) -> None:
        """When staged keys are, where reads are bounded by that."""
        times = self._plan.times_of(key_set.name)
        if times:
            rows = self._engine.added_up(name, union_all(times_by_day(name, times)))
            self._binding = self._binding.with_spans(spans_of(key_set.name, times, rows))

    def _count(self, view: View, step: Count) -> None:
        query = statement(self._plan, step, self._binding)
        if query is None:
            return
        assert isinstance(query, Query)
        answer = self._engine.added_up(staged_state(self._plan, view), query)
        touched = touched_partitions(self._plan, view, answer)
        if not touched:
            return
        self.touched[view.name] = touched
        rows, spans = sum(t.rows for t in touched), _spans(self._plan, view, touched)
        self._merged[view.name] = Merged(
            view.name, rows, len(touched), tuple(t.value for t in touched), spans
        )

    def _bind_change(self, view: View) -> None:
        """Of a view that is not written yet: its versions are those from before."""
        before = self._binding.version_before
        change = self._merged.get(view.name)
        if change is None:
            bound = BoundInput(view.name, "static", before, before)
            self._binding = self._binding.with_view(bound, is_changed=False)
            return
        touched = Touched(staged_state(self._plan, view), view.name, _literals(change.touched))
        bound = BoundInput(view.name, "staged" if is_own_change(view) else "state", before, before)
        self._binding = self._binding.with_touched([touched]).with_view(bound, is_changed=True)
        self._binding = self._binding.with_spans(change.spans)
        if fits_one_task(change.rows, [(self._sizes.get(view.name), change.partitions)]):
            self._binding = replace(self._binding, small=self._binding.small | {view.name})

    def _factorise(self, view: View) -> None:
        """Have the change of a view read as factors by those above it, if it lies staged as such, or is found to."""
        change = self._merged.get(view.name)
        if change is None:
            return
        products = self._binding.products(view)
        if len(products) == 1 and products[0].gives is not None and not self._binding.terms(view):
            self._binding = self._binding.with_factors(products[0].gives)
            return
        if view.split is None or change.rows < self._plan.config.fivm_product_rows:
            return
        found = factorised(self._plan, view, self._engine)
        if found is None:
            return
        self._engine.progress(f"{self._plan.model}: the change of {view.name} is {found.text}")
        self._binding = self._binding.with_factors(view.split)
        self._merged[view.name] = replace(change, product=found)


def _spans(plan: Plan, view: View, touched: Sequence[TouchedPartition]) -> tuple[Span, ...]:
    """The times of a view's staged delta, from the first and the last ones in each touched partition."""
    times = enumerate(plan.times_of(view.name))
    found = (
        (c, times_of((pair for part in touched for pair in part.times[n]), type_)) for n, (c, type_) in times
    )
    return tuple(Span(view.name, column, spans) for column, spans in found if spans is not None)


def _literals(texts: Sequence[object]) -> tuple[Scalar, ...] | None:
    """Partitions as literals, None where they are too many."""
    if len(texts) > MAX_LITERALS:
        return None
    return tuple(text(partition) for partition in sorted(map(str, texts)))


def _needed(query: Statement | None) -> Statement:
    assert query is not None
    return query
