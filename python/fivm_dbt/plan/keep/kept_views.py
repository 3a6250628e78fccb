"""The inner views of one model are collected here as they are decided on, with names and known keys."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from fivm_dbt.catalog import Dependency
from fivm_dbt.delta.term import scans
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.clock import kinds_below
from fivm_dbt.ir.moments import kind_of
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Filter, Map, UnionAll, Values
from fivm_dbt.ir.on_demand import is_on_demand
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.rename import renamed
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import sibling, split_name, storable, unique_name
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.model.closing import Closing

T = TypeVar("T")


@dataclass(frozen=True)
class InnerView:
    """A view to keep: ``node`` under the relation ``name``, its rows placed by the columns ``by``, by all if empty.

    ``slot`` is the column whose value is the partition of a row, where it has one, and ``bounded_by`` that which
    bounds what a change writes of a partition. ``closing`` says how long partitions are kept, if not for ever.
    """

    name: str
    node: Node
    by: tuple[str, ...]
    reason: str
    slot: str | None = None
    bounded_by: str | None = None
    closing: Closing | None = None


@dataclass(frozen=True)
class Copied:
    """Of what a view would be a copy: ``is_whole`` says of every row, but for those in which something is NULL."""

    relation: str
    is_whole: bool


@dataclass
class KeptViews:
    """The inner views of the model ``relation`` so far, each after those that it scans.

    ``static`` inputs never change; ``determines`` is what their columns are declared to determine;
    ``aliases`` are taken by nodes of the query. The same view is kept once.
    """

    relation: str
    static: frozenset[str]
    determines: Mapping[str, tuple[Dependency, ...]]
    aliases: set[str]
    views: list[InnerView] = field(default_factory=list)
    known: dict[tuple[Node, tuple[str, ...]], str] = field(default_factory=dict)
    measurable: dict[str, set[str]] = field(default_factory=dict)
    """What features would like to know, by input: columns."""
    orderable: dict[str, set[str]] = field(default_factory=dict)
    """The times by which rows near a change would be read, if an input's rows lay in their order: by input."""
    part_length: Length | None = None
    """That of the time parts that rows are kept in, where they are: of several patterns of the first."""

    def keep(
        self,
        node: Node,
        by: tuple[str, ...],
        reason: str,
        slot: str | None = None,
        bounded_by: str | None = None,
        closing: Closing | None = None,
    ) -> Scan:
        """A scan of ``node`` as a kept view: of the one that is there, where the query has the same again.

        What one of its readers needs for ever is kept for ever.
        """
        alias = node.fields[0].table if node.fields else self.alias()
        numbers = iter(range(1, 10**6))
        same, _ = renamed(node, lambda _: f"t{next(numbers)}")
        name = self.known.get((same, by))
        if name is None:
            words = [
                f"view_{len(self.views) + 1}",
                storable(self._first_input(node) or alias),
                *(["by", *by] if by else []),
            ]
            name = self.known[(same, by)] = sibling(self.relation, "_".join(words))
            placed = (slot,) if slot is not None else by
            self.views.append(
                InnerView(
                    name, node, by=placed, reason=reason, slot=slot, bounded_by=bounded_by, closing=closing
                )
            )
        self.views = [
            replace(v, closing=None) if v.name == name and v.closing != closing else v for v in self.views
        ]
        return Scan(name, alias, tuple((f.name, f.type) for f in node.fields))

    def _first_input(self, node: Node) -> str | None:
        """The name of the first input below ``node``, to be recognised by."""
        kept = {v.name: v.node for v in self.views}
        for scan in scans(node):
            inner = kept.get(scan.relation)
            return split_name(scan.relation)[-1] if inner is None else self._first_input(inner)
        return None

    @property
    def names(self) -> set[str]:
        return {v.name for v in self.views}

    def alias(self) -> str:
        """A name that no node of the query has."""
        alias = unique_name("kept", self.aliases)
        self.aliases.add(alias)
        return alias

    def tried(self, make: Callable[[Callable[[], str]], T | None]) -> T | None:
        """What ``make`` makes with new aliases, which are not used up where it makes nothing."""
        before = frozenset(self.aliases)
        found = make(self.alias)
        if found is None:
            self.aliases &= before
        return found

    def can_change(self, node: Node) -> bool:
        """Whether rows of ``node`` may come and go."""
        kept = {v.name: v.node for v in self.views}
        return bool(kinds_below(node)) or any(
            self.can_change(kept[s.relation]) if s.relation in kept else s.relation not in self.static
            for s in scans(node)
        )

    def scanned(self, node: Node) -> InnerView | None:
        """The kept view of which ``node`` shows rows, filtered at most."""
        while isinstance(node, Filter):
            node = node.input
        return next((v for v in self.views if isinstance(node, Scan) and v.name == node.relation), None)

    def is_placed(self, rows: Node, keys: tuple[Item, ...]) -> bool:
        """Whether ``rows`` come from one kept view whose partitions are told by ``keys`` already, each maybe repeated.

        Without keys all rows are read, wherever they lie.
        """
        values = tuple(k.value for k in keys)
        while rows.is_row_level and not kinds_below(rows):
            (below,) = rows.inputs
            if isinstance(rows, Map):
                meaning = {(rows.alias, i.name): i.value for i in rows.items}
                values = tuple(v.substitute(meaning.get) for v in values)
            values = tuple(v for v in values if v.columns <= below.ids)
            rows = below
        view = self.scanned(rows)
        if view is None or not keys:
            return view is not None
        by = view.by or _own_key(view.node)
        return by is not None and set(by) <= {column_of(v) for v in values if v.is_column}

    def is_input(self, node: Node) -> bool:
        """Whether ``node`` is an input, or rows that stand in the query, with projections and filters at most."""
        if isinstance(node, Scan):
            return node.relation not in self.names
        is_plain = node.is_row_level or isinstance(node, (Values, UnionAll))
        return is_plain and all(self.is_input(child) for child in node.inputs)

    def copied(self, node: Node) -> Copied | None:
        """The input of which ``node`` shows rows, with projections and filters at most."""
        is_whole = True
        while isinstance(node, (Map, Filter)):
            is_whole &= isinstance(node, Map) or all(map(_is_there, node.predicates))
            node = node.inputs[0]
        if not isinstance(node, Scan) or node.relation in self.names:
            return None
        return Copied(node.relation, is_whole)

    def times_of_input(self, rows: Node, values: Iterable[Scalar]) -> tuple[str, ...]:
        """The times of an input of which some values over its rows are computed, each of one time alone."""
        copied, columns = self.copied(rows), [v for v in values if len(v.columns) == 1]
        below = (column_below(rows, Scalar.column(*next(iter(v.columns)))) for v in columns)
        types = {name: type_ for scan in scans(rows) for name, type_ in scan.columns}
        times = tuple(dict.fromkeys(c for c in below if c is not None and kind_of(types[c]) is not None))
        if copied is not None and times:
            self.orderable.setdefault(copied.relation, set()).update(times)
        return times if copied is not None else ()

    def is_read(self, node: Node) -> bool:
        """Whether ``node`` reads inputs, and no part of it is evaluated on demand."""
        return not is_on_demand(node) and any(s.relation not in self.names for s in scans(node))


def _own_key(node: Node) -> tuple[str, ...] | None:
    """The columns by which a view is placed of which nothing else was said; None where not all are shown."""
    while isinstance(node, Filter):
        node = node.input
    if isinstance(node, Aggregate):
        return tuple(k.name for k in node.keys)
    return None


def _is_there(predicate: Scalar) -> bool:
    """Whether a predicate only says that a column is not NULL."""
    return any(predicate == Scalar.is_not_null(column) for column in predicate.columns)


def column_below(rows: Node, value: Scalar) -> str | None:
    """The column of an input that a value over its rows is, below projections and filters; None if it is none."""
    while rows.inputs and value.is_column:
        (column,) = value.columns
        shown = rows.shown_as(column)
        value, rows = value if shown is None else shown, rows.inputs[0]
    return next((name for _, name in value.columns), None) if value.is_column else None


def column_of(column: Scalar) -> str:
    ((_, name),) = column.columns
    return name
