"""Imports go one way, and few modules know sqlglot, dbt or pyspark."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PYTHON = Path(__file__).resolve().parent.parent / "python"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "naming", "suggest", "registry"),
    ("parts",),
    ("catalog",),
    ("declares",),
    ("config",),
    ("ir",),
    ("functions",),
    # What an SQL aggregate means is asked while SQL is read, so rings come before sql.
    ("rings",),
    ("sql", "rewrite"),
    ("delta", "viewtree"),
    ("plan",),
    ("steps",),
    ("spark",),
    ("refresh", "explain"),
    ("engines",),
    ("project",),
    ("learning",),
    ("operations", "testing"),
    ("bridge",),
    ("cli",),
    ("__main__",),
)
"""A module may import its own package and what stands further up."""

ROOMS: tuple[tuple[str, ...], ...] = (
    ("model",),
    ("request",),
    ("layout",),
    ("keep.kept_views",),
    ("keep.ways",),
    ("keep.trees",),
    ("keep.inequality",),
    ("keep.time",),
    ("keep",),
    ("retention", "recomputed_parts"),
    ("given", "collected_later"),
    ("views", "seen_rows", "inputs"),
    ("recompute",),
    ("planner",),
)
"""The same inside ``plan``."""

STRANGERS = {("rewrite", "sql"), ("explain", "refresh")}
"""Neighbours of one layer that do not import each other, in either direction."""

AT_HOME = {"engines.duckdb.*", "functions.*", "ir.*", "rings.*", "spark.*", "sql.*", "testing.*"}
"""Where SQL is read, written, translated or evaluated, and where a scalar is a value around an expression."""

EXCEPTIONS = {"parts.reference"}
"""Who else looks into trees of sqlglot."""

SQLGLOT = AT_HOME | EXCEPTIONS
DBT = {"bridge.*"}
PYSPARK = {"engines.*", "testing.spark_workbench", "bridge.connection"}


def _modules() -> Iterator[tuple[str, Path]]:
    for path in sorted((PYTHON / "fivm_dbt").rglob("*.py")):
        parts = path.relative_to(PYTHON / "fivm_dbt").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        yield name, path


MODULES = dict(_modules())


def _imported(path: Path) -> set[str]:
    """Full names of the imported modules, also of those that are imported late or for types only."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            found.add(node.module or "")
            if node.module == "fivm_dbt":
                found |= {f"fivm_dbt.{a.name}" for a in node.names if a.name in MODULES}
    return found


def _layer(package: str) -> int:
    return next(i for i, layer in enumerate(LAYERS) if package in layer)


def _in_feature(module: str) -> tuple[str, str] | None:
    """The feature that a module is of, and the layer that its package there is called after; None in the core."""
    path = module.removeprefix("fivm_dbt.").split(".")
    return (path[1], path[2]) if path[0] == "features" and len(path) > 2 else None


def _own_layer(module: str) -> str:
    feature = _in_feature(module)
    return feature[1] if feature is not None else module.split(".")[0]


def test_the_second_oracle_shares_nothing_with_what_it_checks() -> None:
    """Not the reading of SQL, the planner, the engines, nor the nodes between them: an error has to be made twice."""
    own = [name for name in MODULES if name.startswith("testing.interpreter")]
    assert len(own) > 15
    used = {i for name in own for i in _imported(MODULES[name]) if i.startswith("fivm_dbt")}
    assert {i for i in used if not i.startswith("fivm_dbt.testing.interpreter")} == set()


def test_every_package_has_a_layer() -> None:
    known = {name for layer in LAYERS for name in layer}
    found = {name.split(".")[0] for name in MODULES} - {""}
    assert found == known | {"features"}


@pytest.mark.parametrize("name", [n for n in MODULES if n])
def test_direction(name: str) -> None:
    feature, own = _in_feature(name), _own_layer(name)
    if own == "features":
        return  # the lists of what there is
    for imported in _imported(MODULES[name]):
        parts = imported.split(".")
        if parts[0] != "fivm_dbt" or len(parts) == 1:
            continue
        other = _in_feature(imported)
        if other is not None and feature is None:
            assert _layer(own) > _layer("engines"), (
                f"{name} imports {imported}: up to the engines features are known by what they register"
            )
        elif other is not None and feature is not None:
            assert other[0] == feature[0], f"{name} imports {imported} of another feature"
        assert parts[1] != "features" or other is not None, f"{name} imports {imported}"
        layer = other[1] if other is not None else parts[1]
        if layer != own:
            assert _layer(layer) < _layer(own) or _may(own, layer), f"{name} imports {imported}"


