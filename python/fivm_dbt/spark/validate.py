"""Every statement is looked at before it runs: pinned reads, one change range per table.

Spark answers wrongly and without an error when a statement reads two change ranges of one table, or a change range
beside the unpinned table; so no emitted statement may contain that, whatever the planner does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.naming import canonical
from fivm_dbt.spark.formats import FORMAT
from fivm_dbt.sql.relations import names_a_cte


def validate(sql: str, staged: Iterable[str]) -> None:
    """:func:`validate_tree` of a text, which is parsed for it. Raises FIVM901 if it cannot be."""
    try:
        statement = sqlglot.parse_one(sql, dialect=SparkText)
    except ParseError as error:
        raise _broken(f"it does not parse: {error}", sql) from None
    validate_tree(statement, staged, sql)


def validate_tree(statement: exp.Expr, staged: Iterable[str], sql: str | None = None) -> None:
    """Raise FIVM901 unless every table that it reads is pinned, staged, or read by its change feed alone."""
    written = statement.this if isinstance(statement, (exp.Merge, exp.Create, exp.Insert)) else None
    target = written.find(exp.Table) if written is not None else None
    session = {canonical(name) for name in staged}
    ranges: dict[str, tuple[str, str]] = {}
    plain: set[str] = set()
    for table in statement.find_all(exp.Table):
        if table is target or names_a_cte(table) or isinstance(table.parent, exp.JoinHint):
            continue
        if isinstance(table.this, exp.Func):
            found = re.fullmatch(FORMAT.reads, table.this.sql(dialect="spark"), re.IGNORECASE)
            if found is None:
                continue
            name, bounds = found["table"], (found["first"], found["last"])
            if ranges.setdefault(canonical(name), bounds) != bounds:
                raise _broken(f"two change ranges of {name}", sql or statement.sql(dialect="spark"))
        elif table.args.get("version") is None and _name(table) not in session:
            plain.add(_name(table))
    if plain:
        what = f"reads {', '.join(sorted(plain))} without VERSION AS OF"
        raise _broken(what, sql or statement.sql(dialect="spark"))


def _name(table: exp.Table) -> str:
    return canonical(".".join(part.sql(dialect="spark") for part in table.parts))


def _broken(what: str, sql: str) -> FivmError:
    return FivmError(
        "FIVM901", what, sql=sql, remedy="this is a bug of fivm: please report the statement\n" + sql
    )
