"""A view's definition becomes what is kept of it: state, partitioning, delta terms, key sets."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from fivm_dbt.catalog import Column, SparkType
from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.config import Config
from fivm_dbt.delta import derive
from fivm_dbt.delta.foreign_keys import Reference, parents_first, without_new_parents
from fivm_dbt.delta.grown import loses_with
from fivm_dbt.delta.key_sets import KeySet, Placed, bound_reads
from fivm_dbt.delta.met_first import met_first
from fivm_dbt.delta.near_changes import NearChanges, Sources
from fivm_dbt.delta.orphans import meeting_orphans
from fivm_dbt.delta.own_delta import OwnDelta, own_delta
from fivm_dbt.delta.own_state import delta_over_own_state
from fivm_dbt.delta.products import ProductDelta
from fivm_dbt.delta.reevaluation import delta_by_reevaluation
from fivm_dbt.delta.sought import sought
from fivm_dbt.delta.term import Term, scans
from fivm_dbt.ir.higher_order import HigherOrder
from fivm_dbt.ir.moments import kind_of
from fivm_dbt.ir.node import Node, Side
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.part_columns import is_shorter_than_period
from fivm_dbt.ir.reads import reads
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import STEP, split_name
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.given import Given, Topmost
from fivm_dbt.plan.keep.kept_views import InnerView
from fivm_dbt.plan.keep.trees.eager import EagerTerm
from fivm_dbt.plan.keep.trees.payload_views import is_payload_view
from fivm_dbt.plan.keep.trees.product_deltas import ProductDeltas
from fivm_dbt.plan.layout.key_ranges import KeyRanges
from fivm_dbt.plan.layout.origins import Origins
from fivm_dbt.plan.layout.partitioning import by_number, choose_partitioning
from fivm_dbt.plan.layout.promised_keys import determined_keys, is_set
from fivm_dbt.plan.layout.root import Root, added_up, find_root
from fivm_dbt.plan.layout.rows_a_day import RowsADay
from fivm_dbt.plan.model.eager import EagerDelta
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.plan.model.view import View
from fivm_dbt.plan.retention import check_kept
from fivm_dbt.rewrite.flatten_joins import flatten_joins
from fivm_dbt.rewrite.order_factors import order_factors


@dataclass(frozen=True)
class PlannedViews:
    """The views of a plan, each after those that it scans, and which are partitioned by a period of time.

    ``measurable``: by input, the columns by whose values the length of such a period is chosen. ``orderable``: those by
    which a state would lie, or a read be bounded, if the input's rows were in their order.
    """

    views: tuple[View, ...]
    by_time: frozenset[str]
    measurable: Mapping[str, Collection[str]]
    orderable: Mapping[str, Collection[str]]


def plan_views(given: Given, inner: Sequence[InnerView], top: Topmost) -> PlannedViews:
    """How the views ``inner``, each after those that it scans, and the query over them are kept.

    Raises FivmError where rows of an input are needed that are dropped.
    """
    views = _Views(given)
    for view in inner:
        views.add(view)
    views.add_top(top)
    by_time = frozenset(v.name for v in views.views if v.state.partitioning.kind == "time")
    return PlannedViews(
        tuple(views.products.with_splits(views.views)),
        by_time,
        measurable=views.rows_a_day.measurable,
        orderable=views.key_ranges.wanted,
    )


class _Views:
    """The views so far, and what those above have to know of them: where rows are placed, and when they were."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._static = given.static
        self.views: list[View] = []
        self.products = ProductDeltas()
        self._origins = Origins()
        self.rows_a_day = RowsADay(given.measured, self._origins)
        self.key_ranges = KeyRanges(given.measured, self._origins)
        self._placed: dict[str, Placed] = {}
        self._losing: dict[str, frozenset[str] | None] = {}
        """By view, what has to lose rows for it to lose any; None where it may although nothing does."""
        self._times: dict[str, dict[str, str]] = {}
        """By view, the time columns that tell when its changes were: shown column → key of the state."""

    def add(self, view: InnerView) -> None:
        """Plan an inner view."""
        self._add(
            view.name,
            view.node,
            names=tuple(f.name for f in view.node.fields),
            reason=view.reason,
            by=view.by,
            delta=self._terms,
            slot=view.slot,
            bounded_by=view.bounded_by,
        )
        self.views[-1] = replace(self.views[-1], closing=view.closing)

    def add_top(self, top: Topmost) -> None:
        """Plan what the model shows."""
        self._add(
            top.name,
            top.node,
            names=top.names,
            reason=f"the model itself{', joined when it is read' if top.is_joined_on_read else ''}",
            by=None,
            delta=(lambda root, state: ()) if top.is_joined_on_read else self._terms,
            part_length=top.part_length,
            rows_a_day=top.rows_a_day,
            grouped=frozenset(term.relation for term in top.eager),
        )
        eager = tuple(self._eager(self.views[-1], top.eager))
        self.views[-1] = replace(self.views[-1], eager=eager)
        if top.is_joined_on_read:
            view = self.views[-1]
            self.views[-1] = replace(view, state=replace(view.state, is_grouped=top.is_grouped))

    def _add(
        self,
        name: str,
        node: Node,
        names: tuple[str, ...],
        reason: str,
        by: tuple[str, ...] | None,
        delta: Callable[[Root, StateTable], tuple[Term, ...]],
        slot: str | None = None,
        bounded_by: str | None = None,
        part_length: Length | None = None,
        rows_a_day: float | None = None,
        grouped: frozenset[str] = frozenset(),
    ) -> None:
        root = find_root(node, names)
        check_kept(split_name(name)[-1], node, names, root, self._given.dropped, is_utc=self._given.is_utc)
        is_payload = is_payload_view(node)
        grouped_by = (
            tuple(by) if by and set(by) <= set(root.local_keys) else root.local_keys or tuple(by or ())
        )
        state = self._state(name, root, grouped_by, part_length, rows_a_day, is_root=by is None)
        if slot is not None:
            state = replace(state, partitioning=by_number(slot), bounded_by=bounded_by)
        self._origins.add(name, node, names)
        own = own_delta(root.core, name)
        state = self._promised(state, root, own, is_root=by is None)
        if state.partitioning.ranges_of is not None:
            self.key_ranges.add(name, root.shown, state.partitioning.ranges_of)
        flat = delta(root, state) if own is None else own.terms()
        terms = tuple(Term(self._ordered(t.node), t.multiplicity) for t in flat)
        rows = Placed(tuple((c, c, t) for c, t in _placing(state)))
        placed = {} if "look_ups" in self._given.config.fivm_without else {**self._placed, name: rows}
        terms, key_sets = bound_reads(terms, placed, split_name(name)[-1])
        terms, key_sets = self._near_changes(terms, key_sets)
        terms = sought(terms, self._given.measured if self._given.seeks_first else None)
        measured = self._given.measured if self._given.meets_first else None
        terms, met = met_first(terms, measured, split_name(name)[-1], grouped)
        view = View(
            state=state,
            core=root.core,
            terms=terms,
            key_sets=(*(() if own is None else own.key_sets()), *key_sets, *met),
            columns=tuple(Column(n, f.type) for n, f in zip(names, node.fields, strict=True)),
            presentation=root.presentation(name, is_set=state.is_set),
            rows=_rows(root, is_payload=is_payload),
            reason=reason,
            is_payload=is_payload,
            step=_step(root.core),
            times=tuple(_shown_times(root)),
        )
        self.views.append(replace(view, products=self._products(view, flat, placed)))
        if view.step is None:
            self._times[name] = dict(view.times)
        self._losing[name] = loses_with(node, self._static, self._losing)
        shown = {key: output for output, key in root.shown if key is not None}
        placing = _placing(state)
        if placing and all(column in shown for column, _ in placing):
            self._placed[name] = Placed(tuple((column, shown[column], type_) for column, type_ in placing))
        if not terms:
            self._static |= {name}

    def _terms(self, root: Root, state: StateTable) -> tuple[Term, ...]:
        flat = (Term(flatten_joins(t.node), t.multiplicity) for t in self._delta(root, state))
        needed = (without_new_parents(t, self._given.references) for t in flat)
        split = (
            part for t in needed for part in meeting_orphans(t, tuple(self._given.orphans), self._orphans_of)
        )
        return tuple(split)

    def _eager(self, view: View, terms: Iterable[EagerTerm]) -> Iterator[EagerDelta]:
        """The deltas by which rows are grouped first, but where the change says which few of them are read."""
        names = tuple(k.name for k in view.state.keys), tuple(p.name for p in view.state.payload)
        for eager in terms:
            keys, payload, rows = added_up(eager.over)
            is_same = (tuple(k.name for k in keys), tuple(p.name for p in payload)) == names
            flat = [t for t in view.terms if _is_change_of(t, eager.relation)]
            is_whole = all(r.lookup is None and not r.times for t in flat for r in reads(t.node))
            if is_same and is_whole and len(flat) == 1 and all(p.products is not None for p in payload):
                term = Term(self._ordered(eager.term.node), eager.term.multiplicity)
                state = replace(view.state, keys=keys, payload=payload, rows=rows)
                yield EagerDelta(eager.relation, term, state)

    def _near_changes(
        self, terms: tuple[Term, ...], key_sets: tuple[KeySet, ...]
    ) -> tuple[tuple[Term, ...], tuple[KeySet, ...]]:
        """Reads bounded by the times and numbers of staged changes: those of inputs, and of the views below."""
        if "time_ranges" in self._given.config.fivm_without:
            return terms, key_sets
        nodes = (*(t.node for t in terms), *(k.node for k in key_sets))
        changes = [s for node in nodes for s in scans(node) if s.side is Side.DELTA]
        views = {v.name for v in self.views} | {k.name for k in key_sets}
        known = {s.relation: {n: n for n, _ in s.columns} for s in changes if s.relation not in views}
        sources = Sources.of({**known, **self._times})
        return NearChanges(sources, self._given.is_utc, self._is_ordered).bounded(terms, key_sets)

    def _is_ordered(self, relation: str, column: str) -> bool:
        return self._given.by_ranges and self.key_ranges.is_ordered(relation, column)

    def _products(
        self, view: View, terms: tuple[Term, ...], placed: Mapping[str, Placed]
    ) -> tuple[ProductDelta, ...]:
        """The view's delta where that of a view below comes as a product, each part bounded by the keys it needs."""
        if "products" in self._given.config.fivm_without:
            return ()
        found = []
        for number, product in enumerate(self.products.of(view, terms), start=1):
            parts = tuple(Term(self._ordered(p.node), Scalar.number(1)) for p in product.parts)
            prefix = f"{split_name(view.name)[-1]}_product_{number}"
            bounded, key_sets = bound_reads(parts, placed, prefix)
            nodes = zip(product.parts, bounded, strict=True)
            found.append(
                replace(product, parts=tuple(replace(p, node=t.node) for p, t in nodes), key_sets=key_sets)
            )
        return tuple(found)

    def _orphans_of(self, reference: Reference) -> str:
        """The relation in which the orphans of a foreign key are kept, by a view that is added where first needed."""
        kept = self._given.orphans[reference]
        if kept.relation not in {v.name for v in self.views}:
            names = tuple(f.name for f in kept.node.fields)

            def delta(root: Root, state: StateTable) -> tuple[Term, ...]:
                stored = dict(zip(names, (k.name for k in root.keys), strict=True))
                return kept.delta(stored, self._static)

            self._add(kept.relation, kept.node, names=names, reason=kept.reason, by=kept.by, delta=delta)
        return kept.relation

    def _ordered(self, node: Node) -> Node:
        return node if "delta_first" in self._given.config.fivm_without else order_factors(node)

    def _state(
        self,
        name: str,
        root: Root,
        grouped_by: tuple[str, ...],
        part_length: Length | None,
        rows_a_day: float | None,
        *,
        is_root: bool,
    ) -> StateTable:
        config = self._given.config if is_root else _of_inner_view(self._given.config)
        keys = root.keys
        if grouped_by and not config.fivm_partition_by:
            # A period of another key would not tell in which partitions the rows of an affected key lie.
            keys = tuple(k for k in keys if k.name in grouped_by)
        if rows_a_day is None and part_length is None and self._given.lengthens:
            rows_a_day = self.rows_a_day.expected(root.core, keys)
        has_ranges = self._given.by_ranges and part_length is None
        key_range = self.key_ranges.width(root.core, keys) if has_ranges else None
        meant = dict(zip(root.local_keys, self._meant(root), strict=False))
        keys = tuple(replace(k, value=meant.get(k.name, k.value)) for k in keys)
        shown = {n.lower(): k for n, k in root.shown}
        partitioning = choose_partitioning(
            keys,
            shown,
            config,
            self._given.typer,
            root.has_one_row,
            part_length=part_length,
            rows_a_day=rows_a_day,
            key_range=key_range,
        )
        state = StateTable(
            name,
            root.keys,
            payload=root.payload,
            partitioning=partitioning,
            is_global=root.is_global,
            grouped_by=grouped_by,
            rows=root.rows,
        )
        has_many = part_length is not None and is_shorter_than_period(part_length)
        return replace(state, bounded_by=_time_of(state)) if has_many and root.is_bag else state

    def _promised(self, state: StateTable, root: Root, own: OwnDelta | None, *, is_root: bool) -> StateTable:
        """The state with what follows from promised keys."""
        if own is not None:
            state = replace(state, determined=own.determined)
        if own is None and _step(root.core) is None:
            state = replace(state, determined=determined_keys(root.core, root.keys, self._given.promised))
        if root.is_bag and is_root and root.local is None and root.rows is None:
            state = replace(state, is_set=is_set(root.core, root.keys, self._given.promised))
        return state

    def _meant(self, root: Root) -> Iterator[Scalar]:
        """What the keys of a topmost operator are computed as, also where a view below has computed them."""
        relations = {s.alias: s.relation for s in scans(root.core)}
        known = {(v.name, k.name): k.value for v in self.views for k in v.state.keys}
        for value in root.meant:
            columns = ((relations.get(table, ""), name) for table, name in value.columns)
            yield known.get(next(columns), value) if value.is_column else value

    def _delta(self, root: Root, state: StateTable) -> tuple[Term, ...]:
        if root.is_reevaluated:
            assert isinstance(root.core, Map)
            return delta_by_reevaluation(root.core, state.relation, self._static)
        if root.local is None:
            known = (*self._given.references, *self._given.orphans)
            return derive(parents_first(root.core, known), self._static)
        assert isinstance(root.core, Map)
        losing = loses_with(root.local.input, self._static, self._losing)
        return delta_over_own_state(
            root.core, root.local, state.relation, keys=root.local_keys, static=self._static, losing=losing
        )


