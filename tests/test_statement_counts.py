"""How many statements a refresh sends to Spark, and how many commits it makes, whatever the machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from benchmarks.statement_runs import EACH_KEPT
from benchmarks.timed import TimedEngine
from pyspark.sql import SparkSession

from fivm_dbt.catalog import Catalog, Relation
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.executor import refresh

pytestmark = pytest.mark.spark

LEVEL = (
    "SELECT o.day, c.segment, count(*) AS orders, sum(o.amount) AS total FROM counts.orders o "
    "JOIN counts.customers c ON o.customer = c.customer WHERE o.amount >= {least} GROUP BY o.day, c.segment"
)
HELPERS = (0, 1, 3)
CHANGES: Mapping[str, tuple[str, ...]] = {
    "nothing": (),
    "facts": (
        "INSERT INTO counts.orders VALUES (90, 1, DATE'2024-01-02', 7.50), (91, 2, DATE'2024-02-02', 1.25)",
        "DELETE FROM counts.orders WHERE id = 3",
    ),
    "dimension": ("UPDATE counts.customers SET segment = 's9' WHERE customer = 1",),
    "both": (
        "UPDATE counts.orders SET amount = amount + 1 WHERE id = 4",
        "UPDATE counts.customers SET segment = 's8' WHERE customer = 2",
    ),
    "moved, the same rows": (
        "INSERT INTO counts.orders VALUES (99, 1, DATE'2024-01-02', 7.50)",
        "DELETE FROM counts.orders WHERE id = 99",
    ),
}
COUNTS = """
inner views | change               | statements | commits
0           | nothing              | 0          | 0
0           | facts                | 2          | 1
0           | dimension            | 2          | 1
0           | both                 | 3          | 1
0           | moved, the same rows | 3          | 1
1           | nothing              | 0          | 0
1           | facts                | 3          | 1
1           | dimension            | 3          | 1
1           | both                 | 4          | 1
1           | moved, the same rows | 3          | 1
3           | nothing              | 0          | 0
3           | facts                | 4          | 1
3           | dimension            | 4          | 1
3           | both                 | 4          | 1
3           | moved, the same rows | 2          | 1
"""
"""What is counted are the statements that stage, ask or write; looks at Delta's log are none."""


@pytest.fixture(scope="module")
def engine(spark: SparkSession) -> Iterator[TimedEngine]:
    feed = "USING DELTA TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    spark.sql("CREATE SCHEMA counts")
    spark.sql(f"CREATE TABLE counts.orders (id INT, customer INT, day DATE, amount DECIMAL(10,2)) {feed}")
    spark.sql(f"CREATE TABLE counts.customers (customer INT, segment STRING) {feed}")
    yield TimedEngine(spark)
    spark.sql("DROP SCHEMA counts CASCADE")


@pytest.fixture(autouse=True)
def rows(engine: TimedEngine) -> None:
    engine.run(
        "INSERT OVERWRITE counts.orders "
        "SELECT id, id % 4, date_add(DATE'2024-01-01', CAST(id AS INT)), id FROM range(40)"
    )
    engine.run("INSERT OVERWRITE counts.customers SELECT id, concat('s', id % 2) FROM range(4)")


@pytest.mark.parametrize(
    ("helpers", "changes"),
    [
        (0, ("nothing", "both", "moved, the same rows")),
        (3, ("nothing", "both")),
        *(pytest.param(helpers, tuple(CHANGES), marks=pytest.mark.long) for helpers in HELPERS),
    ],
)
def test_the_table_of_counts(
    helpers: int, changes: tuple[str, ...], engine: TimedEngine, spark: SparkSession
) -> None:
    plan = _plan(engine, helpers)
    assert len(plan.helpers) == helpers
    refresh(plan, engine)
    for change in changes:
        for statement in CHANGES[change]:
            spark.sql(statement)
        before = _commits(spark)
        engine.taken()
        refresh(plan, engine)
        sent = [timing for timing in engine.taken() if timing.kind != "dropped"]
        assert (change, len(sent), _commits(spark) - before) == (change, *_expected(helpers, change)), sent
    model, recompute = f"SELECT * FROM {plan.relation}", f"SELECT * FROM ({plan.sql})"
    for one, other in ((model, recompute), (recompute, model)):
        assert spark.sql(f"({one}) EXCEPT ALL ({other})").count() == 0


def test_the_table_is_within_the_bars() -> None:
    """Three statements and a commit; a level of inner views adds their deltas, and no commit."""
    for helpers in HELPERS:
        for change in CHANGES:
            statements, commits = _expected(helpers, change)
            most = (0, 0) if change == "nothing" else (4 if helpers else 3, 1)
            assert (statements <= most[0], commits <= most[1]) == (True, True)


def _plan(engine: TimedEngine, helpers: int) -> Plan:
    sql = LEVEL.format(least=0)
    if helpers:
        levels = "\nUNION ALL\n".join(LEVEL.format(least=least) for least in range(helpers))
        sql = f"SELECT day, segment, count(*) AS levels, sum(total) AS total FROM (\n{levels}\n) GROUP BY day, segment"
    relations = [
        Relation(name, engine.describe(f"SELECT * FROM {name}"))
        for name in ("counts.orders", "counts.customers")
    ]
    request = ModelRequest(f"counts.revenue_{helpers}", sql, Catalog.of(relations), EACH_KEPT)
    return plan_model(request, engine.describe)


def _expected(helpers: int, change: str) -> tuple[int, int]:
    rows = [[cell.strip() for cell in line.split("|")] for line in COUNTS.strip().splitlines()[1:]]
    [found] = [(int(row[2]), int(row[3])) for row in rows if row[:2] == [str(helpers), change]]
    return found


def _commits(spark: SparkSession) -> int:
    """Of all tables of the schema but the inputs, whoever has made them."""
    schema = Path(str(spark.conf.get("spark.sql.warehouse.dir")).removeprefix("file:")) / "counts.db"
    logs = schema.glob("*/_delta_log/*.json")
    return sum(1 for log in logs if log.parent.parent.name not in ("orders", "customers"))
