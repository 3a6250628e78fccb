"""A binding adds to a plan: versions, the inputs that changed, names of staged deltas, the number of buckets."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fivm_dbt.catalog import SparkType
from fivm_dbt.delta.products import FactorisedDelta, ProductDelta
from fivm_dbt.delta.prune import prune_terms
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.clock import Clock
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import CLOCK, old_rows, staged_name
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.plan.model.inputs import Capture
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.model.view import View


@dataclass(frozen=True)
class BoundInput:
    """An input at this refresh: its capture and the versions of its table (of its root state, for a fivm model).

    ``snapshot`` is the version of the own snapshot that holds the old state, for capture by snapshot.
    """

    name: str
    capture: Capture
    old: int | None
    new: int
    snapshot: int | None = None


@dataclass(frozen=True)
class BoundClock:
    """The time of the state, and that of this refresh: as much of it as the plan reads."""

    old: Clock
    new: Clock

    @property
    def moved(self) -> bool:
        return self.old != self.new


@dataclass(frozen=True)
class Binding:
    """The versions and literals of one refresh. Two bindings that are equal give the same statements.

    ``inputs`` and ``changed`` come to have the inner views too, as these are brought up to date, and ``changed`` the
    key sets that are not empty. ``before`` is the version of the states before the refresh, None while they are
    built. ``touched`` are the partitions of a state that a key set lies in, as literals; None where they are too many.
    ``clock`` is None where the plan does not read it. ``replaced`` are the states whose touched partitions are written
    anew, ``losing`` the inputs that rows were taken from. ``factorised`` are the deltas that lie staged as factors.
    """

    inputs: tuple[BoundInput, ...]
    changed: frozenset[str]
    buckets: int
    before: int | None = None
    touched: tuple[Touched, ...] = ()
    clock: BoundClock | None = None
    replaced: frozenset[str] = frozenset()
    losing: frozenset[str] = frozenset()
    factorised: frozenset[str] = frozenset()
    head: NextHead | None = None
    """The head that a build sets with its rows."""
    spans: tuple[Span, ...] = ()
    """When the rows of staged changes were, where a read is bounded by that."""
    tails: frozenset[str] = frozenset()
    """The views that have something in the tail: appended to them, and not in their partitions yet."""
    within: tuple[Within, ...] = ()
    """What is read where a part of the states is built."""
    small: frozenset[str] = frozenset()
    """The inner views of which one task computes what their keys show: few rows are in the touched partitions."""

    @property
    def moved(self) -> frozenset[str]:
        """The inputs that changed, those parts of them that took rows away, and CLOCK if that did."""
        is_later = self.clock is not None and self.clock.moved
        every = self.changed | {old_rows(name) for name in self.losing}
        return every | {CLOCK} if is_later else every

    def input(self, name: str) -> BoundInput:
        return next(i for i in self.inputs if i.name == name)

    @property
    def version_before(self) -> int:
        """The version of the states before this refresh."""
        if self.before is None:
            raise ValueError("the states are being built: there is no version before")
        return self.before

    def while_built(self, plan: Plan) -> Binding:
        """The same for a build: an inner view is read as it lies staged."""
        return self.while_built_in_part(plan, plan.helpers, ())

    def while_built_in_part(self, plan: Plan, views: Iterable[View], within: tuple[Within, ...]) -> Binding:
        """The same where only some ``views`` are built, and of what they read what is ``within``: others are there."""
        own, built = {i.name for i in plan.inputs}, {view.name for view in views}
        helpers = (
            BoundInput(v.name, "built", None, 0)
            if v.name in built
            else BoundInput(v.name, "static", self.version_before, self.version_before)
            for v in plan.helpers
        )
        inputs = (*(i for i in self.inputs if i.name in own), *helpers)
        return replace(self, inputs=inputs, changed=frozenset(), factorised=frozenset(), within=within)

    def within_of(self, view: View, relation: str) -> Within | None:
        """The rows of a relation that are read where a part of a view is built; None for all of them."""
        return next((w for w in self.within if (w.view, w.relation) == (view.name, relation)), None)

    def with_touched(self, touched: Iterable[Touched]) -> Binding:
        return replace(self, touched=(*self.touched, *touched))

    def partitions(self, key_set: str, state: str) -> tuple[Scalar, ...] | None:
        """In which partitions of ``state`` the keys of a set lie; None where nothing is known."""
        return next((t.partitions for t in self.touched if (t.key_set, t.state) == (key_set, state)), None)

    def span(self, relation: str, column: str) -> Intervals | None:
        """When the changed rows of a relation were, by a column; None where that is not known."""
        if relation not in self.changed:
            return Intervals()
        return next((s.times for s in self.spans if (s.relation, s.column) == (relation, column)), None)

    def with_spans(self, spans: Iterable[Span]) -> Binding:
        return replace(self, spans=(*self.spans, *spans))

    def with_view(self, bound: BoundInput, *, is_changed: bool) -> Binding:
        """With an inner view brought up to date."""
        changed = self.changed | {bound.name} if is_changed else self.changed
        return replace(self, inputs=(*self.inputs, bound), changed=changed)

    def with_factors(self, delta: FactorisedDelta) -> Binding:
        """With a view's delta staged as factors too: these are read like changed relations."""
        changed = self.changed | {factor.name for factor in delta.factors}
        return replace(self, changed=changed, factorised=self.factorised | {delta.name})

    def products(self, view: View) -> tuple[ProductDelta, ...]:
        """The products by which the changes below a view are met in this refresh."""
        return tuple(p for p in view.products if p.of.name in self.factorised)

    def met(self, view: View) -> frozenset[str]:
        """What moved, without the changes below a view that are met as products and not as they are staged."""
        return self.moved - {p.of.view for p in self.products(view)}

    def terms(self, view: View) -> tuple[Term, ...]:
        """The terms of a view's delta that can have rows, beside those that are products."""
        return prune_terms(view.terms, self.met(view))

    def undone(self, plan: Plan) -> frozenset[str]:
        """The inputs whose old rows are their new ones less their change: not where dropped rows are left out of it."""
        return frozenset(i.name for i in plan.inputs if i.name in self.changed and i.retention is None)

    def is_changed_by(self, view: View) -> bool:
        """Whether a view may change."""
        return bool(self.products(view) or self.terms(view))


@dataclass(frozen=True)
class Span:
    """The times that a ``column`` of a staged change has, in microseconds; a few ranges that cover them."""

    relation: str
    column: str
    times: Intervals


@dataclass(frozen=True)
class Within:
    """Of a ``relation`` a ``view`` reads rows with a ``column`` in some ranges, which may be open, or without one."""

    view: str
    relation: str
    column: str
    type: SparkType
    ranges: tuple[tuple[int | None, int | None], ...]


@dataclass(frozen=True)
class Touched:
    """The partitions of ``state`` that the keys of a set lie in, or those of its staged delta."""

    key_set: str
    state: str
    partitions: tuple[Scalar, ...] | None


def is_own_change(view: View) -> bool:
    """Whether the rows of a view's delta are those of its change: in a bag, and where steps are read between."""
    return view.rows is not None or view.step is not None


def staged_input(plan: Plan, name: str) -> str:
    """Session name of the staged net change of an input or an inner view, or of a key set."""
    return staged_name(plan.relation, name)


def staged_state(plan: Plan, view: View) -> str:
    """Session name of the staged delta of a view's state."""
    return staged_name(plan.relation, view.name + "_state")


def staged_old(plan: Plan, view: View) -> str:
    """Session name of the rows of a view's state that its staged delta changes."""
    return staged_name(plan.relation, view.name + "_old")
