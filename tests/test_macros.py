"""The dbt package: what may stand in it, and the guard that needs no Python half."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml

REPOSITORY = Path(__file__).parent.parent
WRITTEN = (
    *("viewdf", "part", "span", "initialize"),
    *("covariance_rows", "covariance_matrix", "mean", "predict", "bin", "bin_edges"),
)
"""What users write in their models, with the name of the package before it."""

FILES = sorted((REPOSITORY / "macros").rglob("*.sql"))
DEFINED = re.compile(r"{%-?\s*(?:macro|test|materialization)\s+(\w+)")


def test_nothing_of_the_repository_is_built_in_a_users_warehouse() -> None:
    project = yaml.safe_load((REPOSITORY / "dbt_project.yml").read_text())
    assert project["name"] == "fivm"
    assert all(project[f"{kind}-paths"] == [] for kind in ("seed", "test", "snapshot", "analysis"))
    for model in (REPOSITORY / "models").rglob("*.sql"):
        assert "enabled=var('fivm_" in model.read_text(), model


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_macro_files_are_small_and_named_after_what_they_define(file: Path) -> None:
    text = file.read_text()
    limit = 100 if file.parent.name == "materializations" else 60
    assert len(text.splitlines()) <= limit
    names = DEFINED.findall(text)
    assert names[0].lstrip("_") == file.stem
    assert all(name.lstrip("_").startswith("fivm") or name in WRITTEN for name in names)


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.stem)
def test_macros_of_the_package_are_called_by_their_full_name(file: Path) -> None:
    """dbt looks up unqualified names in the package of the model, where they do not exist."""
    known = {name for other in FILES for name in DEFINED.findall(other.read_text())}
    code = re.sub(r"{#.*?#}", "", file.read_text(), flags=re.DOTALL)
    for name in known:
        calls = re.findall(rf"(\w+\.)?\b{name}\(", re.sub(DEFINED, "", code))
        assert all(prefix in ("fivm.", "adapter.") for prefix in calls), name


class Stopped(Exception):
    """What the guard raises."""


def guard(adapter: Any, execute: bool = True) -> None:
    environment = jinja2.Environment(extensions=["jinja2.ext.do"])
    template = environment.from_string((REPOSITORY / "macros/_internal/fivm_require_wheel.sql").read_text())

    class Exceptions:
        @staticmethod
        def raise_compiler_error(message: str) -> None:
            raise Stopped(message)

    context = {"adapter": adapter, "execute": execute, "exceptions": Exceptions}
    template.make_module(context).fivm_require_wheel()  # type: ignore[attr-defined]


class Adapter:
    def type(self) -> str:
        return "spark"


def test_guard_names_the_missing_wheel() -> None:
    with pytest.raises(Stopped, match=r"FIVM504 .*\n.*wheel and pip install it"):
        guard(Adapter())
    guard(Adapter(), execute=False)


def test_guard_lets_a_complete_installation_pass() -> None:
    adapter = Adapter()
    adapter.fivm_refresh = print  # type: ignore[attr-defined]
    guard(adapter)
