"""``fivm doctor``: each thing that can be missing, and the line that puts it right."""

from __future__ import annotations

import pkgutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dbt.contracts.graph.model_config import ModelConfig

from fivm_dbt.engines.spark.delta_lake import jars
from fivm_dbt.engines.spark.delta_lake.environment import environment_error
from fivm_dbt.engines.spark.engine import Answer
from fivm_dbt.errors import FivmError
from fivm_dbt.operations import doctor
from fivm_dbt.operations.checks import check_inputs, session_finding
from fivm_dbt.operations.profiles import profiles_file
from fivm_dbt.project.manifest import Nodes


def by_name(name: str) -> doctor.Check:
    return next(check for check in doctor.check_environment() if check.name == name)


def test_packages_of_this_environment_are_found() -> None:
    assert by_name("dbt-core").level == "ok"
    assert by_name("sqlglot").level == "ok"


def test_package_missing_or_old(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "dbt-spark":
            raise doctor.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(doctor, "version", version)
    assert by_name("dbt-spark").found == "FIVM505 not installed"
    assert by_name("dbt-spark").remedy == 'pip install "dbt-spark>=1.9"'
    assert by_name("dbt-core").found == "FIVM505 1.0, too old"


def test_plugin_that_dbt_does_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    assert by_name("dbt plug-in").level == "ok"
    monkeypatch.setattr(pkgutil, "iter_modules", lambda: iter(()))
    assert "FIVM504" in by_name("dbt plug-in").found
    assert "pip install the wheel" in by_name("dbt plug-in").remedy


def fake_java(directory: Path, version: str) -> None:
    executable = directory / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    executable.chmod(0o755)


def test_no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert "FIVM501 JAVA_HOME is" in by_name("Java").found
    assert "apt-get install openjdk-17-jre-headless" in by_name("Java").remedy
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "neither JAVA_HOME nor java on the PATH" in by_name("Java").found


def test_java_too_old_and_new_enough(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path / "8", "1.8.0_392")
    fake_java(tmp_path / "21", "21.0.3")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "8"))
    assert "version 8; Spark 4 needs 17 or newer" in by_name("Java").found
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "21"))
    assert by_name("Java").found.startswith("21 ")


def test_spark_without_a_fitting_delta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "installed_spark", lambda: "4.3.0")
    assert "FIVM503 no Delta release is known to run on Spark 4.3.0" in by_name("Spark and Delta").found


def test_delta_that_a_profile_names(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DBT_PROFILES_DIR", raising=False)
    project, own = tmp_path / "project", tmp_path / "own"
    for place in (project, own):
        place.mkdir()
    text = 'shop:\n  outputs:\n    local:\n      server_side_parameters:\n        {}: "{}"\n'

    def spark_and_delta(*places: Path | None) -> doctor.Check:
        found = doctor.check_environment(profiles_file(*places))
        return next(check for check in found if check.name == "Spark and Delta")

    assert spark_and_delta(project, None).level == "missing"
    (project / "profiles.yml").write_text(text.format("spark.jars", "/a/delta-spark_4.2_2.13-4.4.0.jar"))
    found = spark_and_delta(project, None)
    assert found.level == "ok" and f"Delta as {project / 'profiles.yml'} says" in found.found
    assert spark_and_delta(project, own).level == "missing", "dbt reads the other one"
    (own / "profiles.yml").write_text(text.format("spark.sql.warehouse.dir", "/data/delta"))
    assert spark_and_delta(project, own).level == "missing"
    (own / "profiles.yml").write_text(
        text.format("spark.jars.packages", "io.delta:delta-spark_4.2_2.13:4.4.0")
    )
    assert spark_and_delta(project, own).level == "ok"
    assert spark_and_delta(None, None).level == "missing"


def test_delta_of_another_spark_among_the_jars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "installed_spark", lambda: "4.2.0")
    monkeypatch.setattr(doctor, "bundled_delta", lambda: ["delta-spark_4.1_2.13-4.4.0.jar"])
    assert "FIVM503 pyspark 4.2.0 with delta-spark_4.1_2.13-4.4.0.jar" in by_name("Spark and Delta").found
    monkeypatch.setattr(doctor, "bundled_delta", lambda: [])
    assert "spark.jars.packages: io.delta:delta-spark_4.2_2.13:4.4.0" in by_name("Spark and Delta").remedy


