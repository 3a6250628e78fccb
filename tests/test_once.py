"""The planner does nothing twice, and a refresh asks for nothing twice."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import fivm_dbt.rewrite.running as running
from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import Config
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.sql.lower import Lowering, lower
from fivm_dbt.testing.load import load_scenarios
from fivm_dbt.testing.replay import replay_scenario
from generator.differential import tiny_workbench
from test_scenarios import HERE


def _nested(depth: int) -> str:
    """A total of a total of a total, each correlated with the query around it."""
    query = "select max(t0.v) from t0 where t0.k > a1.k"
    for i in range(1, depth):
        query = f"select max(a{i}.v) from t{i} a{i} where a{i}.k > a{i + 1}.k and a{i}.v > ({query})"
    return f"select a{depth}.k, ({query}) as m from t{depth} a{depth}"


def test_a_nested_subquery_is_lowered_once_per_level(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (Column.of("k", "int"), Column.of("v", "decimal(6,2)"))
    catalog = Catalog.of([Relation(f"t{i}", columns) for i in range(8)])
    calls: Counter[int] = Counter()
    depth, plain = 0, Lowering.query

    def query(self: Lowering, *args: Any, **kwargs: Any) -> Any:
        calls[depth] += 1
        return plain(self, *args, **kwargs)

    monkeypatch.setattr(Lowering, "query", query)
    for depth in range(1, 8):
        lower(_nested(depth), catalog)
    assert calls == {depth: depth + 1 for depth in range(1, 8)}


def test_a_window_is_split_once(monkeypatch: pytest.MonkeyPatch) -> None:
    columns = (Column.of("k", "int"), Column.of("at", "timestamp"), Column.of("v", "bigint"))
    calls, plain = 0, running.plain_windows

    def plain_windows(*args: Any) -> Any:
        nonlocal calls
        calls += 1
        return plain(*args)

    monkeypatch.setattr(running, "plain_windows", plain_windows)
    over = "(partition by k order by at)"
    sql = f"select k, at, avg(v) over {over} as mean from r"
    plan_model(ModelRequest("shop.m", sql, Catalog.of([Relation("r", columns)]), Config()))
    assert calls == 1


def test_a_refresh_asks_once_whether_an_input_has_a_change_feed(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = next(
        located.scenario
        for located in load_scenarios([HERE / "scenarios" / "joins.jsonl"])
        if len(located.scenario.tables) > 1 and located.scenario.steps
    )
    asked: Counter[str] = Counter()

    def opened() -> Any:
        workbench = tiny_workbench()
        plain = workbench.engine.has_change_feed

        def has_change_feed(relation: str) -> bool:
            asked[relation] += 1
            return plain(relation)

        monkeypatch.setattr(workbench.engine, "has_change_feed", has_change_feed)
        return workbench

    assert replay_scenario(scenario, opened).outcome == "passed"
    assert asked and max(asked.values()) <= len(scenario.steps)
