"""The command ``fivm`` as a user types it. None of this needs Java."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from dbt.cli.main import dbtRunner

from dbt_project import TYPED_ORDERS, create_files
from fivm_dbt import __version__
from fivm_dbt.cli import main
from fivm_dbt.errors import CODES

QUERY = """\
-- what comes in
create table raw.orders (order_id int primary key, customer_id int, amount decimal(10,2));
create table raw.customers (customer_id int, segment string);
-- the model
select c.segment, sum(o.amount) as revenue
from raw.orders o join raw.customers c on o.customer_id = c.customer_id
group by c.segment
"""


def fivm(*arguments: str | Path, expect: int = 0) -> Result:
    result = CliRunner().invoke(main, [str(a) for a in arguments])
    assert result.exit_code == expect, result.output
    return result


def test_version_and_help() -> None:
    assert fivm("--version").output.strip() == f"fivm, version {__version__}"
    assert "dbt run" in fivm("--help").output
    for command in ("explain", "plan", "replay", "doctor", "init", "jars", "error"):
        assert len(fivm(command, "--help").output.splitlines()) > 5


@pytest.mark.parametrize("number", CODES)
def test_what_is_known_of_an_error(number: str) -> None:
    shown = fivm("error", number.lower()).output
    assert shown.startswith(f"{number}: {CODES[number].title}")
    assert "what to do: " in shown.lower() and "<!--" not in shown and "](" not in shown


def test_codes_that_are_not_known() -> None:
    assert fivm("error").output.splitlines()[4] == "FIVM105  construct not supported incrementally"
    assert "did you mean FIVM105?" in fivm("error", "105", expect=2).output
    assert "lists all codes" in fivm("error", "what", expect=2).output


def test_explain_a_file(tmp_path: Path) -> None:
    file = tmp_path / "revenue.sql"
    file.write_text(QUERY)
    text = fivm("explain", file, "--statements").output
    assert text.startswith("== model analytics.revenue\nselect c.segment")
    assert "raw.orders" in text
    assert "MERGE INTO" in text
    short = fivm("explain", file).output
    assert text.startswith(short) and "MERGE INTO" not in short, "statements are shown on demand"
    assert (
        short.index("== in short") < short.index("When a row of customers changes, ") < short.index("== op")
    )
    assert json.loads(fivm("explain", file, "--format", "json").output)


def test_explain_points_at_mistakes(tmp_path: Path) -> None:
    file = tmp_path / "revenue.sql"
    file.write_text(QUERY.replace("o.amount)", "o.amonut)"))
    told = fivm("explain", file, expect=2).output
    assert "FIVM102" in told
    assert "order_id, customer_id, amount" in told
    file.write_text(QUERY + "; select 1")
    assert "expected one query, found 2: select c.segment" in fivm("explain", file, expect=2).output
    file.write_text(QUERY + "; insert into raw.orders\nselect 1, 2, 3")
    told = fivm("explain", file, expect=2).output
    assert (
        "insert into raw.orders select 1, 2, 3: a statement that is neither CREATE TABLE nor a query" in told
    )
    assert "write CREATE TABLE name (column type, ...) for each input, and one SELECT" in told
    assert "there is no file" in fivm("explain", tmp_path / "none.sql", expect=2).output


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    create_files(tmp_path / "shop")
    for key, value in {"SHOP_SCHEMA": "shop", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}.items():
        monkeypatch.setenv(key, value)
    return tmp_path / "shop"


def declare(shop: Path) -> None:
    (shop / "models/sources.yml").write_text(
        f"""
sources:
  - name: raw
    schema: raw
    tables:{TYPED_ORDERS}
      - name: customers
"""
    )
    (shop / "models/customers.yml").write_text(
        """
models:
  - name: customers
    columns:
      - {name: customer_id, data_type: int, data_tests: [unique, not_null]}
      - {name: segment, data_type: string}
      - {name: country, data_type: string}
