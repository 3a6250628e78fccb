"""Other relations take the place of those that a query's text names; everything else stays letter by letter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from sqlglot import exp

from fivm_dbt.catalog import Relation
from fivm_dbt.ir.clock import Clock
from fivm_dbt.ir.scalar import cast_ast, identifier
from fivm_dbt.naming import canonical, relation_name
from fivm_dbt.sql.functions import clock_column
from fivm_dbt.sql.parse import parse, span_of
from fivm_dbt.sql.relations import names_a_cte


def splice_inputs(sql: str, replacements: Mapping[str, str]) -> str:
    """``sql`` with the named relations replaced by other FROM items.

    >>> splice_inputs("select a from db.t -- t\\nwhere t.a > 0", {"db.t": "db.t VERSION AS OF 3"})
    'select a from db.t VERSION AS OF 3 -- t\\nwhere t.a > 0'
    >>> splice_inputs("select a from db.t", {"db.t": "(SELECT 1 AS a)"})
    'select a from (SELECT 1 AS a) AS t'

    The name stands again before PIVOT, which sqlglot would take for an alias behind a version.

    >>> splice_inputs("select * from t pivot (sum(a) for b in (1))", {"t": "t VERSION AS OF 3"})
    'select * from t VERSION AS OF 3 AS t pivot (sum(a) for b in (1))'
    """
    found = []
    for table in parse(sql).find_all(exp.Table):
        if isinstance(table.this, exp.Func) or names_a_cte(table):
            continue
        parts = [p for p in (table.args.get("catalog"), table.args.get("db"), table.this) if p]
        replacement = replacements.get(canonical(relation_name(*(p.name for p in parts))))
        spans = [s for p in parts if (s := span_of(p)) is not None]
        if replacement is None or not spans:
            continue
        if (replacement.startswith("(") or table.args.get("pivots")) and not table.alias:
            replacement += f" AS {identifier(table.name).sql(dialect='spark')}"
        found.append((spans[0].start, spans[-1].end, replacement))
    for start, end, replacement in sorted(found, reverse=True):
        sql = sql[:start] + replacement + sql[end:]
    return sql


def splice_clock(sql: str, clock: Clock | None) -> str:
    """``sql`` at the time of ``clock``, letter by letter but for the functions that read it.

    >>> splice_clock("select a from t where d > current_date - 7 -- today", Clock("2024-05-01"))
    "select a from t where d > DATE'2024-05-01' - 7 -- today"
    """
    if clock is None:
        return sql
    literals = {
        "date": f"DATE'{clock.date}'",
        "timestamp": f"TIMESTAMP_LTZ'{clock.timestamp}'",
        "timestamp_ntz": f"TIMESTAMP_NTZ'{clock.timestamp_ntz}'",
    }
    found: dict[int, tuple[int, str]] = {}
    for call in parse(sql).walk():
        kind, span = clock_column(call), span_of(call)
        if kind is None or span is None:
            continue
        brackets = re.match(r"\s*\(\s*\)", sql[span.end :])
        found[span.start] = (span.end + (brackets.end() if brackets else 0), literals[kind])
    for start, (end, text) in sorted(found.items(), reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql


def over_no_rows(sql: str, relations: Iterable[Relation]) -> str:
    """``sql`` over empty relations with these columns: its own columns can be asked for before there is a table.

    >>> from fivm_dbt.catalog import Column
    >>> over_no_rows("select a from r", [Relation("r", (Column.of("a", "int"),))])
    'select a from (SELECT CAST(NULL AS INT) AS a WHERE FALSE) AS r'
    """
    return splice_inputs(sql, {r.name: f"({_nothing(r)})" for r in relations})


def _nothing(relation: Relation) -> str:
    columns = [exp.alias_(cast_ast(exp.Null(), c.type), identifier(c.name)) for c in relation.columns]
    return exp.select(*columns).where(exp.false()).sql(dialect="spark")
