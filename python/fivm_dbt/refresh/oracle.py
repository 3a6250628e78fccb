"""The full recompute is the user's own text over inputs at pinned versions; everything is compared with it.

It shares nothing with the planner but the completions of the text, without which a recompute would have no single
answer where rows tie. The text is taken as it stands otherwise, and only the names of the inputs and the functions that
read the clock are replaced, at the places where the tokenizer finds them. Of a MATCH_RECOGNIZE, which Spark cannot run,
the clause is written out by the very code that maintains it: there the recompute says that keeping up with changes is
right, and not that the matches are. That they are is what the tests compare with a matcher of their own.
"""

from __future__ import annotations

from collections.abc import Mapping

from fivm_dbt.ir.clock import Clock
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.spark.pieces import Condition, everything
from fivm_dbt.spark.reads import read_version, whole_as_text
from fivm_dbt.spark.written_out import written_out
from fivm_dbt.sql.splice import splice_clock, splice_inputs


def runnable_sql(plan: Plan) -> str:
    """The model's SQL, completed where it depends on ties, with its patterns written out."""
    return written_out(plan.completed_sql, plan.matches)


def recompute_sql(
    plan: Plan,
    versions: Mapping[str, int],
    clock: Clock | None = None,
    within: Mapping[str, Condition] | None = None,
) -> str:
    """The model's SQL as it can be run, with each input read at its version, at a time.

    Of a fivm model as input that is the version of its root state. ``within`` are conditions on the rows of inputs.
    """
    replacements = {}
    for item in plan.inputs:
        replacements[item.name] = whole_as_text(plan, item.name, versions[item.name])
        test = (within or {}).get(item.name)
        if test is not None:
            rows = read_version(plan, item.name, versions[item.name], "read", test)
            replacements[item.name] = f"({everything(rows).sql(dialect='spark')})"
    return splice_inputs(splice_clock(runnable_sql(plan), clock), replacements)
