"""Random subqueries stand in expressions: EXISTS, IN and their negations, scalar ones; correlated or not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from generator.constructs import Place
from generator.queries.query import Block, Query
from generator.queries.scalars import BIGINT, Col, Scalars, Type, summed

if TYPE_CHECKING:
    from generator.queries.sql import Queries

PREDICATES = ("exists", "not exists", "in", "not in", "scalar in where")


def subquery_predicate(queries: Queries, block: Block, scalars: Scalars, name: str) -> str:
    """A condition with a subquery in it: by itself, beside an OR, or in a CASE."""
    condition = _predicate(queries, block, scalars, name)
    position = queries.menu.choose(queries.rng, "position", Place(), block.want) or "conjunct"
    block.use(position)
    if position == "under or":
        return f"({condition} OR {scalars.predicate(0)})"
    if position == "under case":
        return f"CASE WHEN {condition} THEN {scalars.predicate(0)} ELSE {scalars.predicate(0)} END"
    return condition


def subquery_truth(queries: Queries, block: Block, scalars: Scalars) -> str | None:
    """EXISTS or IN as a value, which Spark never finds unknown; None where none of them is wanted."""
    names = [n for n in PREDICATES[:4] if queries.menu.allows(n)]
    if not names:
        return None
    truth = f"({_predicate(queries, block, scalars, queries.rng.choice(names))})"
    forms = ("{0}", "{0}", "NOT {0}", "{0} = FALSE", "{0} IS NULL", "COALESCE({0}, TRUE)", "({0} AND {1})")
    return queries.rng.choice(forms).format(truth, scalars.predicate(0))


def _predicate(queries: Queries, block: Block, scalars: Scalars, name: str) -> str:
    rng = queries.rng
    inner = _Inner(queries, block, scalars)
    if name in ("in", "not in"):
        pairs = [(a, b) for a in scalars.keys for b in inner.columns if a.type == b.type]
        if pairs:
            block.use(name)
            outer, shown = rng.choice(pairs)
            negation = "NOT " if name == "not in" else ""
            return f"{outer.ref} {negation}IN ({inner.select(shown.ref)})"
        name = "exists" if name == "in" else "not exists"
    if name == "scalar in where":
        numbers = [c for c in scalars.numbers if c.type.precision <= 20]
        found = inner.aggregate() if numbers else None
        if found is not None:
            block.use(name)
            operator = rng.choice(("=", "<>", "<", "<=", ">", ">="))
            return f"{rng.choice(numbers).ref} {operator} ({inner.select(found[0])})"
        name = "exists"
    block.use(name)
    return f"{'NOT ' if name == 'not exists' else ''}EXISTS ({inner.select('1')})"


def scalar_subquery(queries: Queries, block: Block, scalars: Scalars, name: str = "") -> tuple[str, Type]:
    """An aggregate without GROUP BY as a value, or as a column of this name: one row, whatever the data."""
    inner = _Inner(queries, block, scalars)
    value, type_ = inner.aggregate()
    return f"({inner.select(f'{value} AS {name}' if name else value)})", type_


class _Inner:
    """The subquery of an expression: what it reads, and how that hangs together with the query around it."""

    def __init__(self, queries: Queries, block: Block, scalars: Scalars) -> None:
        self.queries = queries
        self.outer = block
        self.block = Block(block.depth - 1, is_expression=True)
        self.source = queries.source(self.block, block.child_wanted())
        self.columns = self.source.cols
        self._where: list[str] = []
        self._correlate(scalars)
        if queries.rng.random() < 0.3:
            self._where.append(Scalars(queries.rng, self.columns).predicate(0))

    def _correlate(self, scalars: Scalars) -> None:
        """Conditions between both. A column of the outer query is always named with its relation."""
        queries, rng = self.queries, self.queries.rng
        outside = [c for c in scalars.columns if "." in c.ref]
        place = Place(outside, self.outer.depth, self.columns)
        name = queries.menu.choose(rng, "correlation", place, self.outer.want) or "uncorrelated"
        numbers = [(a, b) for a, b in place.pairs if a.type.is_exact_number]
        if name == "correlated inequality" and numbers:
            left, right = rng.choice(numbers)
            self._where.append(f"{right.ref} {rng.choice(('<', '<=', '>'))} {left.ref}")
        elif name in ("correlated", "two levels") and place.pairs:
            keyed = [(a, b) for a, b in place.pairs if a.name == b.name == "k"]
            left, right = rng.choice(keyed or place.pairs)
            self._where.append(f"{right.ref} = {left.ref}")
        elif name != "two levels":
            name = "uncorrelated"
        self.outer.use(name)
        if name == "two levels":
            # Spark's subqueries see the columns of the query right around them, and no farther out.
            names = [n for n in PREDICATES[:4] if queries.menu.allows(n)]
            if names:
                inner = Scalars(rng, self.columns)
                self._where.append(_predicate(queries, self.block, inner, rng.choice(names)))

    def aggregate(self) -> tuple[str, Type]:
        rng, menu = self.queries.rng, self.queries.menu
        numbers = [c for c in self.columns if c.type.is_exact_number and c.type.precision <= 18]
        choices: list[tuple[str, Col | None]] = [("count", None)]
        if numbers:
            column = rng.choice(numbers)
            choices += [(n, column) for n in ("sum", "max", "min") if menu.allows(n)] * 2
        name, chosen = rng.choice(choices)
        self.block.use(name)
        if chosen is None:
            return "COUNT(*)", BIGINT
        type_ = summed(chosen.type) if name == "sum" else chosen.type
        return f"{name.upper()}({chosen.ref})", type_

    def select(self, shown: str) -> str:
        where = f" WHERE {' AND '.join(self._where)}" if self._where else ""
        query: Query = self.block.finish(f"SELECT {shown} FROM {self.source.text}{where}", ())
        # What the subquery reads counts as read by the query around it, too.
        self.outer.children += [query, *self.block.children]
        return query.sql