"""
    )


def test_explain_a_model_needs_the_types_of_its_inputs(shop: Path) -> None:
    options = ["--project-dir", shop, "--profiles-dir", shop]
    told = fivm("explain", "revenue_by_segment", *options, expect=2).output
    assert "FIVM109" in told
    assert "are not declared with their types" in told
    declare(shop)
    text = fivm("explain", "revenue_by_segment", *options).output
    assert "a fivm model, read through its root state shop.revenue_by_day__fivm_state" in text
    assert "there is no model nothing" in fivm("explain", "nothing", *options, expect=2).output


@pytest.mark.more
def test_explain_a_model_prints_the_document_alone(shop: Path) -> None:
    """``fivm explain M --project-dir . --format json | python -m json.tool``; what dbt wrote last stays as it was."""
    declare(shop)
    target = shop / "target"
    target.mkdir()
    (target / "run_results.json").write_text("of the last run")
    command = [
        "-m",
        "fivm_dbt",
        "explain",
        "revenue_by_segment",
        "--project-dir",
        str(shop),
        "--profiles-dir",
        str(shop),
    ]
    shown = subprocess.run([sys.executable, *command, "--format", "json"], check=True, capture_output=True)
    tool = subprocess.run(
        [sys.executable, "-m", "json.tool"], input=shown.stdout, check=True, capture_output=True
    )
    assert json.loads(tool.stdout)["relation"].endswith("revenue_by_segment")
    assert {f.name: f.read_text() for f in target.iterdir()} == {"run_results.json": "of the last run"}
    assert not (shop / "logs").exists()
    page = fivm(
        "explain", "revenue_by_segment", "--project-dir", shop, "--profiles-dir", shop, "--format", "html"
    )
    assert page.stdout.startswith("<!DOCTYPE html>")


def test_explain_tells_what_dbt_says_when_it_fails(shop: Path) -> None:
    (shop / "models/broken.sql").write_text("select {{ nothing_there() }}")
    told = fivm("explain", "broken", "--project-dir", shop, "--profiles-dir", shop, expect=2)
    assert told.stdout == ""
    assert "FIVM201" in told.stderr
    assert "nothing_there" in told.stderr


def test_plan_without_a_connection(shop: Path) -> None:
    """Which models are refused, what is kept and read in full; nothing is written beside the project."""
    declare(shop)
    (shop / "models/odd.sql").write_text("select customer_id, rand() as r from {{ source('raw', 'orders') }}")
    options = ["--project-dir", shop, "--profiles-dir", shop, "--offline"]
    told = fivm("plan", *options, expect=1).output
    assert "refused\n  FIVM106 RAND()" in told
    assert "select customer_id, rand() as r from" in told, "with the place"
    assert (
        "orders_by_country   unknown\n" in told and "the columns of shop.countries are not declared" in told
    )
    assert "! reads raw.orders in full when shop.customers changes" in told
    assert told.splitlines()[-1].startswith("6 models: ")
    assert not (shop / "target").exists() and not (shop / "logs").exists()
    chosen = fivm("plan", *options, "-s", "big_orders", "--format", "json").output
    (only,) = json.loads(chosen)
    assert (only["model"], only["does"], only["code"]) == ("big_orders", "build or refresh", None)
    assert fivm("plan", *options, "-s", "customers").output == "0 models\n"
    assert "no-such" in fivm("plan", *options, "-s", "big_orders", "--target", "no-such", expect=2).output


def test_dbt_warns_of_keys_that_nobody_reads(shop: Path) -> None:
    file = shop / "models/revenue_by_day.sql"
    config = "{{ config(fivm_strategy='recursive', unique_key='day', materialized='fivm') }}\n"
    file.write_text(config + file.read_text())
    told: list[str] = []
    options = ["--project-dir", str(shop), "--profiles-dir", str(shop)]
    runner = dbtRunner(callbacks=[lambda e: told.append(e.info.msg) if e.info.level == "warn" else None])
    assert runner.invoke(["parse", *options]).success
    warnings = [line for line in told if "fivm: revenue_by_day" in line]
    assert len(warnings) == 1
    assert (
        "fivm_strategy has no effect outside meta: write config(meta={'fivm_strategy': 'recursive'})"
        in warnings[0]
    )
    assert "unique_key has no effect on fivm models" in warnings[0]
    assert not dbtRunner().invoke(["--warn-error", "parse", *options]).success


def test_replay_without_duckdb(tmp_path: Path) -> None:
    """As where the wheel is installed without it."""
    scenario = tmp_path / "empty.jsonl"
    scenario.write_text("", encoding="utf-8")
    program = "import sys; sys.modules['duckdb'] = None; from fivm_dbt.cli import main; main()"
    command = [sys.executable, "-c", program, "replay", str(scenario)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert "FIVM505" in done.stderr and 'pip install "duckdb>=1.4"' in done.stderr
    assert "Traceback" not in done.stderr


def test_replay(tmp_path: Path) -> None:
    scenario = {
        "id": "sum",
        "tables": {"r": [["a", "int"], ["b", "int"]]},
        "initial": {"r": [[1, 2]]},
        "view": "v",
        "sql": "select a, sum(b) as s from r group by a",
        "steps": [{"delta": {"r": {"insert": [[1, 3]]}}, "expected": {"v": [[1, 5]]}}],
    }
    file = tmp_path / "s.json"
    file.write_text(json.dumps(scenario))
    report = tmp_path / "report.json"
    fivm("replay", file, "--report", report, "--strict")
    assert json.loads(report.read_text())["scenarios"]
    scenario["steps"] = [{"delta": {}, "expected": {"v": [[1, 9]]}}]
    file.write_text(json.dumps(scenario))
    fivm("replay", file, expect=1)
    file.write_text("{}")
    assert "FIVM601" in fivm("replay", file, expect=2).output


def test_doctor_tells_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    told = fivm("doctor", expect=1).output
    assert "FIVM501" in told
    assert "set JAVA_HOME" in told
