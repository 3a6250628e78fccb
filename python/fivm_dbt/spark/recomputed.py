"""A recomputed model's state is written from a text, as a whole or where changes of the inputs can reach."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.ir.scalar import identifier
from fivm_dbt.naming import PARTITION, VIEW
from fivm_dbt.plan.model.head import NextHead
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.spark.heads import is_in_tail
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.properties import state_properties
from fivm_dbt.spark.state import create_table, partition_value
from fivm_dbt.spark.states import as_stored, of_view, renamed, with_head


def recomputed_rows(plan: Plan, text: str) -> exp.Select:
    """The state's columns of the rows of a text, which is taken letter by letter."""
    # The text may end in a comment: the bracket goes on a line of its own.
    names = [identifier(k.name).sql(dialect="spark") for k in plan.root.keys]
    source = exp.Var(this=f"(\n{text}\n) AS recomputed({', '.join(names)})")
    columns: list[exp.Expr] = [exp.column(identifier(k.name)) for k in plan.root.keys]
    columns.append(exp.alias_(partition_value(plan.root, 1), PARTITION))
    query = exp.select(*columns)
    query.set("from_", exp.From(this=source))
    return query


def write_rows(plan: Plan, rows: exp.Select, head: NextHead, touched: exp.Expr | None) -> exp.Expr:
    """``CREATE OR REPLACE TABLE state AS rows``, or REPLACE WHERE for those ``touched``; either sets the head."""
    every = with_head(plan, as_stored(plan, [(plan.top, rows.subquery("result", copy=False))]), head)
    if touched is None:
        return create_table(
            plan.layout.relation,
            every,
            state_properties(plan),
            (VIEW, PARTITION),
            is_replacing=head.before is not None or head.replaces,
        )
    own = exp.and_(of_view(plan, plan.top), renamed(plan, plan.top, touched), copy=False)
    return exp.Insert(
        this=table(plan.layout.relation), expression=every, where=exp.or_(is_in_tail(), own, copy=False)
    )
