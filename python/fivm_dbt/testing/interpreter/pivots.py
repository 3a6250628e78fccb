"""PIVOT and UNPIVOT are evaluated by their definition."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.testing.interpreter.aggregates import Aggregate, compile_aggregate, taken_apart
from fivm_dbt.testing.interpreter.casts import cast
from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import compile_expression, constant_of
from fivm_dbt.testing.interpreter.queries import Relations
from fivm_dbt.testing.interpreter.scope import Column, Context, Env, Expression, Found, Relation
from fivm_dbt.testing.interpreter.types import STRING, Type, wider
from fivm_dbt.testing.interpreter.values import Row, Value, row_key

_PLAIN = frozenset("boolean tinyint smallint int bigint float double decimal".split())
"""Types of aggregates that Spark computes per value first: a value without rows has NULL, where COUNT would be 0."""


def pivoted(source: Relation, node: exp.Pivot, outer: Context | None, relations: Relations) -> Relation:
    if node.args.get("alias"):
        raise NotUnderstood("PIVOT with an alias", node)
    if len(node.args["fields"]) != 1 or node.args.get("group"):
        raise NotUnderstood("PIVOT of several fields", node)
    if node.args.get("unpivot"):
        return _unpivoted(source, node, outer, relations)
    context = Context(source.columns, outer, relations)
    field = node.args["fields"][0]
    by = field.this.expressions if isinstance(field.this, exp.Tuple) else [field.this]
    calls = [(c.this, c.alias) if isinstance(c, exp.Alias) else (c, "") for c in node.expressions]
    if any(taken_apart(c) is None for c, _ in calls):
        raise NotUnderstood("PIVOT with more than aggregates", node)
    aggregates = [compile_aggregate(c, context) for c, _ in calls]
    keys = [compile_expression(b, context) for b in by]
    wanted = [_wanted(v, [k.type for k in keys], context) for v in field.expressions]
    read = {f.index for n in [*by, *(c for c, _ in calls)] for f in _columns(n, context)}
    rest = [i for i in range(len(source.columns)) if i not in read and not source.columns[i].is_hidden]
    names = [
        w.name if len(calls) == 1 else f"{w.name}_{alias or _text(call)}"
        for w in wanted
        for call, alias in calls
    ]
    shown = [Column(source.columns[i].name, source.columns[i].type) for i in rest]
    shown += [Column(n, a.type) for n, a in zip(names, aggregates * len(wanted), strict=True)]
    is_plain = all(a.type.name in _PLAIN for a in aggregates)

    def rows(env: Env | None) -> list[Row]:
        groups: dict[Row, tuple[Row, list[Env]]] = {}
        for row in source.rows(env):
            kept = tuple(row[i] for i in rest)
            groups.setdefault(row_key(kept), (kept, []))[1].append(Env(row, env))
        return [
            (*kept, *(v for w in wanted for v in _cells(w, members, keys, aggregates, is_plain)))
            for kept, members in groups.values()
        ]

    if not is_plain and any(c.this == "COUNT" for c, _ in calls) and any(_is_star(c) for c, _ in calls):
        raise NotUnderstood("PIVOT of COUNT(*) beside texts", node)
    return Relation(tuple(shown), rows)


@dataclass(frozen=True)
class _Wanted:
    name: str
    values: tuple[Value, ...]


def _is_star(call: exp.Expr) -> bool:
    found = taken_apart(call)
    return found is not None and found.is_star


def _cells(
    wanted: _Wanted, members: list[Env], keys: list[Expression], aggregates: list[Aggregate], is_plain: bool
) -> list[Value]:
    there = [e for e in members if row_key([k.of(e) for k in keys]) == row_key(wanted.values)]
    if not there and is_plain:
        return [None] * len(aggregates)
    return [a.of(there) for a in aggregates]


def _wanted(node: exp.Expr, types: list[Type], context: Context) -> _Wanted:
    alias = ""
    if isinstance(node, (exp.PivotAlias, exp.Alias)):
        alias, node = node.args["alias"].name, node.this
    nodes = node.expressions if isinstance(node, exp.Tuple) else [node]
    compiled = [compile_expression(n, context) for n in nodes]
    values = [constant_of(c, n) for c, n in zip(compiled, nodes, strict=True)]
    texts = ["null" if v is None else cast(v, c.type, STRING) for v, c in zip(values, compiled, strict=True)]
    name = alias or (texts[0] if len(texts) == 1 else "{" + ", ".join(texts) + "}")
    return _Wanted(name, tuple(cast(v, c.type, t) for v, c, t in zip(values, compiled, types, strict=True)))


def _text(call: exp.Expr) -> str:
    """The name that Spark gives to an aggregate without one."""
    inner = call.expressions[0] if call.expressions else None
    if len(call.expressions) == 1 and isinstance(inner, exp.Star):
        return f"{call.name.lower()}(1)"
    if len(call.expressions) == 1 and isinstance(inner, exp.Column):
        return f"{call.name.lower()}({inner.name})"
    raise NotUnderstood("PIVOT of an expression without a name", call)


def _columns(node: exp.Expr, context: Context) -> list[Found]:
    found: list[Found] = []
    for column in node.find_all(exp.Column):
        if not isinstance(column.this, exp.Star):
            place = context.find([p.name for p in (column.args.get("table"), column.this) if p], column)
            found += [place] if place is not None else []
    return found


def _unpivoted(source: Relation, node: exp.Pivot, outer: Context | None, relations: Relations) -> Relation:
    field, named = node.args["fields"][0], node.expressions
    if len(named) != 1 or isinstance(named[0], exp.Tuple):
        raise NotUnderstood("UNPIVOT of several values", node)
    context = Context(source.columns, outer, relations)
    chosen: list[tuple[str, int]] = []
    for item in field.expressions:
        alias, column = (
            (item.args["alias"].name, item.this)
            if isinstance(item, (exp.PivotAlias, exp.Alias))
            else ("", item)
        )
        place = context.find([column.name], column)
        if place is None:
            raise NotUnderstood("UNPIVOT of an unknown column", column)
        chosen.append((alias or column.name, place.index))
    type_: Type | None = source.columns[chosen[0][1]].type
    for _, index in chosen[1:]:
        type_ = wider(type_, source.columns[index].type) if type_ is not None else None
    if type_ is None:
        raise NotUnderstood("UNPIVOT of different types", node)
    value_type = type_
    rest = [i for i in range(len(source.columns)) if i not in {p for _, p in chosen}]
    columns = [source.columns[i] for i in rest]
    columns += [Column(field.this.name, STRING), Column(named[0].name, value_type)]
    keeps_nulls = bool(node.args.get("include_nulls"))

    def rows(env: Env | None) -> list[Row]:
        return [
            (*(row[i] for i in rest), name, cast(row[index], source.columns[index].type, value_type))
            for row in source.rows(env)
            for name, index in chosen
            if keeps_nulls or row[index] is not None
        ]

    return Relation(tuple(columns), rows)
