"""What a scenario's models mean on Spark: their own texts against what the planner makes of them, without Delta.

Every table is a view over its rows, so that a whole scenario takes about a second: nothing is written. The user's text
is run as it stands, and beside it what a model shows after a refresh: the presentation over the root state, which is a
view too, of the build query, or of the old state and the delta added up as MERGE would.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.queries.suite import Suite
from sqlglot import exp

from fivm_dbt.catalog import Catalog, Column, Relation, SparkType
from fivm_dbt.config import load_config
from fivm_dbt.engines.spark.engine import SparkEngine, on_session
from fivm_dbt.engines.spark.own_session import UNIONS
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.scalar import column_ast
from fivm_dbt.naming import COUNT, PARTITION, PREFIX, VIEW, canonical, relation_name, sibling, split_name
from fivm_dbt.plan.model.plan import FactorisedPlan, MaintainedPlan, Plan
from fivm_dbt.plan.model.view import View
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.engine import Row
from fivm_dbt.spark.capture import change_query
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.state import as_set, build_query, delta_query, key_set_query
from fivm_dbt.spark.states import as_stored
from fivm_dbt.sql.splice import splice_inputs
from fivm_dbt.sql.unfold import unfold
from fivm_dbt.steps.binding import Binding, BoundClock, BoundInput, staged_input, staged_state
from fivm_dbt.testing.check import column_types
from fivm_dbt.testing.compare import compare_rows
from fivm_dbt.testing.scenario import Model, RawRows, Scenario
from fivm_dbt.testing.scenario_plans import database_views, table_specs
from fivm_dbt.testing.spark_workbench import TINY, rows_of_file, values_query
from fivm_dbt.testing.values import to_rows
from fivm_dbt.testing.workbench import TableSpec

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLD, NEW = 1, 2
"""The versions of every table in the statements of a plan: views here."""

BUCKETS = 4

Views = Mapping[str, str]
"""The tables at one time: the query for the rows of each, by canonical name."""


@dataclass(frozen=True)
class State:
    """The tables at one time, and the rows that models are expected to have then, where that is known."""

    views: Views
    expected: Mapping[str, RawRows] = field(default_factory=dict)


@dataclass(frozen=True)
class Subject:
    """Models over tables that pass through states. ``may_refuse`` says that no plan is no problem."""

    tables: tuple[TableSpec, ...]
    models: tuple[Model, ...]
    states: tuple[State, ...]
    may_refuse: bool = False
    keys: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    """Declared keys, by the canonical name of their table."""

    @staticmethod
    def of_scenario(scenario: Scenario, *, may_refuse: bool = False) -> Subject:
        specs = table_specs(scenario)
        states = []
        for rows, expected in _contents(scenario):
            views = {specs[n].name: values_query(specs[n], rows[n]) for n in specs}
            # A text reads today's clock, and not the scenario's.
            states.append(State(views, {} if scenario.now is not None else expected or {}))
        keys = {specs[name].name: declared for name, declared in scenario.keys.items()}
        views_ = database_views(scenario)
        models = (m.model_copy(update={"sql": unfold(m.sql, views_).sql}) for m in scenario.models)
        return Subject(tuple(specs.values()), tuple(models), tuple(states), may_refuse, keys)

    @staticmethod
    def of_suite(suite: Suite, name: str) -> Subject:
        """One query of a suite, before its batches and after each."""
        query = next(q for q in suite.queries if q.name == name)
        specs = {
            table.name: table for table in suite.tables if re.search(rf"\b{table.name}\b", query.sql, re.I)
        }
        views = {n: _first_rows(spec, suite.contents[n]) for n, spec in specs.items()}
        states = [State(views)]
        for batch in suite.batches:
            moved = {n: c for n, c in batch.changes.items() if n in specs}
            views = {
                **views,
                **{n: _changed(specs[n], views[n], c.insert, c.delete) for n, c in moved.items()},
            }
            states.append(State(views))
        return Subject(tuple(specs.values()), (Model(name=name, sql=query.sql),), tuple(states))


def _first_rows(table: TableSpec, contents: tuple[Row, ...] | Path) -> str:
    return rows_of_file(table, contents) if isinstance(contents, Path) else values_query(table, contents)


def _changed(table: TableSpec, rows: str, insert: Sequence[Row], delete: Sequence[Row]) -> str:
    return f"({rows} EXCEPT ALL {values_query(table, delete)}) UNION ALL {values_query(table, insert)}"


def _contents(
    scenario: Scenario,
) -> Iterator[tuple[dict[str, tuple[Row, ...]], Mapping[str, RawRows] | None]]:
    """The tables' rows at the beginning and after each step, and what is expected of the models then."""
    types = column_types(scenario)

    def typed(tables: Mapping[str, RawRows]) -> dict[str, tuple[Row, ...]]:
        return {name: to_rows(raw, types[name]) for name, raw in tables.items()}

    rows = {**dict.fromkeys(types, ()), **typed(scenario.initial)}
    yield rows, scenario.initial_expected
    for step in scenario.steps:
        rows = {**rows, **typed(step.recreate), **typed(step.replace)}
        came = typed({n: c.insert for n, c in step.delta.items()})
        gone = typed({n: c.delete for n, c in step.delta.items()})
        for name in step.delta:
            left = Counter(rows[name])
            left.subtract(gone[name])
            left.update(came[name])
            rows[name] = tuple(left.elements())
        yield rows, step.expected


