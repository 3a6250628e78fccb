"""Some aggregates differ in DuckDB: here they are expressions over DuckDB's own."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from fivm_dbt.engines.duckdb.orders import extreme

MACROS = (
    # The mean is bound by a lambda, so that it is computed once and not for each element.
    "CREATE MACRO central_moment(l, k) AS list_transform([list_avg(l)], "
    "lambda m: list_sum(list_transform(l, lambda x: (x - m) ** k)))[1]",
    "CREATE MACRO spark_skewness(l) AS CASE WHEN list_contains(l, 'nan'::DOUBLE) THEN 'nan'::DOUBLE "
    "WHEN list_var_pop(l) <> 0 THEN sqrt(list_count(l)) * central_moment(l, 3) / sqrt(central_moment(l, 2) ** 3) END",
    "CREATE MACRO spark_kurtosis(l) AS CASE WHEN list_contains(l, 'nan'::DOUBLE) THEN 'nan'::DOUBLE "
    "WHEN list_var_pop(l) <> 0 THEN list_count(l) * central_moment(l, 4) / central_moment(l, 2) ** 2 - 3 END",
)
"""Skewness and kurtosis of a population that is a list: with ``m_k = Σ (x - x̄)^k`` they are ``√n·m_3 / √(m_2³)`` and
``n·m_4 / m_2² - 3``. NULL without variation, which DuckDB's VAR_POP tells exactly: it is zero for equal values."""

Around = Callable[[exp.Expr], exp.Expr]
"""Puts the FILTER and OVER of the call that is replaced around another one."""


def to_duckdb_aggregate(node: exp.Expr) -> exp.Expr:
    """A call with its FILTER and its OVER; the same node where DuckDB has Spark's meaning.

    >>> import sqlglot
    >>> call = sqlglot.parse_one("skewness(a) filter (where b) over (partition by c)", dialect="spark")
    >>> to_duckdb_aggregate(call).sql("duckdb")
    'SPARK_SKEWNESS(LIST(CAST(a AS DOUBLE)) FILTER(WHERE b) OVER (PARTITION BY c))'
    """
    outer = node.parent
    if isinstance(outer, (exp.Filter, exp.Window)) and outer.this is node:
        return node  # its turn comes with what stands around it
    inner = node
    while isinstance(inner, (exp.Filter, exp.Window)):
        inner = inner.this
    rule = RULES.get(type(inner))
    return node if rule is None else rule(inner, lambda call: _around(node, call))


def _around(node: exp.Expr, call: exp.Expr) -> exp.Expr:
    if not isinstance(node, (exp.Filter, exp.Window)):
        return call
    found = node.copy()
    inner = found
    while isinstance(inner.this, (exp.Filter, exp.Window)):
        inner = inner.this
    inner.set("this", call)
    return found


def _collected(call: exp.Expr, around: Around) -> exp.Expr:
    """Of no values Spark collects an empty array, DuckDB NULL."""
    return exp.Coalesce(this=around(call.copy()), expressions=[exp.Array()])


def _over_list(name: str) -> Callable[[exp.Expr, Around], exp.Expr]:
    def rewrite(call: exp.Expr, around: Around) -> exp.Expr:
        double = exp.Cast(this=call.this.copy(), to=exp.DataType.build("DOUBLE"))
        values = around(exp.Anonymous(this="LIST", expressions=[double]))
        return exp.Anonymous(this=name, expressions=[values])

    return rewrite


def _with_variation(*of: type[exp.Expr]) -> Callable[[exp.Expr, Around], exp.Expr]:
    """NULL, where DuckDB has NaN, if the variables that the result is divided by do not vary."""

    def rewrite(call: exp.Expr, around: Around) -> exp.Expr:
        sides = {"this": call.this, "expression": call.expression}
        varies = [
            exp.NEQ(
                this=around(kind(**{k: v.copy() for k, v in sides.items()})), expression=exp.Literal.number(0)
            )
            for kind in of
        ]
        return exp.Case(ifs=[exp.If(this=exp.and_(*varies), true=around(call.copy()))])

    return rewrite


def _with_nan(call: exp.Expr, around: Around) -> exp.Expr:
    """Of NaN alone it is NaN, where DuckDB says that one value does not vary."""
    double = exp.Cast(this=call.this.copy(), to=exp.DataType.build("DOUBLE"))
    is_one = exp.EQ(this=around(exp.Count(this=call.this.copy())), expression=exp.Literal.number(1))
    value = around(exp.Max(this=double))
    nothing = exp.Sub(this=value, expression=value.copy())  # 0, but of NaN NaN
    return exp.Case(ifs=[exp.If(this=is_one, true=nothing)], default=around(call.copy()))


RULES: dict[type[exp.Expr], Callable[[exp.Expr, Around], exp.Expr]] = {
    exp.ArrayAgg: _collected,
    exp.ArrayUniqueAgg: _collected,
    exp.Skewness: _over_list("SPARK_SKEWNESS"),
    exp.Kurtosis: _over_list("SPARK_KURTOSIS"),
    exp.VariancePop: _with_nan,
    exp.StddevPop: _with_nan,
    exp.Corr: _with_variation(exp.RegrSxx, exp.RegrSyy),
    exp.RegrSlope: _with_variation(exp.RegrSxx),
    exp.RegrIntercept: _with_variation(exp.RegrSxx),
    exp.Max: extreme,
    exp.Min: extreme,
}
