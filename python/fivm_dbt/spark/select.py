"""Relational nodes become SELECT statements as flat as the query was, with every read pinned by the reader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.buckets import BITS, BUCKET, LEVEL, PARENT, Buckets
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Distinct, Explode, Filter, Join, Map, UnionAll, Values
from fivm_dbt.ir.one_sided import OneSided, Restrict
from fivm_dbt.ir.reads import Read
from fivm_dbt.ir.scalar import Scalar, as_type, column_ast, grouped, identifier
from fivm_dbt.ir.time_windows import TimeWindows
from fivm_dbt.ir.window import Window
from fivm_dbt.registry import Registry
from fivm_dbt.rings.registry import called
from fivm_dbt.spark.pieces import union_all

Writer = Callable[[Any, "Reader"], exp.Query]
WRITERS: Registry[Writer] = Registry()
"""The query of an operator that features add, by its class."""

Reader = Callable[[Read], exp.Expr]
"""The table expression of a read, aliased: a pinned table, a presented state (or a part of it), a staged delta."""


@dataclass(frozen=True)
class _Source:
    """An item of a FROM clause. An outer or semi join brings its own condition; of inner joins it is found."""

    relation: exp.Expr
    tables: frozenset[str]
    join: str = "inner"
    condition: exp.Expr | None = None


@dataclass
class _From:
    """A FROM clause being built: sources in order, predicates waiting for the sources they need, then the rest."""

    sources: list[_Source] = field(default_factory=list)
    predicates: list[Scalar] = field(default_factory=list)
    restrictions: list[_Source] = field(default_factory=list)
    laterals: list[exp.Lateral] = field(default_factory=list)


def select(node: Node, reader: Reader) -> exp.Query:
    """The query whose rows are those of ``node``, columns in the order of its fields."""
    writer = WRITERS.of(node)
    if writer is not None:
        return writer(node, reader)
    if isinstance(node, (Map, Window)):
        columns = [_aliased(i.value.ast(), i.name) for i in node.items] or [exp.Literal.number(1)]
        return select_columns(columns, node.input, reader)
    if isinstance(node, Aggregate):
        columns = [_aliased(k.value.ast(), k.name) for k in node.keys]
        columns += [_aliased(_call(c), c.name) for c in node.calls]
        # Where nothing above uses a column, COUNT still makes it an aggregate: one row, also over nothing.
        query = select_columns(columns or [_aliased(exp.Count(this=exp.Star()), "one")], node.input, reader)
        if node.keys:
            query = query.group_by(*(_grouped_by(k) for k in node.keys), copy=False)
        elif not node.is_global:
            raise ValueError("an aggregate without keys is global")
        return query
    if isinstance(node, Values):
        rows = [_values_row(row, node.columns) for row in node.rows]
        return union_all(rows)
    if isinstance(node, UnionAll):
        queries = [select(branch, reader) for branch in node.branches]
        return union_all(queries)
    if isinstance(node, Buckets):
        return select(_exploded(node), reader)
    if isinstance(node, Distinct):
        return exp.select("*").from_(subquery(node.input, reader, "keys"), copy=False).distinct(copy=False)
    return select_columns(
        [_aliased(f.scalar.ast(), f.name) for f in node.fields] or [exp.Literal.number(1)], node, reader
    )


def _exploded(node: Buckets) -> Map:
    """The buckets of a row as a projection of its levels. Shifting a number right is floor division, below zero too."""
    made = f"{node.alias}_levels"
    level = column_ast(made, LEVEL)
    last = node.levels - 1
    bounds = [exp.Literal.number(0), exp.Literal.number(last)]
    sequence = exp.Anonymous(this="SEQUENCE", expressions=bounds)
    generator = exp.Anonymous(this="EXPLODE", expressions=[sequence])
    rows = Explode(node.input, made, Scalar(generator), ((LEVEL, INT),))

    def shifted(levels: exp.Expr) -> exp.Expr:
        bits = exp.Mul(this=exp.Literal.number(BITS), expression=levels)
        return exp.BitwiseRightShift(this=node.code.ast(), expression=bits)

    above = exp.paren(exp.Add(this=level.copy(), expression=exp.Literal.number(1)))
    is_last = exp.EQ(this=level.copy(), expression=exp.Literal.number(last))
    top = as_type(exp.Literal.number(0), BIGINT.text)
    parent = exp.Case(ifs=[exp.If(this=is_last, true=top)], default=shifted(above))
    placed = (
        Item(LEVEL, Scalar(level), INT),
        Item(PARENT, Scalar(parent), BIGINT),
        Item(BUCKET, Scalar(shifted(level.copy())), BIGINT),
    )
    return Map(rows, node.alias, node.items + placed)


def _values_row(row: tuple[Scalar, ...], columns: tuple[tuple[str, SparkType], ...]) -> exp.Select:
    named = [_aliased(value.ast(), name) for value, (name, _) in zip(row, columns, strict=True)]
    return exp.select(*(named or [exp.alias_(exp.Literal.number(1), "one")]), copy=False)


def subquery(node: Node, reader: Reader, alias: str) -> exp.Expr:
    """``(SELECT ...) AS alias``."""
    return select(node, reader).subquery(identifier(alias), copy=False)


def _grouped_by(key: Item) -> exp.Expr:
    """A key in GROUP BY: a bare number there would be a position of the select list."""
    if key.value.as_number is not None:
        return as_type(key.value.ast(), key.type.text)
    return key.value.ast()


def _call(call: AggregateCall) -> exp.Expr:
    if call.written is not None:
        return call.written.ast()
    return called(call)


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
    # A restriction may need what a lateral view makes, which stands behind all joins: then it goes into WHERE.
    joined = clause.sources if clause.laterals else [*clause.sources, *clause.restrictions]
    for position, source in enumerate(joined):
        seen |= source.tables
        if position == 0:
            query = query.from_(source.relation, copy=False)
            continue
        join, condition = source.join, source.condition
        if join == "inner":
            ready = [p for p in clause.predicates if _is_ready(p, source.tables, seen)]
            clause.predicates = [p for p in clause.predicates if p not in ready]
            condition = exp.and_(*(p.ast() for p in ready), copy=False) if ready else None
            join = "inner" if ready else "cross"
        query = query.join(source.relation, on=condition, join_type=join, copy=False)
    for lateral in clause.laterals:
        query = query.lateral(lateral, copy=False)
    where = [p.ast() for p in clause.predicates]
    where += [_exists(r) for r in clause.restrictions] if clause.laterals else []
    return query.where(*where, copy=False) if where else query


def _exists(restriction: _Source) -> exp.Expr:
    keys = exp.select(exp.Literal.number(1)).from_(restriction.relation, copy=False)
    return exp.Exists(this=keys.where(restriction.condition, copy=False))


def _is_ready(predicate: Scalar, new: frozenset[str], seen: frozenset[str]) -> bool:
    """Whether a predicate over several sources can stand where the source with the tables ``new`` is joined."""
    return len(predicate.tables) > 1 and bool(predicate.tables & new) and predicate.tables <= seen


def _collect(node: Node, reader: Reader, clause: _From) -> None:
    """Add ``node`` to a FROM clause. A predicate over rows that an outer or semi join keeps commutes with it."""
    if isinstance(node, Filter):
        _collect(node.input, reader, clause)
        clause.predicates += node.predicates
    elif isinstance(node, Join):
        for factor in node.factors:
            _collect(factor, reader, clause)
        clause.predicates += node.predicates
    elif isinstance(node, OneSided):
        _collect(node.left, reader, clause)
        condition = exp.and_(*(p.ast() for p in node.predicates), copy=False) if node.predicates else _TRUE
        tables = frozenset({_alias(node.right)}) if node.shows_right else frozenset[str]()
        clause.sources.append(_Source(_item(node.right, reader), tables, node.join_type, condition.copy()))
    elif isinstance(node, Restrict):
        _collect(node.left, reader, clause)
        same = [
            exp.NullSafeEQ(this=grouped(left.ast()), expression=grouped(right.ast()))
            for left, right in node.keys
        ]
        condition = exp.and_(*same, copy=False) if same else _TRUE.copy()
        keys = subquery(node.right, reader, node.right.fields[0].table)
        clause.restrictions.append(_Source(keys, frozenset(), "left semi", condition))
    elif isinstance(node, Explode):
        _collect(node.input, reader, clause)
        clause.laterals.append(lateral(node, node.generator, is_outer=node.outer))
    else:
        clause.sources.append(_Source(_item(node, reader), frozenset({_alias(node)})))


def lateral(node: Explode | TimeWindows, generator: Scalar, *, is_outer: bool = False) -> exp.Lateral:
    """LATERAL VIEW of a generator, with the alias and the columns of a node."""
    names = [identifier(name) for name, _ in node.columns]
    alias = exp.TableAlias(this=identifier(node.alias), columns=names)
    return exp.Lateral(this=generator.ast(), view=True, outer=is_outer, alias=alias)


_TRUE = exp.Boolean(this=True)


def _alias(node: Node) -> str:
    """The one alias of a node that stands as an item of FROM."""
    alias: str | None = getattr(node, "alias", None)
    if node.is_item and alias is not None:
        return alias
    if node.drops_rows:
        return _alias(node.inputs[0])
    raise TypeError(f"{type(node).__name__} cannot stand in FROM")


def _item(node: Node, reader: Reader) -> exp.Expr:
    return reader(node) if isinstance(node, Read) else subquery(node, reader, _alias(node))
