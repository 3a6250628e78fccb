"""The interpreter starts here: a text and rows in, a bag of rows out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot.errors import ParseError, TokenError

from fivm_dbt.testing.interpreter import (  # noqa: F401  - readers of nodes register themselves
    arithmetic,
    comparisons,
    functions,
    functions_of_lists,
    functions_of_numbers,
    functions_of_sequences,
    functions_of_texts,
    functions_of_times,
    intervals,
    logic,
    selects,
    subqueries,
)
from fivm_dbt.testing.interpreter.dialect import read
from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.queries import Named, compile_query
from fivm_dbt.testing.interpreter.scope import Column, Env, Relation
from fivm_dbt.testing.interpreter.types import Type
from fivm_dbt.testing.interpreter.values import Row


@dataclass(frozen=True)
class Table:
    """A relation that a query reads: names and types of its columns, and its rows."""

    columns: tuple[tuple[str, Type], ...]
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Answer:
    """The bag of rows that a query has, and its columns."""

    columns: tuple[tuple[str, Type], ...]
    rows: Counter[Row]


class Interpreter:
    """A query that has been read, over relations of these columns; its answer over any rows of them."""

    def __init__(self, sql: str, columns: Mapping[str, Sequence[tuple[str, Type]]]) -> None:
        self._rows: dict[str, Sequence[Row]] = {}
        try:
            tree = read(sql)
        except (ParseError, TokenError, ValueError) as error:
            raise NotUnderstood(f"text: {str(error).splitlines()[0][:60]}") from None
        relations = {name: self._relation(name, found) for name, found in columns.items()}
        self._query = compile_query(tree, None, relations)

    def _relation(self, name: str, columns: Sequence[tuple[str, Type]]) -> Named:
        qualifiers = tuple(name.lower().split("."))
        shown = tuple(Column(n, t, qualifiers) for n, t in columns)

        def rows(env: Env | None) -> list[Row]:
            return list(self._rows[name])

        return Named(Relation(shown, rows), 0)

    @property
    def columns(self) -> tuple[tuple[str, Type], ...]:
        return tuple((c.name, c.type) for c in self._query.columns)

    def rows(self, tables: Mapping[str, Sequence[Row]]) -> list[Row]:
        """All rows of the answer. Raises NotUnderstood, and ArithmeticError and LookupError as Spark stops."""
        self._rows = dict(tables)
        return self._query.rows(None)


def interpret(sql: str, tables: Mapping[str, Table]) -> Answer:
    """The answer of a query over tables by name.

    >>> from fivm_dbt.testing.interpreter.types import INT
    >>> r = Table((("k", INT), ("x", INT)), ((1, 2), (1, None)))
    >>> interpret("select k, count(x) as n, k / 2 as h from r group by k", {"r": r}).rows
    Counter({(1, 1, 0.5): 1})
    """
    found = Interpreter(sql, {name: table.columns for name, table in tables.items()})
    rows = found.rows({name: table.rows for name, table in tables.items()})
    return Answer(found.columns, Counter(rows))
