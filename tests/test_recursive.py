"""Recursive maps in plans: which are kept, what a step of a refresh sees of them, and that every depth is exact."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import pytest

import fivm_dbt.plan.keep.trees.recursive as recursive
from fivm_dbt.catalog import Catalog
from fivm_dbt.config import load_config
from fivm_dbt.delta.term import scans
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.operators import reads_in_full
from fivm_dbt.explain.text import explain
from fivm_dbt.ir.node import Node, Side
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.testing.replay import replay_scenario
from fivm_dbt.testing.scenario import Scenario
from fixtures.models import Bench, Interrupted, Interrupting, plan_of, relation
from fixtures.random_joins import random_join, random_row
from fixtures.runs import by_run, fast_only
from generator.constructs import Menu
from generator.differential import run_random

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STAR = """select a.k as k, sum(f.x * b.y) as total, count(*) as n, avg(c.z) as z
from f join a on f.a = a.k join b on f.b = b.k join c on f.c = c.k group by a.k"""
TABLES = {
    "f": ("a int, b int, c int, x bigint", [(1, 1, 1, 2), (1, 2, 1, None), (2, 1, None, 5), (1, 1, 1, 2)]),
    "a": ("k int", [(1,), (2,), (None,)]),
    "b": ("k int, y bigint", [(1, 3), (2, None), (1, 3)]),
    "c": ("k int, z bigint", [(1, 7), (1, None)]),
}
CHAIN = """select r.a as a, count(*) as n, sum(r.v * t.v) as s
from r join s on r.b = s.b join t on s.c = t.c join u on t.d = u.d group by r.a"""


def _recursive(depth: int | str = "full") -> dict[str, object]:
    return {"fivm_strategy": "recursive", "fivm_depth": depth}


def _plan(sql: str, tables: dict[str, str], depth: int | str = "full") -> Plan:
    return plan_of(sql, [relation(n, c) for n, c in tables.items()], _recursive(depth))


CHAIN_TABLES = {
    "r": "a int, b int, v bigint",
    "s": "b int, c int",
    "t": "c int, d int, v bigint",
    "u": "d int",
}


class TestMaps:
    def test_of_a_chain_are_its_segments(self) -> None:
        (tree,) = _plan(CHAIN, CHAIN_TABLES).view_trees
        found = {v.relations for v in tree.views}
        names = "rstu"
        assert found == {tuple(names[i:j]) for i in range(4) for j in range(i + 1, 5)}

    def test_one_that_is_met_by_two_columns_is_kept_by_each(self) -> None:
        """A Delta table has no index: what is looked up by two columns is there once for each."""
        plan = _plan(CHAIN, CHAIN_TABLES)
        placed = [v.state.grouped_by for v in plan.helpers if v.reason.startswith("map of s, t by")]
        assert sorted(placed) == [("b",), ("d",)]

    @pytest.mark.parametrize("depth", [1, 2, 3, "full"])
    def test_a_depth_keeps_what_so_many_deltas_lead_to(self, depth: int | str) -> None:
        (tree,) = _plan(CHAIN, CHAIN_TABLES, depth).view_trees
        most = 99 if depth == "full" else int(depth)
        assert max(v.depth for v in tree.views) == min(most - 1, 2)

    def test_depth_one_is_the_first_order(self) -> None:
        assert _plan(CHAIN, CHAIN_TABLES, 1).helpers == ()

    def test_no_delta_reads_an_input_in_full(self) -> None:
        text = explain(_plan(CHAIN, CHAIN_TABLES))
        maintained = text[text.index("== how each operator") : text.index("== statements")]
        assert "! reads" not in maintained and "reads old" not in maintained and "reads new" not in maintained
        assert "! reads" in explain(_plan(CHAIN, CHAIN_TABLES, 1))

    @pytest.mark.parametrize("strategy", by_run(more=["recursive"], long=["factorized"]))
    def test_of_acyclic_joins_only_changes_are_read(self, strategy: str) -> None:
        """No term has an input but as what changed. What it has of a kept view without looking it up, explain names."""
        seen = 0
        for seed in range(60):
            sql, tables = random_join(seed)
            plan = plan_of(sql, [relation(n, c) for n, (c, _) in tables.items()], {"fivm_strategy": strategy})
            if not plan.view_trees or any(tree.query_class == "cyclic" for tree in plan.view_trees):
                continue
            seen += 1
            inputs = {item.name for item in plan.inputs}
            for view in plan.views:
                terms = [s for t in view.terms for s in scans(t.node)]
                assert not [s for s in terms if s.relation in inputs and s.side is not Side.DELTA], sql
            full = {name for view in plan.views for name, _ in reads_in_full(view)}
            text = explain(plan) if full else ""
            assert all(f"! reads {name} in full" in text for name in full), sql
        assert seen > 20

    def test_a_static_relation_has_no_trigger(self) -> None:
        relations = [relation(n, c, is_static=n == "s") for n, c in CHAIN_TABLES.items()]
        plan = plan_of(CHAIN, relations, _recursive())
        assert "deltas of s" not in explain(plan)
        assert any(view.terms == () and view.reason.startswith("map of s by") for view in plan.helpers)

    def test_plans_are_the_same_again(self) -> None:
        columns = {name: columns for name, (columns, _) in TABLES.items()}
        assert _plan(STAR, columns).to_json() == _plan(STAR, columns).to_json()

    @pytest.mark.parametrize(
        ("meta", "message"),
        [
            ({"fivm_strategy": "factorized", "fivm_depth": 2}, "has no deltas of deltas"),
            ({"fivm_strategy": "recursive", "fivm_depth": 0}, "fivm_depth"),
            ({"fivm_strategy": "recursive", "fivm_variable_order": {"b": {"c": "d"}}}, "has no view tree"),
        ],
    )
    def test_what_does_not_go_together_is_refused(self, meta: dict[str, object], message: str) -> None:
        catalog = Catalog.of([relation(n, c) for n, c in CHAIN_TABLES.items()])
        with pytest.raises(FivmError, match=message) as caught:
            plan_model(ModelRequest("m", CHAIN, catalog, load_config(meta)))
        assert caught.value.code.number == "FIVM201"


TWO = """select a.k as k, sum(f.x * b.y) as total, count(*) as n
from f join a on f.a = a.k join b on f.b = b.k group by a.k"""
CHANGES = {
    "f": ([(2, 2, 1, 11), (1, 2, 1, 4)], [(1, 1, 1, 2)]),
    "a": ([(2,)], [(1,)]),
    "b": ([(2, 10)], [(1, 3)]),
    "c": ([(None, 1), (1, 100)], [(1, 7)]),
}


def _star(depth: int | str = "full", sql: str = STAR) -> Bench:
    bench = Bench.of(sql, TABLES, _recursive(depth))
    bench.refresh()
    bench.check()
    return bench


def _change_all(bench: Bench, *, undone: bool = False) -> None:
    for name, (came, gone) in CHANGES.items():
        bench.engine.change(name, insert=gone if undone else came, delete=came if undone else gone)


class TestSteps:
    """The fact stands before its dimensions: a dimension meets a map that some relations have changed and some not."""

    def test_maps_between_steps_are_told_apart(self) -> None:
        stepwise = {v.reason.split(" by ")[0] for v in _star().plan.helpers if v.step is not None}
        assert stepwise == {"map of f, b", "map of f, c", "map of f, b, c", "map of f, a, c"}

    @pytest.mark.parametrize("depth", [1, 2, "full"])
    def test_all_relations_change_at_once(self, depth: int | str) -> None:
        bench = _star(depth)
        for undone in (False, True):
            _change_all(bench, undone=undone)
            bench.refresh()
            bench.check()

    def test_what_one_step_undoes_of_another_is_seen_between_them(self) -> None:
        """``f ⋈ b`` has a row for ``a`` to meet and then none: its state is the same before and after."""
        empty = {name: (columns, []) for name, (columns, _) in TABLES.items()}
        bench = Bench.of(
            STAR, empty | {"b": (TABLES["b"][0], [(1, 3)]), "c": (TABLES["c"][0], [(1, 7)])}, _recursive()
        )
        bench.refresh()
        bench.engine.change("f", insert=[(1, 1, 1, 2)])
        bench.engine.change("a", insert=[(1,)])
        bench.engine.change("b", delete=[(1, 3)])
        bench.refresh()
        bench.check()
        bench.engine.change("b", insert=[(1, 4)])
        bench.refresh()
        bench.check()
        assert list(bench.shown()) == [(1, 8, 1, 7.0)]

    @pytest.mark.parametrize("side", [Side.OLD, Side.NEW])
    def test_a_map_that_is_read_at_another_step_is_noticed(
        self, side: Side, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The old or the new map in place of the one between them."""

        def wrong(self: recursive.Recursion, scan: Node, part: Sequence[str], changed: str) -> Node:
            return recursive.at_side(scan, side)

        monkeypatch.setattr(recursive.Recursion, "_at_step", wrong)
        # Of its own text, because plans are remembered.
        bench = Bench.of(f"{STAR} -- {side.value}", TABLES, _recursive())
        bench.refresh()
        _change_all(bench)
        with pytest.raises((AssertionError, FivmError)):
            bench.refresh()
            bench.check()

    @pytest.mark.parametrize("after", fast_only(["after"], {"before": False, "after": True}))
    def test_a_refresh_that_is_cut_off_goes_on(self, after: bool) -> None:
        """At every other statement: merged maps are not merged again, but their steps are needed by those above."""
        bench = _star(sql=TWO)
        assert any(view.step is not None for view in bench.plan.helpers)
        whole = Interrupting(bench.engine, 0, after=after)
        _change_all(bench)
        bench.refresh(whole)
        for number in range(1, len(whole.statements) + 1, 2):
            bench = _star(sql=TWO)
            _change_all(bench)
            with pytest.raises(Interrupted):
                bench.refresh(Interrupting(bench.engine, number, after=after))
            bench.refresh()
            bench.check()


