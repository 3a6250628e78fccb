"""Relational nodes to SELECT statements: as flat as the query was, with every read pinned by the reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from fivm_dbt.ir.nodes import (
    Aggregate,
    Distinct,
    Filter,
    Item,
    Join,
    Map,
    Node,
    Scan,
    SemiJoin,
    UnionAll,
)
from fivm_dbt.ir.scalar import Scalar, grouped, identifier

Reader = Callable[[Scan], exp.Expr]
"""The table expression of a scan, aliased: a pinned table, a presented state, or a staged delta."""


@dataclass
class _From:
    """A FROM clause being built: sources in order, and predicates waiting for the sources they need."""

    sources: list[tuple[exp.Expr, frozenset[str]]] = field(default_factory=list)
    predicates: list[Scalar] = field(default_factory=list)
    semijoins: list[tuple[exp.Expr, exp.Expr]] = field(default_factory=list)


def select(node: Node, reader: Reader) -> exp.Query:
    """The query whose rows are those of ``node``, columns in the order of its fields."""
    if isinstance(node, Map):
        columns = [_aliased(i.value.ast(), i.name) for i in node.items] or [exp.Literal.number(1)]
        return select_columns(columns, node.input, reader)
    if isinstance(node, Aggregate):
        columns = [_aliased(k.value.ast(), k.name) for k in node.keys]
        columns += [_aliased(_call(c.function, c.argument), c.name) for c in node.calls]
        # Where nothing above uses a column, COUNT still makes it an aggregate: one row, also over nothing.
        query = select_columns(columns or [_aliased(_call("count", None), "one")], node.input, reader)
        if node.keys:
            query = query.group_by(*(_grouped_by(k) for k in node.keys), copy=False)
        elif not node.is_global:
            raise ValueError("an aggregate without keys is global")
        return query
    if isinstance(node, UnionAll):
        queries = [select(branch, reader) for branch in node.branches]
        return queries[0] if len(queries) == 1 else exp.union(*queries, distinct=False, copy=False)
    if isinstance(node, Distinct):
        return exp.select("*").from_(subquery(node.input, reader, "keys"), copy=False).distinct(copy=False)
    return select_columns(
        [_aliased(f.scalar.ast(), f.name) for f in node.fields] or [exp.Literal.number(1)], node, reader
    )


def subquery(node: Node, reader: Reader, alias: str) -> exp.Expr:
    """``(SELECT ...) AS alias``."""
    return select(node, reader).subquery(identifier(alias), copy=False)


def _grouped_by(key: Item) -> exp.Expr:
    """A key in GROUP BY: a bare number there would be a position of the select list."""
    if key.value.as_number is not None:
        return exp.cast(key.value.ast(), key.type.text, dialect="spark")
    return key.value.ast()


def _call(function: str, argument: Scalar | None) -> exp.Expr:
    if argument is None:
        return exp.Count(this=exp.Star())
    return exp.func(function, argument.ast(), dialect="spark")


def _aliased(value: exp.Expr, name: str) -> exp.Expr:
    if isinstance(value, exp.Column) and value.name == name:
        return value
    return exp.alias_(value, identifier(name), copy=False)


def select_columns(columns: list[exp.Expr], node: Node, reader: Reader) -> exp.Select:
    """``SELECT columns FROM node``, with the node's joins and filters in the same SELECT."""
    clause = _From()
    _collect(node, reader, clause)
    query = exp.select(*columns, copy=False)
    seen: frozenset[str] = frozenset()
    for position, (source, tables) in enumerate(clause.sources):
        seen |= tables
        if position == 0:
            query = query.from_(source, copy=False)
            continue
        ready = [p for p in clause.predicates if len(p.tables) > 1 and p.tables & tables and p.tables <= seen]
        clause.predicates = [p for p in clause.predicates if p not in ready]
        condition = exp.and_(*(p.ast() for p in ready), copy=False) if ready else None
        query = query.join(source, on=condition, join_type="inner" if ready else "cross", copy=False)
    for keys, same in clause.semijoins:
        query = query.join(keys, on=same, join_type="left semi", copy=False)
    return query.where(*(p.ast() for p in clause.predicates), copy=False) if clause.predicates else query


def _collect(node: Node, reader: Reader, clause: _From) -> None:
    """Add ``node`` to a FROM clause; predicates over inner joins commute with everything there."""
    if isinstance(node, Scan):
        clause.sources.append((reader(node), frozenset({node.alias})))
    elif isinstance(node, Filter):
        _collect(node.input, reader, clause)
        clause.predicates += node.predicates
    elif isinstance(node, Join):
        for factor in node.factors:
            _collect(factor, reader, clause)
        clause.predicates += node.predicates
    elif isinstance(node, SemiJoin):
        _collect(node.left, reader, clause)
        alias = node.right.fields[0].table
        same = [
            exp.NullSafeEQ(this=grouped(left.ast()), expression=grouped(right.ast()))
            for left, right in node.keys
        ]
        condition = exp.and_(*same, copy=False) if same else exp.Boolean(this=True)
        clause.semijoins.append((subquery(node.right, reader, alias), condition))
    elif isinstance(node, (Map, Aggregate, UnionAll)):
        alias = node.alias
        clause.sources.append((subquery(node, reader, alias), frozenset({alias})))
    else:
        raise TypeError(f"{type(node).__name__} cannot stand in FROM")
