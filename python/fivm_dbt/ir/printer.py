"""Relational nodes as an indented tree, for ``explain`` and logs."""

from __future__ import annotations

from fivm_dbt.ir.nodes import Aggregate, Distinct, Filter, Join, Map, Node, Scan, SemiJoin, UnionAll


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
    if isinstance(node, Filter):
        return f"Filter {' and '.join(p.sql for p in node.predicates)}"
    if isinstance(node, Map):
        return f"Map {node.alias} [{', '.join(_item(i.name, i.value.sql) for i in node.items)}]"
    if isinstance(node, Join):
        return f"Join {' and '.join(p.sql for p in node.predicates) or 'cross'}"
    if isinstance(node, SemiJoin):
        return f"SemiJoin {' and '.join(f'{a.sql} <=> {b.sql}' for a, b in node.keys)}"
    if isinstance(node, UnionAll):
        return f"UnionAll {node.alias}"
    if isinstance(node, Aggregate):
        keys = ", ".join(_item(k.name, k.value.sql) for k in node.keys)
        calls = ", ".join(
            f"{c.name} = {c.function}({c.argument.sql if c.argument else '*'})" for c in node.calls
        )
        return f"Aggregate {node.alias} by [{keys}] [{calls}]"
    if isinstance(node, Distinct):
        return "Distinct"
    raise TypeError(f"no description of {type(node).__name__}")


def count_nodes(node: Node) -> int:
    return 1 + sum(count_nodes(child) for child in node.inputs)


def _item(name: str, sql: str) -> str:
    return name if sql.split(".")[-1] == name else f"{name} = {sql}"
