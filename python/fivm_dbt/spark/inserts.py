"""An INSERT is taken apart for engines that write its rows themselves."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.spark.pieces import Statement


@dataclass(frozen=True)
class Inserted:
    """The text of a ``query`` whose rows come to a table, ``instead`` of those that meet a condition if it has one."""

    table: str
    query: str
    instead: str | None

    @property
    def text(self) -> str:
        """The whole statement."""
        replaced = f"REPLACE WHERE {self.instead} " if self.instead else ""
        return f"INSERT INTO {self.table} {replaced}{self.query}"


def inserted(statement: Statement, *, may_replace: bool) -> Inserted | None:
    """An INSERT in its parts; None for other statements, and for one that replaces rows unless it ``may_replace``.

    >>> import sqlglot
    >>> found = inserted(sqlglot.parse_one("INSERT INTO t SELECT a FROM r"), may_replace=False)
    >>> found.query, found.text
    ('SELECT a FROM r', 'INSERT INTO t SELECT a FROM r')
    """
    if not isinstance(statement, exp.Insert):
        return None
    where = statement.args.get("where")
    if where is not None and not may_replace:
        return None
    query = statement.expression.sql(dialect="spark", copy=False)
    instead = None if where is None else where.sql(dialect="spark", copy=False)
    return Inserted(statement.this.sql(dialect="spark"), query, instead)
