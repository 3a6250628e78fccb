"""Covariances that are kept as vectors: the same rows as of one column for each number, however they are maintained."""

from __future__ import annotations

import random
from collections.abc import Iterator
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.oracle import runnable_sql
from fivm_dbt.rings import vectors
from fivm_dbt.rings.vectors import Vectors
from fixtures import models
from fixtures.models import Bench
from spark_bench import SparkBench

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOINED = "from f join d on f.k = d.k join e on f.j = e.j"
MOMENTS = f"select e.g, fivm_covariance(f.x, d.price, e.y, d.z) as m, count(*) as n {JOINED} group by e.g"
QUERIES = {
    "by_group": MOMENTS,
    "of_all_rows": f"select fivm_covariance(f.x, d.price, e.y, d.z, d.price * 2 as twice) as m {JOINED}",
    "weighted_some_rows": f"""select d.k, fivm_covariance(f.x, e.y, d.z, fivm_weight(f.w)) filter (where f.x > 0) as m,
    fivm_covariance(e.y, d.price) as o, sum(f.x) as s {JOINED} group by d.k having count(*) > 1""",
    "over_a_product": f"select e.g, fivm_covariance(f.x * d.z as xz, e.y, f.w) as m {JOINED} group by e.g",
    "called_as_variables_are": """select n.g, fivm_covariance(a.x, b.price, n.y, fivm_weight(cast(a.w as int))) as m
    from f a join d b on a.k = b.k join e n on a.j = n.j group by n.g""",
    "of_one_table": "select k, fivm_covariance(x, w, j) as m, sum(x) as s from f group by k",
    "in_windows": """select window.start as since, fivm_covariance(x, w, j) as m from f
    group by window(timestamp_seconds(x * 60), '4 minutes', '2 minutes')""",
}
META = [
    {"fivm_strategy": strategy, "fivm_apply": apply}
    for strategy, apply in product(("factorized", "first_order", "recursive"), ("merge", "append", "replace"))
]
ONE_OF_EACH = META[1], META[3], META[8]
"""A way of writing with each strategy: the others are in the longer run."""
COLUMNS = {
    "f": "k int, j int, x int, w bigint",
    "d": "k int, price decimal(9,2), z int",
    "e": "j int, y int, g string",
}


@pytest.fixture(autouse=True)
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Three numbers are kept as vectors already."""
    models._plan.cache_clear()
    monkeypatch.setattr(vectors, "_PACKED_FROM", 3)
    yield
    models._plan.cache_clear()


def _row(draw: random.Random, name: str) -> Row:
    key, value = draw.choice([1, 2, 3, None]), draw.choice([*range(-3, 4), None])
    if name == "f":
        return key, draw.choice([1, 2, None]), value, draw.choice([1, 2, -1, None])
    if name == "d":
        return key, None if value is None else Decimal(value) / 4, draw.choice([0, 5, -7])
    return draw.choice([1, 2, None]), value, draw.choice(["a", "b", None])


def _check(bench: Bench) -> None:
    """As :meth:`Bench.check`, of rows with arrays, which have no hash."""
    shown = bench.engine.query(f"select * from {bench.plan.relation}")
    assert sorted(map(repr, shown)) == sorted(map(repr, bench.engine.query(bench._newest_sql)))


def _vectors(plan: Plan) -> list[Vectors]:
    return [p.numbers for v in plan.stored for p in v.state.payload if isinstance(p.numbers, Vectors)]


def _called(meta: dict[str, object]) -> str:
    return f"{meta['fivm_strategy']}, {meta['fivm_apply']}"


@pytest.mark.parametrize(
    "meta", [pytest.param(m, marks=() if m in ONE_OF_EACH else pytest.mark.more) for m in META], ids=_called
)
@pytest.mark.parametrize("query", QUERIES)
def test_rows_are_those_of_a_recompute(query: str, meta: dict[str, object]) -> None:
    """With late partners, duplicates, NULLs, and deletes until nothing is left."""
    draw = random.Random(query)
    rows = {name: [_row(draw, name) for _ in range(6)] for name in COLUMNS}
    bench = Bench.of(QUERIES[query], {n: (COLUMNS[n], list(own)) for n, own in rows.items()}, meta)
    assert _vectors(bench.plan)
    bench.refresh()
    _check(bench)
    for _ in range(5):
        for name, own in rows.items():
            gone = draw.sample(own, min(len(own), draw.randint(0, 3)))
            come = [_row(draw, name) for _ in range(draw.randint(0, 2))]
            bench.exchange(name, own, come + come[:1], gone)
        bench.refresh()
        _check(bench)
    for name, own in rows.items():
        bench.exchange(name, own, [], list(own))
        bench.refresh()
        _check(bench)


def test_each_view_has_the_numbers_of_its_own_variables() -> None:
    plan = Bench.of(MOMENTS, {n: (c, []) for n, c in COLUMNS.items()}, {"fivm_strategy": "factorized"}).plan
    sizes = {v.name.rpartition("view_")[2]: [p.numbers.size for p in v.state.payload if isinstance(p.numbers, Vectors)]
             for v in plan.stored}  # fmt: skip
    # Of d two variables: a count, a sum, and a product of whole numbers; one sum of prices; two products with prices.
    assert sizes.pop("analytics.m__fivm_root") == [10, 4, 1]
    assert sorted(sizes.values(), key=sum) == [[3], [3], [6], [3, 2, 1]]


TABLES = """
create table f (k int, j int, x int, w bigint) FEED;
create table d (k int, price decimal(18,0), z int) FEED;
create table e (j int, y int, g string) FEED;
insert into f values (1, 1, 2, 1), (1, 2, null, 2), (2, 1, 3, 1), (2, 1, 3, 1);
insert into d values (1, 10, 5), (2, -7, 0), (2, null, 1);
insert into e values (1, 4, 'a'), (2, -1, 'b'), (2, 6, null)
"""
CHANGES = """
insert into f values (2, 2, -4, 3), (3, 1, 1, 1);
delete from d where price = -7; insert into d values (3, 100, 2);
update e set y = y + 1 where j = 1;
delete from f where k = 1; delete from e where g = 'b'
"""


@pytest.mark.spark
@pytest.mark.parametrize(
    "meta",
    [pytest.param(m, marks=pytest.mark.long if n else ()) for n, m in enumerate(ONE_OF_EACH)],
    ids=_called,
)
def test_on_spark(meta: dict[str, object], spark: SparkSession) -> None:
    """What Spark adds up, and that a sum of more than 38 digits is NULL as in Spark, or is not stored."""
    schema = f"vectors_{meta['fivm_apply']}"
    bench = SparkBench.create(spark, schema, TABLES, MOMENTS, meta)

    def check() -> None:
        bench.refresh()
        shown, right = bench.rows(f"select * from {schema}.m"), bench.rows(runnable_sql(bench.plan()))
        assert sorted(map(repr, shown)) == sorted(map(repr, right))

    check()
    assert _vectors(bench.plan())
    for change in CHANGES.split(";"):
        bench.run(change)
        check()
    bench.run("insert into d select 3, 999999999999999999, 1 from range(150)")
    if meta["fivm_strategy"] == "first_order":
        check()
        return
    with pytest.raises(FivmError, match="FIVM402"):
        bench.refresh()
