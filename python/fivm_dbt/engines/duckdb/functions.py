"""Functions and types differ between DuckDB and Spark: rewrites and macros bridge the difference."""

from __future__ import annotations

from collections.abc import Callable

import sqlglot
from sqlglot import exp

from fivm_dbt.engines.duckdb import aggregates, casts, orders, predicates, scalars
from fivm_dbt.engines.duckdb.aggregates import to_duckdb_aggregate
from fivm_dbt.engines.duckdb.casts import to_duckdb_cast
from fivm_dbt.engines.duckdb.lambdas import (
    to_duckdb_aggregate_array,
    to_duckdb_arrays_zip,
    to_duckdb_zip,
    with_index_from_one,
)
from fivm_dbt.engines.duckdb.orders import order_key
from fivm_dbt.engines.duckdb.pivot import without_pivots
from fivm_dbt.engines.duckdb.predicates import to_array_condition, with_known_membership
from fivm_dbt.engines.duckdb.scalars import to_duckdb_call
from fivm_dbt.engines.duckdb.shapes import to_duckdb_select, with_names
from fivm_dbt.engines.duckdb.times import as_date, to_duckdb_interval, to_duckdb_time, truncated
from fivm_dbt.engines.duckdb.unsupported import UnsupportedStatement
from fivm_dbt.engines.duckdb.windows import without_time_windows
from fivm_dbt.ir.dialect import as_sqlglot_reads
from fivm_dbt.sql.named_arguments import with_arguments_in_order

MACROS = (
    "CREATE MACRO pmod(a, n) AS ((a % n) + n) % n",
    "CREATE MACRO spark_series(a, b, step) AS CASE WHEN a IS NULL OR b IS NULL OR step IS NULL THEN NULL "
    "WHEN a = b THEN [a::BIGINT] WHEN (a < b AND step > 0) OR (a > b AND step < 0) "
    "THEN generate_series(a::BIGINT, b::BIGINT, step::BIGINT) ELSE error('Illegal sequence boundaries') END",
    "CREATE MACRO raise_error(message) AS error(message)",
    "CREATE MACRO array_repeat(x, n) AS list_transform(range(n), lambda i: x)",
    "CREATE MACRO assert_true(condition) AS CASE WHEN condition THEN NULL ELSE error('assertion failed') END",
    "CREATE MACRO timestamp_seconds(n) AS make_timestamp(n * 1000000)",
    "CREATE MACRO timestamp_micros(n) AS make_timestamp(n)",
    *aggregates.MACROS,
    *orders.MACROS,
    *casts.MACROS,
    *scalars.MACROS,
    *predicates.MACROS,
)

SETTINGS = ("SET threads = 1", "SET error_on_division_by_zero = false")

_OPTIMIZERS = (
    "expression_rewriter,filter_pullup,empty_result_pullup,cte_filter_pusher,regex_range,in_clause,deliminator,"
    "unnest_rewriter,unused_columns,statistics_propagation,common_subexpressions,common_aggregate,join_order,"
    "column_lifetime,limit_pushdown,row_group_pruner,top_n,build_side_probe_side,compressed_materialization,"
    "duplicate_groups,reorder_filter,join_filter_pushdown,late_materialization,cte_inlining"
)
NO_OPTIMIZER = f"SET disabled_optimizers = '{_OPTIMIZERS}'"
"""For tables of a few dozen rows, where optimising takes longer than running: a third of the time."""


_SYNONYMS = {"some": "BOOL_OR", "every": "BOOL_AND", "try_sum": "SUM", "try_avg": "AVG"}


def duckdb_text(ast: exp.Expr) -> str:
    """DuckDB's SQL for a Spark tree, which is changed."""
    ast = without_time_windows(without_pivots(with_arguments_in_order(ast)))
    ast = to_duckdb_functions(with_known_membership(ast))
    return ast.sql(dialect="duckdb", copy=False, unsupported_level=sqlglot.ErrorLevel.IGNORE)


