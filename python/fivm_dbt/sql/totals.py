"""A correlated total is joined to the rows around it: its columns, and whether HAVING lets its one row pass."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BOOLEAN
from fivm_dbt.ir.scalar import cast_ast, column_ast, grouped
from fivm_dbt.naming import PREFIX
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.group_keys import has_windows, is_aggregated
from fivm_dbt.sql.over_nothing import MATCHED, over_nothing

PASSES = f"{PREFIX}passes"


def is_one_group(query: exp.Query) -> bool:
    """Whether a query is an aggregate without GROUP BY and nothing else: it has one row, over nothing too."""
    others = ("group", "limit", "offset", "qualify")
    if not isinstance(query, exp.Select) or any(query.args.get(key) for key in others):
        return False
    values = [("", e.unalias()) for e in query.expressions]
    return is_aggregated(query, values) and not has_windows(query, values)


@dataclass(frozen=True)
class Total:
    """``select`` computes the values of a total for each correlation that has rows, a mark that it does, and whether
    HAVING holds; ``values`` and ``having`` are as the user wrote them."""

    select: exp.Select
    values: tuple[exp.Expr, ...]
    having: exp.Expr | None

    @staticmethod
    def of(query: exp.Select) -> Total:
        """DISTINCT and ORDER BY mean nothing for one row."""
        select = query.copy()
        values: list[exp.Expr] = []
        aliases: dict[str, exp.Expr] = {}
        for expression in query.expressions:
            values.append(_with_aliases(expression.unalias().copy(), aliases))
            aliases[expression.alias_or_name.lower()] = values[-1]
        having = query.args.get("having")
        condition = _with_aliases(having.this.copy(), aliases) if having is not None else None
        for clause in ("having", "distinct", "order"):
            select.set(clause, None)
        shown = [exp.alias_(v.copy(), _name(i)) for i, v in enumerate(values)]
        shown.append(exp.alias_(exp.Literal.number(1), MATCHED))
        if condition is not None:
            shown.append(exp.alias_(condition.copy(), PASSES))
        select.set("expressions", shown)
        return Total(select, tuple(values), condition)

    def column(self, position: int, source: str, type_: SparkType) -> exp.Expr:
        """A value behind the left join with ``source``, which has the columns of ``select``."""
        return _joined(self.values[position], source, _name(position), type_)

    def passes(self, source: str) -> exp.Expr | None:
        """Whether there is the one row; None where there always is."""
        return None if self.having is None else _joined(self.having, source, PASSES, BOOLEAN)


def _name(position: int) -> str:
    return f"value_{position + 1}" if position else "value"


def _with_aliases(node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
    """An expression above the aggregate with the meaning of select aliases, which ``select`` does not have."""
    if isinstance(node, exp.Query) or is_aggregate(node):
        return node
    if isinstance(node, exp.Column):
        meant = aliases.get(node.name.lower()) if not node.table else None
        return grouped(meant.copy()) if meant is not None else node
    for child in list(node.iter_expressions()):
        new = _with_aliases(child, aliases)
        if new is not child:
            child.replace(new)
    return node


def _joined(written: exp.Expr, source: str, name: str, type_: SparkType) -> exp.Expr:
    column = column_ast(source, name)
    empty = over_nothing(written)
    if empty is None:
        return column
    if type_.text.startswith("array"):
        empty = cast_ast(empty, type_)  # that of [] alone is not known
    missing = exp.Is(this=column_ast(source, MATCHED), expression=exp.Null())
    return exp.paren(exp.Case(ifs=[exp.If(this=missing, true=empty)], default=column))