@pytest.mark.parametrize("name", [n for n in MODULES if n.startswith("plan.")])
def test_direction_between_the_rooms_of_the_planner(name: str) -> None:
    own = _room(name)
    for imported in _imported(MODULES[name]):
        if imported.startswith("fivm_dbt.plan."):
            assert _room(imported.removeprefix("fivm_dbt.")) <= own, f"{name} imports {imported}"


def test_engines_do_not_know_each_other() -> None:
    for name, path in MODULES.items():
        for own, other in (("spark", "duckdb"), ("duckdb", "spark")):
            if name.startswith(f"engines.{own}"):
                assert not [i for i in _imported(path) if i.startswith(f"fivm_dbt.engines.{other}")], name


def _room(module: str) -> int:
    """The number of the most special room that the module is in."""
    path = module.removeprefix("plan.").split(".")
    every = [".".join(path[:n]) for n in range(len(path), 0, -1)]
    return next(i for own in every for i, room in enumerate(ROOMS) if own in room)


def _may(own: str, other: str) -> bool:
    """Packages of one layer may use each other unless they are known not to."""
    pair = tuple(sorted((own, other)))
    return _layer(own) == _layer(other) and pair not in STRANGERS


def test_few_exceptions_look_into_trees_of_sqlglot() -> None:
    assert len(EXCEPTIONS) <= 5


@pytest.mark.parametrize(
    ("library", "allowed"),
    [("sqlglot", SQLGLOT), ("dbt", DBT), ("pyspark", PYSPARK), ("py4j", {"engines.*"})],
)
def test_libraries(library: str, allowed: set[str]) -> None:
    users = {
        name for name, path in MODULES.items() if any(i.split(".")[0] == library for i in _imported(path))
    }
    needed = {name: {a for a in allowed if _is_of(name, a)} for name in users}
    assert {name for name, of in needed.items() if not of} == set()
    assert allowed - set().union(*needed.values()) == set(), f"no longer needed for {library}"


def _is_of(module: str, allowed: str) -> bool:
    """Whether a module is one of these. The layers of a feature count as those that they are called after."""
    feature = _in_feature(module)
    name = module.removeprefix(f"features.{feature[0]}.") if feature is not None else module
    return allowed in (module, name) or (allowed.endswith(".*") and name.startswith(allowed[:-1]))


def test_plugin_imports_nothing_but_dbt_at_its_top() -> None:
    tree = ast.parse((PYTHON / "dbt_fivm" / "__init__.py").read_text(encoding="utf-8"))
    top = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom))]
    modules = {a.name for n in top if isinstance(n, ast.Import) for a in n.names}
    modules |= {n.module or "" for n in top if isinstance(n, ast.ImportFrom)}
    assert {m for m in modules if m.split(".")[0] in ("fivm_dbt", "sqlglot", "pyspark", "pydantic")} == set()


def test_viewdf_is_loaded_for_its_own_models_alone() -> None:
    """Not by what dbt or the command line load for any model, nor by asking what features have registered."""
    import subprocess
    import sys

    of_viewdf = {"bridge.methods.check_reference"}
    names = [n for n in MODULES if n.split(".")[0] not in ("", "features", "testing", "__main__")]
    every = ", ".join(f"fivm_dbt.{n}" for n in names if n not in of_viewdf)
    code = (
        f"import sys, {every}; from fivm_dbt.registry import load_features; load_features(); "
        "print([m for m in sys.modules if m.startswith('fivm_dbt.features.viewdf')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_the_core_loads_neither_dbt_nor_spark() -> None:
    import subprocess
    import sys

    code = (
        "import sys, fivm_dbt.plan.planner, fivm_dbt.refresh.executor, fivm_dbt.explain.text; "
        "print([m for m in ('dbt', 'pyspark', 'duckdb', 'py4j') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Late imports count, for these only hide a circle. Imports for types alone are left out."""
    left = {name: _runs_with(path) & MODULES.keys() for name, path in MODULES.items()}
    while free := {name for name, needed in left.items() if not needed & left.keys()}:
        left = {name: needed for name, needed in left.items() if name not in free}
    assert {name: sorted(needed & left.keys()) for name, needed in left.items()} == {}


def _runs_with(path: Path) -> set[str]:
    """The modules that an imported one needs when it runs, without the name of the package in front."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # What is imported from a package may be one of its modules.
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {i for i in inner if i.removeprefix("fivm_dbt.") in MODULES} or {node.module or ""}
    return {name.removeprefix("fivm_dbt.") for name in found if name.startswith("fivm_dbt.")}
