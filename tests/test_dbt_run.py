"""The materialization as a dbt user meets it: build, change, run again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dbt_project import Project

pytestmark = pytest.mark.spark

REVENUE_BY_DAY = """
    SELECT o.ordered_on, upper(c.segment), count(*), sum(o.amount), avg(o.amount)
    FROM raw.orders o JOIN raw.customers c ON o.customer_id = c.customer_id
    WHERE o.amount > 0 GROUP BY ALL"""
REVENUE_BY_COUNTRY = """
    select c.country, sum(d.revenue) as revenue from {{ ref('revenue_by_day') }} d
    join {{ ref('customers') }} c on d.segment = c.segment group by c.country"""
FIVM_MODELS = ("big_orders", "orders_by_country", "revenue_by_day", "revenue_by_segment", "total_revenue")


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    return Project.create(spark, tmp_path / "shop", request.node.name.removeprefix("test_"))


def test_build_then_changes_then_nothing(shop: Project) -> None:
    """A first build, a batch of all kinds of changes, a run without any, and the exactness tests after each."""
    built = shop.dbt("build")
    assert built.actions() == dict.fromkeys(FIVM_MODELS, "built")
    assert shop.rows("revenue_by_day") == shop.rows(REVENUE_BY_DAY)
    _check_reports(shop)

    shop.insert("orders", (5, 2, "2024-05-02", "99.00"), (6, 9, "2024-05-02", "1.00"))
    shop.sql("UPDATE raw.orders SET amount = 11 WHERE order_id = 1")
    shop.sql("DELETE FROM raw.orders WHERE order_id = 4")
    shop.sql("UPDATE raw.customers SET segment = 'c' WHERE customer_id = 2")
    changed = shop.dbt("build")
    assert set(changed.actions().values()) == {"refreshed"}
    assert shop.rows("revenue_by_day") == shop.rows(REVENUE_BY_DAY)
    assert changed.figures("revenue_by_day")["rows_merged"] == 4
    [orders] = [i for i in changed.figures("big_orders")["inputs"] if i["relation"].endswith("orders")]
    # The large orders: one has come, two have gone.
    assert (orders["capture"], orders["inserted"], orders["deleted"]) == ("change feed", 1, 2)

    before = shop.versions()
    nothing = shop.dbt("run", "--exclude", "customers")
    assert set(nothing.actions().values()) == {"no change"}
    assert shop.versions() == before


def _check_reports(shop: Project) -> None:
    """The same figures in the log, in run_results.json, and the statements under target/run."""
    response = shop.run_results()["revenue_by_day"]["adapter_response"]
    assert response["_message"] == "built"
    assert response["fivm"]["statements"] > 0
    assert response["fivm"]["rows_read"] == 8, "the inputs: how large the new state is the commit tells"
    assert {s["relation"].split(".")[1]: s["rows"] for s in response["fivm"]["scans"]} == {
        "orders": 5,
        "customers": 3,
    }
    assert response["fivm"]["bytes_read"] > 0
    log = (shop.root / "logs" / "dbt.log").read_text()
    assert "fivm: revenue_by_day: built" in log
    statements = (shop.root / "target/run/shop/models/revenue_by_day.sql").read_text()
    assert "CREATE OR REPLACE TABLE" in statements
    assert "CREATE OR REPLACE VIEW" in statements


@pytest.mark.long
def test_full_refresh(shop: Project) -> None:
    shop.dbt("run", "--select", "+revenue_by_day")
    again = shop.dbt("run", "--select", "revenue_by_day", "--full-refresh")
    assert again.figures("revenue_by_day") | {"action": "rebuilt", "reason": "full refresh"} == again.figures(
        "revenue_by_day"
    )
    assert shop.rows("revenue_by_day") == shop.rows(REVENUE_BY_DAY)


@pytest.mark.long
def test_seed_and_table_upstream_are_built_again(shop: Project) -> None:
    """dbt drops and creates seeds, and replaces tables, whether or not a row changed."""
    command = ("build", "--select", "+orders_by_country", "--exclude", "resource_type:test")
    shop.dbt(*command)
    same = shop.dbt(*command)
    assert same.actions() == {"orders_by_country": "no change"}
    assert same.figures("orders_by_country")["rows_merged"] == 0
    shop.write("seeds/countries.csv", "country,country_name\nDE,Deutschland\nFR,France\n")
    renamed = shop.dbt(*command)
    assert renamed.actions() == {"orders_by_country": "refreshed"}
    assert ("Deutschland", 4) in shop.rows("orders_by_country")


def test_four_threads(shop: Project) -> None:
    """Models refreshed side by side in one session do not mix their staged changes, heads or figures."""
    shop.write(
        "models/small_orders.sql", "select order_id from {{ source('raw', 'orders') }} where amount < 20"
    )
    # Its views are chosen by the size of a model below, which is shown by a view.
    shop.write("models/revenue_by_country.sql", REVENUE_BY_COUNTRY)
    shop.dbt("build", "--threads", "4")
    shop.insert("orders", (7, 2, "2024-05-03", "15.00"), (8, 1, "2024-05-03", "80.00"))
    run = shop.dbt("run", "--threads", "4", "--exclude", "customers")
    assert set(run.actions().values()) == {"refreshed"}
    assert len(run.actions()) == 7
    read = {s["relation"].split(".")[1] for s in run.figures("big_orders")["scans"]}
    assert "customers" not in read
    shop.dbt("test", "--threads", "4")
    assert shop.rows("small_orders") == [(1,), (3,), (7,)]


def test_exactness_test_finds_a_damaged_state(shop: Project) -> None:
    shop.dbt("run", "--select", "+revenue_by_day")
    shop.sql(
        "UPDATE shop.revenue_by_day__fivm_state SET __fivm_count = 7 WHERE ordered_on = DATE'2024-05-02'"
    )
    run = shop.dbt("test", "--select", "revenue_by_day", expect=False)
    [result] = run.results.values()
    assert result.failures == 2
    shop.insert("orders", (7, 2, "2024-05-03", "15.00"))
    run = shop.dbt("run", "--select", "revenue_by_day")
    assert run.actions() == {"revenue_by_day": "rebuilt"}
    assert "changed by somebody else (UPDATE)" in run.figures("revenue_by_day")["reason"]
    shop.dbt("test", "--select", "revenue_by_day")


@pytest.mark.long
def test_deferral_reads_production_and_writes_here(spark: SparkSession, tmp_path: Path) -> None:
    production = Project.create(spark, tmp_path / "production", "deferral_production")
    production.dbt("build", "--select", "+revenue_by_segment", "--exclude", "resource_type:test")
    production.dbt("compile")
    before = production.versions()
    (production.root / "target").rename(tmp_path / "state")
    here = Project(spark, production.root, "deferral_here")
    sources = "models/sources.yml"
    here.write(
        sources,
        (here.root / sources).read_text().replace("{{ env_var('SHOP_SCHEMA') }}", "deferral_production"),
    )
    state = ["--defer", "--state", str(tmp_path / "state")]
    run = here.dbt("run", "--select", "revenue_by_segment", *state)
    assert run.actions() == {"revenue_by_segment": "built"}
    assert here.rows("revenue_by_segment") == production.rows("revenue_by_segment")
    assert production.versions() == before


def test_the_last_refreshes_are_listed(shop: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """From the histories of the states: of one model, or of all; a command that fails tells what it has done."""

    def listed(**wanted: object) -> list[list[str]]:
        capsys.readouterr()
        shop.dbt("run-operation", "fivm_history", "--args", json.dumps(wanted))
        lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.strip()]
        start = next((i for i, words in enumerate(lines) if words[0] == "model"), len(lines) - 1)
        return lines[start:]

    assert listed() == [["no", "refresh", "is", "known"]]
    shop.dbt("run", "--select", "big_orders", "total_revenue")
    shop.insert("orders", (5, 2, "2024-05-02", "99.00"))
    text = (shop.root / "models/total_revenue.sql").read_text()
    shop.write("models/total_revenue.sql", f"{{{{ config(pre_hook='select nothing') }}}}\n{text}")
    shop.dbt("run", "--select", "big_orders", "total_revenue", expect=False)
    heading, *rows = listed(model="big_orders")
    assert heading[:2] == ["model", "refresh"]
    assert [(row[0], row[1], row[4]) for row in rows] == [
        ("big_orders", "2", "refreshed"),
        ("big_orders", "1", "built"),
    ]
    assert rows[0][5:9] == [f"{shop.schema}_raw.orders", "+1", "-0", "1"]
    seconds, size = float(rows[0][9]), int(rows[0][10].replace(",", ""))
    assert seconds > 0 and size > 0
    assert {row[0] for row in listed()[1:]} == {"big_orders", "total_revenue"}
    assert len(listed(limit=1)) == 2
    shop.dbt("run-operation", "fivm_explain", "--args", "{model: big_orders, format: html}")
    page = Path(capsys.readouterr().out.strip().splitlines()[-1]).read_text(encoding="utf-8")
    assert f"Last refresh: number 2, {seconds:.1f} s" in page