@dataclass
class Meaning:
    """Runs models on a session that shares its context, but not its settings, with the other tests."""

    session: SparkSession
    engine: SparkEngine
    made: list[str] = field(default_factory=list)

    @staticmethod
    def beside(session: SparkSession) -> Meaning:
        own = session.newSession()
        for key, value in {**TINY, UNIONS: "false"}.items():
            own.conf.set(key, value)
        return Meaning(own, SparkEngine(on_session(own), own))

    def problems(self, subject: Subject, *, deltas: bool) -> list[str]:
        """Where a text and its plan differ, or the text and the rows that are expected; with ``deltas`` also where the
        old state and the delta of a step are not the new state."""
        try:
            return list(_Check(self, subject, deltas).problems())
        finally:
            for made in dict.fromkeys(reversed(self.made)):
                self.session.sql(f"DROP {made}")
            self.made.clear()

    def rows(self, sql: str) -> tuple[tuple[Column, ...], list[Row]]:
        frame = self.session.sql(sql)
        columns = tuple(Column.of(f.name, f.dataType.simpleString()) for f in frame.schema.fields)
        return columns, [tuple(_hashable(v) for v in row) for row in frame.collect()]

    def view(self, name: str, sql: str) -> None:
        """A view of a query, which is analysed once. Under a name with a schema it is for good, and a state a table:

        a view for good could not read what is staged.
        """
        if len(split_name(name)) == 1:
            self.session.sql(sql).createOrReplaceTempView(name)
            self.made.append(f"VIEW {name}")
            return
        schema = relation_name(*split_name(name)[:-1])
        if f"SCHEMA {schema} CASCADE" not in self.made:
            self.session.sql(f"CREATE SCHEMA {schema}")
            self.made.append(f"SCHEMA {schema} CASCADE")
        if f"{PREFIX}root" in name or f"{PREFIX}state" in name:
            self.session.sql(sql).write.mode("overwrite").saveAsTable(name)
        else:
            self.session.sql(f"CREATE OR REPLACE VIEW {name} AS\n{sql}")


