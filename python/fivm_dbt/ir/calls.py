"""A call of a function is a name and its arguments."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from fivm_dbt.ir.scalar import Scalar


def function_name(node: exp.Expr) -> str | None:
    """The name of a function call in lower case, as sqlglot calls it; None for other nodes."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if isinstance(node, exp.Any):
        of_patterns = isinstance(node.parent, (exp.Like, exp.ILike))
        return None if of_patterns or isinstance(node.this, exp.Query) else "any"
    return _name_of(type(node))


_NAMES: dict[Any, str | None] = {}


def _name_of(kind: Any) -> str | None:
    """The name of a class of calls: nearly every node of a query is asked for its own."""
    if kind not in _NAMES:
        is_call = issubclass(kind, exp.Func) and not issubclass(kind, (exp.Connector, exp.Cast))
        _NAMES[kind] = str(kind.sql_name()).lower() if is_call else None
    return _NAMES[kind]


def given(function: exp.Expr) -> list[exp.Expr]:
    """What stands in the parentheses of a call, as far as possible in the order of Spark's text."""
    if isinstance(function, exp.Anonymous):
        return list(function.expressions)
    parts = (function.args.get(key) for key in function.arg_types)
    return [e for p in parts for e in (p if isinstance(p, list) else [p]) if isinstance(e, exp.Expr)]


@dataclass(frozen=True)
class Call:
    """A call of a function by its ``name``, which is None for anything else.

    COUNT of ``*`` and of a constant have no arguments. ``is_filtered`` says that it has a FILTER of its own.
    """

    name: str | None
    arguments: tuple[Scalar, ...] = ()
    is_distinct: bool = False
    is_filtered: bool = False

    @staticmethod
    def of(scalar: Scalar) -> Call:
        """What an expression calls.

        >>> Call.of(Scalar.parse("sum(distinct a.x)"))
        Call(name='sum', arguments=(Scalar(a.x),), is_distinct=True, is_filtered=False)
        """
        node = scalar.ast()
        is_filtered = isinstance(node, exp.Filter)
        function = node.this if is_filtered else node
        name = function_name(function)
        if name is None:
            return Call(None)
        found = given(function)
        is_distinct = bool(found) and isinstance(found[0], exp.Distinct)
        if is_distinct:
            found[:1] = found[0].expressions
        if name == "count" and len(found) == 1 and isinstance(found[0], (exp.Star, exp.Literal)):
            found = []
        return Call(name, tuple(Scalar(e.copy()) for e in found), is_distinct, is_filtered)
