"""Spark's casts (ANSI off) are macros in DuckDB, one per target, chosen by the type when a query is bound.

The rules, after Spark's ``Cast``: texts are trimmed of white space and control characters; what is no value is NULL;
an integer that does not fit keeps its low bits, a double is cut off at the ends of the type and NaN is 0; a double
becomes a decimal by its shortest text; numbers are timestamps in seconds. DuckDB picks the overload without a type for
floating numbers and decimals alone: those with a type are for what converts to it implicitly.
"""

from __future__ import annotations

import re

from sqlglot import exp

from fivm_dbt.engines.duckdb.unsupported import UnsupportedStatement

_SPACE = r"[\x00-\x20\x7f]*"
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_BITS = {exp.DType.TINYINT: 8, exp.DType.SMALLINT: 16, exp.DType.INT: 32, exp.DType.BIGINT: 64}
_NAMES = {8: "TINYINT", 16: "SMALLINT", 32: "INTEGER", 64: "BIGINT"}
_FLOATING = "typeof(a) IN ('DOUBLE', 'FLOAT')"


def refusal(what: str) -> str:
    """SQL that stops a query which DuckDB cannot evaluate as Spark does."""
    return f"error('DuckDB has another result than Spark: {what}')"


def _whole_number_macro(bits: int) -> str:
    name, half = _NAMES[bits], 2 ** (bits - 1)
    # A double to a narrow type goes over INT, as the JVM does.
    most = 2 ** (max(bits, 32) - 1)
    wide = _NAMES[max(bits, 32)]
    wrapped = f"CAST(((({{}} + {half}) % {2 * half} + {2 * half}) % {2 * half}) - {half} AS {name})"
    in_range = f"CASE WHEN -{half} <= a AND a < {half} THEN CAST(a AS {name}) ELSE {wrapped.format('a')} END"
    double = "TRY_CAST(a AS DOUBLE)"
    cut = (
        f"CASE WHEN isnan({double}) THEN 0 WHEN {double} >= {most} THEN {most - 1}::{wide} "
        f"WHEN {double} <= -{most} THEN (-{most})::HUGEINT ELSE CAST(trunc({double}) AS {wide}) END"
    )
    digits = "TRY_CAST(split_part(CAST(a AS VARCHAR), '.', 1) AS HUGEINT)"
    any_ = f"CASE WHEN {_FLOATING} THEN {cut} ELSE {digits} END"
    text = rf"NULLIF(regexp_extract(a, '^{_SPACE}([+-]?\d+)(?:\.\d*)?{_SPACE}$', 1), '')"
    part = rf"CASE WHEN regexp_full_match(a, '{_SPACE}[+-]?\.\d*{_SPACE}') AND a LIKE '%.%' THEN 0 END"
    seconds = "epoch_us(a) // 1000000 - CASE WHEN epoch_us(a) % 1000000 < 0 THEN 1 ELSE 0 END"
    same = ["(a BIGINT) AS a"] if bits == 64 else []
    overloads = [
        *same,
        f"(a) AS {wrapped.format(f'({any_})::HUGEINT')}",
        f"(a HUGEINT) AS {in_range}",
        f"(a BOOLEAN) AS TRY_CAST(a AS {name})",
        f"(a VARCHAR) AS COALESCE(TRY_CAST({text} AS {name}), {part})",
        f"(a DATE) AS CAST(NULL AS {name})",
        f"(a TIMESTAMP) AS {wrapped.format(f'CAST({seconds} AS HUGEINT)')}",
    ]
    return f"CREATE MACRO spark_as_{name.lower()}{', '.join(overloads)}"


_TRIMMED = f"regexp_extract(a, '^{_SPACE}(.*?){_SPACE}$', 1, 's')"
_AS_NUMBER = f"NULLIF(regexp_extract(a, '^{_SPACE}({_NUMBER})[dDfF]?{_SPACE}$', 1), '')"
_AS_DECIMAL = f"NULLIF(regexp_extract(a, '^{_SPACE}({_NUMBER}){_SPACE}$', 1), '')"
_DATE = r"(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?"
_MOMENT = (
    r"(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](?:(\d{1,2})(?::(\d{1,2})(?::(\d{1,2})(?:\.(\d{0,6})\d*)?)?)?)?"
    r"(?: ?(?:Z|UTC|[+-]00:?00))?)?)?)?"
)


