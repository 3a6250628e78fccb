"""Tools around dbt read a project with fivm models, in an environment of their own: sqlfluff, OpenLineage's dbt-ol."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from dbt_project import REPOSITORY
from fixtures.typed import programs_of, settings, typed

TOOLS = "sqlfluff~=4.4.0 sqlfluff-templater-dbt~=4.4.0 openlineage-dbt~=1.54.0"
"""Of the versions that docs/dbt.md has."""
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
    """The tools beside dbt and fivm, in an environment that is made once; fivm is the one of this clone."""
    return programs_of("tools", f"{TOOLS} {DBT} -e {REPOSITORY}")


@pytest.fixture
def env(programs: Path, tmp_path: Path) -> dict[str, str]:
    """Of the project ``shop`` that ``fivm init`` has made."""
    found = settings(tmp_path)
    found["PATH"] = f"{programs}{os.pathsep}{found['PATH']}"
    typed(f"fivm init shop --package {REPOSITORY}", tmp_path, found)
    typed("dbt deps", tmp_path / "shop", found)
    return found


@pytest.mark.long
@pytest.mark.spark
def test_sqlfluff_reads_models(env: dict[str, str], tmp_path: Path) -> None:
    """The model of ``fivm init`` is in order, and what is not in order is found where it stands."""
    project = tmp_path / "shop"
    (project / ".sqlfluff").write_text(CONFIGURATION)
    assert "All Finished" in typed("sqlfluff lint models", project, env)
    model = project / "models" / "fivm_revenue_by_day.sql"
    model.write_text(model.read_text().replace("count(*) as orders", "count(*) orders"))
    with pytest.raises(AssertionError, match="AL02"):
        typed("sqlfluff lint models", project, env)


@pytest.mark.long
@pytest.mark.spark
def test_openlineage_tells_where_columns_come_from(env: dict[str, str], tmp_path: Path) -> None:
    """dbt-ol does not know a session, so that it sends what a run has left, under the name of another target."""
    project, events = tmp_path / "shop", tmp_path / "events"
    typed("dbt build --select fivm_orders fivm_revenue_by_day", project, env)
    profiles = yaml.safe_load((project / "profiles.yml").read_text())
    thrift = {"type": "spark", "method": "thrift", "host": "spark", "port": 10000, "schema": "analytics"}
    profiles["shop"]["outputs"]["lineage"] = thrift
    (project / "profiles.yml").write_text(yaml.safe_dump(profiles))
    env |= {"OPENLINEAGE__TRANSPORT__TYPE": "file", "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH": str(events)}
    typed("dbt-ol send-events --target lineage", project, env | {"OPENLINEAGE__TRANSPORT__APPEND": "true"})
    told = [json.loads(line) for line in events.read_text().splitlines()]
    (model,) = (o for e in told if e["eventType"] == "COMPLETE" for o in e["outputs"])
    assert model["name"] == "analytics.fivm_revenue_by_day"
    fields = model["facets"]["columnLineage"]["fields"]
    found = {name: {(i["name"], i["field"]) for i in of["inputFields"]} for name, of in fields.items()}
    orders = "analytics.fivm_orders"
    assert found == {"ordered_on": {(orders, "ordered_on")}, "revenue": {(orders, "amount")}}
