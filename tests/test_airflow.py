"""The example of examples/airflow, on a real Airflow: DAGs are read, and run once to the end."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from dbt_project import REPOSITORY
from fixtures.typed import PROGRAMS, programs_of, settings, typed

EXAMPLE = REPOSITORY / "examples" / "airflow"
LOG = REPOSITORY / "docs" / "airflow-log.txt"
_WHERE = re.compile(r"\s+\[[\w.]+\] .*$")
"""The logger of a line, and what comes behind it."""
_OTHERS = ("alembic", "osmos", "penlineage", "Total ", "Tmp dir", "next_dagrun")
"""What is not told of the run itself."""
DAGS = ("shop", "shop_audit", "shop_backfill", "shop_by_model")


@pytest.fixture(scope="module")
def airflow() -> Path:
    """Airflow's command, in an environment that is made once."""
    return programs_of("airflow", f"-r {EXAMPLE}/requirements.txt") / "airflow"


def _for_readers(told: str, home: Path) -> str:
    """A log in the order of time, without the places of this machine and of Airflow's code."""
    lines = []
    for line in told.splitlines():
        shown = _WHERE.sub("", line).replace(str(home), "~").replace(str(REPOSITORY), "fivm_dbt").rstrip()
        if line[:2] == "20" and not any(word in line for word in _OTHERS):
            lines.append(shown)
    return "\n".join(sorted(lines, key=lambda line: line[:27])) + "\n"


@pytest.mark.long
@pytest.mark.spark
def test_the_example_runs(airflow: Path, tmp_path: Path) -> None:
    """``FIVM_UPDATE=1`` writes the log in the docs anew."""
    project = tmp_path / "shop"
    env = settings(tmp_path) | {
        "SHOP_PROJECT": str(project),
        "SHOP_DBT": str(PROGRAMS / "dbt"),
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLE / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }

    def type_(command: str) -> str:
        return typed(command.replace("airflow ", f"{airflow} ", 1), tmp_path, env)

    type_(f"fivm init {project} --package {REPOSITORY}")
    typed("dbt deps", project, env)
    type_("airflow db migrate")
    type_("airflow dags reserialize")
    assert "No data found" in type_("airflow dags list-import-errors")
    listed = type_("airflow dags list --output plain")
    assert all(name in listed for name in DAGS)
    told = type_("airflow dags test shop")
    if os.environ.get("FIVM_UPDATE"):
        LOG.write_text(_for_readers(told, tmp_path), encoding="utf-8")
    assert "fivm: fivm_revenue_by_day: built" in told and "state=success" in told
    told = type_("airflow dags test shop_by_model")
    assert "fivm: fivm_revenue_by_day: no change" in told or "refreshed" in told
    tasks = type_("airflow tasks list shop_by_model")
    assert "fivm_revenue_by_day" in tasks and "__fivm_" not in tasks
    assert "PASS=1" in type_("airflow dags test shop_audit")