def to_duckdb_functions(ast: exp.Expr) -> exp.Expr:
    """The tree with Spark's meaning spelled for DuckDB. Changes ``ast`` in place and returns it.

    >>> to_duckdb_functions(sqlglot.parse_one("cast(1.5 as int)", dialect="spark")).sql("duckdb")
    'SPARK_AS_INTEGER(1.5)'
    """
    for node in reversed(list(ast.walk())):
        rewrite = _REWRITES.get(type(node))
        if rewrite is None:
            continue
        new = rewrite(node)
        if new is node:
            continue
        if node is ast:
            ast = new
        else:
            node.replace(new)
    return ast


def _data_type(node: exp.Expr) -> exp.Expr:
    """Spark's TIMESTAMP is an instant, shown in the session's time zone; all our sessions are in UTC."""
    if node.this in (exp.DType.TIMESTAMPTZ, exp.DType.TIMESTAMPLTZ, exp.DType.TIMESTAMPNTZ):
        return exp.DataType(this=exp.DType.TIMESTAMP)
    return node


def _integer_division(node: exp.Expr) -> exp.Expr:
    quotient = exp.IntDiv(this=node.this.copy(), expression=node.expression.copy())
    return exp.TryCast(this=exp.Trunc(this=quotient), to=exp.DataType.build("BIGINT"))


def _count(node: exp.Expr) -> exp.Expr:
    """``COUNT(a, b)`` counts the rows in which no argument is NULL."""
    if not node.expressions:
        return node
    arguments = [node.this, *node.expressions]
    given = [exp.Not(this=exp.Is(this=a.copy(), expression=exp.Null())) for a in arguments]
    return exp.Count(this=exp.Case(ifs=[exp.If(this=exp.and_(*given), true=exp.Literal.number(1))]))


def _regr_count(node: exp.Expr) -> exp.Expr:
    """DuckDB's REGR_COUNT is unsigned, so that one could not subtract from it."""
    return _count(exp.Count(this=node.this.copy(), expressions=[node.expression.copy()]))


def _count_if(node: exp.Expr) -> exp.Expr:
    """DuckDB's COUNT_IF over nothing but NULLs is NULL, Spark's is 0."""
    case = exp.Case(ifs=[exp.If(this=node.this.copy(), true=exp.Literal.number(1))])
    return exp.Count(this=case)


def _renamed(name: str) -> Callable[[exp.Expr], exp.Expr]:
    """The same arguments to another function."""

    def rewrite(node: exp.Expr) -> exp.Expr:
        return exp.Anonymous(this=name, expressions=[e.copy() for e in node.iter_expressions()])

    return rewrite


def _by(name: str) -> Callable[[exp.Expr], exp.Expr]:
    """MAX_BY and MIN_BY; the value of the last row may be NULL."""

    def rewrite(node: exp.Expr) -> exp.Expr:
        value, by, *number = (e.copy() for e in node.iter_expressions())
        return exp.Anonymous(this=name, expressions=[value, order_key(by) or by, *number])

    return rewrite


def _any(node: exp.Expr) -> exp.Expr:
    return node if isinstance(node.parent, (exp.Like, exp.ILike)) else _renamed("BOOL_OR")(node)


def _double(value: exp.Expr) -> exp.Expr:
    return exp.Cast(this=value.copy(), to=exp.DataType.build("DOUBLE"))


def _quantile(node: exp.Expr) -> exp.Expr:
    """Spark interpolates between doubles, whatever the type; DuckDB rounds between decimals."""
    return exp.Anonymous(this="QUANTILE_CONT", expressions=[_double(node.this), node.args["quantile"].copy()])


def _median(node: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="MEDIAN", expressions=[_double(node.this)])


def _mode(node: exp.Expr) -> exp.Expr:
    """``MODE(x, TRUE)`` is the least of the most frequent values; DuckDB gives the first that it meets."""
    if not node.args.get("deterministic"):
        return node
    return exp.Mode(this=exp.Order(this=node.this.copy(), expressions=[exp.Ordered(this=node.this.copy())]))


_PERCENTILES = {"percentile_cont": "QUANTILE_CONT", "percentile_disc": "QUANTILE_DISC"}


