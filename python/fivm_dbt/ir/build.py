"""Expressions are built from others by name, so that whoever plans writes no SQL."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.ir.scalar import Scalar, grouped, identifier

NULL = Scalar(exp.Null())


def text(value: str) -> Scalar:
    """A string.

    >>> text("it's").sql
    "'it\\\\'s'"
    """
    return Scalar(exp.Literal.string(value))


def call(name: str, *arguments: Scalar) -> Scalar:
    """A call that stays as it is written.

    >>> call("UNIX_DATE", Scalar.parse("a.d")).sql
    'UNIX_DATE(a.d)'
    """
    return Scalar(exp.Anonymous(this=name, expressions=[a.ast() for a in arguments]))


def aggregate(name: str, argument: Scalar | None = None) -> Scalar:
    """An aggregate of what its rows have; without an argument of the rows themselves.

    >>> aggregate("max", Scalar.parse("a.x")).sql, aggregate("count").sql
    ('MAX(a.x)', 'COUNT(*)')
    """
    of = exp.Star() if argument is None else argument.ast()
    return Scalar(exp.func(name.upper(), of, dialect="spark"))


def truncated(time: Scalar, unit: str) -> Scalar:
    """The start of the period of a time: of an hour as a timestamp, of a longer one as a date.

    >>> truncated(Scalar.parse("a.t"), "hour").sql, truncated(Scalar.parse("a.t"), "month").sql
    ("DATE_TRUNC('HOUR', a.t)", "TRUNC(a.t, 'MM')")
    """
    word = exp.Literal.string({"month": "MM"}.get(unit, unit.upper()))
    if unit == "hour":
        return Scalar(exp.func("date_trunc", word, time.ast(), dialect="spark"))
    return Scalar(exp.func("trunc", time.ast(), word, dialect="spark"))


def is_there(value: Scalar) -> Scalar:
    """Whether a value is not NULL.

    >>> is_there(Scalar.parse("a.x + 1")).sql
    'NOT (a.x + 1) IS NULL'
    """
    return Scalar(exp.Is(this=exp.paren(value.ast()), expression=exp.Null()).not_())


def is_positive(value: Scalar) -> Scalar:
    """Whether a number is greater than 0.

    >>> is_positive(Scalar.parse("a.n")).sql
    'a.n > 0'
    """
    return Scalar(exp.GT(this=grouped(value.ast()), expression=exp.Literal.number(0)))


def coalesce(value: Scalar, default: Scalar) -> Scalar:
    """``value``, or ``default`` where it is NULL.

    >>> coalesce(Scalar.parse("a.x"), Scalar.number(0)).sql
    'COALESCE(a.x, 0)'
    """
    return Scalar(exp.Coalesce(this=value.ast(), expressions=[default.ast()]))


def case(condition: Scalar, then: Scalar) -> Scalar:
    """``then`` where a condition is true, else NULL.

    >>> case(is_there(Scalar.parse("a.x")), Scalar.number(1)).sql
    'CASE WHEN NOT (a.x) IS NULL THEN 1 END'
    """
    return Scalar(exp.Case(ifs=[exp.If(this=condition.ast(), true=then.ast())]))


def struct(fields: Sequence[tuple[str, Scalar]]) -> Scalar:
    """Values under names.

    >>> struct([("x", Scalar.parse("a.x"))]).sql
    'STRUCT(a.x AS x)'
    """
    named = [exp.PropertyEQ(this=identifier(name), expression=value.ast()) for name, value in fields]
    return Scalar(exp.Struct(expressions=named))


def quotient(total: Scalar, count: Scalar) -> Scalar:
    """``total / count``.

    >>> quotient(Scalar.parse("SUM(a.x)"), Scalar.parse("SUM(a.n)")).sql
    'SUM(a.x) / SUM(a.n)'
    """
    return Scalar(exp.Div(this=total.ast(), expression=count.ast()))


def all_of(*conditions: Scalar) -> Scalar:
    """Where all of these are true.

    >>> all_of(Scalar.parse("a.x"), Scalar.parse("a.y OR a.z")).sql
    'a.x AND (a.y OR a.z)'
    """
    return Scalar(exp.and_(*(c.ast() for c in conditions), copy=False))


def any_of(*conditions: Scalar) -> Scalar:
    """Where one of these is true, in parentheses.

    >>> any_of(Scalar.parse("a.x"), Scalar.parse("a.y AND a.z")).sql
    '(a.x OR (a.y AND a.z))'
    """
    return Scalar(grouped(exp.or_(*(c.ast() for c in conditions), copy=False)))
