"""``fivm init``: a project that dbt parses, and nothing overwritten. But for the first hour none of it needs Java."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from dbt_project import REPOSITORY, invoke
from fivm_dbt.cli import main
from fivm_dbt.operations import init
from fixtures.typed import settings, typed


@pytest.fixture(autouse=True)
def nothing_elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Jars that nobody has to fetch, and no profile of the developer's own."""
    monkeypatch.setattr(init, "delta_jars", lambda: (tmp_path / "delta-spark.jar", tmp_path / "storage.jar"))
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("DBT_PROFILES_DIR", str(home))
    return home


def _init(*arguments: str | Path, expect: int = 0) -> Result:
    result = CliRunner().invoke(main, ["init", *map(str, arguments)])
    assert result.exit_code == expect, result.output
    return result


def _texts(root: Path) -> dict[str, str]:
    return {str(f.relative_to(root)): f.read_text() for f in sorted(root.rglob("*")) if f.is_file()}


def test_a_new_project_is_one_that_dbt_parses(tmp_path: Path) -> None:
    root = tmp_path / "my-shop"
    told = _init(root).output
    assert "written" in told and "left" not in told and f"cd {root}" in told
    assert sorted(_texts(root)) == [
        ".gitignore",
        ".spark/log4j2.properties",
        "dbt_project.yml",
        "models/fivm_revenue_by_day.sql",
        "models/fivm_revenue_by_day.yml",
        "packages.yml",
        "profiles.yml",
        "seeds/fivm_orders.csv",
        "seeds/fivm_orders.yml",
    ]
    assert yaml.safe_load((root / "dbt_project.yml").read_text())["name"] == "my_shop"
    (output,) = yaml.safe_load((root / "profiles.yml").read_text())["my_shop"]["outputs"].values()
    settings = output["server_side_parameters"]
    assert settings["spark.jars"] == f"{tmp_path}/delta-spark.jar,{tmp_path}/storage.jar"
    assert all(isinstance(value, str) for value in settings.values()), "dbt-spark takes nothing else"
    assert "spark.jars.packages" not in settings, "Ivy would look for them at every start"
    (entry,) = yaml.safe_load((root / "packages.yml").read_text())["packages"]
    assert entry == {"local": str(REPOSITORY)}
    (root / "dbt_packages").mkdir()
    (root / "dbt_packages/fivm").symlink_to(REPOSITORY)
    parsed = invoke(root, "unused", ["parse"])
    assert parsed.success, parsed.text
    assert not [line for line in parsed.lines if "no effect" in line]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    _init(root)
    before = _texts(root)
    told = _init(root).output
    assert _texts(root) == before
    assert not any(line.startswith("written") for line in told.splitlines()) and "add to" not in told


def test_an_existing_project_keeps_what_it_has(tmp_path: Path, nothing_elsewhere: Path) -> None:
    root = tmp_path / "existing"
    root.mkdir()
    (root / "dbt_project.yml").write_text("name: mine\nprofile: company\nmodel-paths: [sql]\n")
    (root / "packages.yml").write_text("packages:\n  - package: dbt-labs/dbt_utils\n    version: 1.3.0\n")
    (nothing_elsewhere / "profiles.yml").write_text("company: {{ env_var('X') }}\n")
    before = _texts(root)
    told = _init(root).output
    after = _texts(root)
    assert {name: after[name] for name in before} == before
    assert "profiles.yml" not in after, "it would hide the one that the company has"
    assert "sql/fivm_revenue_by_day.sql" in after
    assert f'add to {root}/packages.yml, under packages:\n  - local: "{REPOSITORY}"' in told
    (nothing_elsewhere / "profiles.yml").write_text("other: {}\n")
    _init(root)
    assert yaml.safe_load((root / "profiles.yml").read_text())["company"]["target"] == "local"


def test_the_package_may_be_elsewhere(tmp_path: Path) -> None:
    _init(tmp_path / "a", "--package", "https://example.org/fivm.git")
    (entry,) = yaml.safe_load((tmp_path / "a/packages.yml").read_text())["packages"]
    assert entry == {"git": "https://example.org/fivm.git", "revision": "main"}
    (tmp_path / "empty").mkdir()
    told = _init(tmp_path / "b", "--package", tmp_path / "empty", expect=2).output
    assert "FIVM201" in told and "give --package" in told
    assert not (tmp_path / "b").exists(), "nothing is written beside an error"


def test_names_that_dbt_takes(tmp_path: Path) -> None:
    for directory, name in (("2024", "shop_2024"), ("Ümsatz & Co", "ümsatz_co"), ("__", "shop")):
        _init(tmp_path / directory)
        assert yaml.safe_load((tmp_path / directory / "dbt_project.yml").read_text())["name"] == name


def _typed(command: str, directory: Path) -> str:
    return typed(command, directory, settings(directory))


@pytest.mark.long
@pytest.mark.spark
def test_the_first_hour(tmp_path: Path) -> None:
    """Every line that ``fivm init`` says to type, as it is, against a Spark that each command starts."""
    root = tmp_path / "shop"
    said = _typed(f"fivm init {root}", tmp_path)
    before, after = said.split("then change")
    first = [line.strip() for line in before[before.index("next:") :].splitlines()[1:]]
    then = [line.strip() for line in after.splitlines()[1:] if line.strip()]
    assert [f"{c.split()[0]} {c.split()[1]}" for c in (*first, *then)] == [
        f"cd {root}",
        "dbt deps",
        "fivm doctor",
        "dbt build",
        "dbt seed",
        "fivm plan",
        "dbt run",
    ]
    told = {command.split()[1]: _typed(command, root) for command in first[1:]}
    assert "missing" not in told["doctor"]
    assert "fivm_revenue_by_day: built" in told["build"] and "PASS=3" in told["build"]
    noise = [
        line for line in told["build"].splitlines() if " WARN " in line or "of refreshes run with" in line
    ]
    assert not noise
    with (root / "seeds" / "fivm_orders.csv").open("a") as orders:
        orders.write("5,2,2024-05-02,1.25\n")
    told |= {command.split()[1]: _typed(command, root) for command in then}
    assert "fivm_revenue_by_day  refresh" in told["plan"] and "created anew" in told["plan"]
    assert "fivm_revenue_by_day: refreshed" in told["run"]
    assert "PASS=1" in _typed("dbt test", root)
