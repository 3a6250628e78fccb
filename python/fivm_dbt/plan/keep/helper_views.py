"""Strategies keep inner views of a join, and an aggregate or a listing is then computed of these.

``factorized`` keeps a view tree (:mod:`fivm_dbt.plan.keep.trees.factorise`), ``auto`` what pays of one,
``recursive`` maps (:mod:`fivm_dbt.plan.keep.trees.recursive`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fivm_dbt.catalog import EventTime, TableStatistics
from fivm_dbt.catalog.statistics import COPIED_ABOVE, READ_UP_TO
from fivm_dbt.config import Inequality, Strategy
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.copies import Copies
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Map
from fivm_dbt.ir.on_demand import is_on_demand
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.keep.kept_views import KeptViews, column_below
from fivm_dbt.plan.keep.trees.blocks import Block, block_of, column_name
from fivm_dbt.plan.keep.trees.eager import EagerTerm, EagerTerms
from fivm_dbt.plan.keep.trees.factorise import Factoriser, GivenOrder
from fivm_dbt.plan.keep.trees.factorised_result import FactorisedResult
from fivm_dbt.plan.keep.trees.recursive import Recursion
from fivm_dbt.plan.keep.trees.repeated_rows import RepeatedRows
from fivm_dbt.plan.keep.ways import WantedParts
from fivm_dbt.plan.layout.partitioning import is_period
from fivm_dbt.plan.model.shown import ViewTree


@dataclass(frozen=True)
class Topmost:
    """What the join of which a model shows the result is told: the user's order, and how its result is kept."""

    order: GivenOrder | None
    is_factorized: bool


@dataclass(frozen=True)
class Wanted:
    """Which inner views a model is to have.

    ``first_order`` keeps just what could not be recomputed to the last bit; ``factorized`` a view tree per inner
    join, on the given ``order`` if there is one; ``recursive`` its maps, to a ``depth`` if that is given; ``auto`` what
    pays by what was ``measured``, and nothing where nothing was.
    """

    strategy: Strategy
    order: GivenOrder | None = None
    depth: int | None = None
    measured: TableStatistics | None = None
    splits_sums: bool = True
    inequality: Inequality = "auto"
    buckets: int | None = None
    """The number of hash buckets of states where the model says it."""
    is_factorized: bool = False
    """Whether the model's result is to be kept as factors instead of rows."""
    part_length: Length | None = None
    """How long the time parts of patterns are."""
    chooses_length: bool = False
    """Whether nobody has given it."""
    separates: bool = True
    """Whether patterns are found between the rows that no match has."""
    by_time: bool = True
    """Whether reads are bounded by the times of changes."""
    by_ranges: bool = True
    """Whether they are bounded by the numbers of changes."""
    is_utc: bool = False
    may_append: bool = True
    """Whether deltas may be appended to states, which ``auto`` then does where what readers add up is small."""
    groups_first: bool = True
    """Whether rows are grouped before they meet a change of one input."""
    dropped: frozenset[str] = frozenset()
    """The inputs of which a copy has the rows of parts that are dropped."""
    event_times: Mapping[str, EventTime] = field(default_factory=dict)
    """By input its time, and how late its rows come."""

    @property
    def topmost(self) -> Topmost:
        """What holds for the topmost join alone."""
        return Topmost(self.order, self.is_factorized)

    @property
    def parts(self) -> WantedParts:
        """How rows of patterns are kept."""
        is_chosen = self.chooses_length and self.strategy == "auto"
        return WantedParts(
            self.part_length,
            self.buckets,
            is_chosen,
            measured=self.measured,
            separates=self.separates,
            dropped=self.dropped,
            in_order=self.by_time and self.by_ranges,
            event_times=self.event_times,
        )

    @property
    def only_needed(self) -> bool:
        return self.strategy == "first_order"


