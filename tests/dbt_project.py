"""A dbt project in a directory of its own, run in this process and in the shared Spark session."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from dbt.cli.main import dbtRunner
from dbt_common.tests import enable_test_caching

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# dbt parses the same five hundred macros for each command of each project, which is a third of a command's time.
enable_test_caching()

HERE = Path(__file__).parent
REPOSITORY = HERE.parent

TYPED_ORDERS = """
      - name: orders
        columns:
          - {name: order_id, data_type: int}
          - {name: customer_id, data_type: int}
          - {name: ordered_on, data_type: date}
          - {name: amount, data_type: "decimal(10,2)"}
"""
"""The source of orders with the types of its columns declared, for a list of tables in YAML."""


@dataclass
class Run:
    """What one dbt command did: its results by node name, and every line that it printed."""

    success: bool
    results: dict[str, Any]
    lines: list[str]
    error: str

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + self.error

    def figures(self, model: str) -> dict[str, Any]:
        """What fivm reports of a model in ``run_results.json``."""
        return dict(self.results[model].adapter_response["fivm"])

    def actions(self) -> dict[str, str]:
        """What was done with each fivm model."""
        responses = {name: r.adapter_response for name, r in self.results.items()}
        return {name: r["fivm"]["action"] for name, r in responses.items() if "fivm" in r}


def create_files(root: Path) -> None:
    """A copy of ``tests/dbt/project`` with this repository as its installed package."""
    shutil.copytree(HERE / "dbt" / "project", root)
    (root / "packages.yml").write_text(f"packages:\n  - local: {REPOSITORY}\n")
    (root / "dbt_packages").mkdir()
    (root / "dbt_packages" / "fivm").symlink_to(REPOSITORY)


def invoke(root: Path, schema: str, arguments: Iterable[str]) -> Run:
    """A dbt command on a project, its lines caught."""
    lines: list[str] = []

    def hear(event: Any) -> None:
        if event.info.level != "debug":
            lines.append(event.info.msg)

    os.environ.update(SHOP_SCHEMA=schema, DBT_SEND_ANONYMOUS_USAGE_STATS="false", DBT_USE_COLORS="false")
    directories = ["--project-dir", str(root), "--profiles-dir", str(root), "--log-path", str(root / "logs")]
    command = [*arguments, *directories, "--quiet"]
    # dbt also reads the command line of the process, in which the options of pytest are deprecated ones of dbt.
    with patch.object(sys, "argv", ["dbt", *command]):
        done = dbtRunner(callbacks=[hear]).invoke(command)
    found = {r.node.name: r for r in getattr(done.result, "results", ()) or () if hasattr(r, "node")}
    return Run(done.success, found, lines, str(done.exception or ""))


@dataclass
class Project:
    """A project with a schema of its own, and another one for its sources."""

    spark: SparkSession
    root: Path
    schema: str

    @staticmethod
    def create(spark: SparkSession, root: Path, name: str, *models: str) -> Project:
        """With all models, or only these, and the source tables filled; its schema is named after ``name``."""
        create_files(root)
        project = Project(spark, root, re.sub(r"\W+", "_", name).strip("_"))
        if models:
            for file in (root / "models").glob("*.sql"):
                if file.stem not in models:
                    file.unlink()
            (root / "models" / "models.yml").unlink()
        _create_inputs(project)
        return project

    def write(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def dbt(self, *arguments: str, expect: bool = True) -> Run:
        """Run a dbt command that is expected to succeed, or to fail."""
        run = invoke(self.root, self.schema, arguments)
        assert run.success is expect, run.text
        return run

    def sql(self, statement: str) -> list[tuple[Any, ...]]:
        """Run a statement in which ``raw.`` stands for the schema of the sources, ``shop.`` for the models'."""
        named = re.sub(r"\braw\.", f"{self.schema}_raw.", statement)
        named = re.sub(r"\bshop\.", f"{self.schema}.", named)
        return [tuple(row) for row in self.spark.sql(named).collect()]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """All rows of a query, or of a model by its name, in an order that does not depend on Spark."""
        return sorted(self.sql(query if " " in query else f"SELECT * FROM shop.{query}"), key=repr)

    def insert(self, table: str, *rows: tuple[Any, ...]) -> None:
        shown = ("(" + ", ".join("NULL" if v is None else repr(v) for v in row) + ")" for row in rows)
        self.sql(f"INSERT INTO raw.{table} VALUES {', '.join(shown)}")

    def versions(self) -> dict[str, int]:
        """The Delta version of every table in both schemas."""
        found = {}
        for schema in (self.schema, f"{self.schema}_raw"):
            for _, name, is_temporary in self.sql(f"SHOW TABLES IN {schema}"):
                if not is_temporary and self.facts(f"{schema}.{name}").get("Provider") == "delta":
                    history = self.sql(f"DESCRIBE HISTORY {schema}.{name} LIMIT 1")
                    found[f"{schema}.{name}"] = int(history[0][0])
        return found

    def facts(self, relation: str) -> dict[str, str]:
        """Column types, type, provider... of a relation, and its comments under ``comment of NAME``."""
        rows = self.sql(f"DESCRIBE TABLE EXTENDED {relation}")
        return {r[0]: r[1] for r in rows} | {f"comment of {r[0]}": r[2] for r in rows if r[2]}

    def run_results(self) -> dict[str, Any]:
        results = json.loads((self.root / "target" / "run_results.json").read_text())["results"]
        return {r["unique_id"].split(".")[2]: r for r in results}


def _create_inputs(project: Project) -> None:
    """Source tables with a few rows, NULLs and duplicates among them."""
    project.sql(f"CREATE SCHEMA {project.schema}_raw")
    feed = "USING DELTA TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    project.sql(
        f"CREATE TABLE raw.orders {feed} AS SELECT order_id, customer_id, CAST(day AS DATE) AS ordered_on, "
        "CAST(amount AS DECIMAL(10,2)) AS amount FROM VALUES (1, 1, '2024-05-01', 10), (2, 1, '2024-05-01', 60), "
        "(3, 2, '2024-05-02', 5.5), (4, 3, NULL, 70), (4, 3, NULL, 70) AS v(order_id, customer_id, day, amount)"
    )
    project.sql(
        "CREATE TABLE raw.customers USING DELTA AS SELECT * FROM VALUES (1, 'a', 'DE'), (2, 'b', 'FR'), "
        "(3, NULL, 'DE') AS v(customer_id, segment, country)"
    )
