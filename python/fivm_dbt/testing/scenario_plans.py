"""A scenario's models have plans: each sees the tables and the models before it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal
from zlib import crc32

from fivm_dbt.catalog import (
    Catalog,
    Column,
    DatabaseView,
    EventTime,
    ForeignKey,
    KeyRange,
    Relation,
    SparkType,
    TableStatistics,
)
from fivm_dbt.config import load_config
from fivm_dbt.errors import FivmError
from fivm_dbt.features.viewdf.plan.planner import plan_viewdf
from fivm_dbt.features.viewdf.testing.text import compiled
from fivm_dbt.naming import canonical
from fivm_dbt.parts.length import Length, duration
from fivm_dbt.parts.parted import PART_TIMESTAMP, TimeParts
from fivm_dbt.plan.model.inputs import Reader
from fivm_dbt.plan.model.plan import FactorisedPlan, Plan
from fivm_dbt.plan.planner import columns_as_read, plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.sql.typing import Describe
from fivm_dbt.testing.scenario import Model, Scenario, TableOptions
from fivm_dbt.testing.workbench import TableSpec, Workbench


@dataclass(frozen=True)
class Forced:
    """What holds for all models of a replay: results kept as factors, of models that no other reads and where that can
    be; changes applied at every second step only; a ``fivm_inequality``, where a model has any use for it; changes of
    any size looked at for products; a ``fivm_apply``, with which every third refresh folds.
    """

    is_factorized: bool = False
    is_lazy: bool = False
    inequality: str | None = None
    meets_products: bool = False
    apply: str | None = None


NOTHING = Forced()

_SESSION = (("timezone", "UTC"),)
"""Sessions of scenarios are in UTC, on both engines."""


def plan_models(
    scenario: Scenario, workbench: Workbench, strategy: str | None = None, forced: Forced = NOTHING
) -> tuple[Plan, ...]:
    """The plans of a scenario's models, each seeing the tables and the models before it. Raises FivmError."""
    planner = ScenarioPlanner(scenario, workbench, strategy, forced)
    return tuple(planner.plan(model) for model in scenario.models)


_SIZES = (10, 100_000, 10_000_000)
"""Rows that tables are taken to have where ``auto`` is to choose: scenarios have a few, of which no view pays."""


_COUNTED_UP = KeyRange(0, 31, 2**19)
"""Four numbers are a range."""


class ScenarioPlanner:
    """Plans the models of a scenario one by one; one that is refused is not there for those after it.

    With the strategy ``auto`` said aloud, tables are taken to be small or large by their names, so that it has to
    choose.
    """

    def __init__(
        self,
        scenario: Scenario,
        workbench: Workbench,
        strategy: str | None = None,
        forced: Forced = NOTHING,
    ) -> None:
        self._scenario = scenario
        self._forced = forced
        self._workbench = workbench
        self._strategy = strategy
        self._has_several = len(scenario.models) > 1
        self._relations = {name: _relation(scenario, name) for name in scenario.tables}
        self._views = database_views(scenario)
        self._parts = _time_parts(scenario)
        self._measured = imagined_statistics(scenario) if strategy == "auto" else None

    def plan(self, model: Model) -> Plan:
        """The plan of the next model. Raises FivmError."""
        if model.materialized == "viewdf":
            return self._planned_by_parts(model)
        settings = {**model.config, **({"fivm_strategy": self._strategy} if self._strategy else {})}
        if self._forced.is_lazy:
            settings["fivm_refresh"] = "lazy"
        if self._forced.apply is not None:
            settings |= {"fivm_apply": self._forced.apply, "fivm_fold_after": 2}
        if self._forced.meets_products:
            settings["fivm_product_rows"] = 1
        tried: dict[str, Any] = {}
        if self._forced.is_factorized and not self._readers(model):
            tried["fivm_result"] = "factorized"
        # What a model has asked for need not go with another strategy.
        inequality = settings.pop("fivm_inequality", None) if self._strategy else None
        if self._forced.inequality or inequality:
            tried["fivm_inequality"] = self._forced.inequality or inequality
        while True:
            try:
                return self._planned(model, settings | tried)
            except FivmError as error:
                refused = [key for key in tried if key in error.message]
                if not refused:
                    raise
                tried = {key: value for key, value in tried.items() if key not in refused}

    def _readers(self, model: Model) -> tuple[str, ...]:
        """The other models that may read this one."""
        called = model.name.split(".")[-1].lower()
        if any(called in v.sql.lower() for v in self._views):
            called = ""  # Whoever reads a view may read this one.
        others = (m for m in self._scenario.models if m is not model)
        return tuple(canonical(m.name) for m in others if called in m.sql.lower())

    def _planned(self, model: Model, settings: dict[str, Any]) -> Plan:
        config = load_config(settings, model=model.name)
        catalog = Catalog.of(self._relations.values(), self._views)
        # A change feed is read in scenarios of several models, as far as anybody knows; nobody appends to one that is.
        is_read = bool(self._readers(model)) if self._forced.apply == "append" else self._has_several
        name = canonical(model.name)
        request = ModelRequest(
            name, model.sql, catalog, config, is_read=is_read, measured=self._measured, session=_SESSION
        )
        plan = plan_model(request, self._workbench.describe, self._columns_of(request))
        self._workbench.check_meaning(plan.query, plan.completed_sql)
        self._know(model, plan)
        return plan

    def _planned_by_parts(self, model: Model) -> Plan:
        """A viewdf model: what holds for all models of a replay does not concern it."""
        text = compiled(model.sql, canonical(model.name), [r.name for r in self._relations.values()])
        request = ModelRequest(
            canonical(model.name),
            text,
            Catalog.of(self._relations.values()),
            load_config(model.config, model=model.name),
            is_read=self._has_several,
            readers=tuple(Reader.of(name) for name in self._readers(model)),
            session=_SESSION,
        )
        plan = plan_viewdf(request, self._parts, self._workbench.describe, self._workbench.columns_of)
        self._parts[plan.relation] = TimeParts(PART_TIMESTAMP, plan.parts.length, None, is_computed=True)
        self._know(model, plan)
        return plan

    def _know(self, model: Model, plan: Plan) -> None:
        """Let later models read this one."""
        if isinstance(plan, FactorisedPlan):
            shown = Relation(plan.relation, plan.output, kind="factorized")
        else:
            kind: Literal["table", "fivm"] = "table" if plan.read_by is None else "fivm"
            shown = Relation(plan.relation, plan.shown, kind=kind, presentation=plan.read_by)
        self._relations[model.name] = shown

    def _columns_of(self, request: ModelRequest) -> Describe:
        """The columns of a model that is recomputed: those that Spark would give, where the engine is another one."""
        if self._workbench.describe is not None:
            return self._workbench.describe

        def columns(question: str) -> tuple[Column, ...]:
            try:
                return columns_as_read(request)
            except FivmError:
                return self._workbench.columns_of(question)

        return columns


