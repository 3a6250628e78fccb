"""``fivm doctor`` tells what fivm needs that is missing here, and what to type."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Literal

import yaml

from fivm_dbt.engines.spark.delta_lake.environment import profile_remedy
from fivm_dbt.engines.spark.delta_lake.jars import bundled_delta, delta_artifact, find_java, installed_spark
from fivm_dbt.errors import FivmError
from fivm_dbt.operations.profiles import says

Level = Literal["ok", "missing", "error"]

MINIMAL: tuple[tuple[str, str], ...] = (
    ("sqlglot", "30.30"),
    ("pydantic", "2.5"),
    ("click", "8.1"),
    ("dbt-core", "1.10"),
    ("dbt-spark", "1.9"),
)
"""Packages that fivm is known to work with, and from which version on."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at. ``missing`` is what only some uses need."""

    name: str
    level: Level
    found: str
    remedy: str = ""


def check_environment(profiles: Path | None = None) -> list[Check]:
    """Packages, plug-in, Java, Spark, Delta, whose jars may be named in the file of ``profiles``."""
    checks = [_package(name, minimum) for name, minimum in MINIMAL]
    checks.append(_plugin())
    checks.append(_guarded("Java", lambda: _java()))
    checks.append(_guarded("Spark and Delta", lambda: _spark_and_delta(profiles)))
    return checks


def check_project(project_dir: Path) -> Iterator[Check]:
    """Whether a dbt project has the package; its inputs are checked by dbt, which has the connection."""
    if not (project_dir / "dbt_project.yml").is_file():
        yield Check("dbt project", "error", f"no dbt_project.yml in {project_dir}", "give --project-dir")
        return
    yield Check("dbt project", "ok", str(project_dir))
    if _has_package(project_dir):
        yield Check("dbt package fivm", "ok", "installed")
    else:
        remedy = "add fivm to packages.yml (see README), then dbt deps"
        yield Check("dbt package fivm", "error", "not among the installed packages", remedy)


def at_least(found: str, minimum: str) -> bool:
    """Whether a version is not older than another.

    >>> at_least("1.11.16", "1.10"), at_least("30.9", "30.30"), at_least("1.12.0b1", "1.12")
    (True, False, True)
    """
    return _numbers(found) >= _numbers(minimum)


def _numbers(text: str) -> tuple[int, ...]:
    release = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in release.group().split(".")) if release else ()


def _package(name: str, minimum: str) -> Check:
    try:
        found = version(name)
    except PackageNotFoundError:
        return Check(name, "error", "FIVM505 not installed", f'pip install "{name}>={minimum}"')
    if not at_least(found, minimum):
        return Check(name, "error", f"FIVM505 {found}, too old", f'pip install --upgrade "{name}>={minimum}"')
    return Check(name, "ok", found)


def _plugin() -> Check:
    """dbt finds plug-ins by listing the modules on its path, which misses some kinds of editable installs."""
    if any(module.name == "dbt_fivm" for module in pkgutil.iter_modules()):
        return Check("dbt plug-in", "ok", "dbt_fivm is found")
    return Check(
        "dbt plug-in",
        "error",
        "FIVM504 dbt does not find the module dbt_fivm",
        "pip install the wheel where dbt runs (README, Use it in your project); an editable one with hooks is not seen",
    )


def _guarded(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except FivmError as error:
        return Check(name, "error", f"{error.code.number} {error.message}", error.remedy)


def _java() -> Check:
    java = find_java()
    return Check("Java", "ok", f"{java.version} ({java.executable})")


_NAMES_DELTA = re.compile(r"^\s*[\"']?spark\.jars(\.packages)?[\"']?\s*:.*delta", re.MULTILINE)
"""A line of a profile."""


def _spark_and_delta(profiles: Path | None) -> Check:
    spark = installed_spark()
    artifact = delta_artifact(spark)
    jars = bundled_delta()
    fitting = artifact.split(":")[1]
    wrong = [jar for jar in jars if not jar.startswith(f"{fitting}-")]
    if wrong:
        remedy = f"remove it from pyspark's jars and use {artifact}"
        return Check("Spark and Delta", "error", f"FIVM503 pyspark {spark} with {wrong[0]}", remedy)
    if jars:
        return Check("Spark and Delta", "ok", f"pyspark {spark}, {jars[0]}")
    if says(profiles, _NAMES_DELTA):
        return Check("Spark and Delta", "ok", f"pyspark {spark}, Delta as {profiles} says")
    found = f"pyspark {spark}, no Delta among its own jars"
    return Check("Spark and Delta", "missing", found, profile_remedy())


def _has_package(project_dir: Path) -> bool:
    named = yaml.safe_load((project_dir / "dbt_project.yml").read_text()) or {}
    packages = project_dir / str(named.get("packages-install-path", "dbt_packages"))
    for file in packages.glob("*/dbt_project.yml"):
        if (yaml.safe_load(file.read_text()) or {}).get("name") == "fivm":
            return True
    return False
