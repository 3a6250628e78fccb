"""A model against its full recompute, as one query: the generic test ``fivm_exact``."""

from __future__ import annotations

from fivm_dbt.errors import FivmError
from fivm_dbt.naming import quote
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.journal import Journal
from fivm_dbt.refresh.observe import read_state
from fivm_dbt.refresh.oracle import recompute_sql

SIDE = "fivm_side"
"""Column that tells on which side a differing row is."""


def difference_sql(plan: Plan, journal: Journal) -> str:
    """Rows that only the model or only its recompute has, as bags, at the last refresh's own versions.

    Raises FIVM404 where no refresh has finished, or one was interrupted, FIVM106 where the SQL has no one answer.
    """
    if plan.recompute is not None and plan.recompute.not_repeatable is not None:
        raise FivmError(
            "FIVM106",
            f"this model is recomputed, and there is nothing to compare it with: {plan.recompute.not_repeatable}",
            remedy="take the test fivm_exact off this model, or rewrite the SQL so that it has one answer",
        )
    state = read_state(journal.entries(plan.relation))
    if state.finished is None or state.unfinished is not None:
        what = "has never been built" if state.finished is None else "was interrupted in a refresh"
        raise FivmError("FIVM404", f"{plan.relation} {what}", remedy=f"dbt run --select {plan.model}")
    versions = {name: record.commit.version for name, record in state.inputs.items()}
    columns = ", ".join(quote(column.name) for column in plan.output)
    model = f"SELECT {columns} FROM {plan.relation}"
    # The user's text may end in a comment: the bracket goes on a line of its own.
    recompute = f"SELECT {columns} FROM (\n{recompute_sql(plan, versions)}\n) AS recompute"
    return (
        f"SELECT 'only in the recompute' AS {SIDE}, * FROM ({recompute}\nEXCEPT ALL {model}) AS missing\n"
        f"UNION ALL\n"
        f"SELECT 'only in the model' AS {SIDE}, * FROM ({model}\nEXCEPT ALL {recompute}) AS surplus"
    )