RANDOM = pytest.mark.parametrize(
    "strategy", [_recursive(1), _recursive(2), _recursive(), {"fivm_strategy": "factorized"}], ids=str
)


SEEDS = by_run(
    more=[range(4)], long=[range(4, 8), *(range(first, first + 40) for first in range(100, 180, 40))]
)


@RANDOM
@pytest.mark.parametrize("seeds", SEEDS, ids=str)
def test_random_joins_of_few_values(seeds: Iterable[int], strategy: dict[str, object]) -> None:
    """Several relations change in each of three refreshes."""
    for seed in seeds:
        sql, tables = random_join(seed)
        rng = random.Random(seed + 1000)
        bench = Bench.of(sql, tables, strategy)
        bench.refresh()
        bench.check()
        present = {name: list(rows) for name, (_, rows) in tables.items()}
        for _ in range(3):
            for name in rng.sample([*tables], rng.randint(1, len(tables))):
                gone = rng.sample(present[name], min(len(present[name]), rng.randint(0, 3)))
                came = [random_row(rng, tables[name][0].count(" int")) for _ in range(rng.randint(0, 4))]
                bench.exchange(name, present[name], came, gone)
            bench.refresh()
            bench.check()


@pytest.mark.more
@pytest.mark.parametrize("seed", range(2))
def test_random_queries(seed: int) -> None:
    verdict = run_random(seed, menu=Menu.accepted(), models=6, steps=3, strategy="recursive")
    assert verdict.failure is None, verdict.failure


