"""Where a refresh would cost more, the parts of a model that changes reach are built from the inputs (ADR 0078)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from fivm_dbt.refresh.bind import bind, versions_read
from fivm_dbt.refresh.build import BuildRun
from fivm_dbt.refresh.costs import Expected
from fivm_dbt.refresh.decide import Decision
from fivm_dbt.refresh.heads import next_head
from fivm_dbt.refresh.model_parts import record_partitions
from fivm_dbt.refresh.observe import Finished, Observed
from fivm_dbt.refresh.reach import Reached
from fivm_dbt.refresh.report import Report
from fivm_dbt.spark.built_in_part import part_rows, write_parts
from fivm_dbt.spark.validate import validate
from fivm_dbt.steps.binding import BoundClock, staged_state
from fivm_dbt.steps.kinds import StageState
from fivm_dbt.steps.order import builds


@dataclass(frozen=True)
class PartialBuild:
    """What changes reach, which share of the model that is, and the seconds expected of a refresh and of its build."""

    reached: Reached
    share: float
    expected: Expected

    @property
    def text(self) -> str:
        """Why it is done, for people."""
        refresh, build = self.expected.refresh or 0.0, self.expected.build or 0.0
        part = f"{100 * self.share:.2g} % of it, which the changes reach,"
        return f"a refresh is expected to take {refresh:.1f} s, a build of {part} {build:.1f} s"


class PartialBuildRun(BuildRun):
    """The part of a run of a maintained model that builds what changes reach, and leaves the rest as it is."""

    def _build_parts(
        self, state: Finished, observed: dict[str, Observed], clock: BoundClock | None, part: PartialBuild
    ) -> Report:
        """Compute these parts of all views that have some, and write them with the head, in one commit."""
        plan, parts = self.plan, part.reached.parts
        self.decided(Decision("rebuilt", part.text, observed))
        binding = bind(plan, observed, buckets=int(state.finished.detail["buckets"]), clock=clock)
        built = replace(binding, before=self.base, tails=self.tail.views)
        built = built.while_built_in_part(plan, [p.view for p in parts], part.reached.within)
        self.engine.progress(f"building {100 * part.share:.2g} % of {plan.model}: {part.text}")
        read = {s.view.name for s in builds(plan) if isinstance(s, StageState)}
        staged = [p for p in parts if p.view.name in read]
        for one in staged:
            rows = part_rows(plan, one, built)
            self.engine.stage(staged_state(plan, one.view), rows)
        self._tell("rebuilt", part.text)
        self.anew = {}
        recorded = {name: record.snapshot for name, record in state.inputs.items()}
        detail = self._detail("refresh", observed, recorded, binding)
        covered = self._covered(state, {**detail, "touched": None, "built_share": part.share})
        assert self.head is not None
        head = next_head(self.head, covered)
        names = frozenset(p.view.name for p in staged)
        written = write_parts(plan, parts, built, names, head)
        validate(written.sql(dialect="spark"), [staged_state(plan, p.view) for p in staged])
        try:
            # Views that are not built are read in the same table.
            reads_others = not read <= {p.view.name for p in parts}
            note = head.note(plan.state_relation)
            self.engine.commit(written, note, self.base, reads_replaced=not reads_others)
        except Exception as error:
            self._not_built(error)
        self._committed(head)
        record_partitions(plan, self.engine, state.next_refresh, versions_read(binding), None)
        self._show()
        return self._report("rebuilt", state.next_refresh, reason=part.text)
