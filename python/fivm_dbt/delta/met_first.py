"""What a change meets before it meets a large relation is staged: ``ΔR ⋈ S ⋈ L = P ⋈ L`` with ``P = ΔR ⋈ S``.

Of staged rows a database knows how few they are, and hands them to all tasks. What is joined on the way it takes for
large, and sorts L for it. A changed row of a dimension of a dimension would have all facts sorted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.catalog.statistics import SORTED_UP_TO
from fivm_dbt.delta.key_sets import KeySet
from fivm_dbt.delta.term import Term, scans
from fivm_dbt.ir.node import Item, Node, Side, scalars_of, used
from fivm_dbt.ir.nodes import Join, Map
from fivm_dbt.ir.reads import Scan, reads
from fivm_dbt.ir.rename import substituted
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import unique_name
from fivm_dbt.rewrite.order_factors import is_connected


def met_first(
    terms: tuple[Term, ...], measured: TableStatistics | None, prefix: str, others: frozenset[str]
) -> tuple[tuple[Term, ...], tuple[KeySet, ...]]:
    """``terms`` over what their changes meet before the last large factor, and that, to be staged in this order.

    Terms of changes of the ``others`` stay as they are, and all where nothing is ``measured``.
    """
    if measured is None:
        return terms, ()
    found = _MetFirst(measured, prefix, others)
    over = tuple(map(found.term, terms))
    return over, tuple(found.sets)


Renamed = dict[ColumnId, Scalar]


@dataclass
class _MetFirst:
    measured: TableStatistics
    prefix: str
    others: frozenset[str]
    sets: list[KeySet] = field(default_factory=list)

    def term(self, term: Term) -> Term:
        """A term over what is staged of it, where it is a join, or a projection of one."""
        node = term.node
        if node.computes_columns and node.is_row_level:
            return replace(term, node=self._projected(node))
        over, renamed = self._joined(node, node.ids, "result_met")
        if not renamed:
            return replace(term, node=over)
        return Term(over, term.multiplicity.substitute(renamed.get), tuple(renamed.items()))

    def _projected(self, rows: Node) -> Node:
        (join,) = rows.inputs
        over, renamed = self._joined(join, used(scalars_of(rows)), f"{rows.fields[0].table}_met")
        return substituted(rows, (over,), renamed)

    def _is_large(self, node: Node) -> bool:
        """Whether it has the rows of an input with so many that it is not to be sorted."""
        read = scans(node)
        if len(read) != 1 or read[0].side is Side.DELTA:
            return False
        return (self.measured.rows_of(read[0].relation) or 0) >= SORTED_UP_TO

    def _joined(self, node: Node, needed: frozenset[ColumnId], alias: str) -> tuple[Node, Renamed]:
        """A join over what is staged of it, and what columns are called in that; none where nothing is staged."""
        every, predicates = node.joined()
        is_change = all(s.side is Side.DELTA and s.relation not in self.others for s in scans(every[0]))
        is_bounded = any(read.lookup is not None or read.is_near_changes for read in reads(node))
        if len(every) == 1 or not is_change or is_bounded:
            return node, {}
        factors = self._large_next(every, predicates)
        last = max((place for place, factor in enumerate(factors) if self._is_large(factor)), default=0)
        met = factors[:last]
        own = frozenset(f.id for factor in met for f in factor.fields)
        inside = tuple(p for p in predicates if p.columns <= own)
        if last < 2 or not _is_no_product(met, inside):
            return Join(factors, predicates), {}
        outside = tuple(p for p in predicates if p not in inside)
        items, renamed = _carried(met, alias, needed | used(outside))
        staged = self._projected(Map(Join(met, inside), alias, items))
        found = KeySet(f"{self.prefix}_met_{len(self.sets) + 1}", staged, is_looked_at=True, has_rows=True)
        self.sets.append(found)
        scan = Scan(found.name, alias, tuple((i.name, i.type) for i in items), Side.DELTA)
        conditions = tuple(condition.substitute(renamed.get) for condition in outside)
        return Join((scan, *factors[last:]), conditions), renamed

    def _large_next(self, factors: tuple[Node, ...], predicates: tuple[Scalar, ...]) -> tuple[Node, ...]:
        """The factors, with those large ones behind the change that it meets by a condition of their own."""
        change, *others = factors
        known = _tables(change)
        return (
            change,
            *sorted(others, key=lambda f: not (self._is_large(f) and is_connected(f, known, predicates))),
        )


def _is_no_product(factors: tuple[Node, ...], predicates: tuple[Scalar, ...]) -> bool:
    """Whether each factor has a condition with those before it."""
    return all(
        is_connected(factor, _tables(*factors[:place]), predicates)
        for place, factor in enumerate(factors)
        if place
    )


def _tables(*factors: Node) -> set[str]:
    return {f.table for factor in factors for f in factor.fields}


def _carried(
    met: tuple[Node, ...], alias: str, needed: frozenset[ColumnId]
) -> tuple[tuple[Item, ...], Renamed]:
    """The columns of some factors that are needed above them, and what these are called there."""
    items: list[Item] = []
    renamed: Renamed = {}
    for found in (f for factor in met for f in factor.fields if f.id in needed):
        name = unique_name(found.name, {item.name.lower() for item in items})
        items.append(Item(name, found.scalar, found.type))
        renamed[found.id] = Scalar.column(alias, name)
    return tuple(items), renamed
