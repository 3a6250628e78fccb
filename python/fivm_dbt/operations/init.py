"""``fivm init`` writes what a first hour needs into a dbt project, new or not, and overwrites nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

from fivm_dbt.engines.spark.delta_lake.jars import delta_artifact, delta_jars, installed_spark
from fivm_dbt.engines.spark.delta_lake.names import LOG_TASKS, SESSION_CONFIG
from fivm_dbt.engines.spark.own_session import UNIONS
from fivm_dbt.engines.spark.session import LOG_FILE, QUIET_LOG, log_option
from fivm_dbt.errors import FivmError
from fivm_dbt.operations.profiles import profiles_file, says

SPARK_HOME = ".spark"
"""The directory of a project where tables, metastore and log settings of the local Spark lie."""

MODEL, SEED = "fivm_revenue_by_day", "fivm_orders"


@dataclass(frozen=True)
class Done:
    """A file of a project: written, or left as it was, and then what to add to it by hand, if anything."""

    path: Path
    what: Literal["written", "left"]
    to_add: str = ""


def init_project(directory: Path, package: str | None = None) -> list[Done]:
    """Write what ``directory`` lacks. ``package`` is where the dbt package fivm is, a directory or a git URL.

    Raises FIVM201 where nobody knows where the dbt package is, FIVM501 to FIVM505 where the jars of Delta cannot be
    fetched for the installed Spark. Nothing is written then.
    """
    directory = directory.resolve()
    files = list(_files(directory, _project(directory), _package(package)))
    return [_write(path, text, to_add) for path, text, to_add in files]


def told(directory: Path, done: Sequence[Done]) -> Iterator[str]:
    """What was done, what is left to be done by hand, and what to type next."""
    yield from (f"{item.what.ljust(7)}  {item.path}" for item in done)
    for item in done:
        if item.to_add:
            yield f"\nadd to {item.path}, under packages:\n{item.to_add}"
    yield f"\nnext:\n  cd {directory}\n  dbt deps\n  fivm doctor --project-dir ."
    yield f"  dbt build --select {SEED} {MODEL}"
    yield f"then change {SEED}.csv, and look before you run again:"
    yield f"  dbt seed --select {SEED}\n  fivm plan --select {MODEL}\n  dbt run --select {MODEL}"


def _project(directory: Path) -> Mapping[str, Any]:
    """What stands in ``dbt_project.yml``, or is going to."""
    file = directory / "dbt_project.yml"
    if file.is_file():
        return dict(yaml.safe_load(file.read_text(encoding="utf-8")) or {})
    name = re.sub(r"\W+", "_", directory.name).strip("_").lower()
    return {"name": name if name and not name[0].isdigit() else f"shop_{name}".rstrip("_")}


def _package(package: str | None) -> str:
    """An entry of ``packages.yml``: as given, or the clone that this code is part of."""
    if package is not None and not Path(package).is_dir():
        return f"- git: {json.dumps(package)}\n    revision: main   # better a tag, or a commit"
    root = Path(package) if package is not None else Path(__file__).resolve().parents[3]
    file = root / "dbt_project.yml"
    if not file.is_file() or (yaml.safe_load(file.read_text(encoding="utf-8")) or {}).get("name") != "fivm":
        raise FivmError(
            "FIVM201",
            f"the dbt package fivm is not in {root}"
            if package is not None
            else "nobody knows where the dbt package fivm is",
            remedy="give --package: the directory of a clone, or its git URL",
        )
    return f"- local: {json.dumps(str(root.resolve()))}"


def _files(directory: Path, project: Mapping[str, Any], package: str) -> Iterator[tuple[Path, str, str]]:
    """Path, text, and what has to be added to the file where it is there already."""
    name, profile = str(project["name"]), str(project.get("profile", project["name"]))
    yield directory / "dbt_project.yml", _DBT_PROJECT.format(name=name, profile=profile), ""
    profiles = directory / "profiles.yml"
    if profiles.exists():
        yield profiles, "", ""
    elif not _has_profile(profile):
        yield profiles, _profile(directory, profile), ""
        yield directory / SPARK_HOME / LOG_FILE, QUIET_LOG, ""
    packages = directory / "packages.yml"
    yield packages, f"packages:\n  {package}\n", "" if _is_named(packages, package) else f"  {package}"
    yield directory / ".gitignore", f"target/\nlogs/\ndbt_packages/\n{SPARK_HOME}/\n", ""
    seeds = directory / _first(project, "seed-paths", "seeds")
    models = directory / _first(project, "model-paths", "models")
    yield seeds / f"{SEED}.csv", _CSV, ""
    yield seeds / f"{SEED}.yml", _SEED_YML, ""
    yield models / f"{MODEL}.sql", _SQL, ""
    yield models / f"{MODEL}.yml", _MODEL_YML, ""


def _is_named(packages: Path, package: str) -> bool:
    """Whether ``packages.yml`` has the package already, here or from elsewhere."""
    if not packages.is_file():
        return False
    entries = (yaml.safe_load(packages.read_text(encoding="utf-8")) or {}).get("packages") or []
    return any("fivm" in str(entry) or [entry] == yaml.safe_load(package) for entry in entries)


def _first(project: Mapping[str, Any], key: str, default: str) -> str:
    return str((project.get(key) or [default])[0])


def _has_profile(profile: str) -> bool:
    """Whether dbt finds a profile of this name elsewhere: a file in the project would hide all that are there."""
    return says(profiles_file(None), re.compile(rf"^{re.escape(profile)}\s*:", re.MULTILINE))


def _profile(directory: Path, profile: str) -> str:
    """A local Spark with Delta, whose jars are there: Ivy need not look for them at every start."""
    home = directory / SPARK_HOME
    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "2g",
        "spark.jars": ",".join(map(str, delta_jars())),
        **SESSION_CONFIG,
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home / 'metastore'};create=true",
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={home} -XX:ReservedCodeCacheSize=512m "
        + log_option(home / LOG_FILE),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "4",
        "spark.sql.codegen.cache.maxEntries": "5000",
        # As refreshes have it: then no line has to say that they have it otherwise.
        LOG_TASKS: "2",
        UNIONS: "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    lines = "".join(f"        {json.dumps(key)}: {json.dumps(value)}\n" for key, value in settings.items())
    return _PROFILE.format(profile=profile, settings=lines, delta=delta_artifact(installed_spark()))


def _write(path: Path, text: str, to_add: str) -> Done:
    if path.exists():
        return Done(path, "left", to_add)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return Done(path, "written")


_DBT_PROJECT = """\
name: {name}
version: "1.0"
config-version: 2
profile: {profile}

