"""A replay finds an outcome per scenario, step and model."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from fivm_dbt.refresh.report import Report
from fivm_dbt.testing.compare import Difference
from fivm_dbt.testing.values import from_value

Result = Literal["equal", "not comparable", "different", "error", "expected error"]
"""``not comparable``: recomputed, and a second evaluation may differ, so that there is nothing to be equal to."""

_GOOD = ("equal", "not comparable", "expected error")
Outcome = Literal["passed", "refused", "failed", "skipped"]
"""``skipped``: it says that it is for another engine, and nothing was run."""


@dataclass(frozen=True)
class Finding:
    """A comparison that failed: what was compared, and the rows."""

    left: str
    right: str
    difference: Difference

    def lines(self) -> list[str]:
        return self.difference.lines(self.left, self.right)


@dataclass(frozen=True)
class ModelRun:
    """One model after one step: how it was maintained, and whether it is right; no ``report`` on an error.

    ``is_interpreted``: compared with the second oracle; ``not_interpreted`` is what that does not understand.
    """

    model: str
    result: Result
    report: Report | None = None
    findings: tuple[Finding, ...] = ()
    error: str | None = None
    code: str | None = None
    is_interpreted: bool = False
    not_interpreted: str | None = None

    def as_dict(self) -> dict[str, Any]:
        data: dict[str, Any] = {"model": self.model, "result": self.result}
        if self.is_interpreted or self.not_interpreted is not None:
            data["second_oracle"] = self.not_interpreted or "equal"
        if self.report is not None:
            data |= self.report.as_dict()
        if self.error is not None:
            data |= {"error": self.error, "code": self.code}
        if any(finding.right == "interpreter" for finding in self.findings):
            data["second_oracle"] = "different"
        for finding in self.findings:
            data[f"only {finding.left}"] = _json_rows(finding.difference.only_left)
            data[f"only {finding.right}"] = _json_rows(finding.difference.only_right)
        return data


@dataclass(frozen=True)
class StepRun:
    """All models after one step; step 0 is the first build."""

    step: int
    models: tuple[ModelRun, ...]
    problem: str | None = None

    @property
    def is_good(self) -> bool:
        return self.problem is None and all(m.result in _GOOD for m in self.models)


@dataclass(frozen=True)
class ScenarioResult:
    """One scenario with one strategy."""

    id: str
    strategy: str
    outcome: Outcome
    steps: tuple[StepRun, ...] = ()
    code: str | None = None
    message: str | None = None
    seconds: float = 0.0
    apply: str | None = None
    """The ``fivm_apply`` that all models have, None for their own."""
    same_as: str | None = None
    """The variant that was replayed instead, because its plans are the same."""

    @property
    def variant(self) -> str:
        """What all models were given: the strategy, and the way in which they apply deltas."""
        return ", ".join(part for part in (self.strategy, self.apply) if part)

    @property
    def rebuilds(self) -> int:
        """How often a model was built anew after its first build."""
        runs = [run for step in self.steps for run in step.models]
        return sum(run.report is not None and run.report.action == "rebuilt" for run in runs)

    @property
    def recomputed(self) -> dict[str, str]:
        """The models that are recomputed instead of maintained, with the reason."""
        runs = [run for step in self.steps for run in step.models if run.report is not None]
        return {r.model: r.report.recomputed for r in runs if r.report and r.report.recomputed is not None}

    @property
    def not_comparable(self) -> int:
        """How often a model was not compared, because a second evaluation may differ."""
        return sum(run.result == "not comparable" for step in self.steps for run in step.models)

    @property
    def refreshes(self) -> int:
        return sum(len(step.models) for step in self.steps)

    def line(self) -> str:
        """One line for people."""
        name = f"{self.id} [{self.variant}]" if self.variant else self.id
        if self.outcome == "refused":
            return f"refused  {name}: {(self.message or '').splitlines()[0]}"
        if self.outcome == "skipped":
            return f"skipped  {name}: {self.message}"
        counts = f"{max(0, len(self.steps) - 1)} steps, {self.refreshes} refreshes"
        rebuilds = f", {self.rebuilds} rebuilds" if self.rebuilds else ""
        skipped = f", {self.not_comparable} not comparable" if self.not_comparable else ""
        verb = "passed " if self.outcome == "passed" else "FAILED "
        if self.same_as is not None:
            return f"{verb}  {name}: the plans of [{self.same_as}]"
        return f"{verb}  {name}: {counts}{rebuilds}{skipped} ({self.seconds:.2f} s)"

    def details(self) -> list[str]:
        """Everything that is wrong, and every model that is recomputed, for people; once for the same plans."""
        if self.same_as is not None:
            return []
        lines = [f"  model {model}: recomputed: {reason}" for model, reason in self.recomputed.items()]
        lines += [f"  {self.message}"] if self.outcome == "failed" and self.message else []
        for step in self.steps:
            if step.problem is not None:
                lines.append(f"  step {step.step}: {step.problem}")
            for run in step.models:
                if run.result == "error":
                    lines.append(f"  step {step.step}, model {run.model}: {run.error}")
                for finding in run.findings:
                    lines.append(
                        f"  step {step.step}, model {run.model}: {finding.left} is not {finding.right}"
                    )
                    lines += [f"  {line}" for line in finding.lines()]
        return lines

    def as_dict(self) -> dict[str, Any]:
        steps = [
            {"step": s.step, "problem": s.problem, "models": [m.as_dict() for m in s.models]}
            for s in self.steps
        ]
        data = asdict(self)
        data["steps"] = steps
        return data


def _json_rows(rows: tuple[tuple[object, ...], ...]) -> list[list[object]]:
    return [[from_value(value) for value in row] for row in rows]
