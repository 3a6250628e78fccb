"""A dbt project with fivm models, a dbt command per task.

``shop`` runs each hour: it asks whether sources are fresh, builds, and tells of rebuilds. ``shop_audit`` compares each
night every model with its recompute. ``shop_backfill`` computes a range of time parts of viewdf models again.

Where the project and dbt are comes from ``SHOP_PROJECT`` and ``SHOP_DBT``.
"""

from __future__ import annotations

import json
import os
from datetime import datetime, timedelta
from pathlib import Path

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG, Param, task

PROJECT = Path(os.environ["SHOP_PROJECT"])
DBT = os.environ.get("SHOP_DBT", "dbt")

# Running again is always safe: each commit says what it covers.
RETRIES = {"retries": 2, "retry_delay": timedelta(minutes=5)}


# Each dbt command writes its results over those before: tests write elsewhere, and the build's can be read beside them.
APART = "--target-path target/tests"


def dbt(task_id: str, command: str) -> BashOperator:
    return BashOperator(task_id=task_id, bash_command=f"{DBT} {command}", cwd=str(PROJECT), append_env=True)


@task(trigger_rule="all_done", retries=0)
def tell_of_rebuilds() -> None:
    """Fails where a model was built anew, with the reason: a rebuild costs as much as a recompute."""
    results = json.loads((PROJECT / "target" / "run_results.json").read_text(encoding="utf-8"))["results"]
    found = {r["unique_id"]: r["adapter_response"].get("fivm", {}) for r in results}
    rebuilt = {model: told["reason"] for model, told in found.items() if told.get("action") == "rebuilt"}
    if rebuilt:
        raise ValueError("; ".join(f"{model} was rebuilt: {reason}" for model, reason in rebuilt.items()))


COMMON = {"start_date": datetime(2026, 1, 1), "catchup": False, "max_active_runs": 1, "default_args": RETRIES}

with DAG("shop", schedule="@hourly", **COMMON):
    build = dbt("build", "build --exclude-resource-type test")
    dbt("source_freshness", "source freshness") >> build
    build >> [dbt("test", f"test --exclude test_name:fivm_exact {APART}"), tell_of_rebuilds()]

with DAG("shop_audit", schedule="30 3 * * *", **COMMON):
    dbt("exact", f"test --select test_name:fivm_exact {APART}")

with DAG(
    "shop_backfill",
    schedule=None,
    params={
        "start": Param("2026-01-01", format="date", title="First day"),
        "end": Param("2026-01-02", format="date", title="Day behind the last one"),
    },
    **COMMON,
):
    # fivm models need no range: whatever came late is part of the next change.
    dbt(
        "build_parts",
        "build --select config.materialized:viewdf+ "
        "--event-time-start '{{ params.start }}' --event-time-end '{{ params.end }}'",
    )
