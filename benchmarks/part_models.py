"""Viewdf models of a benchmark: planned over a source with an event time, and over each other."""

from __future__ import annotations

from collections.abc import Mapping

from fivm_dbt.catalog import Catalog, Relation
from fivm_dbt.config import load_config
from fivm_dbt.features.viewdf.plan.planner import plan_viewdf
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import PART_TIMESTAMP, TimeParts
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.report import Report
from fivm_dbt.testing.workbench import TableSpec, Workbench


def part(relation: str, numbers: str = "'j'") -> str:
    """What ``fivm.part`` is compiled to."""
    return f"(select /*+ fivm_part({numbers}) */ * from {relation})"


def initialize(sql: str) -> str:
    """What a call of ``fivm.initialize`` is compiled to, in front of UPDATE."""
    return f"--fivm:initialize {sql}\n"


class PartModels:
    """Viewdf models over one source whose parts are of a ``length``, in the order in which they are refreshed."""

    def __init__(
        self, workbench: Workbench, source: TableSpec, event_time: str, *, length: str = "minute"
    ) -> None:
        self._workbench = workbench
        self._relations = [Relation(source.name, source.columns)]
        self._parts = {source.name: TimeParts(event_time, Length.of(length))}
        self._plans: dict[str, Plan] = {}

    @property
    def plans(self) -> Mapping[str, Plan]:
        return self._plans

    def add(self, name: str, sql: str, *, length: str | None = None) -> None:
        """Plan one more model, that may read those before it."""
        self._workbench.make_room(name)
        meta: dict[str, object] = {"fivm_start": "oldest"}
        if length is not None:
            meta["fivm_part_length"] = length
        request = ModelRequest(
            name, sql, Catalog.of(self._relations), load_config(meta), session=(("timezone", "UTC"),)
        )
        plan = plan_viewdf(request, self._parts, self._workbench.describe, self._workbench.columns_of)
        self._plans[name] = plan
        self._relations.append(Relation(name, plan.output, kind="fivm", presentation=plan.presentation))
        self._parts[name] = TimeParts(PART_TIMESTAMP, plan.parts.length, is_computed=True)

    def refresh(self, name: str) -> Report:
        return refresh(self._plans[name], self._workbench.engine)
