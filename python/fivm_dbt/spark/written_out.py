"""Spark does not know MATCH_RECOGNIZE: a query's text has the SELECT that finds the matches instead.

Everything else of the text stays letter by letter, also the relation that a pattern reads. So it can be run where the
user's own text cannot.
"""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp

from fivm_dbt.ir.reads import Read
from fivm_dbt.ir.scalar import identifier
from fivm_dbt.ir.written import WrittenClause
from fivm_dbt.spark.select import select

_MARK = "fivm_relation_of_a_pattern"


def written_out(sql: str, matches: Iterable[WrittenClause]) -> str:
    """``sql`` with ``r MATCH_RECOGNIZE (...)`` as ``(SELECT ... FROM (SELECT * FROM r) ...)``."""
    done: list[tuple[int, int, str]] = []
    for found in sorted(matches, key=lambda m: m.end - m.start):
        inner = [edit for edit in done if found.start <= edit[0] and edit[1] <= found.end]
        done = [edit for edit in done if edit not in inner]
        relation = _edited(sql[: found.relation_end], inner)[found.start :]
        done.append((found.start, found.end, _select(found, relation)))
    return _edited(sql, done)


def _edited(sql: str, edits: list[tuple[int, int, str]]) -> str:
    for start, end, text in sorted(edits, reverse=True):
        sql = sql[:start] + text + sql[end:]
    return sql


def _select(found: WrittenClause, relation: str) -> str:
    def reader(scan: Read) -> exp.Expr:
        columns = [identifier(f.name) for f in scan.fields]
        alias = exp.TableAlias(this=identifier(scan.source.alias), columns=columns)
        return exp.Table(this=identifier(_MARK), alias=alias)

    query = select(found.node, reader).sql(dialect="spark")
    # The relation's text may end in a comment.
    source = f"(SELECT * FROM {relation}\n)"
    return f"({query.replace(_MARK, source, 1)})"