def _within_group(node: exp.Expr) -> exp.Expr:
    """``PERCENTILE_CONT(q) WITHIN GROUP (ORDER BY x)``; a share below 0 counts from the end in DuckDB."""
    call = node.this
    if isinstance(call, exp.Mode):
        (ordered,) = node.expression.expressions
        return exp.Mode(this=exp.Order(this=ordered.this.copy(), expressions=[ordered.copy()]))
    if not isinstance(call, exp.Anonymous) or call.name.lower() not in _PERCENTILES:
        return node
    (share,), (ordered,) = call.expressions, node.expression.expressions
    share = exp.Neg(this=share.copy()) if ordered.args.get("desc") else share.copy()
    return exp.Anonymous(this=_PERCENTILES[call.name.lower()], expressions=[_double(ordered.this), share])


def _collate(node: exp.Expr) -> exp.Expr:
    """DuckDB has another name for the comparison that ignores case."""
    if node.expression.name.upper() == "UTF8_LCASE":
        return exp.Collate(this=node.this.copy(), expression=exp.Var(this="NOCASE"))
    return node


_EXPLODE_OUTER = sqlglot.parse_one("EXPLODE_OUTER(a)", dialect="spark")  # sqlglot does not export its class


def _exploded(node: exp.Expr) -> exp.Expr:
    """EXPLODE_OUTER in a select list: one row with NULL for an array that is empty or NULL."""
    if not isinstance(node, exp.ExplodeOuter) or isinstance(node.parent, exp.Lateral):
        return node
    has_values = exp.GT(
        this=exp.Anonymous(this="LEN", expressions=[node.this.copy()]), expression=exp.Literal.number(0)
    )
    array = exp.Case(
        ifs=[exp.If(this=has_values, true=node.this.copy())], default=exp.Array(expressions=[exp.Null()])
    )
    return exp.Anonymous(this="UNNEST", expressions=[array])


def _series(node: exp.Expr) -> exp.Expr:
    """Without a step Spark's SEQUENCE of numbers counts downwards by itself, and with one that leads away it stops;
    DuckDB would have no numbers.

    A multiplicity that was just summed up is a HUGEINT, of which DuckDB makes no series.
    """
    start, step = node.args["start"], node.args.get("step")
    if isinstance(step, exp.Interval) and step.text("unit").upper().rstrip("S") in (
        "MONTH",
        "QUARTER",
        "YEAR",
    ):
        raise UnsupportedStatement("SEQUENCE by months")
    if step is not None and step.find(exp.Interval):
        return node
    if step is not None:
        return exp.Anonymous(this="SPARK_SERIES", expressions=[start, node.args["end"], step])
    ends = [start.copy(), node.args["end"].copy()]
    is_upwards = exp.LTE(this=exp.paren(ends[0]), expression=exp.paren(ends[1]))
    ifs = [exp.If(this=is_upwards, true=exp.Literal.number(1))]
    step = exp.Case(ifs=ifs, default=exp.Neg(this=exp.Literal.number(1)))
    first, last = (exp.Cast(this=end, to=exp.DataType.build("BIGINT")) for end in ends)
    return exp.GenerateSeries(this=node.this, start=first, end=last, step=step)


def _anonymous(node: exp.Expr) -> exp.Expr:
    """Names of Spark that sqlglot does not know, or knows too well.

    ``XXHASH64`` must be deterministic, and the same for equal values of several types: hash their text.
    """
    if node.name.lower() == "forall":
        return to_array_condition(node)
    if node.name.lower() == "zip_with":
        return to_duckdb_zip(node)
    if isinstance(node, exp.Anonymous):
        known = to_duckdb_time(node) or to_duckdb_call(node)
        if known is not None:
            return known
    if node.name.lower() in _SYNONYMS:
        return exp.Anonymous(this=_SYNONYMS[node.name.lower()], expressions=node.expressions)
    if node.name.lower() in ("listagg", "string_agg"):
        distinct = node.expressions[0]
        if isinstance(distinct, exp.Distinct) and len(distinct.expressions) == 2:
            # The parser takes what stands between the values for one of them.
            node.append("expressions", distinct.expressions[1].pop())
        if len(node.expressions) == 1:
            node.append("expressions", exp.Literal.string(""))  # DuckDB would put commas
    if node.name.lower() != "xxhash64":
        known = as_sqlglot_reads(node)
        rewrite = _REWRITES.get(type(known)) if known is not node else None
        return known if rewrite is None else rewrite(known)
    texts = [exp.Cast(this=a.copy(), to=exp.DataType.build("TEXT")) for a in node.expressions]
    return exp.Cast(
        this=exp.BitwiseRightShift(
            this=exp.Anonymous(this="HASH", expressions=texts), expression=exp.Literal.number(1)
        ),
        to=exp.DataType.build("BIGINT"),
    )


