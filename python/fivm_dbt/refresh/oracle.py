"""The full recompute that everything is compared with: the user's own text over the inputs at pinned versions.

It shares nothing with the planner but the completions of the text, without which a recompute would have no single
answer where rows tie. The text is taken as it stands otherwise, and only the names of the inputs and the functions that
read the clock are replaced, at the places where the tokenizer finds them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlglot import exp

from fivm_dbt.ir.clock import Clock
from fivm_dbt.ir.scalar import identifier
from fivm_dbt.naming import canonical, relation_name
from fivm_dbt.plan.plan import Plan
from fivm_dbt.spark.reads import pinned, presented
from fivm_dbt.sql.parse import parse, span_of
from fivm_dbt.sql.relations import names_a_cte


def recompute_sql(plan: Plan, versions: Mapping[str, int], clock: Clock | None = None) -> str:
    """The model's SQL, completed where it depends on ties, with each input read at its version, at a time.

    Of a fivm model as input that is the version of its root state.
    """
    replacements = {}
    for item in plan.inputs:
        presentation = item.relation.presentation
        if presentation is None:
            replacements[item.name] = pinned(item.name, versions[item.name]).sql(dialect="spark")
        else:
            query = presented(presentation, pinned(presentation.root, versions[item.name]))
            replacements[item.name] = f"({query.sql(dialect='spark')})"
    return splice_inputs(splice_clock(plan.completed_sql, clock), replacements)


def splice_clock(sql: str, clock: Clock | None) -> str:
    """``sql`` at the time of ``clock``, letter by letter but for the functions that read it.

    >>> splice_clock("select a from t where d > current_date - 7 -- today", Clock("2024-05-01"))
    "select a from t where d > DATE'2024-05-01' - 7 -- today"
    """
    if clock is None:
        return sql
    date = f"DATE'{clock.date}'"
    instant = f"TIMESTAMP_LTZ'{clock.timestamp}'"
    texts = {
        "current_date": date,
        "curdate": date,
        "current_timestamp": instant,
        "now": instant,
        "getdate": instant,
        "localtimestamp": f"TIMESTAMP_NTZ'{clock.timestamp_ntz}'",
    }
    found: dict[int, tuple[int, str]] = {}
    for call in parse(sql).find_all(exp.Func):
        span = span_of(call)
        name = sql[span.start : span.end].lower() if span is not None else ""
        if span is None or name not in texts:
            continue
        brackets = re.match(r"\s*\(\s*\)", sql[span.end :])
        # A call around it that the parser has put in has the same place.
        found[span.start] = (span.end + (brackets.end() if brackets else 0), texts[name])
    for start, (end, text) in sorted(found.items(), reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql


def splice_inputs(sql: str, replacements: Mapping[str, str]) -> str:
    """``sql`` with the named relations replaced by other FROM items; everything else stays letter by letter.

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
