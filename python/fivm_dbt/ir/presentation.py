"""A model is shown by a query over its table, a SELECT that maps each row by itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import sqlglot
from sqlglot import exp

from fivm_dbt.catalog import Presentation
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.scalar import Scalar, identifier
from fivm_dbt.naming import COUNT, PREFIX


def presentation(
    table: str, columns: Iterable[tuple[str, Scalar]], conditions: Sequence[Scalar], *, repeats: bool
) -> Presentation:
    """``SELECT columns FROM table WHERE conditions``; where it ``repeats``, each row as often as its multiplicity says.

    >>> presentation("a.root", [("n", Scalar.parse("c"))], [Scalar.parse("c > 0")], repeats=False).sql
    'SELECT c AS n FROM a.root WHERE c > 0'
    """
    shown = [_named(name, value) for name, value in columns]
    # A view of which only the rows count still needs a column in its SELECT.
    query = exp.select(*(shown or [exp.alias_(exp.Literal.number(1), "one")]))
    query = query.from_(exp.to_table(table, dialect="spark"))
    if repeats:
        copies = f"EXPLODE(SEQUENCE(1, {COUNT})) {PREFIX}copies AS {PREFIX}copy"
        query = query.lateral(copies, dialect="spark")
    if conditions:
        query = query.where(*(c.ast() for c in conditions), copy=False)
    return Presentation(table, query.sql(dialect="spark"))


def of_rows(shown: Presentation, table: str, condition: Scalar) -> Presentation:
    """The same over the rows of another table that meet a condition.

    >>> of_rows(Presentation("a.root", "SELECT n FROM a.root WHERE n > 0"), "a.state", Scalar.parse("v = 'root'")).sql
    "SELECT n FROM a.state WHERE v = 'root' AND n > 0"
    """
    query = _parsed(shown)
    where = query.args.pop("where", None)
    tests = [condition.ast()] if where is None else [condition.ast(), where.this]
    over = query.from_(exp.to_table(table, dialect="spark"), copy=False).where(*tests, copy=False)
    return Presentation(table, over.sql(dialect="spark"))


def stored_columns(shown: Presentation | None, columns: Iterable[str]) -> dict[str, str]:
    """The columns of a relation that are those of its table, and what they are called there.

    >>> stored_columns(Presentation("a.root", "SELECT k AS n, 2 * k AS m FROM a.root"), ["n", "m"])
    {'n': 'k'}
    >>> stored_columns(None, ["n"])
    {'n': 'n'}
    """
    if shown is None:
        return {name: name for name in columns}
    values = {value.alias_or_name.lower(): value.unalias() for value in _parsed(shown).selects}
    found = ((name, values.get(name.lower())) for name in columns)
    return {name: value.name for name, value in found if isinstance(value, exp.Column)}


def with_column(shown: Presentation, name: str, value: Scalar) -> Presentation:
    """The same with a column more.

    >>> with_column(Presentation("a.root", "SELECT n FROM a.root"), "day", Scalar.parse("d")).sql
    'SELECT n, d AS day FROM a.root'
    """
    query = _parsed(shown).select(_named(name, value), copy=False)
    return Presentation(shown.root, query.sql(dialect="spark"))


def _named(name: str, value: Scalar) -> exp.Expr:
    return exp.alias_(value.ast(), identifier(name), quoted=identifier(name).quoted)


def _parsed(shown: Presentation) -> exp.Select:
    query = sqlglot.parse_one(shown.sql, dialect=SparkText)
    assert isinstance(query, exp.Select)
    return query