def _sorted(node: exp.Expr) -> exp.Expr:
    """SORT_ARRAY has NULLs before all values, or after them downwards, ARRAY_SORT at the end."""
    if node.args.get("expression") is not None:
        raise UnsupportedStatement("ARRAY_SORT with an order of its own")
    is_down, is_first = node.args.get("asc") == exp.false(), node.args.get("nulls_first") == exp.true()
    order = ["DESC" if is_down else "ASC", "NULLS FIRST" if is_first else "NULLS LAST"]
    return exp.Anonymous(
        this="SPARK_SORTED", expressions=[node.this.copy(), *(exp.Literal.string(part) for part in order)]
    )


def _ignoring_nulls(node: exp.Expr) -> exp.Expr:
    """FIRST and LAST of a window, of which DuckDB's generator leaves IGNORE NULLS out."""
    names = {exp.First: exp.FirstValue, exp.Last: exp.LastValue}
    name = names.get(type(node.this)) if isinstance(node.parent, exp.Window) else None
    return node if name is None else exp.IgnoreNulls(this=name(this=node.this.this.copy()))


def _select(node: exp.Expr) -> exp.Expr:
    return to_duckdb_select(node) if isinstance(node, exp.Select) else node


def _named_range(node: exp.Expr) -> exp.Expr:
    """Spark calls the column of ``range`` id."""
    call, alias = node.this, node.args.get("alias")
    is_range = isinstance(call, exp.Anonymous) and call.name.lower() == "range"
    if is_range and not (alias is not None and alias.args.get("columns")):
        name = alias.this if alias is not None and alias.this else exp.to_identifier("range")
        node.set("alias", exp.TableAlias(this=name, columns=[exp.to_identifier("id")]))
        call.set("expressions", call.expressions[:3])
    return node


def _shifted(node: exp.Expr) -> exp.Expr:
    """FROM_UTC_TIMESTAMP, which sqlglot reads as AT TIME ZONE: the local time in a zone at an instant."""
    instant = exp.Anonymous(this="TIMEZONE", expressions=[exp.Literal.string("UTC"), node.this.copy()])
    return exp.Anonymous(this="TIMEZONE", expressions=[node.args["zone"].copy(), instant])


_REWRITES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.AtTimeZone: _shifted,
    exp.Table: _named_range,
    exp.DataType: _data_type,
    exp.Cast: to_duckdb_cast,
    exp.TryCast: to_duckdb_cast,
    exp.IntDiv: _integer_division,
    exp.DateTrunc: truncated,
    exp.TimestampTrunc: truncated,
    exp.TsOrDsAdd: as_date,
    exp.AddMonths: as_date,
    exp.Any: _any,
    exp.ArgMax: _by("ARG_MAX_NULL"),
    exp.ArgMin: _by("ARG_MIN_NULL"),
    exp.ArraysZip: to_duckdb_arrays_zip,
    exp.ArrayFilter: with_index_from_one,
    exp.ArraySort: _sorted,
    exp.Collate: _collate,
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.RegrCount: _regr_count,
    exp.Anonymous: _anonymous,
    exp.GenerateSeries: _series,
    exp.IgnoreNulls: _ignoring_nulls,
    exp.Quantile: _quantile,
    exp.Reduce: to_duckdb_aggregate_array,
    exp.Transform: with_index_from_one,
    exp.Median: _median,
    exp.Mode: _mode,
    exp.WithinGroup: _within_group,
    exp.Filter: to_duckdb_aggregate,
    exp.Window: to_duckdb_aggregate,
    **dict.fromkeys(aggregates.RULES, to_duckdb_aggregate),
    exp.Exists: to_array_condition,
    exp.Interval: to_duckdb_interval,
    type(_EXPLODE_OUTER): _exploded,
    exp.Select: _select,
    exp.Values: with_names,
    **orders.RULES,
    **scalars.RULES,
}
