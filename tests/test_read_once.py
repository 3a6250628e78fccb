"""The change of an input that a single delta reads is computed there, and one that has more readers is staged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.steps.read_once import read_once, shown_once
from fixtures.models import Bench, plan_of, relation
from spark_bench import SparkBench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

R, S = relation("raw.r", "g int, x int"), relation("raw.s", "g int, y int")
SUMS = "select g, sum(x) as x from raw.r where x > 1 group by g"
JOINED = "select r.g, s.y, sum(r.x) as x from raw.r join raw.s on r.g = s.g group by r.g, s.y"


def _small(relation: str) -> bool:
    return False


@pytest.mark.parametrize("sql", [SUMS, JOINED], ids=["one table", "joined"])
def test_one_reader(sql: str) -> None:
    assert read_once(plan_of(sql, [R, S]), ["raw.r"], _small) == "raw.r"


@pytest.mark.parametrize(
    "sql",
    [
        "select a.g, sum(b.x) as x from raw.r a join raw.r b on a.g = b.g group by a.g",
        f"select g, x from ({SUMS}) union all select g, x from raw.r",
        "select r.g, s.y from raw.r left join raw.s on r.g = s.g",
        "select g, max(x) as x from raw.r group by g",
        "select g, count(distinct x) as n from raw.r group by g",
        "select g, x, row_number() over (partition by g order by x) as n from raw.r",
    ],
    ids=["itself", "twice", "keys", "values", "sets", "windows"],
)
def test_several_readers(sql: str) -> None:
    plan = plan_of(sql, [R, S])
    assert read_once(plan, [plan.inputs[-1].name], _small) is None


Pair = tuple[int | None, int | None]

COUNTS = "select g, count(*) as n, sum(x) as x from raw.r group by g"


@pytest.mark.parametrize(
    ("sql", "once"),
    [
        (f"select n, sum(x) as x from ({COUNTS}) group by n", "view_1_r"),
        (f"select n, max(x) as x from ({COUNTS}) group by n", "view_1_r"),
        (f"select s.y, v.x from raw.s left join ({COUNTS}) v on s.g = v.n", "view_1_r"),
        (f"select a.x, b.x as y from ({COUNTS}) a join ({COUNTS}) b on a.g = b.n", "view_1_r"),
        (f"with v as ({COUNTS}) select n, x from v where n > 1 union all select x, n from v", ""),
    ],
    ids=["summed", "as values", "by the copy of a view", "without its keys", "twice"],
)
def test_inner_views_of_one_reader(sql: str, once: str) -> None:
    """What others read besides are states, and not what changes in them."""
    plan = plan_of(sql, [R, S], {"fivm_without": ["shared_aggregates"]})
    found = shown_once(plan, {i.name for i in plan.inputs}, _small)
    assert [name.split("__fivm_")[1] for name in found] == once.split()


@pytest.mark.parametrize(
    "sql",
    [
        f"select n, sum(x) as x, max(x) as most from ({COUNTS}) group by n",
        f"select a.g, a.n, b.n as m from ({COUNTS}) a join (select y, count(*) as n from raw.s group by y) b "
        "on a.g = b.n",
    ],
    ids=["summed", "joined"],
)
def test_an_inner_view_is_followed_where_its_change_is_read(sql: str) -> None:
    """Rows, duplicates, NULLs, a change that shows nothing, and one that takes everything away."""
    rows: list[Pair] = [(1, 2), (1, 2), (None, 5), (2, None)]
    bench = Bench.of(sql, {"raw.r": ("g int, x int", rows), "raw.s": ("g int, y int", [(1, 7), (2, 2)])})
    bench.refresh()
    changes: list[tuple[str, list[Pair], list[Pair]]] = [
        ("raw.r", [(1, 3), (None, None), (3, 1)], [(1, 2)]),
        ("raw.r", [(1, 5)], [(1, 2), (1, 3)]),
        ("raw.s", [(2, None), (2, 1)], [(1, 7)]),
        ("raw.r", [(1, 4), (1, 1)], [(1, 5)]),
        ("raw.r", [], [(None, 5), (None, None), (3, 1), (1, 4), (1, 1), (2, None)]),
    ]
    deferred = 0
    for table, insert, delete in changes:
        bench.engine.change(table, insert=insert, delete=delete)
        texts = [s for s in bench.refresh().statements if s.startswith("CREATE TEMPORARY VIEW")]
        deferred += sum("__fivm_view_1" in text for text in texts)
        bench.check()
    assert deferred


def test_what_meets_a_large_relation_is_staged() -> None:
    """Spark does not know how small a change is that it computes on the way."""
    plan = plan_of(JOINED, [R, S])
    assert read_once(plan, ["raw.r"], lambda name: name == "raw.s") is None
    assert read_once(plan, ["raw.s"], lambda name: name == "raw.s") == "raw.s"
    above = plan_of(
        f"select v.n, s.y from ({COUNTS}) v join raw.s on v.n = s.g", [R, S], {"fivm_without": "look_ups"}
    )
    groups, copy, _ = (view.name for view in above.views)
    assert groups in shown_once(above, {"raw.r"}, _small)
    assert groups not in shown_once(above, {"raw.r"}, lambda name: name == copy)


@pytest.mark.parametrize("rows", [10, 400_000])
def test_the_size_of_what_is_joined_decides(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench.of(JOINED, {"raw.r": ("g int, x int", [(1, 2)]), "raw.s": ("g int, y int", [(1, 7)])})
    bench.refresh()
    monkeypatch.setattr(bench.engine, "size", lambda name: 32 * rows if name == "raw.s" else 16)
    bench.engine.change("raw.r", insert=[(1, 3)])
    is_deferred = any(s.startswith("CREATE TEMPORARY VIEW") for s in bench.refresh().statements)
    bench.check()
    assert is_deferred is (rows == 10)


def test_what_is_asked_before() -> None:
    assert read_once(plan_of(JOINED, [R, S]), ["raw.r", "raw.s"], _small) is None
    assert (
        read_once(plan_of(SUMS, [relation("raw.r", "g int, x int", is_static=True)]), ["raw.r"], _small)
        is None
    )
    assert (
        read_once(plan_of(SUMS, [relation("raw.r", "g int, x int", is_recreated=True)]), ["raw.r"], _small)
        is None
    )


def test_it_is_counted_where_it_is_read() -> None:
    bench = Bench.of(
        JOINED, {"raw.r": ("g int, x int", [(1, 2), (1, 2)]), "raw.s": ("g int, y int", [(1, 7)])}
    )
    bench.refresh()
    bench.engine.change("raw.r", insert=[(1, 3), (2, 4), (2, 4)], delete=[(1, 2)])
    report = bench.refresh()
    assert [(c.capture, c.inserted, c.deleted) for c in report.inputs] == [("change feed", 3, 1)]
    assert [s.split(" ")[0] for s in report.statements].count("CACHE") == 1
    bench.check()


def test_rows_that_come_and_go_only_move_the_versions() -> None:
    bench = Bench.of(SUMS, {"raw.r": ("g int, x int", [(1, 2)])})
    bench.refresh()
    bench.engine.change("raw.r", insert=[(1, 3)])
    bench.engine.change("raw.r", delete=[(1, 3)])
    report = bench.refresh()
    assert (report.action, [(c.inserted, c.deleted) for c in report.inputs]) == ("no change", [(0, 0)])
    assert bench.refresh().inputs == ()
    bench.check()


@pytest.mark.spark
def test_rows_that_come_and_go_are_not_looked_at(spark: SparkSession) -> None:
    """Spark passes no condition through the counting: below, it would meet rows that are not in the net change."""
    created = (
        "CREATE TABLE r FEED AS SELECT * FROM VALUES (1, 2), (2, 5), (NULL, 3) AS v(g, x); "
        "CREATE TABLE s FEED AS SELECT * FROM VALUES (1, 7), (2, 8), (2, 8) AS v(g, y)"
    )
    text = "SELECT r.g, s.y, sum(r.x) AS x FROM {0}.r JOIN {0}.s ON r.g = s.g WHERE 10 / r.x > 1 GROUP BY r.g, s.y"
    bench = SparkBench.create(spark, "deferred", created, text.format("deferred"))
    bench.session.conf.set("spark.sql.ansi.enabled", "true")
    bench.engine = SparkEngine.of_session(bench.session)
    bench.refresh()
    bench.run("INSERT INTO r VALUES (1, 0), (2, 6), (2, 6); DELETE FROM r WHERE x = 0")
    report = bench.refresh()
    assert [(c.capture, c.inserted, c.deleted) for c in report.inputs] == [("change feed", 2, 0)]
    assert [s.split(" ")[0] for s in report.statements] == ["CREATE", "CACHE", "INSERT"]
    assert len(bench.check()) == 2
    bench.run("INSERT INTO r VALUES (1, 0); DELETE FROM r WHERE x = 0; DELETE FROM s WHERE g = 7")
    report = bench.refresh()
    assert (report.action, {(c.inserted, c.deleted) for c in report.inputs}) == ("no change", {(0, 0)})
    bench.run("UPDATE s SET y = NULL WHERE g = 2")
    assert [(c.relation, c.inserted, c.deleted) for c in bench.refresh().inputs] == [("deferred.s", 2, 2)]
    bench.check()
