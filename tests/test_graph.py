"""``fivm explain --format dot``: what changes, what is looked up, and that nothing of a plan is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from fivm_dbt.cli import main
from fivm_dbt.explain.graph import dot
from fixtures.models import plan_of, relation

CHAIN = "select r.a as a, count(*) as n from r join s on r.b = s.b join t on s.c = t.c group by r.a"
COLUMNS = {"r": "a int, b int", "s": "b int, c int", "t": "c int"}
_EDGE = re.compile(r'^\t"?([^"\n]+?)"? -> "?([^"\n]+?)"?( \[style=dashed\])?$', re.MULTILINE)


def _edges(text: str) -> set[tuple[str, str, bool]]:
    """Source, target, and whether the one is only looked up; names without schema and model."""
    found = _EDGE.findall(text)
    return {(a.split("__fivm_")[-1], b.split("__fivm_")[-1], bool(dashed)) for a, b, dashed in found}


def _dot(strategy: str, static: str = "") -> str:
    relations = [relation(n, c, is_static=n == static) for n, c in COLUMNS.items()]
    return dot(plan_of(CHAIN, relations, {"fivm_strategy": strategy}))


def test_first_order() -> None:
    assert _edges(_dot("first_order")) == {(name, "root", False) for name in COLUMNS}


def test_a_view_tree_has_no_edge_that_no_change_takes() -> None:
    text = _dot("factorized")
    assert not any(dashed for _, _, dashed in _edges(text))
    assert {a for a, b, _ in _edges(text) if b == "root"} == {"view_1_r_by_b", "view_4_s_by_b"}


def test_maps_are_looked_up() -> None:
    edges = _edges(_dot("recursive"))
    assert {(a, b) for a, b, dashed in edges if b == "root" and not dashed} == {
        (name, "root") for name in COLUMNS
    }
    assert any(dashed for _, b, dashed in edges if b == "root")


def test_static_inputs_are_dashed() -> None:
    assert re.search(r"^\ts \[.*style=dashed", _dot("factorized", static="s"), re.MULTILINE | re.DOTALL)


def test_a_model_that_is_recomputed_is_from_its_inputs() -> None:
    text = _dot("reevaluate")
    assert _edges(text) == {(name, "root", False) for name in COLUMNS}
    assert "recomputed: fivm_strategy: reevaluate" in text


@pytest.mark.parametrize("strategy", ["auto", "factorized", "recursive"])
def test_on_the_command_line(tmp_path: Path, strategy: str) -> None:
    path = tmp_path / "q.sql"
    tables = "".join(f"create table {n} ({c});\n" for n, c in COLUMNS.items())
    path.write_text(tables + CHAIN, encoding="utf-8")
    result = CliRunner().invoke(main, ["explain", str(path), "--strategy", strategy, "--format", "dot"])
    assert result.exit_code == 0, result.output
    assert result.output.startswith("digraph q {") and result.output.rstrip().endswith("}")