def test_jars_that_cannot_be_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake_java(tmp_path / "java", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    with pytest.raises(FivmError) as caught:
        jars.delta_jars(tmp_path / "cache")
    assert caught.value.code.number == "FIVM502"
    assert list((tmp_path / "cache" / "jars").iterdir()) == []


def test_project_with_and_without_the_package(tmp_path: Path) -> None:
    assert [c.level for c in doctor.check_project(tmp_path)] == ["error"]
    (tmp_path / "dbt_project.yml").write_text("name: shop\n")
    assert [c.level for c in doctor.check_project(tmp_path)] == ["ok", "error"]
    package = tmp_path / "dbt_packages" / "anything" / "dbt_project.yml"
    package.parent.mkdir(parents=True)
    package.write_text("name: fivm\n")
    assert [c.level for c in doctor.check_project(tmp_path)] == ["ok", "ok"]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.", "FIVM501"),
        ("org.apache.spark.SparkClassNotFoundException: [DATA_SOURCE_NOT_FOUND] ... delta", "FIVM502"),
        ("Cannot find catalog plugin class: org.apache.spark.sql.delta.catalog.DeltaCatalog.", "FIVM502"),
        ("[DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG] This Delta operation", "FIVM502"),
        ("java.lang.NoSuchMethodError: 'void org.apache.spark.sql.LogicalRDD.<init>'", "FIVM503"),
        ("[TABLE_OR_VIEW_NOT_FOUND] The table or view `a` cannot be found.", None),
    ],
)
def test_errors_of_the_environment(said: str, code: str | None) -> None:
    known = environment_error(said)
    assert (known and known.code.number) == code


def _node(name: str, kind: str, inputs: tuple[str, ...] = (), **config: str) -> Any:
    return SimpleNamespace(
        name=name, unique_id=name, resource_type=kind, relation_name=f"raw.{name}", columns={}, constraints=[],
        config=ModelConfig.from_dict(config), depends_on=SimpleNamespace(nodes=inputs),
    )  # fmt: skip


def test_inputs_of_a_project() -> None:
    def node(name: str, kind: str, materialized: str = "", inputs: tuple[str, ...] = ()) -> Any:
        return _node(name, kind, inputs, materialized=materialized)

    inner = node("inner", "model", "ephemeral", ("orders", "old"))
    nodes = [
        node("daily", "model", "fivm", ("inner", "kept", "small")),
        inner,
        node("kept", "model", "table"),
    ]
    sources = [node("orders", "source"), node("old", "source")]
    manifest = SimpleNamespace(
        nodes={n.name: n for n in [*nodes, node("small", "seed", "seed")]},
        sources={n.name: n for n in sources},
    )
    facts: dict[str, list[tuple[str, str]]] = {
        "raw.orders": [("Type", "MANAGED"), ("Provider", "delta")],
        "raw.old": [("Type", "MANAGED"), ("Provider", "parquet")],
        "raw.small": [("Type", "MANAGED"), ("Provider", "delta")],
        "raw.kept": [("Provider", "delta"), ("Table Properties", "[delta.enableChangeDataFeed=true]")],
    }

    def execute(sql: str, *, fetch: bool) -> Answer:
        return Answer(("col_name", "data_type"), (("a", "int"), ("", ""), *facts[sql.split()[-1]]))

    found = {f.text.split(" ")[0]: f for f in check_inputs(execute, Nodes(manifest))}
    assert found["raw.kept"].text == "raw.kept (read by daily): change feed on"
    assert found["raw.small"].level == "ok"
    assert found["raw.old"].level == "error"
    assert found["raw.orders"].text.endswith(
        "ALTER TABLE raw.orders SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    )


def test_inputs_before_the_first_run() -> None:
    """Nothing is there, and the manifest tells what it is going to be."""
    made = {
        "staged": {"materialized": "view"},
        "typed": {"materialized": "table", "file_format": "delta"},
        "plain": {"materialized": "table"},
        "old": {"materialized": "incremental", "file_format": "parquet"},
        "other": {"materialized": "fivm"},
    }
    kinds = dict.fromkeys(made, "model")
    nodes = {name: _node(name, kinds[name], **config) for name, config in made.items()}
    nodes["daily"] = _node("daily", "model", inputs=(*made, "orders"), materialized="fivm")
    nodes["parts"] = _node("parts", "model", inputs=("staged",), materialized="viewdf")
    manifest = SimpleNamespace(nodes=nodes, sources={"orders": _node("orders", "source")})

    def execute(sql: str, *, fetch: bool) -> Answer:
        raise RuntimeError("[TABLE_OR_VIEW_NOT_FOUND] The table or view cannot be found.")

    found = {f.text.split(" ")[0].removeprefix("raw."): f for f in check_inputs(execute, Nodes(manifest))}
    told = {name: (f.level, f.text.partition("): ")[2]) for name, f in found.items()}
    remedy = "make it ephemeral, or fivm, or a table with file_format='delta'"
    assert told["staged"] == ("error", f"not built yet, and will be a view (FIVM303): {remedy}")
    assert told["typed"] == ("ok", "not built yet, and will be a Delta table")
    assert told["plain"][0] == "advice" and "set file_format: delta" in told["plain"][1]
    assert told["old"] == (
        "error",
        "not built yet, and will be parquet (FIVM301): set file_format: delta",
    )
    assert told["other"] == ("ok", "fivm model, not built yet")
    assert told["orders"] == (
        "advice",
        "does not exist yet: create the table, or correct the source's schema and identifier",
    )


@pytest.mark.parametrize("ansi", ["false", "true", "unknown"])
def test_a_server_in_ansi_mode(ansi: str) -> None:
    found = session_finding({"ansi": ansi, "timezone": "UTC"})
    assert (found is not None) is (ansi == "true")
    assert found is None or (found.level == "advice" and "one-state-for-session-and-thrift" in found.text)
