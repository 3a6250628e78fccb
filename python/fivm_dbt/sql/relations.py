"""A query names relations, before anything is known about them."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.errors import Span
from fivm_dbt.naming import relation_name
from fivm_dbt.sql.parse import parse, span_of


@dataclass(frozen=True)
class Named:
    """A relation as a query names it, and where it does so first."""

    name: str
    span: Span | None


def relations_read(sql: str) -> tuple[Named, ...]:
    """The relations in the FROM clauses of a query, each once, in the order of their canonical names.

    >>> [n.name for n in relations_read("with c as (select 1 as x) select * from Raw.f, c, raw.f g")]
    ['raw.f']
    >>> [n.name for n in relations_read("with t as (select * from t) select * from t")]
    ['t']
    """
    found: dict[str, Named] = {}
    for table in parse(sql).find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and not names_a_cte(table):
            name = relation_name(*(part.name for part in table.parts))
            found.setdefault(name, Named(name, span_of(table)))
    return tuple(found[name] for name in sorted(found))


def names_a_cte(table: exp.Table) -> bool:
    """Whether the name means a CTE: one of an enclosing query, defined before the CTE in which the name stands."""
    if table.db:
        return False
    within: exp.CTE | None = None
    node: exp.Expr | None = table.parent
    while node is not None:
        if isinstance(node, exp.CTE):
            within = node
        with_ = node.args.get("with_")
        if with_ is not None:
            ctes: list[exp.CTE] = with_.expressions
            end = next((i for i, cte in enumerate(ctes) if cte is within), len(ctes))
            visible = ctes[:end]
            if with_.args.get("recursive") and within is not None:
                visible.append(within)
            if any(cte.alias.lower() == table.name.lower() for cte in visible):
                return True
        node = node.parent
    return False