def imagined_statistics(scenario: Scenario) -> TableStatistics:
    """Sizes of a scenario's tables that are not true, and always the same; some columns of numbers are counted up."""
    sizes = {canonical(n): _SIZES[crc32(n.encode()) % len(_SIZES)] for n in scenario.tables}
    ranges = {
        (canonical(n), name): _COUNTED_UP
        for n, columns in scenario.tables.items()
        for name, type_ in columns
        if (SparkType.of(type_).is_integral or SparkType.of(type_).is_temporal)
        and crc32(f"{n} {name}".encode()) % 2
    }
    return TableStatistics.of(sizes, appends=True, ranges=ranges)


def _time_parts(scenario: Scenario) -> dict[str, TimeParts]:
    """The tables that are divided by time. Raises FIVM201 for a length that is none."""
    found = {}
    for name, options in scenario.tables_options.items():
        if options.event_time is not None:
            length, lateness = options.fivm_part_length, options.fivm_lateness
            found[canonical(name)] = TimeParts(
                options.event_time,
                None if length is None else Length.of(length, options.fivm_time_zone or "UTC"),
                None if lateness is None else duration(lateness),
            )
    return found


def database_views(scenario: Scenario) -> tuple[DatabaseView, ...]:
    """The views of a scenario; names in them are flat."""
    return tuple(DatabaseView(canonical(v.name), v.sql, names=v.columns) for v in scenario.views)


def table_specs(scenario: Scenario) -> dict[str, TableSpec]:
    """The tables of a scenario as a workbench creates them."""
    return {
        name: TableSpec(
            canonical(name),
            tuple(Column.of(column, type_) for column, type_ in columns),
            scenario.tables_options.get(name, TableOptions()),
            scenario.partition_by.get(name, ()),
        )
        for name, columns in scenario.tables.items()
    }


def _relation(scenario: Scenario, name: str) -> Relation:
    options = scenario.tables_options.get(name, TableOptions())
    foreign = tuple(
        ForeignKey(f.columns, canonical(f.target), f.target_columns)
        for f in scenario.foreign_keys
        if f.table == name
    )
    return Relation(
        canonical(name),
        tuple(Column.of(column, type_) for column, type_ in scenario.tables[name]),
        is_static=options.static,
        is_recreated=options.seed,
        keys=scenario.keys.get(name, ()),
        foreign_keys=foreign,
        event_time=_event_time(options),
    )


def _event_time(options: TableOptions) -> EventTime | None:
    if options.event_time is None:
        return None
    part, lateness = (
        None if o is None else str(o) for o in (options.fivm_part_length, options.fivm_lateness)
    )
    return EventTime(options.event_time, part, lateness)
