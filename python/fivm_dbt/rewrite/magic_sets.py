"""What is added up by a key, to be looked up by rows that a filter chooses, is added up for their keys alone.

``σ_p(F) ⋈ S ⟕_{k = g} γ_g(X) = σ_p(F) ⋈ S ⟕_{k = g} γ_g(X ⋉_{g = k} σ_p(F))`` where ``k`` is a column of F: no row on
the left has another key, and of a group all rows stay or none. The same holds of inner joins, and of windows that are
partitioned by the key. So the inner view has the groups that are looked up, and a change of X that is of none of them
changes nothing. A correlated subquery is such a join. (The field calls the keys a magic set: Beeri and Ramakrishnan, On
the power of magic, 1987.)

A change of F then looks for rows of X, and reads X. It does so anyway where X is joined with F itself, and F is small.
Where X would not be read but copied, to be looked up in, nothing is chosen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.catalog.statistics import COPIED_ABOVE, READ_UP_TO
from fivm_dbt.ir.local import Local
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Filter
from fivm_dbt.ir.on_demand import is_on_demand
from fivm_dbt.ir.one_sided import OneSided, SemiJoin
from fivm_dbt.ir.reads import Read
from fivm_dbt.ir.rename import moved, renamed
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.naming import unique_name
from fivm_dbt.rewrite.flatten_joins import joined, parts_of_join
from fivm_dbt.rewrite.push_down import can_pass, push_down

TIMES = 10
"""Of what is chosen from there have to be so many times as many rows as of what chooses."""


def add_magic_sets(node: Node, measured: TableStatistics) -> Node:
    """``node`` with groups of large relations restricted to the keys that small ones with a filter look up."""
    aliases = {f.table.lower() for each in node.walk() for f in each.fields}
    return _Magic(measured, aliases).visited(node)


@dataclass(frozen=True)
class _Magic:
    measured: TableStatistics
    aliases: set[str]

    def visited(self, node: Node) -> Node:
        node = node.with_inputs(tuple(self.visited(child) for child in node.inputs))
        if isinstance(node, OneSided) and node.shows_right:
            return replace(node, right=self._narrowed(node.right, (node.left,), node.predicates))
        factors, predicates = node.joined()
        if len(factors) == 1:
            return node
        others = [tuple(f for f in factors if f is not factor) for factor in factors]
        pairs = zip(factors, others, strict=True)
        return joined(tuple(self._narrowed(f, o, predicates) for f, o in pairs), predicates)

    def _narrowed(self, groups: Node, others: tuple[Node, ...], predicates: tuple[Scalar, ...]) -> Node:
        """``groups``, or what is left of them for the first of ``others`` that has fewer keys."""
        for chooser in self._choosers(others, predicates):
            for predicate in predicates:
                narrowed = self._by(groups, chooser, predicate)
                if narrowed is not None:
                    return narrowed
        return groups

    def _choosers(self, nodes: tuple[Node, ...], predicates: tuple[Scalar, ...]) -> Iterator[Filter]:
        """The small relations that are joined, each with the filter on it."""
        for node in nodes:
            rows, own = node, predicates
            while isinstance(rows, OneSided):
                rows, own = rows.left, ()
            factors, theirs = parts_of_join(rows)
            for factor in factors:
                chosen = tuple(p for p in (*own, *theirs) if _chooses(p, factor))
                if isinstance(factor, Read) and chosen and self._rows(factor) <= READ_UP_TO:
                    yield Filter(factor, chosen)

    def _by(self, groups: Node, chooser: Filter, predicate: Scalar) -> Node | None:
        """``groups`` for the keys of ``chooser`` that ``predicate`` compares with them; None where it does not."""
        pair = predicate.equality
        if pair is None or not (set(pair) & chooser.ids and set(pair) & groups.ids):
            return None
        (key,) = set(pair) & groups.ids
        return self._within(groups, key, key, chooser, predicate)

    def _within(
        self, node: Node, shown: ColumnId, column: ColumnId, chooser: Filter, predicate: Scalar
    ) -> Node | None:
        """``node``, whose ``column`` is ``shown`` above, with the rows restricted that are grouped by it below."""
        value = node.shown_as(column)
        if value is None:
            return None
        if isinstance(node, Local):
            keys = [key for key in node.key if key.value == value]
            is_far = is_on_demand(node) or _is_generated(value, node.input)
            if not keys or not can_pass(value) or is_far or not self._is_larger(node, chooser):
                return None
            copy, names = renamed(chooser, self._alias)
            compared = moved(predicate, names).substitute({shown: value}.get)
            rows = push_down(SemiJoin(node.input, copy, (compared,)))
            chosen = next(n.inputs[0] for n in rows.walk() if n.inputs[1:] == (copy,))
            is_read = self._is_read(chosen, by_time=keys[0].type.is_temporal)
            return node.with_inputs((rows,)) if is_read else None
        if not value.is_column:
            return None
        (of_input,) = value.columns
        first, *others = node.inputs
        below = self._within(first, shown, of_input, chooser, predicate)
        return None if below is None else node.with_inputs((below, *others))

    def _is_larger(self, groups: Node, chooser: Filter) -> bool:
        """Whether there is enough to choose from, and no more than a change of what chooses may read."""
        rows = max((self._rows(read) for read in groups.walk()), default=0)
        return TIMES * self._rows(chooser.input) <= rows <= COPIED_ABOVE

    def _is_read(self, rows: Node, *, by_time: bool) -> bool:
        """Whether the rows that are chosen from are read: a copy of them would be more than the groups of all keys."""
        is_whole = not by_time
        while rows.passes_rows and not rows.makes_rows and not isinstance(rows, Read):
            is_whole &= all(map(_is_there, parts_of_join(rows)[1]))
            rows = rows.inputs[0]
        return isinstance(rows, Read) and self._rows(rows) <= (COPIED_ABOVE if is_whole else READ_UP_TO)

    def _rows(self, node: Node) -> float:
        """Of a relation that is read; more than any number where nobody has counted them."""
        if not isinstance(node, Read):
            return 0
        counted = self.measured.rows_of(node.source.relation)
        return inf if counted is None else counted

    def _alias(self, alias: str) -> str:
        new = unique_name(f"{alias}_chosen", self.aliases)
        self.aliases.add(new)
        return new


def _is_generated(value: Scalar, rows: Node) -> bool:
    """Whether a generator makes a part of it: its LATERAL VIEW stands behind all joins, also the one with the keys."""
    return any(n.makes_rows and value.columns & (n.ids - n.inputs[0].ids) for n in rows.walk())


def _chooses(predicate: Scalar, factor: Node) -> bool:
    """Whether a condition is about ``factor`` alone, may be asked twice, and says more than that a value is there."""
    is_own = can_pass(predicate) and predicate.columns <= factor.ids
    return is_own and not _is_there(predicate)


def _is_there(predicate: Scalar) -> bool:
    """Whether a condition only says that a column is not NULL."""
    return any(predicate == Scalar.is_not_null(column) for column in predicate.columns)