@dataclass
class HelperViews:
    """Keeps the helper views of one model's joins, in ``views``.

    ``measurable`` says what ``auto`` would like to know: by input, columns.
    """

    wanted: Wanted
    views: KeptViews
    trees: list[ViewTree] = field(default_factory=list)
    factors: FactorisedResult | None = None
    """Of a model whose result is kept as factors."""
    measurable: dict[str, set[str]] = field(default_factory=dict)
    rows_a_day: float | None = None
    """Those that the topmost aggregate is expected to have of each date."""
    eager: tuple[EagerTerm, ...] = ()
    """Terms of the topmost aggregate by which rows are grouped first, where no view is kept of its join."""

    @property
    def are_kept(self) -> bool:
        """Whether every join has its helper views, so that nothing else is kept of what it joins."""
        return self.wanted.strategy in ("factorized", "recursive")

    def is_copy(self, rows: Node, keys: tuple[Item, ...]) -> bool:
        """Whether a view of ``rows`` by ``keys`` would be an input once more, of which a refresh reads as much.

        It has a few hash buckets, if nobody wants more, and changes meet all of them. Of a large input they meet some
        of many, of one that is placed by time the last ones, and of one under a filter there may be few rows. An input
        that lies in the order of a key is read near the numbers of a change, however large it is, and one that lies in
        the order of time near its times.
        """
        copied = self.views.copied(rows)
        if self.wanted.strategy != "auto" or self.wanted.buckets is not None:
            return False
        if copied is None or copied.relation in self.wanted.dropped:
            return False
        self.measurable.setdefault(copied.relation, set())
        measured, is_in_order = self.wanted.measured, self._lie_in_order(rows, keys)
        counted = measured.rows_of(copied.relation) if measured is not None else None
        if measured is None or counted is None:
            return False
        columns = [column_below(rows, key.value) for key in keys] if self.wanted.by_ranges else []
        if is_in_order or any(c and measured.range_of(copied.relation, c) is not None for c in columns):
            return True
        is_by_hash = copied.is_whole and not any(is_period(key.type, key.value) for key in keys)
        return counted <= (COPIED_ABOVE if is_by_hash else READ_UP_TO)

    def are_read_near(self, rows: Node, keys: tuple[Item, ...]) -> bool:
        """Whether those of an input that are near a change are read of it, as it is too large to read all of them."""
        copied, measured = self.views.copied(rows), self.wanted.measured
        counted = measured.rows_of(copied.relation) if copied is not None and measured is not None else None
        return counted is not None and counted > READ_UP_TO and self._lie_in_order(rows, keys)

    def _lie_in_order(self, rows: Node, keys: tuple[Item, ...]) -> bool:
        """Whether rows of an input lie in the order of a time that tells one of the ``keys``, a date or a period."""
        periods = (key.value for key in keys if is_period(key.type, key.value))
        return self.wanted.parts.lie_in_order(self.views, rows, periods)

    def rows_of_a_key(self, rows: Node, keys: Sequence[Item]) -> float | None:
        """About how many rows of an input have one key, at most; None where nobody knows."""
        copied = self.views.copied(rows)
        columns = [column_below(rows, key.value) for key in keys]
        if copied is None or not all(columns):
            return None
        wanted = [column for column in columns if column is not None]
        self.measurable.setdefault(copied.relation, set()).update(wanted)
        measured = self.wanted.measured
        if measured is None:
            return None
        many = [measured.distinct_of(copied.relation, column) for column in wanted]
        counted, known = measured.rows_of(copied.relation), [n for n in many if n is not None]
        return None if counted is None or len(known) < len(many) else counted / max([1, *known])

    def aggregate(self, node: Aggregate, topmost: Topmost | None) -> Aggregate | None:
        """``node`` over helper views; None where it has no join that they could be of, or none that pays."""
        repeated = RepeatedRows.of(node)
        if repeated is None:
            return self._over_views(node, topmost)
        if topmost is not None and topmost.is_factorized:
            return None
        over = self._over_views(repeated.once(), topmost)
        return None if over is None else repeated.over(over)

    def _over_views(self, node: Aggregate, topmost: Topmost | None) -> Aggregate | None:
        maker = self._maker(node, topmost)
        if maker is None:
            return None
        over, tree = maker.root()
        self.trees.append(tree)
        return over

    def listing(self, rows: Map, topmost: Topmost | None = None) -> Copies | None:
        """The rows of a join over helper views: grouped by all their columns they are an aggregate that counts."""
        if not rows.items or not all(i.type.is_groupable for i in rows.items):
            return None
        over = self.aggregate(Aggregate(rows.input, rows.alias, rows.items, ()), topmost)
        if over is None:
            return None
        assert over.factored is not None
        return Copies(over.input, rows.alias, over.keys, over.factored.rows)

    def _maker(self, node: Aggregate, topmost: Topmost | None) -> Factoriser | Recursion | None:
        strategy, is_split = self.wanted.strategy, self.wanted.splits_sums
        is_out = self.wanted.only_needed or is_on_demand(node)
        block = None if is_out else block_of(node, splits_sums=is_split)
        if block is None:
            return None
        if strategy == "recursive":
            return Recursion(block, self.views, self.wanted.depth)
        order = topmost.order if topmost is not None else None
        if topmost is not None and topmost.is_factorized:
            self.factors = FactorisedResult(block, self.views, order)
            return self.factors
        if strategy == "factorized":
            return Factoriser(block, self.views, order)
        return self._chooser(block, is_topmost=topmost is not None)

    def _chooser(self, block: Block, *, is_topmost: bool) -> Factoriser | None:
        """The maker of the views that pay, by what was measured."""
        if not all(self.views.is_input(r) for r in block.relations):
            # What stands over inner views is kept by the rules for these.
            return None
        for relation, parts in block.measurable.values():
            # Of a listing all columns are keys, and nothing is learnt from those that join nothing.
            wanted = [p for p in parts if block.aggregate.calls or block.joins(p)]
            self.measurable.setdefault(relation, set()).update(column_name(p) for p in wanted)
        if self.wanted.measured is None:
            return None
        if is_topmost:
            self.rows_a_day = block.rows_a_period(self.wanted.measured)
        maker = Factoriser(block, self.views, None, self.wanted.measured, may_append=self.wanted.may_append)
        if maker.kept:
            return maker
        self.trees.append(maker.root()[1])  # which says why none is
        if is_topmost and self.wanted.groups_first:
            self.eager = tuple(EagerTerms(block, self.views, self.wanted.measured).all())
        return None
