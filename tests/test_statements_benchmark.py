"""What ``python -m benchmarks.statements`` measures: models of so many inner views, and figures held against bars."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import benchmarks.statements
import pytest
from benchmarks.statement_models import Inputs, Shape, model_sql
from benchmarks.statement_runs import EACH_KEPT, Cost, Figures, Run
from benchmarks.statements import bars
from benchmarks.timed import Timing
from click.testing import CliRunner

from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.plan.model.plan import MaintainedPlan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest

TABLES = {
    "raw.orders": "id bigint, customer_id bigint, day date, year int, amount decimal(10,2)",
    "raw.customers": "customer_id bigint, segment string",
}


@pytest.mark.parametrize(
    "shape, helpers", [("stacked", n) for n in (0, 1, 3, 10)] + [("joined", 3), ("joined", 10)]
)
def test_a_model_has_as_many_inner_views_as_wanted(shape: Shape, helpers: int) -> None:
    relations = [
        Relation(name, tuple(Column.of(*column.split(" ")) for column in text.split(", ")))
        for name, text in TABLES.items()
    ]
    request = ModelRequest("shop.revenue", model_sql(helpers, shape), Catalog.of(relations), EACH_KEPT)
    plan = plan_model(request)
    assert isinstance(plan, MaintainedPlan)
    assert len(plan.helpers) == helpers


def test_statements_are_counted_by_what_they_do() -> None:
    sent = (
        "SELECT __fivm_number FROM shop.revenue__fivm_state",
        "CACHE TABLE delta AS SELECT 1",
        "CACHE TABLE other AS SELECT 1",
        "INSERT INTO shop.revenue__fivm_state SELECT * FROM delta",
        "DROP VIEW IF EXISTS delta",
    )
    few = Run(3.0, tuple(Timing(text, 0.1) for text in sent), reported=3, commits=1)
    more = replace(few, seconds=1.0, timings=(*few.timings, Timing("OPTIMIZE t", 0.1)), commits=2)
    cost = Cost.of([few, more, few])
    assert (cost.staged, cost.queried, cost.written, cost.statements) == (2, 1, 2, 5)
    assert (cost.seconds, cost.commits) == (3.0, 2)


def test_bars_are_met_up_to_their_figure() -> None:
    idle = Cost(seconds=0.3, staged=0, queried=1, written=0, commits=0)
    base = Figures(
        model="shop.revenue",
        helpers=0,
        build_seconds=9.0,
        ctas_seconds=4.0,
        changed=Cost(seconds=2.0, staged=1, queried=1, written=1, commits=1),
        unchanged=idle,
    )
    three = replace(base, helpers=3, changed=Cost(seconds=3.1, staged=4, queried=1, written=2, commits=2))
    held = {bar.what: bar for bar in bars([base, three], 0.45)}
    assert {what for what, bar in held.items() if not bar.is_met} == {
        "refresh / CTAS",
        "3 inner views: refresh / without",
        "3 inner views: statements",
        "3 inner views: commits",
    }
    assert held["refresh / CTAS"].figure == 0.5
    assert held["3 inner views: statements"].at_most == 6


def test_facts_are_of_ten_years() -> None:
    inputs = Inputs.facts(1_000)
    first = date.fromisoformat(inputs.first_day)
    last = first + timedelta(days=inputs.days - 1)
    assert (first.month, first.day, last.year - first.year) == (1, 1, 9)


@pytest.mark.parametrize(
    "arguments, code", [(["--help"], 0), (["--shape", "joined", "--helpers", "1"], 2), (["--facts", "0"], 2)]
)
def test_its_command(arguments: list[str], code: int) -> None:
    done = CliRunner().invoke(benchmarks.statements.main, arguments)
    assert done.exit_code == code, done.output