def _part(pattern: str, number: int, missing: str, width: int = 2) -> str:
    found = f"NULLIF(regexp_extract(a, '^{_SPACE}{pattern}{_SPACE}$', {number}), '')"
    return f"lpad(COALESCE({found}, '{missing}'), {width}, '0')"


def _moment_text() -> str:
    day = f"regexp_extract(a, '^{_SPACE}{_MOMENT}', 1)"
    date = f"{day} || '-' || {_part(_MOMENT, 2, '1')} || '-' || {_part(_MOMENT, 3, '1')}"
    time = " || ':' || ".join(_part(_MOMENT, number, "0") for number in (4, 5, 6))
    return f"{date} || ' ' || {time} || '.' || COALESCE(NULLIF(regexp_extract(a, '^{_SPACE}{_MOMENT}', 7), ''), '0')"


_SCIENTIFIC = (
    # t is DuckDB's text of a positive double: 1e+20, 1.5e-07, 123456789.125, 0.0001
    "CREATE MACRO spark_scientific(t) AS CASE WHEN t LIKE '%e%' THEN "
    "split_part(t, 'e', 1) || CASE WHEN split_part(t, 'e', 1) LIKE '%.%' THEN '' ELSE '.0' END "
    "|| 'E' || CAST(CAST(split_part(t, 'e', 2) AS INTEGER) AS VARCHAR) "
    "WHEN t LIKE '0.%' THEN spark_mantissa(ltrim(split_part(t, '.', 2), '0')) || 'E-' || "
    "CAST(len(split_part(t, '.', 2)) - len(ltrim(split_part(t, '.', 2), '0')) + 1 AS VARCHAR) "
    "ELSE spark_mantissa(replace(t, '.', '')) || 'E' || CAST(len(split_part(t, '.', 1)) - 1 AS VARCHAR) END"
)
_MANTISSA = (
    "CREATE MACRO spark_mantissa(t) AS t[1] || '.' || CASE WHEN rtrim(t[2:], '0') = '' THEN '0' "
    "ELSE rtrim(t[2:], '0') END"
)
_DOUBLE_TEXT = (
    "CREATE MACRO spark_double_text(t) AS CASE lower(t) WHEN 'nan' THEN 'NaN' WHEN 'inf' THEN 'Infinity' "
    "WHEN '-inf' THEN '-Infinity' ELSE CASE WHEN CAST(t AS DOUBLE) = 0 OR "
    "(abs(CAST(t AS DOUBLE)) >= 1e-3 AND abs(CAST(t AS DOUBLE)) < 1e7) THEN t "
    "ELSE CASE WHEN t LIKE '-%' THEN '-' ELSE '' END || spark_scientific(ltrim(t, '-')) END END"
)
_DECIMAL_TEXT = (
    # As java.math.BigDecimal: without an exponent down to the sixth digit.
    "CREATE MACRO spark_decimal_text(t) AS CASE WHEN len(split_part(t, '.', 2)) <= 6 OR "
    "abs(CAST(t AS DOUBLE)) >= 1e-6 THEN t ELSE CASE WHEN t LIKE '-%' THEN '-' ELSE '' END || "
    "CASE WHEN ltrim(split_part(t, '.', 2), '0') = '' THEN '0' ELSE ltrim(split_part(t, '.', 2), '0')[1] || "
    "CASE WHEN len(ltrim(split_part(t, '.', 2), '0')) > 1 THEN '.' || ltrim(split_part(t, '.', 2), '0')[2:] "
    "ELSE '' END END || 'E-' || CAST(CASE WHEN ltrim(split_part(t, '.', 2), '0') = '' THEN len(split_part(t, '.', 2)) "
    "ELSE len(split_part(t, '.', 2)) - len(ltrim(split_part(t, '.', 2), '0')) + 1 END AS VARCHAR) END"
)

