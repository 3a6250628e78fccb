"""A viewdf model is compared part by part with what it is computed from, for the generic test ``fivm_exact``."""

from __future__ import annotations

from collections.abc import Mapping

from fivm_dbt.features.viewdf.plan.model import ViewdfPlan
from fivm_dbt.features.viewdf.refresh.known import KnownParts
from fivm_dbt.features.viewdf.spark.compare import recomputed_parts, shown_parts
from fivm_dbt.parts.intervals import last_parts
from fivm_dbt.refresh.compare import DIFFERENCES
from fivm_dbt.refresh.observe import Coverage
from fivm_dbt.spark.difference import difference

COMPARED_PARTS = 200
"""So many of the newest parts are compared: each is a query of its own."""


@DIFFERENCES.add(ViewdfPlan)
def difference_of_parts(plan: ViewdfPlan, finished: Coverage, versions: Mapping[str, int]) -> str:
    """The newest parts against what INITIALIZE and UPDATE give for each of them.

    A model that reads itself is read at its stored earlier parts: if each part is right given those before it, and the
    first one is, all are.
    """
    known = KnownParts.of(finished.detail["parts"])
    parts = last_parts(known.computed - known.dropped - known.pending, COMPARED_PARTS)
    shown = shown_parts(plan, parts).sql(dialect="spark")
    recompute = recomputed_parts(plan, known.first, parts, versions).sql(dialect="spark")
    return difference(f"({shown}) AS compared", recompute, plan.output)
