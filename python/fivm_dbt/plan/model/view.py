"""A view has its query, its delta, its state, and the way in which its rows are shown."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from fivm_dbt.catalog import Column, Presentation, Relation
from fivm_dbt.delta.distributes import read_by_parts
from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.products import FactorisedDelta, ProductDelta
from fivm_dbt.delta.term import Term, scans
from fivm_dbt.ir.node import Node, Side
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import CLOCK
from fivm_dbt.plan.model.closing import Closing
from fivm_dbt.plan.model.eager import EagerDelta, EagerTerms, eager_terms
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.state import StateTable


@dataclass(frozen=True)
class TimeClass:
    """The class of a view over time (ViewDF, section 6), and why in words."""

    name: Literal["windowed", "constant extra state", "whole input"]
    why: str


@dataclass(frozen=True)
class View:
    """A maintained view: the query ``core``, its delta, the state that keeps it, and how its rows are shown.

    ``key_sets`` are the affected keys that the delta looks up. ``rows`` are the shown columns as expressions over a
    state's row, where a row of the state's delta is a row of the view's delta: in a bag, but not where components are
    added up. Of a view of a view tree (``is_payload``) they are what is added to keys and payloads, each row once.
    ``reason`` says why the view is kept.
    """

    state: StateTable
    core: Node
    terms: tuple[Term, ...]
    key_sets: tuple[KeySet, ...]
    columns: tuple[Column, ...]
    presentation: Presentation
    rows: tuple[tuple[str, Scalar], ...] | None
    reason: str
    is_payload: bool = False
    step: Scalar | None = None
    """Of a map that is read between the steps of a refresh: which step a row of its delta belongs to."""
    split: FactorisedDelta | None = None
    """How its staged delta is looked for products, if those above it can make use of one."""
    products: tuple[ProductDelta, ...] = ()
    """Its delta where that of a view below it comes as a product."""
    eager: tuple[EagerDelta, ...] = ()
    """Its delta for the change of an input, by which the rows of another one are grouped first."""
    times: tuple[tuple[str, str], ...] = ()
    """The shown columns that are times or numbers, each with the key of the state that it is."""
    over_time: TimeClass | None = None
    """What a refresh looks at because of windows, frames or sequences of time, if it has any."""
    closing: Closing | None = None
    """How long its partitions are kept, if not for ever."""

    @property
    def name(self) -> str:
        """The relation of its state, by which other views scan it."""
        return self.state.relation

    @property
    def is_bag(self) -> bool:
        """Whether its state has rows, which come and go, and not payloads, which are added up."""
        return self.rows is not None and not self.is_payload

    @cached_property
    def changes_read(self) -> frozenset[str]:
        """The relations of which its delta looks at what has changed, and not only whether something has."""
        terms = (*self.terms, *(eager.term for eager in self.eager))
        sets = (*self.key_sets, *(k for product in self.products for k in product.key_sets))
        parts = (part.node for product in self.products for part in product.parts)
        nodes = (*(term.node for term in terms), *(key_set.node for key_set in sets), *parts)
        changed = (Side.DELTA, Side.COUNTED)
        return frozenset(scan.relation for node in nodes for scan in scans(node) if scan.side in changed)

    def eager_delta(self, moved: Collection[str]) -> EagerTerms | None:
        """Its delta by which rows are grouped first, where that holds after these have ``moved``."""
        if not self.eager or CLOCK in moved:
            return None
        changed = {s.relation for t in self.terms for s in scans(t.node)}.intersection(moved)
        return eager_terms(self.eager, changed)

    @cached_property
    def by_parts(self) -> frozenset[str]:
        """The relations whose payloads need not be added up per key before its delta reads them."""
        state = self.state
        if state.is_grouped or state.rows is None or any(c.products is None for c in state.payload):
            return frozenset()
        products = [state.rows, *(p for c in state.payload for p in c.products or ())]
        return read_by_parts(self.core, [key.value for key in state.keys], products)

    @cached_property
    def as_input(self) -> PlanInput:
        """The view as an input of those above it: a maintained model that is shown by its presentation."""
        relation = Relation(self.name, self.columns, kind="fivm", presentation=self.presentation)
        return PlanInput(relation, self.columns, is_static=False)
