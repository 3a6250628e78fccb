"""From a node of the syntax tree to the function that it calls."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.functions.aggregates import AGGREGATES
from fivm_dbt.functions.function import Function

TABLE: tuple[Function, ...] = AGGREGATES
"""All functions of Spark that are known."""

_READ_AS: dict[type[exp.Expr], str] = {
    exp.ApproxDistinct: "approx_count_distinct",
    exp.ApproxQuantile: "approx_percentile",
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.ArrayAgg: "collect_list",
    exp.ArrayUniqueAgg: "collect_set",
    exp.BitwiseAndAgg: "bit_and",
    exp.BitwiseOrAgg: "bit_or",
    exp.BitwiseXorAgg: "bit_xor",
    exp.GroupConcat: "listagg",
    exp.LogicalAnd: "bool_and",
    exp.LogicalOr: "bool_or",
    exp.Quantile: "percentile",
    exp.Variance: "var_samp",
    exp.VariancePop: "var_pop",
}
"""What sqlglot has classes of other names for."""

_BY_NAME: dict[str, Function] = {name: function for function in TABLE for name in function.names}
_BY_NAME |= {
    kind.sql_name().lower(): _BY_NAME[name] for kind, name in _READ_AS.items() if issubclass(kind, exp.Func)
}


def function_name(node: exp.Expr) -> str | None:
    """The name of a function call in lower case, as sqlglot calls it; None for other nodes."""
    if isinstance(node, exp.Anonymous):
        return str(node.name).lower()
    if isinstance(node, exp.Any):
        of_patterns = isinstance(node.parent, (exp.Like, exp.ILike))
        return None if of_patterns or isinstance(node.this, exp.Query) else "any"
    if isinstance(node, exp.Func) and not isinstance(node, (exp.Connector, exp.Cast)):
        return str(node.sql_name()).lower()
    return None


def find(node: exp.Expr) -> Function | None:
    """The row of the function that ``node`` calls, None for other nodes and for functions that are not in the table.

    >>> import sqlglot
    >>> find(sqlglot.parse_one("approx_count_distinct(a)", dialect="spark")).nothing
    '0'
    """
    return _BY_NAME.get(_READ_AS.get(type(node)) or function_name(node) or "")


def named(name: str) -> Function | None:
    """The row of a function by one of its names, sqlglot's among them."""
    return _BY_NAME.get(name.lower())
