"""Staging views as inputs of fivm models, in a dbt project on Spark."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_project import Project
from fivm_dbt.engines.spark.engine import SparkEngine

pytestmark = pytest.mark.spark

STG_ORDERS = """{{ config(materialized='view') }}
with source as (select * from {{ source('raw', 'orders') }}),
renamed as (select order_id as id, customer_id, ordered_on, amount from source where amount is not null)
select * from renamed -- staged
"""
STG_CUSTOMERS = """{{ config(materialized='view') }}
select customer_id as id, upper(segment) as segment from {{ source('raw', 'customers') }}
"""
NAMED = """{{ config(materialized='view') }}
select {{ ref('stg_orders') }}.*, c.segment
from {{ ref('stg_orders') }} left join {{ ref('stg_customers') }} c on stg_orders.customer_id = c.id
"""
TOTALS = """{{ config(materialized='fivm') }}
select n.segment, count(*) as n, sum(n.amount) as total, max(o.ordered_on) as newest
from {{ ref('named') }} n join {{ source('raw', 'orders') }} o on o.order_id = n.id
group by n.segment
"""
YML = """
models:
  - name: stg_customers
    columns:
      - {name: id, data_tests: [unique, not_null]}
  - name: totals
    data_tests: [fivm.fivm_exact]
"""


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Project:
    shop = Project.create(spark, tmp_path_factory.mktemp("views") / "shop", "views", "none")
    shop.write("models/stg_orders.sql", STG_ORDERS)
    shop.write("models/stg_customers.sql", STG_CUSTOMERS)
    shop.write("models/named.sql", NAMED)
    shop.write("models/totals.sql", TOTALS)
    shop.write("models/totals.yml", YML)
    return shop


def recomputed(shop: Project) -> list[tuple[object, ...]]:
    """The model's text over the views."""
    return shop.rows(
        "SELECT n.segment, count(*), sum(n.amount), max(o.ordered_on) FROM shop.named n "
        "JOIN raw.orders o ON o.order_id = n.id GROUP BY n.segment"
    )


def test_views_in_a_project(shop: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """Built, refreshed by what changed in the tables below, left alone, and built anew where a view is another one."""
    run = shop.dbt("build")
    assert run.figures("totals")["action"] == "built"
    assert shop.rows("totals") == recomputed(shop) != []

    shop.insert(
        "orders", (101, 1, "2024-02-01", 5), (102, None, "2024-02-01", 6), (103, 1, "2024-02-01", None)
    )
    shop.sql("DELETE FROM raw.orders WHERE order_id = 1")
    shop.sql("UPDATE raw.customers SET segment = 'other' WHERE customer_id = 2")
    figures = shop.dbt("build").figures("totals")
    assert figures["action"] == "refreshed"
    assert {i["relation"] for i in figures["inputs"]} == {"views_raw.orders", "views_raw.customers"}
    assert shop.rows("totals") == recomputed(shop)

    # A view that is created anew as it was is no change.
    assert shop.dbt("run").figures("totals")["action"] == "no change"

    shop.write("models/stg_orders.sql", STG_ORDERS.replace("amount is not null", "amount > 5"))
    figures = shop.dbt("build").figures("totals")
    assert figures["action"] == "rebuilt"
    assert figures["reason"].startswith("definition of view views.stg_orders changed; ")
    assert shop.rows("totals") == recomputed(shop)

    shop.dbt("run-operation", "fivm_explain", "--args", "{model: totals}")
    told = capsys.readouterr().out
    assert "views_raw.orders through view views.named and by itself [" in told
    assert "views_raw.customers through view views.named [" in told
    shop.dbt("run-operation", "fivm_doctor")
    assert "views_raw.customers (read by totals)" in capsys.readouterr().out


@pytest.mark.long
def test_views_of_others(shop: Project) -> None:
    """They are read as they were created: their schema, their settings, the columns that their tables had."""
    shop.sql(
        "CREATE TABLE raw.t USING DELTA AS SELECT * FROM VALUES (1, CAST('x' AS VARCHAR(3))), (2, NULL) AS t(a, b)"
    )
    try:
        shop.sql(f"USE {shop.schema}_raw")
        shop.sql("CREATE VIEW raw.seen (`the Key`, b) AS SELECT * FROM t")
        shop.sql("CREATE VIEW raw.evolving WITH SCHEMA EVOLUTION AS SELECT * FROM t")
        shop.sql("SET spark.sql.ansi.enabled = true")
        shop.sql("CREATE VIEW raw.strict AS SELECT a FROM t")
    finally:
        shop.sql("SET spark.sql.ansi.enabled = false")
        shop.sql("USE default")
    shop.sql("ALTER TABLE raw.t ADD COLUMNS (c INT)")
    shop.sql("INSERT INTO raw.t VALUES (1, 'y', 7)")
    raw = f"{shop.schema}_raw"
    shop.write(
        "models/keys.sql", f"{{{{ config(materialized='fivm') }}}} select `the Key` as k, b from {raw}.seen"
    )
    shop.write("models/all_of_it.sql", f"{{{{ config(materialized='fivm') }}}} select * from {raw}.evolving")
    shop.write("models/strict.sql", f"{{{{ config(materialized='fivm') }}}} select a from {raw}.strict")
    run = shop.dbt("run", "--select", "keys", "all_of_it", "strict", expect=False)
    assert shop.rows("keys") == shop.rows("SELECT * FROM raw.seen") == [(1, "x"), (1, "y"), (2, None)]
    assert shop.rows("all_of_it") == shop.rows("SELECT * FROM raw.evolving")
    refused = str(run.results["strict"].message)
    assert "FIVM303" in refused and "spark.sql.ansi.enabled true (now false)" in refused

    shop.sql("CREATE OR REPLACE TABLE raw.t USING DELTA AS SELECT CAST(1 AS BIGINT) AS a, 'x' AS b")
    refused = str(shop.dbt("run", "--select", "keys", expect=False).results["keys"].message)
    assert "FIVM303" in refused and "is bigint now, and was int" in refused
    run = shop.dbt("run", "--select", "all_of_it")
    assert run.figures("all_of_it")["action"] == "rebuilt"
    for model in ("keys", "all_of_it", "strict"):
        (shop.root / f"models/{model}.sql").unlink()


def test_what_statements_and_the_catalog_say_is_unfolded_alike(shop: Project, spark: SparkSession) -> None:
    """Over a network there is no catalog to ask: what is stored with a view is then told by statements."""
    shop.sql("CREATE OR REPLACE VIEW raw.plain (k) AS SELECT order_id FROM raw.orders")
    engine = SparkEngine.of_session(spark)
    over_network = SparkEngine(engine._execute)
    name = f"{shop.schema}_raw.plain"
    described = engine.described(name)
    assert described is not None and described.stored is not None
    assert described == over_network.described(name)
    assert described.stored.query_columns == ("order_id",)
    assert dict(described.stored.settings or ())["spark.sql.ansi.enabled"] == "false"