@pytest.mark.spark
@pytest.mark.long
@pytest.mark.parametrize("apply", ["replace", "merge"])
def test_steps_on_spark(apply: str, spark: SparkSession) -> None:
    """All relations change at once, twice, and then nothing is left; compared by Spark itself."""
    from fivm_dbt.testing.spark_workbench import SparkWorkbench

    tables = {n: [c.strip().split(" ", 1) for c in columns.split(",")] for n, (columns, _) in TABLES.items()}
    changes = {n: {"insert": came, "delete": gone} for n, (came, gone) in CHANGES.items()}
    undone = {n: {"insert": gone, "delete": came} for n, (came, gone) in CHANGES.items()}
    scenario = Scenario.model_validate(
        {
            "id": "recursive/steps",
            "tables": tables,
            "initial": {n: rows for n, (_, rows) in TABLES.items()},
            "models": [{"name": "v", "sql": TWO, "config": {**_recursive(), "fivm_apply": apply}}],
            "steps": [
                {"delta": changes},
                {"delta": undone},
                {"delta": {n: {"delete": rows} for n, (_, rows) in TABLES.items()}},
            ],
        }
    )
    result = replay_scenario(scenario, lambda: SparkWorkbench(spark, f"fivm_steps_{apply}"))
    assert result.outcome == "passed", [result.line(), *result.details()]
