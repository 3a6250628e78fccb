"""Which relations a query names, before anything is known about them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.errors import Span
from fivm_dbt.naming import relation_name
from fivm_dbt.sql.parse import parse, span_of


@dataclass(frozen=True)
class Named:
    """A relation as a query names it; ``may_be_cte`` where the same word also names a CTE of the query."""

    name: str
    span: Span | None
    may_be_cte: bool


def relations_read(sql: str) -> tuple[Named, ...]:
    """The relations in the FROM clauses of a query, each once, in the order of their canonical names.

    >>> [n.name for n in relations_read("with c as (select 1 as x) select * from Raw.f, c, raw.f g")]
    ['c', 'raw.f']
    >>> [n.may_be_cte for n in relations_read("with c as (select 1 as x) select * from Raw.f, c, raw.f g")]
    [True, False]
    """
    query = parse(sql)
    ctes = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    found: dict[str, Named] = {}
    for table in query.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier):
            name = relation_name(*(part.name for part in table.parts))
            found.setdefault(name, Named(name, span_of(table), table.name.lower() in ctes and not table.db))
    return tuple(found[name] for name in sorted(found))
