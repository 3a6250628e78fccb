"""Writing the state of a model that is recomputed: the user's own text over pinned inputs, in one commit."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.ir.clock import Clock
from fivm_dbt.ir.scalar import identifier
from fivm_dbt.naming import PARTITION
from fivm_dbt.plan.binding import Binding
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.apply import state_properties
from fivm_dbt.refresh.oracle import recompute_sql
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.state import create_table, partition_value
from fivm_dbt.spark.validate import validate


def write_recomputed(plan: Plan, engine: Recorder, binding: Binding) -> None:
    """``CREATE OR REPLACE TABLE state AS SELECT ... FROM (text)``.

    Its change feed has every old row as deleted and every new one as inserted, which nets to the change for whoever
    reads this model. Raises FIVM901 where a read is not pinned.
    """
    clock = binding.clock.new if binding.clock is not None else None
    query = recomputed_rows(plan, {b.name: b.new for b in binding.inputs}, clock)
    validate(query.sql(dialect="spark"), ())
    engine.run(create_table(plan.root.relation, query, state_properties(plan), PARTITION))


def recomputed_rows(plan: Plan, versions: dict[str, int], clock: Clock | None) -> exp.Select:
    """The state's columns of the text, which is taken letter by letter but for the clock."""
    # The text may end in a comment: the bracket goes on a line of its own.
    text = exp.Var(this=f"(\n{recompute_sql(plan, versions, clock)}\n) AS recomputed")
    names = [identifier(k.name).sql(dialect="spark") for k in plan.root.keys]
    source = exp.Var(this=f"{text.name}({', '.join(names)})")
    columns: list[exp.Expr] = [exp.column(identifier(k.name)) for k in plan.root.keys]
    columns.append(exp.alias_(partition_value(plan.root, 1), PARTITION))
    query = exp.select(*columns)
    query.set("from_", exp.From(this=source))
    return query
