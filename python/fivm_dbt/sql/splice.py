"""A query's text with other relations in the place of those that it names; everything else stays letter by letter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from fivm_dbt.catalog import Relation
from fivm_dbt.ir.scalar import identifier
from fivm_dbt.naming import canonical, relation_name
from fivm_dbt.sql.parse import parse, span_of
from fivm_dbt.sql.relations import names_a_cte


def splice_inputs(sql: str, replacements: Mapping[str, str]) -> str:
    """``sql`` with the named relations replaced by other FROM items.

    >>> splice_inputs("select a from db.t -- t\\nwhere t.a > 0", {"db.t": "db.t VERSION AS OF 3"})
    'select a from db.t VERSION AS OF 3 -- t\\nwhere t.a > 0'
    >>> splice_inputs("select a from db.t", {"db.t": "(SELECT 1 AS a)"})
    'select a from (SELECT 1 AS a) AS t'
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
        if replacement.startswith("(") and not table.alias:
            replacement += f" AS {identifier(table.name).sql(dialect='spark')}"
        found.append((spans[0].start, spans[-1].end, replacement))
    for start, end, replacement in sorted(found, reverse=True):
        sql = sql[:start] + replacement + sql[end:]
    return sql


def over_no_rows(sql: str, relations: Iterable[Relation]) -> str:
    """``sql`` over empty relations with these columns: its own columns can be asked for before there is a table.

    >>> from fivm_dbt.catalog import Column
    >>> over_no_rows("select a from r", [Relation("r", (Column.of("a", "int"),))])
    'select a from (SELECT CAST(NULL AS INT) AS a WHERE FALSE) AS r'
    """
    return splice_inputs(sql, {r.name: f"({_nothing(r)})" for r in relations})


def _nothing(relation: Relation) -> str:
    columns = [
        exp.alias_(exp.cast(exp.Null(), c.type.text, dialect="spark"), identifier(c.name))
        for c in relation.columns
    ]
    return exp.select(*columns).where(exp.false()).sql(dialect="spark")
