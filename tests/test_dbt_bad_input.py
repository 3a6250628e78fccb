"""Mistakes in a model, its configuration or its inputs: each with a message that says what and where."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from dbt_project import Project, Run

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def shop(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project without models; each test writes its own."""
    return Project.create(spark, tmp_path_factory.mktemp("bad") / "shop", "bad_input", "none")


def attempt(shop: Project, sql: str, meta: str = "", *, expect: bool = False) -> Run:
    config = f"{{{{ config(meta={{{meta}}}) }}}}\n" if meta else ""
    shop.write("models/attempt.sql", config + sql)
    return shop.dbt("run", "--select", "attempt", expect=expect)


def message(run: Run) -> str:
    text = str(run.results["attempt"].message)
    assert "Traceback" not in text
    return text


def test_sql_that_does_not_parse(shop: Project) -> None:
    text = message(attempt(shop, "select order_id\nfro m {{ source('raw', 'orders') }} where"))
    assert "FIVM101 SQL does not parse in model attempt" in text
    assert "line 2" in text


def test_unknown_column_lists_those_that_exist(shop: Project) -> None:
    text = message(attempt(shop, "select order_idd from {{ source('raw', 'orders') }}"))
    assert "FIVM102" in text
    assert "order_id, customer_id, ordered_on, amount" in text
    assert "^^^^^^^^^" in text


def test_non_deterministic_function(shop: Project) -> None:
    text = message(attempt(shop, "select order_id, rand() as r from {{ source('raw', 'orders') }}"))
    assert "FIVM106" in text


def test_limit_without_order(shop: Project) -> None:
    assert "FIVM107" in message(attempt(shop, "select order_id from {{ source('raw', 'orders') }} limit 3"))


def test_wrong_configuration_is_told_all_at_once(shop: Project) -> None:
    meta = "'fivm_stratgy': 'auto', 'fivm_policy': 'sometimes', 'owner': 'me'"
    text = message(attempt(shop, "select order_id from {{ source('raw', 'orders') }}", meta))
    assert "FIVM201" in text
    assert "unknown key fivm_stratgy: did you mean fivm_strategy?" in text
    assert "fivm_policy: 'sometimes' is not allowed (expected one of 'incremental', 'auto', 'full')" in text
    assert "owner" not in text


def test_partition_column_not_in_the_output(shop: Project) -> None:
    meta = "'fivm_partition_by': 'ordered_on'"
    assert "FIVM202" in message(attempt(shop, "select order_id from {{ source('raw', 'orders') }}", meta))


def test_input_that_is_not_delta(shop: Project) -> None:
    shop.sql("CREATE TABLE IF NOT EXISTS raw.old (a INT) USING PARQUET")
    text = message(attempt(shop, f"select a from {shop.schema}_raw.old"))
    assert "FIVM301" in text
    assert f"{shop.schema}_raw.old is parquet" in text
    assert f"CONVERT TO DELTA {shop.schema}_raw.old" in text


def test_view_over_what_is_no_input(shop: Project) -> None:
    shop.sql("CREATE TABLE IF NOT EXISTS raw.older (a INT) USING PARQUET")
    shop.sql("CREATE OR REPLACE VIEW raw.seen AS SELECT a FROM raw.older")
    text = message(attempt(shop, f"select a from {shop.schema}_raw.seen"))
    assert "FIVM301" in text
    assert f"{shop.schema}_raw.older is parquet (read by view {shop.schema}_raw.seen)" in text


def test_fivm_model_that_is_a_plain_view(shop: Project) -> None:
    """It was built with ``--empty`` only: its query is not what it shows."""
    shop.sql("CREATE OR REPLACE VIEW shop.upper AS SELECT 1 AS a")
    shop.write("models/upper.sql", "{{ config(materialized='fivm') }} select 1 as a")
    text = message(attempt(shop, "select a from {{ ref('upper') }}"))
    (shop.root / "models/upper.sql").unlink()
    shop.sql("DROP VIEW shop.upper")
    assert "FIVM303" in text
    assert "dbt run --select upper" in text


def test_input_dropped(shop: Project) -> None:
    shop.sql("CREATE TABLE raw.gone USING DELTA AS SELECT 1 AS a")
    sql = f"select a from {shop.schema}_raw.gone"
    attempt(shop, sql, expect=True)
    shop.sql("DROP TABLE raw.gone")
    text = message(attempt(shop, sql))
    assert "FIVM302" in text
    assert f"there is no table or view {shop.schema}_raw.gone" in text


def test_input_that_was_never_built(shop: Project) -> None:
    shop.write("models/upstream.sql", "select order_id from {{ source('raw', 'orders') }}")
    text = message(attempt(shop, "select order_id from {{ ref('upstream') }}"))
    (shop.root / "models/upstream.sql").unlink()
    assert "FIVM302" in text
    assert "dbt build --select upstream" in text


@pytest.mark.long
def test_type_of_an_input_column_changed(shop: Project) -> None:
    """By default the state is built anew and the reason told; with fivm_on_change: fail the run stops."""
    shop.sql("CREATE OR REPLACE TABLE raw.typed USING DELTA AS SELECT 1 AS a, 1 AS b")
    sql = f"select a, count(*) as n from {shop.schema}_raw.typed group by a"
    attempt(shop, sql, expect=True)
    shop.sql("CREATE OR REPLACE TABLE raw.typed USING DELTA AS SELECT CAST(1 AS BIGINT) AS a, 1 AS b")
    text = message(attempt(shop, sql, "'fivm_on_change': 'fail'"))
    assert "FIVM304" in text
    assert "a int is now a bigint" in text
    run = attempt(shop, sql, expect=True)
    assert run.figures("attempt")["action"] == "rebuilt"
    assert "a int is now a bigint" in run.figures("attempt")["reason"]


def test_a_build_that_fails_leaves_the_old_table_alone(shop: Project) -> None:
    """Only a model that has been built replaces what another materialization left."""
    shop.sql("CREATE SCHEMA IF NOT EXISTS bad_input")
    shop.sql("DROP VIEW IF EXISTS shop.attempt")
    shop.sql("CREATE OR REPLACE TABLE shop.attempt USING DELTA AS SELECT 'precious' AS a")
    attempt(shop, "select nothing from {{ source('raw', 'orders') }}")
    assert shop.rows("attempt") == [("precious",)]
    failing = "if(order_id > 0, raise_error('broken row'), order_id)"
    text = message(attempt(shop, f"select {failing} as a from {{{{ source('raw', 'orders') }}}}"))
    assert "broken row" in text
    assert shop.rows("attempt") == [("precious",)]
    attempt(shop, "select count(*) > 0 as a from {{ source('raw', 'orders') }}", expect=True)
    assert shop.rows("attempt") == [(True,)]
