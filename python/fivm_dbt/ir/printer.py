"""Relational nodes as an indented tree, for ``explain`` and logs."""

from __future__ import annotations

from fivm_dbt.ir.buckets import Buckets
from fivm_dbt.ir.copies import Copies
from fivm_dbt.ir.higher_order import HigherOrder
from fivm_dbt.ir.match import FINAL, RUNNING, TESTED, Match, Register
from fivm_dbt.ir.nodes import (
    Aggregate,
    AggregateCall,
    AsWritten,
    ClockFilter,
    ClockMap,
    Crossing,
    Distinct,
    Explode,
    Filter,
    Join,
    Lookup,
    Map,
    Node,
    OuterJoin,
    Restrict,
    Scan,
    SemiJoin,
    UnionAll,
    Values,
    Window,
)
from fivm_dbt.ir.on_demand import OnDemand
from fivm_dbt.ir.runs import Runs
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.ir.sessions import Sessions
from fivm_dbt.ir.time_windows import TimeWindows
from fivm_dbt.ir.within import Within


def render(node: Node, indent: int = 0) -> str:
    """The tree below ``node``, one operator a line."""
    lines = [f"{'  ' * indent}{describe(node)}"]
    lines += [render(child, indent + 1) for child in node.inputs]
    return "\n".join(lines)


def describe(node: Node) -> str:
    """One operator in a line."""
    if isinstance(node, Scan):
        alias = f" as {node.alias}" if node.alias != node.relation.split(".")[-1] else ""
        side = "" if node.side.value == "current" else f"{node.side.value} "
        return f"Scan {side}{node.relation}{alias} [{', '.join(name for name, _ in node.columns)}]"
    if isinstance(node, Lookup):
        return f"Lookup {node.key_set}"
    if isinstance(node, Within):
        return f"Within {' and '.join(str(b) for b in node.bounds)}"
    if isinstance(node, Values):
        return f"Values {node.alias} [{', '.join(name for name, _ in node.columns)}] {len(node.rows)} rows"
    if isinstance(node, AsWritten):
        return f"AsWritten {node.alias} [{', '.join(name for name, _ in node.columns)}]"
    if isinstance(node, (Filter, ClockFilter, Crossing)):
        return f"{type(node).__name__} {' and '.join(p.sql for p in node.predicates)}"
    if isinstance(node, (Map, ClockMap)):
        return f"{type(node).__name__} {node.alias} [{', '.join(_item(i.name, i.value.sql) for i in node.items)}]"
    if isinstance(node, Join):
        return f"Join {' and '.join(p.sql for p in node.predicates) or 'cross'}"
    if isinstance(node, OuterJoin):
        return f"OuterJoin {' and '.join(p.sql for p in node.predicates) or 'true'}"
    if isinstance(node, SemiJoin):
        kind = "AntiJoin" if node.anti else "SemiJoin"
        return f"{kind} {' and '.join(p.sql for p in node.predicates) or 'true'}"
    if isinstance(node, Restrict):
        return f"Restrict {' and '.join(f'{a.sql} <=> {b.sql}' for a, b in node.keys)}"
    if isinstance(node, Sessions):
        by = ", ".join(i.value.sql for i in node.keys) or "nothing"
        items = ", ".join(_item(i.name, i.value.sql) for i in node.items)
        return f"Sessions {node.alias} by {by} order {node.at.sql} gap {node.gap} [{items}]"
    if isinstance(node, Window):
        by = ", ".join(i.value.sql for i in node.partition) or "nothing"
        return f"Window {node.alias} by {by} [{', '.join(_item(i.name, i.value.sql) for i in node.items)}]"
    if isinstance(node, Match):
        return _match(node)
    if isinstance(node, Runs):
        return _runs(node)
    if isinstance(node, TimeWindows):
        start = f" start {node.offset}" if node.offset else ""
        return f"TimeWindows {node.alias} of {node.at.sql} length {node.length} slide {node.slide}{start}"
    if isinstance(node, Explode):
        made = ", ".join(name for name, _ in node.columns)
        return f"Explode {node.alias} [{made} = {node.generator.sql}]{' outer' if node.outer else ''}"
    if isinstance(node, UnionAll):
        return f"UnionAll {node.alias}"
    if isinstance(node, Aggregate):
        keys = ", ".join(_item(k.name, k.value.sql) for k in node.keys)
        calls = ", ".join(f"{c.name} = {_call(c)}" for c in node.calls)
        return f"Aggregate {node.alias} by [{keys}] [{calls}]"
    if isinstance(node, Distinct):
        return "Distinct"
    if isinstance(node, Copies):
        items = ", ".join(_item(i.name, i.value.sql) for i in node.items)
        return f"Copies {node.alias} [{items}] times {node.times.sql}"
    if isinstance(node, Buckets):
        items = ", ".join(_item(i.name, i.value.sql) for i in node.items)
        return f"Buckets {node.alias} [{items}] of {node.code.sql} on {node.levels} levels"
    if isinstance(node, OnDemand):
        return f"OnDemand {node.definition.alias}"
    if isinstance(node, HigherOrder):
        return f"HigherOrder {node.alias}"
    raise TypeError(f"no description of {type(node).__name__}")


def count_nodes(node: Node) -> int:
    return 1 + sum(count_nodes(child) for child in node.inputs)


def _call(call: AggregateCall) -> str:
    if call.written is not None:
        return call.written.sql
    return f"{call.function}({call.argument.sql if call.argument else '*'})"


def _item(name: str, sql: str) -> str:
    return name if sql.split(".")[-1] == name else f"{name} = {sql}"


def _match(node: Match) -> str:
    return f"Match {node.alias} by {', '.join(i.value.sql for i in node.partition) or 'nothing'} {_recognized(node)}"


def _runs(node: Runs) -> str:
    shown = f"Runs {node.alias} by {', '.join(k.value.sql for k in node.keys)}, {node.part.sql}"
    return f"{shown} {_recognized(node)}, last mark in {node.latest.sql}"


def _recognized(node: Match | Runs) -> str:
    order = ", ".join(f"{o.column}{' desc' if o.desc else ''}" for o in node.order)
    rec = node.recognizer
    where = ", ".join(f"{name}: {_registers(condition, rec.tested)}" for name, condition in rec.conditions)
    columns = ", ".join(_item(i.name, _registers(i.value, rec.held)) for i in node.items)
    rows = "all rows" if rec.all_rows else "one row per part" if rec.per_part else "one row"
    skip = f"skip {rec.skip.mode}{f' {rec.skip.written}' if rec.skip.written else ''}"
    pattern = f"({rec.pattern}) where {where}" if where else f"({rec.pattern})"
    return f"order {order}: {pattern}, {rows}, {skip} [{columns}]"


def _registers(value: Scalar, registers: tuple[Register, ...]) -> str:
    """An expression with what its registers mean."""
    meanings = {r.name: _register(r) for r in registers}

    def meaning(column: ColumnId) -> Scalar | None:
        table, name = column
        if table in (TESTED, FINAL, RUNNING) and name in meanings:
            return Scalar.column("", meanings[name])
        return Scalar.column("", name)

    return value.substitute(meaning).sql.replace("`", "")


def _register(register: Register) -> str:
    of = f"{register.variable}." if register.variable is not None else ""
    if register.kind == "classifier":
        return "classifier()"
    if register.value is None:
        return f"count({of}*)"
    value = register.value.substitute(lambda column: Scalar.column("", f"{of}{column[1]}")).sql
    return f"{register.kind}({value})".replace("`", "")
