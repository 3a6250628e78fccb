"""The tables that dashboards read, ``fivm_models`` and ``fivm_refreshes``, and the example of one over them.

``FIVM_UPDATE=1`` writes the picture of the page in the docs anew.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from dbt_project import REPOSITORY, Project
from fixtures import browser

sys.path.append(str(REPOSITORY / "examples" / "dashboard"))
import dashboard

pytestmark = [pytest.mark.spark, pytest.mark.long]

IMAGE = REPOSITORY / "docs" / "images" / "dashboard.png"
MONITORING = ("--vars", "{fivm_monitoring: true}")
DAILY = "select customer_id, sum(amount) as amount from {{ source('raw', 'orders') }} group by customer_id"


def test_models_and_refreshes_as_tables(spark: SparkSession, tmp_path: Path) -> None:
    shop = Project.create(spark, tmp_path / "shop", "monitored", "big_orders")
    shop.write("models/daily.sql", "{{ config(materialized='fivm') }} " + DAILY)
    shop.write("models/daily.yml", 'models: [{name: daily, description: "A customer\'s orders"}]')

    def look() -> None:
        shop.dbt("run", "--select", "fivm_refreshes", "fivm_models", *MONITORING)

    # Before anything was built there are the models, and no refreshes.
    look()
    assert shop.rows("SELECT * FROM shop.fivm_refreshes") == []
    named = [(f"{shop.schema}.{name}",) for name in ("big_orders", "daily")]
    assert (
        shop.rows("SELECT model FROM shop.fivm_models WHERE refreshes = 0 AND last_action IS NULL") == named
    )

    shop.dbt("run")
    look()
    shop.insert("orders", (9, 1, "2024-05-05", "90.00"))
    shop.dbt("run")
    shop.write("models/daily.sql", "{{ config(materialized='fivm') }} " + DAILY + " having sum(amount) > 0")
    shop.dbt("run")
    look()
    look()
    did = "SELECT refresh, action, changed, reason FROM shop.fivm_refreshes WHERE model LIKE '%daily'"
    assert shop.rows(did) == [
        (1, "built", None, None),
        (2, "refreshed", f"{shop.schema}_raw.orders +1 -0", None),
        (3, "rebuilt", None, "the model's SQL changed; presentation changed"),
    ]
    assert shop.rows(
        "SELECT inputs, description, refreshes, rebuilds, last_action, median_seconds > 0, "
        "build_seconds = last_seconds, state_bytes > 0 FROM shop.fivm_models WHERE model LIKE '%daily'"
    ) == [(f"{shop.schema}_raw.orders", "A customer's orders", 3, 1, "rebuilt", True, True, True)]

    # What the states have forgotten is in the table still.
    shop.sql("DROP TABLE shop.daily__fivm_state")
    look()
    assert shop.rows("SELECT count(*) FROM shop.fivm_refreshes WHERE model LIKE '%daily'") == [(3,)]


def test_the_example_of_a_page(spark: SparkSession, tmp_path: Path) -> None:
    shop = Project.create(spark, tmp_path / "shop", "dashboard", "big_orders")
    shop.write("models/by_customer.sql", "{{ config(materialized='fivm') }} " + DAILY)
    shop.dbt("run")
    for number in range(10, 16):
        shop.insert("orders", (number, number % 3, "2024-05-05", "90.00"))
        if number == 13:
            having = " having sum(amount) > 0"
            shop.write("models/by_customer.sql", "{{ config(materialized='fivm') }} " + DAILY + having)
        shop.dbt("run")
    shop.dbt("run", "--select", "fivm_refreshes", "fivm_models", *MONITORING)
    files = []
    for name in ("fivm_models", "fivm_refreshes"):
        query = f"select * from {{{{ ref('fivm', '{name}') }}}}"
        shown = shop.dbt("show", "--inline", query, "--output", "json", "--limit", "-1", *MONITORING)
        files.append(tmp_path / f"{name}.json")
        files[-1].write_text(shown.text)
    out = tmp_path / "fivm.html"
    done = CliRunner().invoke(dashboard.main, [*map(str, files), "--out", str(out)])
    assert done.exit_code == 0, done.output
    page = out.read_text()
    assert f"{shop.schema}.by_customer" in page and "the model&#39;s SQL changed" in page
    assert page.count("<svg") == 2
    picture = browser.pictured(f"file://{out}", tmp_path / "page.png", 1_150, 760)
    assert len(picture) > 20_000
    if os.environ.get("FIVM_UPDATE"):
        IMAGE.write_bytes(picture)