MACROS = (
    *(_whole_number_macro(bits) for bits in _NAMES),
    r"CREATE MACRO spark_as_whole(a) AS a, "
    rf"(a VARCHAR) AS TRY_CAST(NULLIF(regexp_extract(a, '^{_SPACE}([+-]?\d+){_SPACE}$', 1), '') AS HUGEINT)",
    "CREATE MACRO spark_as_boolean(a) AS TRY_CAST(a AS DOUBLE) <> 0, (a BOOLEAN) AS a, (a HUGEINT) AS a <> 0, "
    "(a DATE) AS CAST(NULL AS BOOLEAN), (a TIMESTAMP) AS epoch_us(a) <> 0, "
    f"(a VARCHAR) AS CASE WHEN lower({_TRIMMED}) IN ('t', 'true', 'y', 'yes', '1') THEN TRUE "
    f"WHEN lower({_TRIMMED}) IN ('f', 'false', 'n', 'no', '0') THEN FALSE END",
    "CREATE MACRO spark_as_double(a) AS TRY_CAST(a AS DOUBLE), (a DATE) AS CAST(NULL AS DOUBLE), "
    "(a TIMESTAMP) AS epoch_us(a) / 1e6::DOUBLE, "
    f"(a VARCHAR) AS CASE lower({_TRIMMED}) WHEN 'nan' THEN 'nan'::DOUBLE WHEN 'inf' THEN 'inf'::DOUBLE "
    "WHEN '+inf' THEN 'inf'::DOUBLE WHEN 'infinity' THEN 'inf'::DOUBLE WHEN '+infinity' THEN 'inf'::DOUBLE "
    f"WHEN '-inf' THEN '-inf'::DOUBLE WHEN '-infinity' THEN '-inf'::DOUBLE ELSE TRY_CAST({_AS_NUMBER} AS DOUBLE) END",
    "CREATE MACRO spark_as_exact(a) AS CAST(a AS VARCHAR), "
    f"(a VARCHAR) AS {_AS_DECIMAL}, (a BOOLEAN) AS CAST(a AS INTEGER), (a HUGEINT) AS a, "
    "(a DATE) AS CAST(NULL AS INTEGER), (a TIMESTAMP) AS CAST(epoch_us(a) AS DECIMAL(38,6)) / 1000000::DECIMAL(38,0)",
    "CREATE MACRO spark_as_date(a) AS TRY_CAST(a AS DATE), (a VARCHAR) AS "
    f"TRY_CAST(regexp_extract(a, '^{_SPACE}{_DATE}{_SPACE}$', 1, 's') || '-' || {_part(_DATE, 2, '1')} || '-' || "
    f"{_part(_DATE, 3, '1')} AS DATE)",
    "CREATE MACRO spark_as_timestamp(a) AS make_timestamp(CAST(trunc(TRY_CAST(a AS DOUBLE) * 1e6) AS BIGINT)), "
    "(a BOOLEAN) AS make_timestamp(CAST(a AS BIGINT)), "
    "(a HUGEINT) AS make_timestamp(CAST(a * 1000000 AS BIGINT)), (a TIMESTAMP) AS a, "
    rf"(a VARCHAR) AS CASE WHEN regexp_full_match(a, '{_SPACE}{_MOMENT}{_SPACE}') THEN TRY_CAST({_moment_text()} "
    r"AS TIMESTAMP) WHEN regexp_matches(a, '^[\x00-\x20]*T?\d{1,2}:\d') "
    r"OR regexp_matches(a, ':\d+(\.\d+)? *[+A-Za-z-]') "
    f"THEN {refusal('a text with a time zone or without a date as a timestamp')} END",
    _MANTISSA,
    _SCIENTIFIC,
    _DOUBLE_TEXT,
    _DECIMAL_TEXT,
    "CREATE MACRO spark_as_string(a) AS CASE "
    f"WHEN {_FLOATING} THEN spark_double_text(CAST(a AS VARCHAR)) "
    "WHEN typeof(a) LIKE 'DECIMAL%' THEN spark_decimal_text(CAST(a AS VARCHAR)) "
    "ELSE CAST(a AS VARCHAR) END, (a VARCHAR) AS a, (a HUGEINT) AS CAST(a AS VARCHAR), (a BLOB) AS decode(a), "
    "(a BOOLEAN) AS CAST(a AS VARCHAR), (a TIMESTAMP) AS CAST(a AS VARCHAR), (a DATE) AS CAST(a AS VARCHAR)",
)

_PLAIN = {
    exp.DType.DATE: re.compile(r"\d{4}-\d{2}-\d{2}"),
    exp.DType.TIMESTAMP: re.compile(r"\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}:\d{2}(\.\d{1,6})?(\+00:00)?"),
}
_AGGREGATES = frozenset(
    "arg_max_null arg_min_null quantile_cont quantile_disc median list bool_or bool_and sum avg listagg string_agg "
    "mode regr_count max_by min_by try_sum try_avg some every".split()
)
"""Those that are spelled for DuckDB already, or that sqlglot has no class for."""
_SPECIAL = ("epoch", "now", "today", "tomorrow", "yesterday")
_TEXT = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.CHAR)


