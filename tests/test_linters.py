"""sqlfluff with dbt's templater reads a project with fivm models, in an environment of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from dbt_project import REPOSITORY
from fixtures.typed import settings, typed

ENVIRONMENT = REPOSITORY / ".cache" / "sqlfluff"
DBT = '"dbt-core==1.11.*" "dbt-spark[PyHive,session]==1.11.*" "pyspark==4.2.*"'
CONFIGURATION = """
[sqlfluff]
dialect = sparksql
templater = dbt
exclude_rules = LT09
[sqlfluff:templater:dbt]
project_dir = .
"""


@pytest.fixture(scope="module")
def programs() -> Path:
    """sqlfluff beside dbt and fivm, in an environment that is made once."""
    found = ENVIRONMENT / "bin"
    if not (found / "sqlfluff").is_file():
        env = dict(os.environ)
        typed(f"{sys.executable} -m venv {ENVIRONMENT}", REPOSITORY, env)
        typed(f"{found}/pip install -q sqlfluff sqlfluff-templater-dbt {DBT} {REPOSITORY}", REPOSITORY, env)
    return found


@pytest.mark.long
@pytest.mark.spark
def test_sqlfluff_reads_models(programs: Path, tmp_path: Path) -> None:
    """The model of ``fivm init`` is in order, and what is not in order is found where it stands."""
    project = tmp_path / "shop"
    env = settings(tmp_path)
    env["PATH"] = f"{programs}{os.pathsep}{env['PATH']}"
    typed(f"fivm init {project} --package {REPOSITORY}", tmp_path, env)
    typed("dbt deps", project, env)
    (project / ".sqlfluff").write_text(CONFIGURATION)
    assert "All Finished" in typed("sqlfluff lint models", project, env)
    model = project / "models" / "fivm_revenue_by_day.sql"
    model.write_text(model.read_text().replace("count(*) as orders", "count(*) orders"))
    with pytest.raises(AssertionError, match="AL02"):
        typed("sqlfluff lint models", project, env)
