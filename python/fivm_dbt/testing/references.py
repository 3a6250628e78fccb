"""References are what a model must be equal to after a refresh."""

from __future__ import annotations

import re
from dataclasses import replace

from fivm_dbt.engines.duckdb.meaning import check_columns
from fivm_dbt.engines.duckdb.unsupported import CODE as NOT_ON_DUCKDB
from fivm_dbt.errors import FivmError
from fivm_dbt.features.viewdf.plan.model import ViewdfPlan
from fivm_dbt.features.viewdf.testing.oracle import PartOracle
from fivm_dbt.ir.clock import Clock
from fivm_dbt.naming import quote
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.oracle import recompute_sql, runnable_sql
from fivm_dbt.sql.splice import splice_clock, splice_inputs
from fivm_dbt.testing.compare import Shown
from fivm_dbt.testing.interpreter import NotUnderstood
from fivm_dbt.testing.outcome import Finding, ModelRun
from fivm_dbt.testing.scenario import RawRows
from fivm_dbt.testing.second_oracle import SecondOracle
from fivm_dbt.testing.values import to_rows
from fivm_dbt.testing.workbench import Workbench

_RAISES = re.compile(r"raise_error|assert_true", re.IGNORECASE)


class References:
    """What the models of a scenario must be equal to, as bags. After every refresh a model is compared with

    * its own text over the inputs at the versions of the refresh, a viewdf model with all its parts from scratch,
    * for a model that reads views of the database: its own text over these views, as the engine understands them,
    * for a model over other fivm models: the whole chain as one query over the base tables,
    * the rows that the scenario expects, where it says so,
    * where the second oracle is asked for: what the interpreter of Spark's semantics makes of its text.

    A model that is recomputed and has no one answer (``first``, LIMIT without ORDER BY, random values) is compared with
    the expected rows only, and the result says so.
    """

    def __init__(self, plans: tuple[Plan, ...], workbench: Workbench, *, interprets: bool) -> None:
        self._workbench = workbench
        self._whole = _over_base_tables(plans)
        self._second = SecondOracle(workbench.engine) if interprets else None
        self.clock: Clock | None = None
        """The time of the step, where a model reads it."""

    def interpreted(self, run: ModelRun, plan: Plan) -> ModelRun:
        """The run, compared with the second oracle as well where it is asked for, or why it could not be."""
        if self._second is None:
            return run
        if plan.not_repeatable is not None:
            return replace(run, not_interpreted="no one answer")
        try:
            shown = self._workbench.engine.query(_shown_sql(plan))
            difference = self._second.difference(plan, shown, self.clock)
        except NotUnderstood as error:
            return replace(run, not_interpreted=error.construct)
        except Exception as error:  # a crash of the oracle is a finding about it, not an end of the replay
            return replace(run, result="error", error=f"interpreter: {type(error).__name__}: {error}")
        if not difference:
            return replace(run, is_interpreted=True)
        findings = (*run.findings, Finding("maintained", "interpreter", difference))
        return replace(run, result="different", findings=findings, is_interpreted=True)

    def findings(self, plan: Plan, expected: RawRows | None, oracle: PartOracle) -> tuple[Finding, ...]:
        shown = Shown(self._workbench.engine, _shown_sql(plan), plan.output)
        references = {}
        if isinstance(plan, ViewdfPlan):
            rows = oracle.rows(plan)
            if not plan.parts.plain or plan.parts.of_plain == "all":
                references["computed from scratch"] = rows
        elif plan.not_repeatable is None:
            references["recomputed"] = self._recompute(plan)
            if plan.database_views and not plan.completions and not plan.matches:
                references["recomputed over views"] = self._over_views(plan)
        if plan.relation in self._whole:
            whole = splice_clock(self._whole[plan.relation], self.clock)
            references["recomputed from base tables"] = whole
        found = []
        for label, reference in references.items():
            difference = shown.against(reference)
            if difference:
                found.append(Finding("maintained", label, difference))
        if expected is not None:
            types = [column.type for column in plan.output]
            difference = shown.against_rows(to_rows(expected, types))
            if difference:
                found.append(Finding("maintained", "expected", difference))
        return tuple(found)

    def _recompute(self, plan: Plan) -> str:
        return recompute_sql(plan, self._versions(plan), self.clock)

    def _over_views(self, plan: Plan) -> str:
        """The user's text, which names the views. They show the tables of now, which are those of the refresh."""
        for view in plan.database_views:
            self._workbench.show(replace(view, sql=splice_clock(view.sql, self.clock)))
        return splice_clock(plan.sql, self.clock)

    def check_text(self, plan: Plan, name: str) -> None:
        """After an error on DuckDB: raise FIVM602 if the model's text fails there too, and the plan is not at fault.

        What stops on Spark as well is no reason: a scalar subquery with several rows, errors that a text raises itself.
        """
        if self._workbench.describe is not None or isinstance(plan, ViewdfPlan):
            return
        try:
            self._workbench.engine.query(self._recompute(plan))
        except FivmError:
            raise
        except Exception as error:
            message = str(error).strip().split("\n")[0]
            if "More than one row" in message or _RAISES.search(plan.sql):
                return
            raise FivmError(
                NOT_ON_DUCKDB, message, remedy="fivm replay --engine spark", model=name
            ) from error

    def check_types(self, plan: Plan) -> None:
        """Where the engine's types are Spark's, a model must have the very types that its text has."""
        if isinstance(plan, ViewdfPlan):
            return
        if self._workbench.describe is None:
            check_columns(plan.output, self._workbench.columns_of(self._recompute(plan)))
            return
        shown = self._workbench.describe(f"SELECT * FROM {plan.relation}")
        wanted = self._workbench.describe(recompute_sql(plan, self._versions(plan)))
        pairs = zip(shown, wanted, strict=True)
        wrong = [f"{a.name} is {a.type} instead of {b.name} {b.type}" for a, b in pairs if a != b]
        if wrong:
            raise TypeError(f"columns of {plan.relation}: {'; '.join(wrong)}")

    def _versions(self, plan: Plan) -> dict[str, int]:
        """The newest version of each input: nobody else writes, so they are those of the refresh."""
        versions = {}
        for item in plan.inputs:
            shown = item.relation.presentation
            table = shown.root if shown is not None else item.name
            versions[item.name] = self._workbench.engine.commits(table, None)[0].version
        return versions


def _over_base_tables(plans: tuple[Plan, ...]) -> dict[str, str]:
    """The text of every model over other models, with their texts in it as subqueries; none where one of these may
    have another answer at a second evaluation, or is a viewdf model, whose text is that of one part."""
    texts: dict[str, str] = {}
    chained: dict[str, str] = {}
    without_answer: set[str] = set()
    for plan in plans:
        above = any(item.name in without_answer for item in plan.inputs) or isinstance(plan, ViewdfPlan)
        if above or plan.not_repeatable is not None:
            without_answer.add(plan.relation)
        if isinstance(plan, ViewdfPlan):
            continue
        # A line break, because a text may end with a comment.
        own = runnable_sql(plan)
        text = splice_inputs(own, {name: f"(\n{inner}\n)" for name, inner in texts.items()})
        if text != own and plan.relation not in without_answer:
            chained[plan.relation] = text
        texts[plan.relation] = text
    return chained


def _shown_sql(plan: Plan) -> str:
    """The columns of the query: ``fivm_part_timestamp`` shows one more."""
    columns = "*" if plan.shown == plan.output else ", ".join(quote(c.name) for c in plan.output)
    return f"SELECT {columns} FROM {plan.relation}"