def to_duckdb_cast(node: exp.Expr) -> exp.Expr:
    """CAST and TRY_CAST. What is NULL, counted, or a literal in the shape that both read alike stays as it is.

    >>> import sqlglot
    >>> to_duckdb_cast(sqlglot.parse_one("cast(a as int)", dialect="spark")).sql("duckdb")
    'SPARK_AS_INTEGER(a)'
    >>> to_duckdb_cast(sqlglot.parse_one("cast('2024-01-01' as date)", dialect="spark")).sql("duckdb")
    "TRY_CAST('2024-01-01' AS DATE)"
    """
    to, operand = node.args["to"], node.this
    if isinstance(operand, exp.Literal) and operand.name.strip().lower() in _SPECIAL and to.this in _PLAIN:
        raise UnsupportedStatement(f"CAST('{operand.name}' AS {to.sql('spark')})")
    plain = exp.TryCast(this=operand.copy(), to=to.copy())
    if _is_plain(operand, to):
        return plain
    is_try = bool(node.args.get("safe"))
    if to.this in _BITS:
        if is_try:
            return exp.TryCast(this=by_type("spark_as_whole", operand), to=to.copy())
        return by_type(f"spark_as_{_NAMES[_BITS[to.this]].lower()}", operand)
    if to.this is exp.DType.BOOLEAN:
        return by_type("spark_as_boolean", operand)
    if to.this is exp.DType.DOUBLE:
        return by_type("spark_as_double", operand)
    if to.this is exp.DType.FLOAT:
        return exp.TryCast(this=by_type("spark_as_double", operand), to=to.copy())
    if to.this is exp.DType.DECIMAL:
        return exp.TryCast(this=by_type("spark_as_exact", operand), to=to.copy())
    if to.this is exp.DType.DATE:
        return by_type("spark_as_date", operand)
    if to.this is exp.DType.TIMESTAMP:
        return by_type("spark_as_timestamp", operand)
    if to.this in _TEXT and not to.expressions:
        return by_type("spark_as_string", operand)
    if to.this is exp.DType.BINARY:
        return by_type("spark_as_binary", operand)
    if to.is_type("interval") or isinstance(to.this, exp.Interval):
        raise UnsupportedStatement(f"CAST AS {to.sql('spark')}")
    return plain


def _is_plain(operand: exp.Expr, to: exp.DataType) -> bool:
    if isinstance(operand, exp.Neg):
        operand = operand.this
    if isinstance(operand, (exp.Null, exp.Count)) or operand.name.lower() == "raise_error":
        return True
    if not isinstance(operand, exp.Literal):
        return False
    if operand.is_string:
        shape = _PLAIN.get(to.this)
        return to.this in _TEXT or (shape is not None and shape.fullmatch(operand.name) is not None)
    return (
        operand.is_int and len(operand.name) < 3 and to.this not in (exp.DType.TIMESTAMP, exp.DType.BOOLEAN)
    )


def by_type(name: str, operand: exp.Expr) -> exp.Expr:
    """A call of a macro with overloads. DuckDB does not know the type of an aggregate that is its argument, but that of
    a variable which is bound to it. And it puts the argument wherever the macro has its parameter: macros in macros
    become texts that take long to read.

    >>> import sqlglot
    >>> by_type("f", sqlglot.parse_one("max(a)")).sql("duckdb")
    'LIST_TRANSFORM([MAX(a)], LAMBDA v : F(v))[1]'
    """
    parts = operand.walk(prune=lambda p: isinstance(p, exp.Query))
    if not any(_is_aggregate(part) or _is_macro(part) for part in parts):
        return exp.Anonymous(this=name, expressions=[operand.copy()])
    variable = exp.to_identifier("v")
    call = exp.Anonymous(this=name, expressions=[variable.copy()])
    each = exp.Lambda(this=call, expressions=[variable])
    bound = exp.Transform(this=exp.Array(expressions=[operand.copy()]), expression=each)
    return exp.Bracket(this=bound, expressions=[exp.Literal.number(1)], offset=1)


def _is_macro(node: exp.Expr) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower().startswith("spark_")


def _is_aggregate(node: exp.Expr) -> bool:
    if isinstance(node, exp.Anonymous):
        return node.name.lower() in _AGGREGATES
    return isinstance(node, (exp.AggFunc, exp.Window, exp.WithinGroup, exp.Filter))
