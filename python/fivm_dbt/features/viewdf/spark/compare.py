"""A query gives rows of a viewdf model as its view shows them, and another one what they have to be."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.features.viewdf.plan.model import ViewdfPlan
from fivm_dbt.features.viewdf.spark.queries import Versions, parts_query
from fivm_dbt.naming import VIEW
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.parted import PART_TIMESTAMP
from fivm_dbt.spark.part_time import in_parts
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.reads import presented


def shown_parts(plan: ViewdfPlan, parts: Intervals) -> exp.Select:
    """The rows of some parts that the model shows."""
    where = in_parts(exp.column(PART_TIMESTAMP), TIMESTAMP, plan.parts.length, parts)
    return exp.select("*").from_(table(plan.relation)).where(where)


def recomputed_parts(plan: ViewdfPlan, first: int | None, parts: Intervals, versions: Versions) -> exp.Query:
    """What INITIALIZE and UPDATE give for some parts, as the model would show it."""
    # The model's view shows the rows that the table of states has under this label.
    label = exp.alias_(exp.Literal.string(plan.layout.label(plan.top)), VIEW)
    rows = exp.select("*", label).from_(parts_query(plan, first, parts, versions).subquery("parts"))
    return presented(plan.presentation, rows.subquery("labelled"))
