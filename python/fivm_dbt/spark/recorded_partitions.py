"""Partitions of a fivm model that the catalog of parts has are counted, and looked up there."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.naming import COUNT, PARTITION, parts_of
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.spark.added import read_summed
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.reads import in_partitions


def last_recorded_query(plan: Plan) -> exp.Select:
    """The last refresh of which something is written down."""
    return exp.select(exp.Max(this=exp.column("refresh"))).from_(table(parts_of(plan.relation)))


def rows_query(plan: MaintainedPlan, touched: Sequence[object] | None) -> exp.Select:
    """The rows of each touched partition of the result; of all for None."""
    counted = plan.top.is_bag and not plan.root.is_set
    rows: exp.Expr = exp.Sum(this=exp.column(COUNT)) if counted else exp.Count(this=exp.Star())
    where = None if touched is None else in_partitions("", [exp.Literal.string(str(v)) for v in touched])
    query = exp.select(exp.column(PARTITION), exp.alias_(rows, "rows"))
    own = read_summed(plan, plan.top, None, where, "state", has_tail=True)
    return query.from_(own).group_by(exp.column(PARTITION))
