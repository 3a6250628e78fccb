"""Which views are kept is decided when a state is built, and stays so until it is built anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

import fivm_dbt.plan.keep.trees.factorise as factorise
from fivm_dbt.catalog import Catalog, Presentation, Relation, TableStatistics
from fivm_dbt.config import Config, load_config
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.text import explain
from fivm_dbt.naming import state_of
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.layout import Planner, Promises, recorded_statistics, settled_plan
from fivm_dbt.refresh.measure import measure
from fivm_dbt.refresh.report import Report
from fivm_dbt.spark.formats import NotVersioned
from fivm_dbt.spark.reads import shown_summed
from fivm_dbt.viewtree.statistics import Upkeep
from fixtures.models import Bench, relation
from fixtures.runs import by_run

TABLES = {
    "l": ("ok int, day date, price decimal(12,2)", 40),
    "o": ("ok int, ck int", 20),
    "c": ("ck int, seg string", 4),
}
SQL = """select l.day, c.seg, count(*) as lines, sum(l.price) as revenue
from l join o on l.ok = o.ok join c on o.ck = c.ck group by 1, 2"""
ROWS = {
    "l": [(i % 20, "2024-01-01", i) for i in range(40)],
    "o": [(i, i % 4) for i in range(20)],
    "c": [(i, "ab"[i % 2]) for i in range(4)],
}


class Laid:
    """A model that is planned as in dbt: by the head, or by what is measured."""

    is_read = False

    def __init__(self) -> None:
        self.relations = [relation(name, columns) for name, (columns, _) in TABLES.items()]
        self.bench = Bench(self.planner()(None))
        for item in self.relations:
            self.bench.engine.create_table(item.name, item.columns, ROWS[item.name], change_feed=True)
        self.told: list[str] = []

    def planner(self, sql: str = SQL, **meta: object) -> Planner:
        def plan(measured: TableStatistics | None, promises: Promises | None = None) -> Plan:
            catalog = Catalog.of(self.relations)
            catalog = catalog if promises is None else catalog.promising(promises)
            config = load_config(meta)
            request = ModelRequest(
                "analytics.m", sql, catalog, config, measured=measured, is_read=self.is_read
            )
            return plan_model(request)

        return plan

    def run(self, planner: Planner | None = None, *, full_refresh: bool = False) -> Report:
        self.told = []
        bench = self.bench
        state = read_state(bench.engine, state_of("analytics.m"))
        plan = settled_plan(
            planner or self.planner(),
            bench.engine,
            state,
            full_refresh=full_refresh,
            progress=self.told.append,
        )
        bench.plan = plan
        report = refresh(plan, bench.engine, full_refresh=full_refresh, state=state)
        bench.check()
        return report

    @property
    def has_helpers(self) -> bool:
        return bool(self.bench.plan.helpers)

    def grow(self) -> None:
        self.bench.engine.change("l", insert=[(i % 20, "2024-01-02", i) for i in range(400)])
        self.bench.engine.change("c", insert=[(9, "z")])


@pytest.fixture
def laid(monkeypatch: pytest.MonkeyPatch) -> Laid:
    """Upkeep costs as much as reading four rows."""
    monkeypatch.setattr(factorise, "APPENDED", Upkeep(4, 0))
    return Laid()


def test_rows_and_values_are_measured(laid: Laid) -> None:
    measured = measure(laid.bench.plan, laid.bench.engine)
    assert dict(measured.rows) == {"l": 40, "o": 20, "c": 4}
    assert measured.distinct_of("c", "seg") == 2 and measured.distinct_of("l", "day") == 1
    assert {column for (name, column), _ in measured.distinct if name == "o"} == {"ok", "ck"}


def test_a_model_below_is_measured_through_its_view(laid: Laid) -> None:
    """Its rows lie in a state: a view has no size, on Spark neither."""
    laid.run()
    plan, engine = laid.bench.plan, laid.bench.engine
    with pytest.raises(NotVersioned):
        engine.size(plan.relation)
    shown = Presentation(plan.state_relation, shown_summed(plan).sql(dialect="spark"), is_summed=True)
    below = Relation(plan.relation, plan.shown, kind="fivm", presentation=shown)
    sql = f"select o.ck, m.day, sum(m.revenue) as r from {below.name} m join c on m.seg = c.seg join o on c.ck = o.ck"
    catalog = Catalog.of([*laid.relations, below])
    above = plan_model(ModelRequest("analytics.above", f"{sql} group by 1, 2", catalog, Config()))
    assert isinstance(above, MaintainedPlan) and below.name in dict(above.measurable)
    monthly = laid.bench.shown()
    assert measure(above, engine).rows_of(below.name) == sum(monthly.values()) > 0


def test_a_layout_is_kept_until_a_rebuild(laid: Laid) -> None:
    assert laid.run().action == "built"
    assert laid.told == ["measuring c, l, o"]
    assert laid.has_helpers
    recorded = recorded_statistics(read_state(laid.bench.engine, state_of("analytics.m")))
    assert recorded is not None and recorded == laid.bench.plan.measured
    for _ in range(3):
        # Other sizes by now: every head repeats those of the build.
        laid.grow()
        assert laid.run().action == "refreshed"
        assert laid.told == [] and laid.bench.plan.measured == recorded
    assert laid.run(full_refresh=True).action == "rebuilt"
    assert laid.bench.plan.measured is not None and laid.bench.plan.measured.rows_of("l") == 1240


def test_another_plan_is_laid_out_anew(laid: Laid) -> None:
    laid.run()
    laid.grow()
    assert laid.run(laid.planner(SQL + " having count(*) > 1")).action == "rebuilt"
    assert laid.bench.plan.measured is not None and laid.bench.plan.measured.rows_of("l") == 440
    assert laid.run(laid.planner(fivm_strategy="first_order")).action == "rebuilt"
    assert laid.told == [] and not laid.has_helpers and laid.bench.plan.measured is None


def test_a_state_of_before_sizes_were_measured_goes_on(laid: Laid) -> None:
    laid.bench.refresh()
    assert not laid.has_helpers
    laid.grow()
    assert laid.run().action == "refreshed"
    assert laid.told == [] and not laid.has_helpers
    laid.run(full_refresh=True)
    assert laid.has_helpers


def test_a_reader_decides_about_the_layout_when_it_is_built(laid: Laid) -> None:
    """Where the change feed is read nothing is appended, and a view costs more; a layout stays as it is."""
    laid.run()
    assert laid.has_helpers and laid.bench.plan.measured is not None and laid.bench.plan.measured.appends
    laid.is_read = True
    laid.grow()
    assert laid.run().action == "refreshed" and laid.has_helpers
    assert laid.run(full_refresh=True).action == "rebuilt" and not laid.has_helpers
    assert laid.bench.plan.measured is not None and not laid.bench.plan.measured.appends


def test_what_has_neither_a_join_nor_a_time_is_not_measured(laid: Laid) -> None:
    laid.run(laid.planner("select ok, count(*) as n from l group by ok"))
    assert laid.told == [] and laid.bench.plan.measured is None


def test_of_what_has_a_time_the_days_are_counted(laid: Laid) -> None:
    """A few rows a month are kept by year, and stay so."""
    sql = "select day, count(*) as n from l group by day"
    laid.run(laid.planner(sql))
    assert laid.told == ["measuring l"]
    laid.grow()
    assert laid.run(laid.planner(sql)).action == "refreshed" and laid.told == []
    assert laid.bench.plan.top.state.partitioning.reason == "year of key day"


def test_an_input_that_is_gone_is_said_by_the_build(laid: Laid) -> None:
    laid.bench.engine.tables.drop("c")
    with pytest.raises(FivmError, match="FIVM302"):
        laid.run()


RANKED = "select day, ok, price, row_number() over (order by day) as n from l"


def test_a_key_that_is_declared_later_is_used_from_the_next_build_on(laid: Laid) -> None:
    """By it another one of several equal rows is the first: no row of the state need be right then."""
    plain = laid.relations
    declared = [replace(r, keys=(("price",),)) if r.name == "l" else r for r in plain]
    ranked = laid.planner(RANKED)
    assert laid.run(ranked).action == "built"
    assert laid.bench.plan.completions
    laid.relations = declared
    assert ranked(None).plan_hash != laid.bench.plan.plan_hash
    assert laid.run(ranked).action == "no change"
    laid.bench.engine.change("l", insert=[(3, "2024-01-02", 77)])
    assert laid.run(ranked).action == "refreshed"
    assert laid.run(ranked, full_refresh=True).action == "rebuilt"
    assert laid.bench.plan.plan_hash == ranked(laid.bench.plan.measured).plan_hash
    laid.relations = plain
    assert laid.run(ranked).action == "rebuilt", "what is not declared any more is not relied on"


def _refresh_often(laid: Laid, name: str, seconds: float) -> None:
    """One refresh after a change of this input, which took so long."""
    laid.bench.engine.change(name, insert=[{"l": (3, "2024-01-03", 5), "c": (3, "b"), "o": (7, 1)}[name]])
    assert laid.run().action == "refreshed"
    laid.bench.took(seconds)


def _served(laid: Laid) -> list[str]:
    """What the inner views are of."""
    return [view.reason.split(",")[0] for view in laid.bench.plan.helpers]


def test_views_for_what_does_not_change_are_not_kept(laid: Laid) -> None:
    """After twenty refreshes it is known what changes; a build makes use of it, and so does the one after it."""
    for name, views in (("l", ["view of o"]), ("c", ["view of l"])):
        laid.run()
        for _ in range(21):
            _refresh_often(laid, name, 1.0)
        for _ in range(2):
            assert laid.run(full_refresh=True).action == "rebuilt"
            assert _served(laid) == views
            measured = laid.bench.plan.measured
            assert measured is not None and dict(measured.changed) == {name: 1.0}
    assert "not kept, for deltas of l, o alone, which have not changed lately" in explain(laid.bench.plan)


@pytest.mark.parametrize("rebuild", by_run(["auto"], more=["never"]))
def test_views_are_made_when_their_lack_has_cost_a_build(laid: Laid, rebuild: str) -> None:
    planner = laid.planner(fivm_rebuild=rebuild)
    laid.run(planner)
    for _ in range(21):
        _refresh_often(laid, "c", 1.0)
    laid.run(planner, full_refresh=True)
    laid.bench.took(4.0)
    for _ in range(2):
        _refresh_often(laid, "l", 4.0)
    _refresh_often(laid, "c", 1.0)
    _refresh_often(laid, "l", 4.0)
    assert _served(laid) == ["view of l"]
    laid.bench.engine.change("l", insert=[(2, "2024-01-01", 8)])
    # Two refreshes are known that took three seconds more than the least one: more than the build.
    assert laid.run(planner).action == ("rebuilt" if rebuild == "auto" else "refreshed")
    assert (_served(laid) != ["view of l"]) is bool(laid.told) is (rebuild == "auto")
    assert laid.run(planner).action == "no change"


def test_what_is_built_again_and_again_keeps_no_inner_views(laid: Laid) -> None:
    """One refresh was dear, and twice a build stood in the place of the next one: there is no use for views then."""
    laid.run()
    assert laid.has_helpers
    actions = []
    for number in range(5):
        laid.bench.took(60.0 if laid.bench.finished.detail["kind"] == "refresh" else 5.0)
        laid.bench.engine.change("l", insert=[(number, "2024-01-02", number)])
        actions.append((laid.run().action, laid.has_helpers))
    assert actions == [
        ("refreshed", True), ("rebuilt", True), ("rebuilt", True), ("rebuilt", False), ("rebuilt", False)
    ]  # fmt: skip
    laid.run(full_refresh=True)
    assert laid.has_helpers, "who asks for a build has them chosen anew"
