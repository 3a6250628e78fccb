"""Patterns of dates and times, and intervals, are spelled as DuckDB spells them."""

from __future__ import annotations

import re

from sqlglot import exp

from fivm_dbt.engines.duckdb.casts import by_type
from fivm_dbt.engines.duckdb.unsupported import UnsupportedStatement

_FORMATS = {
    "yyyy": ("%Y", r"\d{4}"), "yy": ("%y", r"\d{2}"),
    "MM": ("%m", r"\d{2}"), "M": ("%-m", r"\d{1,2}"), "MMM": ("%b", None), "MMMM": ("%B", None),
    "dd": ("%d", r"\d{2}"), "d": ("%-d", r"\d{1,2}"), "DDD": ("%j", r"\d{3}"), "D": ("%-j", None),
    "E": ("%a", None), "EEE": ("%a", None), "EEEE": ("%A", None),
    "HH": ("%H", r"\d{2}"), "H": ("%-H", r"\d{1,2}"), "hh": ("%I", None), "h": ("%-I", None), "a": ("%p", None),
    "mm": ("%M", r"\d{2}"), "m": ("%-M", r"\d{1,2}"), "ss": ("%S", r"\d{2}"), "s": ("%-S", r"\d{1,2}"),
    "SSS": ("%g", r"\d{3}"), "SSSSSS": ("%f", r"\d{6}"),
}  # fmt: skip
"""Letters of Spark's patterns: how DuckDB writes and reads them, and what texts Spark reads with them, if that is known
here."""

_PARTS = re.compile(
    r"'(?P<quoted>(?:[^']|'')*)'|(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<other>.)", re.DOTALL
)

_PERIODS = {"MM": "MONTH", "MON": "MONTH", "YYYY": "YEAR", "YY": "YEAR", "Q": "QUARTER", "DD": "DAY"}
_UNITS = ("year", "month", "day", "hour", "minute", "second")
_SEPARATED = re.compile(r"[-: ]")


def as_date(value: exp.Expr) -> exp.Expr:
    """The date of what DuckDB makes a timestamp of and Spark does not."""
    return exp.Cast(this=value.copy(), to=exp.DataType.build("DATE"))


def truncated(node: exp.Expr) -> exp.Expr:
    """``TRUNC(d, unit)`` is a date, ``DATE_TRUNC(unit, ts)`` a timestamp."""
    unit = node.args["unit"].name.upper()
    call = exp.Anonymous(
        this="DATE_TRUNC",
        expressions=[exp.Literal.string(_PERIODS.get(unit, unit).lower()), node.this.copy()],
    )
    return as_date(call) if isinstance(node, exp.DateTrunc) else call


def duckdb_format(pattern: str) -> tuple[str, str | None] | None:
    """DuckDB's format for a pattern of Spark, and the regular expression of what Spark reads by it.

    None for a pattern with letters that are not known here, no expression where reading with one is not.

    >>> duckdb_format("dd.MM.yyyy")
    ('%d.%m.%Y', '\\\\d{2}\\\\.\\\\d{2}\\\\.\\\\d{4}')
    >>> duckdb_format("d MMM 'at' HH:mm")
    ('%-d %b at %H:%M', None)
    """
    format_, texts = "", []
    for part in _PARTS.finditer(pattern):
        if part["letters"]:
            known = _FORMATS.get(part["letters"])
            if known is None:
                return None
            format_ += known[0]
            texts.append(known[1])
            continue
        literal = part["other"] or part["quoted"].replace("''", "'") or "'"
        if literal in "[]{}#":
            return None
        format_ += literal.replace("%", "%%")
        texts.append(re.escape(literal))
    return format_, None if None in texts else "".join(t for t in texts if t is not None)


def to_duckdb_time(node: exp.Anonymous) -> exp.Expr | None:
    """DATE_FORMAT, TO_DATE and TO_TIMESTAMP with a pattern; None for other calls.

    What does not fit the pattern is NULL in Spark; DuckDB would read it more generously.
    """
    name = node.name.upper()
    if name not in ("DATE_FORMAT", "TO_DATE", "TO_TIMESTAMP") or len(node.expressions) != 2:
        return None
    value, pattern = node.expressions
    if not (isinstance(pattern, exp.Literal) and pattern.is_string):
        raise UnsupportedStatement(f"{name} with a pattern that is no literal")
    known = duckdb_format(pattern.name)
    if known is None:
        raise UnsupportedStatement(f"{name} with the pattern {pattern.name}")
    format_, text = exp.Literal.string(known[0]), known[1]
    if name == "DATE_FORMAT":
        moment = by_type("SPARK_AS_TIMESTAMP", value)
        return exp.Anonymous(this="STRFTIME", expressions=[moment, format_])
    if text is None:
        raise UnsupportedStatement(f"{name} with the pattern {pattern.name}")
    given = exp.Cast(this=value.copy(), to=exp.DataType.build("TEXT"))
    fits = exp.Anonymous(this="REGEXP_FULL_MATCH", expressions=[given, exp.Literal.string(text)])
    read: exp.Expr = exp.Anonymous(this="TRY_STRPTIME", expressions=[given.copy(), format_])
    if name == "TO_DATE":
        read = exp.Cast(this=read, to=exp.DataType.build("DATE"))
    return exp.Case(ifs=[exp.If(this=fits, true=read)])


def to_duckdb_interval(node: exp.Expr) -> exp.Expr:
    """``INTERVAL '1 2:03' DAY TO MINUTE``, which DuckDB does not read, with a unit for each number.

    >>> import sqlglot
    >>> to_duckdb_interval(sqlglot.parse_one("interval '-1 2:03' day to minute", dialect="spark")).sql("duckdb")
    "CAST('-1 day -2 hour -03 minute' AS INTERVAL)"
    """
    span, value = node.args.get("unit"), node.this
    is_negated = isinstance(value, exp.Neg)
    value = value.this if is_negated else value
    if not isinstance(span, exp.IntervalSpan) or not isinstance(value, exp.Literal):
        return node
    first, last = (_UNITS.index(part.name.lower()) for part in (span.this, span.expression))
    text = value.name.strip()
    is_negated ^= text.startswith("-")
    numbers = _SEPARATED.split(text.lstrip("+-"))
    units = _UNITS[first : last + 1]
    if len(numbers) != len(units):
        return node
    sign = "-" if is_negated else ""
    spelled = " ".join(f"{sign}{number} {unit}" for number, unit in zip(numbers, units, strict=True))
    return exp.Cast(this=exp.Literal.string(spelled), to=exp.DataType.build("INTERVAL"))
