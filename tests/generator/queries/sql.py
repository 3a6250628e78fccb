"""Random queries have SELECTs and set operations, and stand in each other."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial

from generator.constructs import CONSTRUCTS, Menu, Place, slots_wanted
from generator.queries.joins import From, Source
from generator.queries.patterns import pattern
from generator.queries.query import Block, Columns, Query
from generator.queries.rows import lateral, pipe, pivot, unpivot, values
from generator.queries.scalars import DATE, INT, Col, Scalars, Type
from generator.queries.selects import HEADS, limited_result, project
from generator.queries.subqueries import PREDICATES, subquery_predicate

__all__ = ["Columns", "Queries", "Query"]

_NEEDS_BRACKETS = {"cte", "limit", "limited result", "offset", "set chain", "pipe", "unpivot", "pivot"}


class Queries:
    """Generates queries over ``relations``; every name used as an alias is used once."""

    def __init__(
        self, rng: random.Random, relations: Mapping[str, Columns], menu: Menu | None = None
    ) -> None:
        self.rng = rng
        self.menu = menu if menu is not None else Menu()
        self.relations = dict(relations)
        self._ctes: dict[str, Columns] = {}
        self._aliases = 0

    def alias(self, letter: str) -> str:
        self._aliases += 1
        return f"{letter}{self._aliases}"

    def query(self, want: Iterable[str] = (), child: str | None = None, depth: int | None = None) -> Query:
        """A whole query with the constructs ``want`` on top and ``child`` in a subquery, where they can stand."""
        if depth is None:
            depth = self.rng.choices((0, 1, 2), (50, 40, 10))[0]
        wanted = frozenset(want)
        if child is not None:
            depth = max(depth, 1 + _levels([child]))
        return self.body(max(depth, _levels(wanted)), wanted, child)

    def body(self, depth: int, want: frozenset[str] = frozenset(), child: str | None = None) -> Query:
        """A SELECT, a set operation, PIVOT, UNPIVOT or a pipe."""
        block = Block(depth, set(want), child)
        wanted_slots = slots_wanted(want)
        if "shape" in wanted_slots or (not want and self.rng.random() < 0.2):
            shape = self.menu.choose(self.rng, "shape", Place(depth=depth), block.want)
            for _ in range(4 if shape is not None else 0):
                found = self._shape(str(shape), Block(depth, set(block.want), child))
                if found is not None:
                    return found
            block = Block(depth, set(), child)
        return self.select(block)

    def _shape(self, shape: str, block: Block) -> Query | None:
        if shape == "pivot":
            return pivot(self, block)
        if shape == "unpivot":
            return unpivot(self, block)
        if shape == "pipe":
            return pipe(self, block)
        return self._set_operation(shape, block)

    # Set operations

    def _set_operation(self, shape: str, block: Block) -> Query:
        """Two branches, in a chain three, of which the others find columns of the first one's types."""
        operators = [n for n in _OPERATORS if self.menu.allows(n)]
        chosen = [shape]
        if shape == "set chain":
            chosen = [self.rng.choice(operators or ["union all"]) for _ in range(2)]
        block.use(shape, *chosen)
        is_bag = chosen == ["union all"]
        first = self._branch(block, block.child_wanted(), is_bag)
        text, columns = self._bracketed(first), first.columns
        for operator in chosen:
            branch = self._alike(block, columns)
            block.children.append(branch)
            text = f"{text} {operator.upper()} {self._bracketed(branch)}"
            if operator is not chosen[-1]:
                text = f"({text})" if self.rng.random() < 0.5 else text
        return block.finish(text, columns)

    def _branch(self, block: Block, want: frozenset[str], is_bag: bool) -> Query:
        """The first branch: where rows are compared, of columns that can be."""
        depth = max(0, block.depth - 1)
        query = self.body(depth, want)
        block.children.append(query)
        if is_bag or query.keys == query.columns:
            return query
        alias = self.alias("q")
        shown = query.keys or (("one", Type("int")),)
        listed = ", ".join(name for name, _ in query.keys) or "1 AS one"
        return Query(f"SELECT {listed} FROM ({query.sql}) AS {alias}", shown, query.top)

    def _alike(self, block: Block, wanted: Columns) -> Query:
        """A projection with the types of another query; NULLs where there are no such columns."""
        inner = Block(0)
        source = self.source(inner, frozenset())
        scalars = Scalars(self.rng, source.cols)
        items = []
        for name, type_ in wanted:
            found = [c.ref for c in scalars.columns if c.type == type_]
            items.append(f"{self.rng.choice(found) if found else _null(type_)} AS {name}")
        where = ""
        if self.menu.allows("where") and self.rng.random() < 0.25 and scalars.keys:
            inner.use("where")
            where = f" WHERE {scalars.predicate()}"
        inner.use("project")
        return inner.finish(f"SELECT {', '.join(items)} FROM {source.text}{where}", wanted)

    def _bracketed(self, query: Query) -> str:
        if query.top & (_NEEDS_BRACKETS | set(_OPERATORS)) or query.sql.startswith(("WITH ", "FROM ")):
            return f"({query.sql})"
        return query.sql

    # SELECT

    def select(self, block: Block) -> Query:
        clause = From(self.rng, self.menu, block)
        self._fill(clause, block)
        scalars = Scalars(self.rng, clause.usable)
        where = self._where(clause, block, scalars)
        head = self._head(block, scalars)
        source = f"{clause.text}{where}"
        if "limited result" in block.want or (
            self.rng.random() < 0.08 and self.menu.allows("limited result")
        ):
            block.tail = partial(limited_result, block, scalars)
        return (HEADS[head] if head is not None else project)(self, block, scalars, source, clause)

    def _fill(self, clause: From, block: Block) -> None:
        rng, slots = self.rng, slots_wanted(block.want)
        count = rng.choices((1, 2, 3), (58, 34, 8))[0]
        if slots & {"join", "condition", "outer condition"} or "nullable side" in block.want:
            count = max(2, count)
        lateral_wanted = "lateral" in slots or rng.random() < 0.06
        is_self_join = "self outer join" in block.want
        count = 3 if is_self_join and block.child is not None else count
        child_at = rng.randrange(2 if is_self_join else 0, count) if block.child is not None else -1
        first: Source | None = None
        for position in range(count):
            want = block.child_wanted() if position == child_at else frozenset()
            again = position == 1 and (is_self_join or rng.random() < 0.1)
            if again and not want and first is not None and first.table is not None:
                source = self.table(first.table)
            elif is_self_join and first is None:
                source = self.table(rng.choice(sorted(self.relations)))
            else:
                source = self.source(block, want)
            first = first or source
            clause.add(source, is_last=position == count - 1 and not lateral_wanted)
        if lateral_wanted:
            lateral(self, block, clause)

    def _where(self, clause: From, block: Block, scalars: Scalars) -> str:
        rng, slots = self.rng, slots_wanted(block.want)
        is_wanted = bool(slots & {"where", "correlation", "position"})
        if not is_wanted and rng.random() > 0.25:
            return ""
        if slots & {"correlation", "position"}:
            names = [n for n in PREDICATES if self.menu.allows(n)]
            name = rng.choice(names) if names else None
        else:
            name = self.menu.choose(rng, "where", Place(scalars.columns, block.depth), block.want)
        if name == "nullable side":
            if clause.nullable:
                block.use(name)
                return f" WHERE {Scalars(rng, clause.nullable).predicate(0)}"
            name = "where"
        if name is None or not scalars.keys:
            return ""
        if name in PREDICATES:
            condition = subquery_predicate(self, block, scalars, name)
            if rng.random() < 0.2:
                condition += f" AND {scalars.predicate(0)}"
            return f" WHERE {condition}"
        block.use(name)
        if name == "clock":
            column = rng.choice(scalars.of("date"))
            operator = rng.choice((">=", "<", ">"))
            return f" WHERE {column.ref} {operator} DATE_SUB(CURRENT_DATE(), {rng.choice((0, 7, 30))})"
        return f" WHERE {scalars.predicate()}" if self.menu.allows("where") else ""

    def _head(self, block: Block, scalars: Scalars) -> str | None:
        """What the SELECT does, such that what is wanted can stand in it."""
        rng, slots = self.rng, slots_wanted(block.want)
        for slot, heads in _NEEDED_HEADS.items():
            allowed = [h for h in heads if self.menu.allows(h) and CONSTRUCTS[h].fits(Place(scalars.columns))]
            if slot in slots and allowed:
                return rng.choice(allowed)
        return self.menu.choose(rng, "head", Place(scalars.columns, block.depth), block.want)

    # What stands in FROM

    def source(self, block: Block, want: frozenset[str]) -> Source:
        """A relation, a subquery, a CTE or VALUES; a query with ``want`` in it where that is not empty."""
        roll = self.rng.random()
        place = Place(depth=block.depth)
        if want or "source" in slots_wanted(block.want) or (block.depth > 0 and roll < 0.2):
            name = self.menu.choose(self.rng, "source", place, block.want)
            if want and (name is None or name in ("values", "pattern")):
                name = "subquery"
            if name == "cte" and block.is_expression:
                name = "subquery"  # DuckDB 2.0 fails over some correlated subqueries that begin with WITH
            if name == "values":
                block.use("values")
                return values(self)
            if name == "pattern":
                found = pattern(self)
                if found is not None:
                    block.use("pattern")
                    return found
                return self.table(self.rng.choice(sorted(self.relations)))
            if name is not None:
                return self._nested(name, block, want)
        return self.table(self.rng.choice(sorted(self.relations)))

    def _nested(self, name: str, block: Block, want: frozenset[str]) -> Source:
        alias = self.alias("q")
        query = self.body(max(0, block.depth - 1), want)
        block.use(name)
        block.children.append(query)
        if name == "cte":
            block.ctes.append(f"c{alias} AS ({query.sql})")
            self._ctes[f"c{alias}"] = query.columns
            return Source(f"c{alias} AS {alias}", alias, query.columns, f"c{alias}")
        return Source(f"({query.sql}) AS {alias}", alias, query.columns)

    def table(self, name: str) -> Source:
        """A relation, or a CTE of the same block once more."""
        alias = self.alias(name[0])
        columns = self.relations[name] if name in self.relations else self._ctes[name]
        return Source(f"{name} AS {alias}", alias, columns, name)