model-paths: ["models"]
seed-paths: ["seeds"]

# What fivm models read are Delta tables.
models:
  {name}:
    +file_format: delta
seeds:
  {name}:
    +file_format: delta
"""

_PROFILE = """\
# A Spark in dbt's own process, for one machine. Its jars are of {delta}.
{profile}:
  target: local
  outputs:
    local:
      type: spark
      method: session
      host: localhost
      schema: analytics
      threads: 1
      server_side_parameters:
{settings}"""

_CSV = """\
order_id,customer_id,ordered_on,amount
1,1,2024-05-01,10.00
2,1,2024-05-01,60.00
3,2,2024-05-02,5.50
4,3,2024-05-02,70.00
"""

_SEED_YML = f"""\
seeds:
  - name: {SEED}
    config:
      file_format: delta
      column_types: {{order_id: int, customer_id: int, ordered_on: date, amount: "decimal(10,2)"}}
    columns:
      - {{name: order_id, data_type: int}}
      - {{name: customer_id, data_type: int}}
      - {{name: ordered_on, data_type: date}}
      - {{name: amount, data_type: "decimal(10,2)"}}
"""

_SQL = f"""\
{{{{ config(materialized='fivm') }}}}

select ordered_on, count(*) as orders, sum(amount) as revenue
from {{{{ ref('{SEED}') }}}}
group by ordered_on
"""

_MODEL_YML = f"""\
models:
  - name: {MODEL}
    description: Orders and revenue per day, kept up to date by what has changed in the orders.
    data_tests:
      # Compares the model with a full recompute.
      - fivm.fivm_exact
"""