class _Check:
    def __init__(self, meaning: Meaning, subject: Subject, deltas: bool) -> None:
        self.meaning = meaning
        self.subject = subject
        self.deltas = deltas
        self.plans: dict[str, Plan] = {}
        self.changed: set[str] = set()

    def problems(self) -> Iterator[str]:
        before: Views = {}
        for number, state in enumerate(self.subject.states):
            self._show(state.views, before)
            if number == 0:
                yield from self._plan()
            if number and self.deltas:
                self._remember(before)
            if number and len(self.subject.models) > 1:
                for model in self.subject.models:
                    self.meaning.view(canonical(model.name), self._text(model))
            for model in self.subject.models:
                expected = state.expected.get(model.name)
                for what in self._different(model, expected, is_step=number > 0):
                    yield f"state {number}, {model.name}: {what}"
            before = state.views

    # The tables

    def _show(self, views: Views, before: Views) -> None:
        """Views of the tables that changed."""
        self.changed = {name for name, rows in views.items() if before.get(name) != rows}
        for name in self.changed:
            self.meaning.view(name, views[name])

    def _remember(self, before: Views) -> None:
        """Views of how the tables that changed, and the models over them, were before."""
        for name in sorted(self.changed):
            self.meaning.view(_old(name), before[name])
        if len(self.subject.models) > 1:
            for model in self.subject.models:
                text = self._text(model)
                sql = splice_inputs(text, {n: f"(SELECT * FROM {_old(n)})" for n in self.changed})
                if sql != text:
                    self.changed.add(canonical(model.name))
                    self.meaning.view(_old(canonical(model.name)), sql)

    # The models

    def _plan(self) -> Iterator[str]:
        """Plan every model as dbt does; the models before it are views of their texts."""
        relations = [
            Relation(spec.name, spec.columns, keys=self.subject.keys.get(spec.name, ()))
            for spec in self.subject.tables
        ]
        describe = self.meaning.engine.describe
        for model in self.subject.models:
            name = canonical(model.name)
            if len(self.subject.models) > 1:
                self.meaning.view(name, model.sql)
            config = load_config(model.config, model=model.name)
            try:
                plan = plan_model(ModelRequest(name, model.sql, Catalog.of(relations), config), describe)
            except FivmError as error:
                columns = describe(model.sql)
                if not self.subject.may_refuse:
                    yield f"{model.name} is refused: {error}"
            else:
                columns = plan.output
                if isinstance(plan, MaintainedPlan):  # else what it shows is its text
                    self.plans[model.name] = plan
                if plan.completions and len(self.subject.models) > 1:
                    self.meaning.view(name, plan.completed_sql)
            relations.append(Relation(name, columns))

    def _text(self, model: Model) -> str:
        """The model's text, completed where it depends on ties."""
        plan = self.plans.get(model.name)
        return model.sql if plan is None else plan.completed_sql

    def _different(self, model: Model, expected: RawRows | None, *, is_step: bool) -> Iterator[str]:
        """What differs between a model's text, the scenario's rows, and the plan over the tables as they are now."""
        columns, wanted = self.meaning.rows(self._text(model))
        types = [c.type for c in columns]
        if expected is not None:
            yield from _rows_differ(wanted, to_rows(expected, types), types, "text", "expected")
        plan = self.plans.get(model.name)
        if plan is None:
            return
        yield from _columns_differ("planned", plan.output, columns)
        ways = {"built": self._built(plan, NEW)}
        is_broken = any(i.is_static and i.name in self.changed for i in plan.inputs)
        if is_step and self.deltas and not is_broken:  # a promise that is broken leads to a rebuild
            ways["old plus delta"] = self._added_up(plan)
        for way, state in ways.items():
            self._keep(plan, state, NEW)
            shown, found = self.meaning.rows(plan.presentation.sql)
            yield from _columns_differ(way, shown, columns)
            yield from _rows_differ(found, wanted, types, way, "text")

    def _keep(self, plan: Plan, state: str, version: int) -> None:
        """Let a root state be there, by itself and in the table of all states."""
        names = [plan.root.relation, plan.state_relation]
        own, every = names if version == NEW else map(_old, names)
        self.meaning.view(own, state)
        if plan.top in plan.stored:
            self.meaning.view(every, as_stored(plan, [(plan.top, table(own))]).sql(dialect="spark"))

    def _built(self, plan: Plan, version: int) -> str:
        """The root state over the inputs at a version, its inner views as views of their states."""
        inputs = tuple(BoundInput(i.name, "version difference", None, version) for i in plan.inputs)
        binding = Binding(inputs, frozenset(), BUCKETS, clock=self._clock(plan))
        for view in plan.helpers:
            shown = view.name if version == NEW else _old(view.name)
            self.meaning.view(shown, self._state(plan, view, binding))
            binding = binding.with_view(BoundInput(view.name, "static", None, version), is_changed=False)
        return self._state(plan, plan.top, binding)

    def _clock(self, plan: Plan) -> BoundClock | None:
        """The time of the texts, which read the clock themselves: now, on both sides."""
        if not plan.clock_kinds:
            return None
        now = self.meaning.engine.clock().only(plan.clock_kinds)
        return BoundClock(now, now)

    def _state(self, plan: Plan, view: View, binding: Binding) -> str:
        return self._over_views(build_query(plan, view, binding))

    def _added_up(self, plan: Plan) -> str:
        """The old root state and the delta, added up as MERGE does; of inner views too, whose change is then staged."""
        moved = frozenset(i.name for i in plan.inputs if i.name in self.changed)
        self._keep(plan, self._built(plan, OLD), OLD)
        inputs = tuple(BoundInput(i.name, "version difference", OLD, NEW) for i in plan.inputs)
        for bound in inputs:
            if bound.name in moved:
                self._stage(staged_input(plan, bound.name), change_query(plan, bound))
        binding = Binding(inputs, moved, BUCKETS, OLD, clock=self._clock(plan), losing=moved)
        for view in plan.helpers:
            added, binding = self._with_delta(plan, view, binding)
            self.meaning.view(view.name, added)
            bound = BoundInput(view.name, "version difference", OLD, NEW)
            self._stage(staged_input(plan, view.name), change_query(plan, bound))
            binding = binding.with_view(bound, is_changed=binding.is_changed_by(view))
        if isinstance(plan, FactorisedPlan):  # joined when it is read, of its inner views as they are then
            return self._state(plan, plan.top, binding)
        return self._with_delta(plan, plan.top, binding)[0]

    def _with_delta(self, plan: Plan, view: View, binding: Binding) -> tuple[str, Binding]:
        """A view's old state and its delta, added up; the binding with the key sets that it looks up."""
        state = view.state
        columns = [
            *(column_ast("", k.name) for k in state.keys),
            *(exp.column(n) for n in state.payload_names),
        ]
        once = exp.alias_(exp.cast(exp.Literal.number(1), "bigint"), COUNT)
        stored = [once if state.is_set and c.name == COUNT else c for c in columns]
        rows: exp.Query = exp.select(*stored).from_(table(_old(state.relation)))
        for key_set in view.key_sets:
            keys_query = key_set_query(plan, view, key_set, binding)
            if keys_query is not None:
                self._stage(staged_input(plan, key_set.name), keys_query)
                binding = replace(binding, changed=binding.changed | {key_set.name})
        if binding.is_changed_by(view):
            staged = staged_state(plan, view)
            self._stage(staged, delta_query(plan, view, binding))
            rows = exp.union(rows, exp.select(*columns).from_(table(staged)), distinct=False)
        keys = columns[: len(state.keys)]
        sums = [exp.alias_(exp.Sum(this=exp.column(n)), n) for n in state.payload_names]
        place = exp.alias_(exp.Literal.string("n"), PARTITION)
        query = exp.select(*keys, *sums, place).from_(rows.subquery("both"))
        if keys:
            query = query.group_by(*keys)
        if not state.is_global:
            query = query.having(
                exp.NEQ(this=exp.Sum(this=exp.column(COUNT)), expression=exp.Literal.number(0))
            )
        return (as_set(state, query) if state.is_set else query).sql(dialect="spark"), binding

    def _stage(self, name: str, query: exp.Expr) -> None:
        """Rows to be read by their name, as a refresh stages them: whoever reads them does not analyse their query."""
        self.meaning.engine.stage(name, self._over_views(query))
        self.meaning.made.append(f"VIEW {name}")

    def _states(self) -> frozenset[str]:
        """The states of all views, of which there are views as they were."""
        views = frozenset(v.name for p in self.plans.values() for v in p.views)
        return views | {p.root.relation for p in self.plans.values()}

    def _over_views(self, query: exp.Expr) -> str:
        """A statement with each pinned table replaced by the view that stands for that version."""
        for source in list(query.find_all(exp.Table)):
            version = source.args.pop("version", None)
            if version is None:
                continue
            name, is_old = (
                canonical(relation_name(*(part.name for part in source.parts))),
                version.expression.name == str(OLD),
            )
            owner = next(
                (
                    p
                    for p in self.plans.values()
                    if isinstance(p, MaintainedPlan) and p.state_relation == name
                ),
                None,
            )
            if owner is not None:
                view = _view_read(owner, source)
                own = as_stored(owner, [(view, table(_old(view.name) if is_old else view.name))])
                source.replace(own.subquery(source.args.get("alias") or "state", copy=False))
            elif is_old and (name in self.changed or name in self._states()):
                old = table(_old(name))
                old.set("alias", source.args.get("alias"))
                source.replace(old)
        return query.sql(dialect="spark")


def _view_read(plan: Plan, source: exp.Expr) -> View:
    """Whose rows are read of the table of all states."""
    select = source.find_ancestor(exp.Select)
    assert select is not None
    labels = {e.expression.name for e in select.args["where"].find_all(exp.EQ) if e.this.name == VIEW}
    return next(v for v in plan.views if plan.layout.label(v) in labels)


def _old(relation: str) -> str:
    return sibling(relation, "old")


def _columns_differ(label: str, seen: tuple[Column, ...], columns: tuple[Column, ...]) -> Iterator[str]:
    if seen != columns:
        shown = [", ".join(f"{c.name} {c.type}" for c in side) for side in (seen, columns)]
        yield f"{label} columns are {shown[0]}\n  instead of {shown[1]}"


def _rows_differ(
    left: Sequence[Row], right: Sequence[Row], types: Sequence[SparkType], label: str, reference: str
) -> Iterator[str]:
    lines = compare_rows(left, right, types).lines(label, reference)
    if lines:
        yield "\n".join([f"{label} is not {reference}", *lines])


def _hashable(value: object) -> object:
    if isinstance(value, dict):
        return tuple(sorted((str(k), _hashable(v)) for k, v in value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(_hashable(v) for v in value)
    return value
