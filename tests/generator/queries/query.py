"""A generated query knows what it is made of; a block collects that while the query is being made."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from generator.queries.scalars import Type

Columns = tuple[tuple[str, Type], ...]
Nesting = tuple[str, str]


@dataclass(frozen=True)
class Query:
    """SQL text with its output columns, and the constructs in it.

    ``top`` are those of its outermost SELECT, ``uses`` all, ``nestings`` each (parent, child). ``cells`` are
    those of the table of positions and kinds that it fills: position, kind, correlated or not, table that is read.
    """

    sql: str
    columns: Columns
    top: frozenset[str] = frozenset()
    uses: frozenset[str] = frozenset()
    nestings: frozenset[Nesting] = frozenset()
    cells: frozenset[tuple[str, str, str, str]] = frozenset()

    @property
    def keys(self) -> Columns:
        return tuple((name, type_) for name, type_ in self.columns if type_.can_be_key)


@dataclass
class Block:
    """One SELECT, or one set operation: the constructs that it must have, those it has, and its subqueries.

    ``child`` is a construct that one of the subqueries must have.
    """

    depth: int
    want: set[str] = field(default_factory=set)
    child: str | None = None
    uses: set[str] = field(default_factory=set)
    children: list[Query] = field(default_factory=list)
    ctes: list[str] = field(default_factory=list)
    is_expression: bool = False
    """Whether this is a subquery of an expression."""
    tail: Callable[[Columns], str] | None = None
    """What stands behind the query, given its columns."""

    def use(self, *names: str) -> None:
        self.uses.update(names)

    def child_wanted(self) -> frozenset[str]:
        """What the next subquery must have; the one after it is free."""
        child, self.child = self.child, None
        return frozenset() if child is None else frozenset((child,))

    def finish(self, sql: str, columns: Iterable[tuple[str, Type]]) -> Query:
        shown = tuple(columns)
        sql += self.tail(shown) if self.tail is not None else ""
        top = frozenset(self.uses)
        nestings = {(p, c) for child in self.children for p in top for c in child.top}
        for child in self.children:
            nestings |= child.nestings
        uses = top.union(*(child.uses for child in self.children))
        text = f"WITH {', '.join(self.ctes)} {sql}" if self.ctes else sql
        return Query(text, shown, top, uses, frozenset(nestings))
