"""View trees in plans: what is split and kept, that nothing is read in full, and that all orders give the same rows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fivm_dbt.catalog import SparkType
from fivm_dbt.config import load_config
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.text import explain
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh import factorise as product_search
from fivm_dbt.rings.component import Component
from fivm_dbt.rings.decimals import OVERFLOW
from fivm_dbt.rings.kinds import numbers_for
from fivm_dbt.rings.polynomial import Polynomial
from fivm_dbt.rings.split import Join, split
from fivm_dbt.sql.script import read_script
from fivm_dbt.testing.replay_files import replay_files
from fivm_dbt.testing.scenario_plans import Forced
from fixtures.models import Bench
from fixtures.runs import by_run
from generator.constructs import Menu
from generator.differential import run_random

TABLES = """
create table l (ok int, sk int, day date, price decimal(12,2), disc decimal(4,2), q int);
create table o (ok int, ck int, status string);
create table c (ck int, nk int, seg string);
create table n (nk int, name string);
create table s (sk int, nk int);
"""
FOUR = """select l.day, n.name, c.seg, count(*) as n, sum(l.price * (1 - l.disc)) as revenue, avg(l.price) as price
from l join o on l.ok = o.ok join c on o.ck = c.ck join n on c.nk = n.nk where l.price > 0 group by 1, 2, 3"""


def plan_of(query: str, **meta: object) -> Plan:
    return _planned(TABLES + query, **meta)


def _planned(text: str, **meta: object) -> Plan:
    script = read_script(text)
    config = load_config({"fivm_strategy": "factorized", **meta})
    return plan_model(ModelRequest("m", script.sql, script.catalog, config))


def test_declared_keys_give_a_query_the_order_of_a_q_hierarchical_one() -> None:
    """Dimensions in a chain are q-hierarchical once their keys are known, and the tree is the chain of them."""
    query = "select l.ok, o.ck, c.nk, count(*) as n from l join o on l.ok = o.ok join c on o.ck = c.ck group by 1, 2, 3"
    keyed = TABLES.replace("o (ok int", "o (ok int primary key").replace("c (ck int", "c (ck int primary key")
    [without], [under_keys] = (_planned(tables + query).view_trees for tables in (TABLES, keyed))
    assert without.query_class == "free-connex"
    assert under_keys.query_class == "free-connex; under the declared keys q-hierarchical"
    assert under_keys.chosen == "by the shape of the query, which is q-hierarchical under the declared keys"
    assert under_keys.order == "ck – nk – ok"
    assert under_keys.views[0].keys == ("ck", "nk", "ok")


TYPES = {
    ("a", "b"): "bigint", ("a", "i"): "int", ("a", "p"): "decimal(12,2)", ("a", "w"): "decimal(20,2)",
    ("b", "b"): "bigint", ("b", "i"): "int", ("b", "d"): "decimal(4,2)", ("b", "w"): "decimal(20,2)",
    ("b", "t"): "string",
}  # fmt: skip


def _split(sql: str, type_: str) -> list[str]:
    """The products of a value over relations a and b."""
    join = Join(lambda column: SparkType.of(TYPES[column]), lambda column: {"a": 0, "b": 1}[column[0]])
    lifted = SparkType.of(type_)
    found = split(Component(numbers_for([lifted]), Polynomial.of(Scalar.parse(sql), lifted)), join)
    return [f"{p.coefficient:+d} " + " · ".join(value.sql for value, _ in p.factors) for p in found]


class TestPolynomials:
    @pytest.mark.parametrize(
        ("sql", "type_", "expected"),
        [
            ("a.b * b.b", "bigint", ["+1 COALESCE(a.b, 0) · COALESCE(b.b, 0)"]),
            (
                "a.b - b.i",
                "bigint",
                [
                    "+1 COALESCE(a.b, 0) · CASE WHEN b.i IS NULL THEN 0 ELSE 1 END",
                    "-1 CASE WHEN a.b IS NULL THEN 0 ELSE 1 END · COALESCE(b.i, 0)",
                ],
            ),
            (
                "a.p * (1 - b.d)",
                "decimal(18,4)",
                ["+1 COALESCE(a.p, CAST(0 AS DECIMAL(12, 2))) · COALESCE(1 - b.d, CAST(0 AS DECIMAL(5, 2)))"],
            ),
            (
                "CASE WHEN b.t = 'x' THEN a.p ELSE 0 END",
                "decimal(12,2)",
                ["+1 COALESCE(a.p, CAST(0 AS DECIMAL(12, 2))) · CASE WHEN b.t = 'x' THEN 1 ELSE 0 END"],
            ),
            (
                "CAST(a.i AS BIGINT) * CAST(b.i AS BIGINT)",
                "bigint",
                ["+1 COALESCE(CAST(a.i AS BIGINT), 0) · COALESCE(CAST(b.i AS BIGINT), 0)"],
            ),
            (
                "CAST(a.p * b.i AS DECIMAL(28, 2))",
                "decimal(28,2)",
                ["+1 COALESCE(a.p, CAST(0 AS DECIMAL(12, 2))) · COALESCE(b.i, 0)"],
            ),
            ("-(a.b * 2)", "bigint", ["+1 COALESCE(-(a.b * 2), 0)"]),
        ],
    )
    def test_what_is_exact_is_split(self, sql: str, type_: str, expected: list[str]) -> None:
        assert _split(sql, type_) == expected

    @pytest.mark.parametrize(
        ("sql", "type_"),
        [
            ("a.i * b.i", "int"),
            ("a.i + b.i", "int"),
            ("a.w * b.w", "decimal(38,4)"),
            ("GREATEST(a.b, b.b)", "bigint"),
            ("CASE WHEN a.b > b.b THEN a.b ELSE b.b END", "bigint"),
        ],
    )
    def test_what_may_wrap_or_round_is_one_factor_of_both(self, sql: str, type_: str) -> None:
        (product,) = _split(sql, type_)
        assert product.count("·") == 0 and "a." in product and "b." in product


class TestPlans:
    @pytest.mark.parametrize(
        "query",
        [
            FOUR,
            "select count(*) as n from l join s on l.sk = s.sk join o on l.ok = o.ok",
            "select n1.name as a, n2.name as b, sum(l.price) as p from l join s on l.sk = s.sk "
            "join n n1 on s.nk = n1.nk join o on l.ok = o.ok join c on o.ck = c.ck "
            "join n n2 on c.nk = n2.nk group by 1, 2",
            "select l.price, o.status from l join o on l.ok = o.ok",
            "select day, sum(x) as x from (select l.day, l.price as x from l join o on l.ok = o.ok "
            "union all select l.day, s.nk from l join s on l.sk = s.sk) u group by day",
            "select l.sk, percentile(l.price, 0.5) as p from l join o on l.ok = o.ok group by l.sk",
            "select o.ck, c.seg, row_number() over (partition by o.ck order by o.ok, c.seg) as r "
            "from o join c on o.ck = c.ck",
        ],
    )
    def test_no_change_reads_an_input_in_full(self, query: str) -> None:
        """An acyclic join with all its inputs updatable: every delta looks keys up, or reads nothing but the change."""
        text = explain(plan_of(query))
        assert "in full" in explain(plan_of(query, fivm_strategy="auto"))
        maintained = text[text.index("== how each operator") : text.index("== statements")]
        assert "! reads" not in maintained and "reads old" not in maintained and "reads new" not in maintained
        assert "looks up" in maintained

    def test_only_what_changes_is_met(self) -> None:
        plan = plan_of(FOUR, fivm_static=["o", "c", "n"])
        assert [v.relations for t in plan.view_trees for v in t.views if v.kept] == [("o", "c", "n")]
        assert len(plan.views) == 2

    def test_a_case_on_the_other_relation_is_no_key(self) -> None:
        """TPC-H 14: its CASE is an indicator of the part times a sum of the lineitems."""
        plan = plan_of(
            "select sum(case when n.name like 'p%' then s.sk * 1.5 else 0 end) as part, sum(s.sk * 1.5) as total "
            "from s join n on s.nk = n.nk"
        )
        keys = {v.relations: v.keys for t in plan.view_trees for v in t.views if v.depth}
        assert keys == {("s",): ("nk",), ("n",): ("nk",)}

    def test_the_given_order_is_taken(self) -> None:
        plan = plan_of(FOUR, fivm_variable_order={"o.ok": ["day", {"c.ck": {"nk": ["seg", "name"]}}]})
        (tree,) = plan.view_trees
        assert (tree.order, tree.chosen) == ("ok – {day, ck – nk – {seg, name}}", "given")
        assert plan_of(
            FOUR, fivm_strategy="auto", fivm_variable_order={"ok": ["day", {"ck": {"nk": ["seg", "name"]}}]}
        ).view_trees

    @pytest.mark.parametrize(
        ("order", "message"),
        [
            ({"ok": ["day", {"ck": {"nk": "seg"}}]}, "name of n is missing in the order"),
            ({"ok": ["day", {"ck": {"nk": ["seg", "nam"]}}]}, "nam is no variable of the query"),
            (
                {"ok": ["day", "ck", {"nk": ["seg", "name"]}]},
                "c has ck and seg, which stand on different branches",
            ),
        ],
    )
    def test_a_wrong_one_is_refused(self, order: object, message: str) -> None:
        with pytest.raises(FivmError) as caught:
            plan_of(FOUR, fivm_variable_order=order)
        assert caught.value.code.number == "FIVM204" and message in str(caught.value)

    def test_an_order_needs_a_join(self) -> None:
        with pytest.raises(FivmError, match="is not over an inner join"):
            plan_of(
                "select o.ok, count(c.ck) as n from o left join c on o.ck = c.ck group by o.ok",
                fivm_variable_order={"ok": ["ck"]},
            )

    def test_an_order_of_one_relation_changes_nothing(self) -> None:
        query = "select ok, count(*) as n from o group by ok"
        ordered = plan_of(query, fivm_variable_order={"ok": ["ck"]})
        assert [v.name for v in ordered.views] == [v.name for v in plan_of(query).views]
        with pytest.raises(FivmError, match="okk of the order is no column") as caught:
            plan_of(query, fivm_variable_order={"okk": []})
        assert caught.value.remedy == "did you mean ok?"

    def test_a_column_of_two_variables_needs_its_alias(self) -> None:
        query = "select a.nk, count(*) as n from c a, c b where a.ck < b.ck and a.nk = b.nk group by 1"
        with pytest.raises(FivmError, match=r"ck in the order may be a\.ck or b\.ck"):
            plan_of(query, fivm_variable_order={"nk": ["ck"]})
        assert plan_of(query, fivm_variable_order={"nk": ["a.ck", "b.ck"]}).view_trees

    def test_plans_are_the_same_again(self) -> None:
        assert plan_of(FOUR).to_json() == plan_of(FOUR).to_json()


ORDERS = (
    None,
    {"ok": ["day", {"ck": {"nk": ["seg", "name"]}}]},
    {"nk": ["name", {"ck": ["seg", {"ok": "day"}]}]},
    {"day": {"seg": {"name": {"ok": {"ck": "nk"}}}}},
)


@pytest.mark.parametrize("order", ORDERS, ids=["found", "from the fact", "from the dimension", "free on top"])
def test_every_order_gives_the_same_rows(order: object, tmp_path: Path) -> None:
    meta = {"fivm_strategy": "factorized"} | ({"fivm_variable_order": order} if order else {})
    scenario = {
        "id": "orders",
        "tables": {
            "l": [["ok", "int"], ["day", "date"], ["price", "decimal(12,2)"], ["disc", "decimal(4,2)"]],
            "o": [["ok", "int"], ["ck", "int"]],
            "c": [["ck", "int"], ["nk", "int"], ["seg", "string"]],
            "n": [["nk", "int"], ["name", "string"]],
        },
        "initial": {
            "l": [
                [1, "2024-01-01", "10.00", "0.10"],
                [1, "2024-02-01", "5.00", None],
                [2, None, None, "0.50"],
            ],
            "o": [[1, 1], [2, 1], [3, 2], [None, 1]],
            "c": [[1, 1, "a"], [2, 2, None], [1, 1, "a"]],
            "n": [[1, "x"], [2, "y"]],
        },
        "models": [{"name": "v", "sql": FOUR, "config": meta}],
        "steps": [
            {"delta": {"c": {"delete": [[1, 1, "a"]], "insert": [[1, 2, "b"]]}}},
            {
                "delta": {
                    "l": {
                        "insert": [[3, "2024-01-01", "2.50", "0.00"]],
                        "delete": [[1, "2024-02-01", "5.00", None]],
                    }
                }
            },
            {
                "delta": {
                    "n": {"delete": [[2, "y"]], "insert": [[2, "z"], [2, "z"]]},
                    "o": {"delete": [[1, 1]]},
                    "l": {"insert": [[2, "2024-02-01", "1.00", "1.00"]]},
                }
            },
            {"delta": {"n": {"delete": [[1, "x"], [2, "z"], [2, "z"]]}}},
        ],
    }
    path = tmp_path / "orders.jsonl"
    path.write_text(json.dumps(scenario), encoding="utf-8")
    assert replay_files([path], strict=True, echo=lambda line: None) == 0


def test_grouping_sets_have_the_view_tree_of_one_set() -> None:
    """Rows are repeated above the tree: its views are those of a GROUP BY of all the parts of the keys."""
    keys = "trunc(l.day, 'MM'), n.name"
    sets = f"group by grouping sets (({keys}), (n.name), ())"
    single, several = (plan_of(_by_month(group)) for group in (f"group by {keys}", sets))
    assert [v.reason for v in several.views[:-1]] == [v.reason for v in single.views[:-1]]
    assert [v.state.keys for v in several.views[:-1]] == [v.state.keys for v in single.views[:-1]]
    assert "set_number" in [k.name for k in several.views[-1].state.keys]


def test_a_total_that_asks_for_its_set_has_no_view_tree() -> None:
    """Only what is added up alike in all sets may be added up before rows are repeated."""
    grouped = (
        "(select l.ok, o.ck, explode(array(1, 2)) as copy from l join o on l.ok = o.ok) as r group by r.ck"
    )
    assert plan_of(f"select r.ck, sum(r.ok) as s from {grouped}").view_trees
    assert not plan_of(f"select r.ck, sum(r.ok * r.copy) as s from {grouped}").view_trees


def test_a_generator_of_few_columns_is_above_the_view_tree() -> None:
    """The tree is that of a GROUP BY of what the generator reads. Rows of a generator of arrays are not moved."""
    joined = "select l.ok, explode({0}) as word from l join o on l.ok = o.ok join c on o.ck = c.ck"
    grouped = f"select word, sum(ok) as s from ({joined}) group by word"
    plan = plan_of(grouped.format("split(c.seg, ' ')"))
    single = plan_of(
        "select c.seg, sum(l.ok) as s from l join o on l.ok = o.ok join c on o.ck = c.ck group by 1"
    )
    assert [v.reason for v in plan.views[:-1]] == [v.reason for v in single.views[:-1]]
    arrays = "create table d (k int, a array<string>); create table e (k int, x int);"
    words = "select w, sum(x) as s from (select e.x, explode(d.a) as w from d join e on d.k = e.k) group by w"
    assert not _planned(arrays + words).view_trees


def _by_month(group: str) -> str:
    return (
        f"select trunc(l.day, 'MM') as month, n.name, sum(l.price) as revenue, count(*) as n from l "
        f"join o on l.ok = o.ok join c on o.ck = c.ck join n on c.nk = n.nk {group}"
    )


JOINS = Menu.only(
    *"inner join,cross join,natural join,using,equality,equality and theta,theta,band,where,group by".split(
        ","
    ),
    *"global aggregate,sum,count,avg,case,having,cte,subquery,union all,distinct,rollup".split(","),
)


@pytest.mark.parametrize("seed", by_run(more=range(3), long=range(3, 8)))
def test_random_joins(seed: int) -> None:
    verdict = run_random(seed, menu=JOINS, models=6, steps=3, strategy="factorized")
    assert verdict.failure is None, verdict.failure


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("seed", by_run(more=range(100, 102), long=range(102, 106)))
def test_random_joins_kept_as_factors(seed: int, is_lazy: bool) -> None:
    forced = Forced(is_factorized=True, is_lazy=is_lazy)
    verdict = run_random(seed, menu=JOINS, models=6, steps=3 + is_lazy, forced=forced)
    assert verdict.failure is None, verdict.failure


@pytest.mark.parametrize("seed", by_run(more=range(200, 203), long=range(203, 206)))
def test_random_joins_that_meet_products(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is a product at all is met as one, although it may have more values than rows."""
    monkeypatch.setattr(product_search, "WORTH", 0.1)
    forced = Forced(meets_products=True)
    verdict = run_random(seed, menu=JOINS, models=6, steps=3, strategy="factorized", forced=forced)
    assert verdict.failure is None, verdict.failure


def test_products_of_sums_that_are_too_large_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounding or NULL would be silent: on Spark such a product stops the build, and the error says what to do.

    DuckDB stops at it by itself, so Spark's alarm is raised here.
    """
    bench = Bench.of(
        "select sum(a.x * b.x) as s from raw.a, raw.b",
        {"raw.a": ("x decimal(18,0)", [(1,)]), "raw.b": ("x decimal(18,0)", [(1,)])},
        {"fivm_strategy": "factorized"},
    )
    assert OVERFLOW in build_sql(bench.plan)

    def build(*_: object) -> None:
        raise RuntimeError(f"[USER_RAISED_EXCEPTION] {OVERFLOW}")

    monkeypatch.setattr("fivm_dbt.refresh.build.build_states", build)
    with pytest.raises(FivmError) as caught:
        bench.refresh()
    assert caught.value.code.number == "FIVM402" and "first_order" in caught.value.remedy


def build_sql(plan: Plan) -> str:
    text = explain(plan)
    return text[text.index("-- build\n") :]