def _rows(root: Root, *, is_payload: bool) -> tuple[tuple[str, Scalar], ...] | None:
    """The shown columns over a row of the state's delta, where that is what the view's readers add up."""
    if is_payload:
        return root.outputs
    return None if root.payload or root.filters or root.is_aggregate else root.outputs


def _shown_times(root: Root) -> Iterator[tuple[str, str]]:
    """The times and the numbers that are shown, each with the key that it is."""
    types = {k.name: k.type for k in root.keys}
    yield from (
        (o, k)
        for o, k in root.shown
        if k is not None and (types[k].is_integral or kind_of(types[k]) is not None)
    )


def _is_change_of(term: Term, relation: str) -> bool:
    return any(s.relation == relation and s.side is Side.DELTA for s in scans(term.node))


def _step(core: Node) -> Scalar | None:
    is_stepwise = isinstance(core, HigherOrder) and core.is_stepwise
    return Scalar.column(core.alias, STEP) if isinstance(core, HigherOrder) and is_stepwise else None


def _time_of(state: StateTable) -> str | None:
    """The timestamp by whose periods a state is partitioned."""
    if state.partitioning.kind != "time":
        return None
    (name,) = state.placing
    type_ = next(k.type for k in state.keys if k.name == name)
    return name if type_ == TIMESTAMP else None


def _of_inner_view(config: Config) -> Config:
    """What is configured for the model's own state is not meant for its inner views."""
    return config.model_copy(update={"fivm_partition_by": None})


def _placing(state: StateTable) -> tuple[tuple[str, SparkType], ...]:
    """The key columns that decide the partition of a row, with their types."""
    types = {k.name: k.type for k in state.keys}
    if state.partitioning.type.text == "timestamp":
        # A local time, as it would stand in a statement, does not always tell the instant.
        return ()
    return tuple((name, types[name]) for name in state.placing)