_OPERATORS = ("union all", "union", "intersect", "except", "intersect all", "except all")

_AGGREGATING = ("group by", "global aggregate", "rollup", "cube", "grouping sets")

_NEEDED_HEADS: dict[str, tuple[str, ...]] = {
    "aggregate": ("group by", "global aggregate"),
    "having": ("group by", "global aggregate"),
    "grouping": ("rollup", "cube", "grouping sets"),
    "window": ("window",),
    "value": ("project",),
    "tail": ("group by", "distinct", "project", "window", "explode", "rollup"),
}
"""The heads in which something wanted of a slot can stand."""


def _levels(names: Iterable[str]) -> int:
    """How many levels of subqueries these constructs need."""
    return int(any(not CONSTRUCTS[name].fits(_NO_LEVEL) for name in names))


_NO_LEVEL = Place([Col(f"r.{n}", n, t) for n in "ab" for t in (INT, DATE)], 0, [Col("s.a", "a", INT)])
"""Where everything can stand that needs no subquery."""


def _null(type_: Type) -> str:
    text = f"DECIMAL({type_.precision}, {type_.scale})" if type_.name == "decimal" else type_.name.upper()
    return "NULL" if type_.name in ("inexact", "array") else f"CAST(NULL AS {text})"


Head = Callable[["Queries", Block, Scalars, str, From], Query]
