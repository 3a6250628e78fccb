"""The example of examples/airflow, on a real Airflow: DAGs are read, and run once to the end."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from dbt_project import REPOSITORY

EXAMPLE = REPOSITORY / "examples" / "airflow"
ENVIRONMENT = REPOSITORY / ".cache" / "airflow"
DAGS = ("shop", "shop_audit", "shop_backfill", "shop_by_model")


def _run(*command: str | Path, cwd: Path, env: Mapping[str, str]) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=dict(env), capture_output=True, text=True, check=False
    )
    told = done.stdout + done.stderr
    assert done.returncode == 0, f"{' '.join(map(str, command))}: {told[-6000:]}"
    return told


@pytest.fixture(scope="module")
def airflow() -> Path:
    """Airflow's programs, in an environment that is made once."""
    programs = ENVIRONMENT / "bin"
    if not (programs / "airflow").is_file():
        _run(sys.executable, "-m", "venv", ENVIRONMENT, cwd=REPOSITORY, env=os.environ)
        _run(
            programs / "pip",
            "install",
            "-q",
            "-r",
            EXAMPLE / "requirements.txt",
            cwd=REPOSITORY,
            env=os.environ,
        )
    return programs / "airflow"


@pytest.mark.long
@pytest.mark.spark
def test_the_example_runs(airflow: Path, tmp_path: Path) -> None:
    project, programs = tmp_path / "shop", Path(sys.executable).parent
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DBT_", "SHOP_", "AIRFLOW", "PYTHON"))}
    env = kept | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "SHOP_PROJECT": str(project),
        "SHOP_DBT": str(programs / "dbt"),
        "DBT_SEND_ANONYMOUS_USAGE_STATS": "false",
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(EXAMPLE / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }
    _run(programs / "fivm", "init", project, "--package", REPOSITORY, cwd=tmp_path, env=env)
    _run(programs / "dbt", "deps", cwd=project, env=env)
    _run(airflow, "db", "migrate", cwd=tmp_path, env=env)
    _run(airflow, "dags", "reserialize", cwd=tmp_path, env=env)
    assert "No data found" in _run(airflow, "dags", "list-import-errors", cwd=tmp_path, env=env)
    listed = _run(airflow, "dags", "list", "--output", "plain", cwd=tmp_path, env=env)
    assert all(name in listed for name in DAGS)
    told = _run(airflow, "dags", "test", "shop", cwd=tmp_path, env=env)
    assert "fivm: fivm_revenue_by_day: built" in told and "state=success" in told
    told = _run(airflow, "dags", "test", "shop_by_model", cwd=tmp_path, env=env)
    assert "fivm: fivm_revenue_by_day: no change" in told or "refreshed" in told
    tasks = _run(airflow, "tasks", "list", "shop_by_model", cwd=tmp_path, env=env)
    assert "fivm_revenue_by_day" in tasks and "__fivm_" not in tasks
    told = _run(airflow, "dags", "test", "shop_audit", cwd=tmp_path, env=env)
    assert "PASS=1" in told
