"""This module decides which inner views of a query are kept as states, for a refresh to look up.

Without them a delta rule that needs the old or the new rows of an operator would compute these from the inputs: all
groups of an inner aggregate, all partners of a join, all rows of a window's partitions. What is kept, and why:

1. an aggregate below other operators: by addition where it adds up, else per affected group;
2. a projection of window functions, or of the matches of a pattern, below other operators, with the filter on it
   (QUALIFY);
3. the rows that an operator needs to recompute a key: the input of windows, of patterns and of aggregates that do not
   add up (a multiset of their arguments per group), placed by that key;
4. of the right side of a semi or anti join the keys alone, with their counts; any right side of an outer join that is
   more than a projection of an input. Where just one such join stands over its left rows, also these and the right
   rows, both by the join key. Of several in a row each would need a copy of the left rows by another key: those read
   them in full when a right side changes;
5. what is joined with one of these views, each connected part of it by the columns that are compared: when a threshold
   or an inner total moves, the rows that were there before are looked up. In 4. and 5. an input of which only rows near
   the time of a change matter is not kept, but read there, and other such rows are placed by their day
   (:mod:`fivm_dbt.plan.keep.time.near_inputs`);
6. of an aggregate that is correlated by an inequality what :mod:`fivm_dbt.plan.keep.inequality.choose` says. Where
   that is evaluated on demand, what is joined with it is kept: the view above reads all of it in each refresh.

The same view is kept once, however often the query has it, and one of aggregates that differ in conditions and sums
(:mod:`fivm_dbt.rewrite.shared_aggregates`). ``fivm_strategy: first_order`` keeps only what exactness
needs: windows, and inner results that are not the same to the last bit when computed twice. (F-IVM, section 5:
materialise the siblings of delta paths; DBToaster, section 3: deltas are joined with materialised complements.)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from fivm_dbt.catalog import Dependency
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.clock_nodes import ClockMap
from fivm_dbt.ir.copies import Copies
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.node import Item, Node, scalars_of, used
from fivm_dbt.ir.nodes import Filter, Join, Map, UnionAll
from fivm_dbt.ir.on_demand import OnDemand, is_on_demand
from fivm_dbt.ir.one_sided import OneSided
from fivm_dbt.ir.rename import substituted
from fivm_dbt.ir.scalar import ColumnId
from fivm_dbt.naming import unique_name
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.keep.checks import check_inequality, check_needless, check_repeatable
from fivm_dbt.plan.keep.correlated import CorrelatedAggregates
from fivm_dbt.plan.keep.helper_views import HelperViews, Topmost, Wanted
from fivm_dbt.plan.keep.inequality.choose import InequalityHelpers
from fivm_dbt.plan.keep.joins import KeptJoins
from fivm_dbt.plan.keep.kept_rows import KeptRows, Meaning, shown_whole
from fivm_dbt.plan.keep.kept_views import InnerView, KeptViews
from fivm_dbt.plan.keep.time.near_views import NearViews, in_long_blocks, looks_at_rows
from fivm_dbt.plan.keep.trees.eager import EagerTerm
from fivm_dbt.plan.keep.ways import has_own_rows, kept_as
from fivm_dbt.plan.layout.root import local_under
from fivm_dbt.plan.model.shown import InequalityHelper, ViewTree
from fivm_dbt.rewrite.running import with_running


@dataclass(frozen=True)
class Kept:
    """A query over scans of its inner views, these, and the view trees that some of them are of.

    ``measurable``: by input, the columns whose distinct values ``auto`` would choose by. ``orderable``: the times of
    inputs by which rows would be read near a change, if they lay in their order. ``is_grouped`` says of a
    result that is kept as factors that no two of their combinations have the same key. ``rows_a_day`` are those that
    the topmost aggregate is expected to have of each date, where ``auto`` knows the sizes. Where rows are kept in time
    parts, ``part_length`` is theirs. ``eager`` are terms of that aggregate by which rows are grouped first.
    """

    over: Node
    views: tuple[InnerView, ...]
    trees: tuple[ViewTree, ...]
    measurable: tuple[tuple[str, tuple[str, ...]], ...]
    orderable: Mapping[str, Collection[str]] = field(default_factory=dict)
    is_grouped: bool = False
    inequalities: tuple[InequalityHelper, ...] = ()
    rows_a_day: float | None = None
    part_length: Length | None = None
    eager: tuple[EagerTerm, ...] = ()


def keep_inner_views(
    query: Node,
    relation: str,
    static: frozenset[str],
    determines: Mapping[str, tuple[Dependency, ...]],
    wanted: Wanted,
) -> Kept:
    """``query`` over scans of its inner views, and these views, each after those that it scans.

    For the orders of view trees it counts what columns of inputs are declared to determine.
    """
    aliases = {f.table.lower() for node in query.walk() for f in node.fields}
    keeper = _Keeper(KeptViews(relation, static, determines, aliases), wanted)
    over = keeper.top(query)
    trees = tuple(keeper.helpers.trees)
    if wanted.order is not None and not any(tree.chosen == "given" for tree in trees):
        check_needless(query, wanted.order)
    if wanted.is_factorized and keeper.helpers.factors is None:
        raise FivmError(
            "FIVM201",
            "fivm_result: factorized is given, but the result is not that of an inner join, or of a GROUP BY over one",
            remedy="leave it out",
        )
    chosen = tuple(keeper.inequality.chosen)
    check_inequality(wanted, chosen)
    measurable = {name: tuple(sorted(columns)) for name, columns in keeper.measurable.items()}
    is_grouped = keeper.helpers.factors is not None and keeper.helpers.factors.is_grouped
    return Kept(
        over,
        tuple(keeper.kept.views),
        trees=trees,
        measurable=tuple(sorted(measurable.items())),
        orderable=keeper.kept.orderable if keeper.wanted.parts.in_order else {},
        is_grouped=is_grouped,
        inequalities=chosen,
        rows_a_day=keeper.helpers.rows_a_day,
        part_length=keeper.kept.part_length,
        eager=keeper.helpers.eager,
    )


@dataclass
class _Keeper:
    kept: KeptViews
    wanted: Wanted

    @cached_property
    def helpers(self) -> HelperViews:
        return HelperViews(self.wanted, self.kept)

    @cached_property
    def rows(self) -> KeptRows:
        return KeptRows(self.kept, self.helpers)

    @cached_property
    def inequality(self) -> InequalityHelpers:
        wanted = self.wanted
        return InequalityHelpers(
            self.kept, wanted.inequality, wanted.measured, wanted.buckets, wanted.splits_sums
        )

    @cached_property
    def correlated(self) -> CorrelatedAggregates:
        return CorrelatedAggregates(self.inequality, self.helpers, self._visit)

    @cached_property
    def joins(self) -> KeptJoins:
        return KeptJoins(self.kept, self.rows, self.wanted)

    @cached_property
    def near(self) -> NearViews:
        return NearViews(self.kept, self._visit, self.rows.by_key)

    @property
    def measurable(self) -> dict[str, set[str]]:
        """What ``auto`` would like to know, by input: columns."""
        found = {name: set(columns) for name, columns in self.helpers.measurable.items()}
        if self.wanted.parts.is_chosen:
            for name, columns in self.kept.measurable.items():
                found.setdefault(name, set()).update(columns)
        if self.wanted.inequality == "auto":
            for name, columns in self.inequality.measurable.items():
                found.setdefault(name, set()).update(columns)
        return found

    def top(self, node: Node) -> Node:
        """The query with everything below its topmost operator taken care of; that operator is the root's own."""
        if isinstance(node, (Map, Filter)) and local_under(node) is not None:
            return node.with_inputs((self.top(node.inputs[0]),))
        if isinstance(node, Aggregate) and (over := self._over_sums(node)) is not None:
            return over
        if isinstance(node, Local):
            return self._local(node, self.wanted.topmost)
        return self._listing(node, self.wanted.topmost)

    def _visit(
        self,
        node: Node,
        *,
        in_row: bool = False,
        in_block: bool = False,
        needed: frozenset[ColumnId] | None = None,
    ) -> tuple[Node, Meaning]:
        """``node`` over kept views, and what columns of it mean that are called otherwise now.

        ``in_row`` says that its rows are the left ones of an outer or semi join, ``in_block`` that its joins become
        a view tree. ``needed`` are the columns that something above looks at, None for all.
        """
        needed = node.ids if needed is None else needed
        in_block = in_block and isinstance(node, (Map, Filter, Join))
        if isinstance(node, Aggregate):
            check_repeatable(node)
            return self._aggregate(self.correlated.over_kept(node) or self._local(node)), {}
        local = local_under(node)
        if local is not None and not local.has_row_per_key:
            return self._rows_of(node, local), {}
        if isinstance(node, UnionAll):
            return self._union(node), {}
        is_one_sided = isinstance(node, OneSided)
        is_single = is_one_sided and not in_row and not _has_one_sided(node.inputs[0])
        visited = [
            self._visit(
                child,
                in_row=is_one_sided and position == 0,
                in_block=in_block,
                needed=_needed_below(node, needed, child),
            )
            for position, child in enumerate(node.inputs)
        ]
        meaning = {column: value for _, inner in visited for column, value in inner.items()}
        over = substituted(node, tuple(child for child, _ in visited), meaning)
        if isinstance(over, OneSided):
            return self.joins.one_sided(over, meaning, _called(needed, meaning), is_single=is_single)
        if isinstance(over, Join) and (not in_block or is_on_demand(over)):
            return self.joins.inner(over, meaning, _called(needed, meaning))
        return over, {} if isinstance(node, (Map, ClockMap)) else meaning

    def _listing(self, node: Node, topmost: Topmost | None) -> Node:
        """The rows of a query without an aggregate on top."""
        new = self._in_order(node, in_block=self.helpers.are_kept)
        rows = new if isinstance(new, Map) else shown_whole(new, self.kept.alias())
        return self.helpers.listing(rows, topmost) or new

    def _branch(self, node: Node) -> Node:
        """A branch of a union, which is kept where it is over helper views: a row of these stands for several."""
        new = self._listing(node, None)
        return self.kept.keep(new, (), "a branch of a union") if isinstance(new, Copies) else new

    def _union(self, node: UnionAll) -> Node:
        branches = tuple(self._branch(branch) for branch in node.branches)
        if any(is_on_demand(branch) for branch in branches):
            branches = tuple(
                self.kept.keep(shown_whole(b, self.kept.alias()), (), "a branch of a union")
                if self.kept.is_read(b)
                else b
                for b in branches
            )
        return node.with_inputs(branches)

    def _in_order(self, node: Node, *, in_block: bool = False) -> Node:
        """``node`` where its columns are told by their position."""
        new, meaning = self._visit(node, in_block=in_block)
        if not meaning:
            return new
        items: list[Item] = []
        for f in node.fields:
            name = unique_name(f.name, {i.name.lower() for i in items})
            items.append(Item(name, meaning.get(f.id, f.scalar), f.type))
        return Map(new, self.kept.alias(), tuple(items))

    # Operators

    def _local(self, node: Local, topmost: Topmost | None = None) -> Node:
        """An aggregate, windows or matches over the visited input, which is kept by key where keys are recomputed from
        it. Matches may come from kept marks."""
        is_all = self.wanted.only_needed or is_on_demand(node)
        near = self.near.of_windows(node) if isinstance(node, Aggregate) and not is_all else None
        if near is not None:
            return near
        inner, meaning = self._visit(node.input, in_block=self.helpers.are_kept)
        over = substituted(node, (inner,), meaning)
        if isinstance(over, Aggregate) and over.adds_up:
            return self.helpers.aggregate(over, topmost) or over
        if is_on_demand(over):
            return over
        placed = self.near.over_kept(over)
        if placed is not None or self.wanted.only_needed:
            return placed or over
        special = kept_as(over, self.kept, self.wanted.parts)
        if special is not None:
            return special
        reaching = self.near.reaching(over)
        split = self.near.split(reaching)
        if split is not None:
            running, shown = split
            return shown.with_inputs((self._by_key(with_running(running), running),))
        return self._by_key(reaching, over)

    def _by_key(self, reaching: Local, over: Local) -> Local:
        """An operator over rows that are kept by its keys; ``over`` is the same where these are not to be."""
        looks = looks_at_rows(reaching)
        many = self.helpers.rows_of_a_key(reaching.input, reaching.key[:-2]) if looks else None
        reaching = in_long_blocks(over, many) or reaching
        keys = reaching.key
        kept = self.rows.by_key(
            reaching.input, reaching.used, keys, "the rows from which keys are recomputed"
        )
        if all(k.value in kept.keys for k in keys[-2:]):
            return self.near.with_days(kept.under(reaching))
        plain, is_near = kept.under(over), self.helpers.are_read_near(reaching.input, keys)
        return self.near.over_input(kept.under(reaching), many, is_near=is_near) or plain

    def _over_sums(self, node: Aggregate) -> Node | None:
        """The topmost aggregate over sums of its outer rows, where all of it is evaluated on demand anyway."""
        summed = self.correlated.over_sums(node)
        if summed is None:
            return None
        over, shown = summed
        local = self._local(over)
        if not is_on_demand(local):
            raise ValueError("sums are added up once more by a delta, not by an evaluation")
        return shown.with_inputs((local,))

    def _aggregate(self, node: Node) -> Node:
        if isinstance(node, OnDemand):
            return node
        assert isinstance(node, Aggregate)
        if not all(f.type.is_groupable for f in node.fields):
            return node
        if self.wanted.only_needed and all(c.is_repeatable for c in node.calls):
            return node
        how = "by addition" if node.adds_up else "recomputed per affected group"
        return self.kept.keep(node, (), f"an aggregate below other operators, {how}")

    def _rows_of(self, node: Node, local: Local) -> Node:
        """Projections and filters over windows or matches, as one view, or over one of an operator's own rows."""
        if has_own_rows(local):
            if node is local:
                return self.near.of_own_rows(local)
            return node.with_inputs((self._rows_of(node.inputs[0], local),))
        inner = self._over_local(node, local)
        if not all(f.type.is_groupable for f in inner.fields):
            return inner
        return self.kept.keep(inner, (), f"{local.kind} below other operators")

    def _over_local(self, node: Node, local: Local) -> Node:
        if node is local:
            return self._local(local)
        return node.with_inputs((self._over_local(node.inputs[0], local),))


def _needed_below(node: Node, needed: frozenset[ColumnId], child: Node) -> frozenset[ColumnId] | None:
    """What of an input is looked at: of what rows are compared by, all of it."""
    if not isinstance(node, (Filter, Join, Map, OneSided)):
        return None
    return (needed | used(scalars_of(node))) & child.ids


def _called(columns: frozenset[ColumnId], meaning: Meaning) -> frozenset[ColumnId]:
    """What columns are called by now."""
    return frozenset(
        new for c in columns for new in (meaning[c].columns if c in meaning else frozenset((c,)))
    )


def _has_one_sided(node: Node) -> bool:
    """Whether rows of ``node`` are left rows of an outer or semi join."""
    if isinstance(node, OneSided):
        return True
    is_plain = node.is_row_level or isinstance(node, Join)
    return is_plain and any(_has_one_sided(child) for child in node.inputs)
