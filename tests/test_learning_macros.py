"""The macros that read a covariance: what they write is run over a maintained model, and is maintained itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2

from fivm_dbt.testing.replay import replay_scenario
from fivm_dbt.testing.scenario import Scenario
from generator.differential import tiny_workbench

MACROS = Path(__file__).parent.parent / "macros" / "learning"


class Package:
    """The macros of the package under its name, as dbt has them."""

    def __init__(self) -> None:
        environment = jinja2.Environment(extensions=["jinja2.ext.do"])
        for file in MACROS.glob("*.sql"):
            # Jinja does not export names that begin with an underscore; dbt does.
            text = file.read_text(encoding="utf-8").replace("_fivm_", "private_fivm_")
            template = environment.from_string(text, globals={"fivm": self})
            self.__dict__.update(template.module.__dict__)


FIVM: Any = Package()
MOMENTS = "select g, fivm_covariance(x, y, z, fivm_categorical(k)) as m from r group by g"


def _replayed(sql: str, *expected: list[list[object]]) -> None:
    """The rows of a model that reads the moments of ``MOMENTS``, after the build and after a change."""
    rows = [[1, 1, 10, 2, "a"], [1, 3, 10, 4, "b"], [2, 5, 1, 1, "a"], [2, None, 1, 1, "a"]]
    scenario = Scenario.model_validate(
        {
            "id": "read",
            "tables": {"r": [["g", "int"], ["x", "int"], ["y", "int"], ["z", "int"], ["k", "string"]]},
            "initial": {"r": rows},
            "models": [{"name": "moments", "sql": MOMENTS}, {"name": "v", "sql": sql}],
            "initial_expected": {"v": expected[0]},
            "steps": [{"delta": {"r": {"delete": [rows[1]]}}, "expected": {"v": expected[1]}}],
        }
    )
    result = replay_scenario(scenario, tiny_workbench)
    assert result.outcome == "passed", result


def test_a_mean() -> None:
    sql = f"select g, {FIVM.mean('m', 'x')} as x, {FIVM.mean('m', 'z')} as z from moments"
    _replayed(sql, [[1, 2.0, 3.0], [2, 5.0, 1.0]], [[1, 1.0, 2.0], [2, 5.0, 1.0]])


def test_rows() -> None:
    shown = "g, variable, category, other, other_category, value"
    sql = f"select {shown} from {FIVM.covariance_rows('moments', 'm', ['g'], True)} t where g = 1"
    plain = {
        ("", "", "", ""): (2, 1),
        ("x", "", "", ""): (4, 1),
        ("y", "", "", ""): (20, 10),
        ("z", "", "", ""): (6, 2),
        ("x", "", "x", ""): (10, 1),
        ("x", "", "y", ""): (40, 10),
        ("x", "", "z", ""): (14, 2),
        ("y", "", "y", ""): (200, 100),
        ("y", "", "z", ""): (60, 20),
        ("z", "", "z", ""): (20, 4),
        ("k", "a", "k", "a"): (1, 1),
        ("k", "a", "x", ""): (1, 1),
        ("k", "a", "y", ""): (10, 10),
        ("k", "a", "z", ""): (2, 2),
        ("k", "b", "k", "b"): (1, None),
        ("k", "b", "x", ""): (3, None),
        ("k", "b", "y", ""): (10, None),
        ("k", "b", "z", ""): (4, None),
    }
    before, after = ([[1, *key, v[n]] for key, v in plain.items() if v[n] is not None] for n in (0, 1))
    _replayed(sql, before, after)


def test_a_matrix() -> None:
    sql = f"select g, variable, other, covariance from {FIVM.covariance_matrix('moments', 'm', ['g'])} t"
    pairs = [(a, b) for a in "xyz" for b in "xyz"]
    known = {("x", "x"): 2.0, ("x", "z"): 2.0, ("z", "x"): 2.0, ("z", "z"): 2.0}
    of_one = [[2, a, b, None] for a, b in pairs]
    before = [[1, a, b, known.get((a, b), 0.0)] for a, b in pairs]
    _replayed(sql, [*before, *of_one], [*([1, a, b, None] for a, b in pairs), *of_one])


BINNED = (
    "select r.g, fivm_covariance(r.y, fivm_categorical("
    + FIVM.bin("r.x", "e.x", 4)
    + " as bin)) as m from r cross join edges e group by r.g"
)


def test_bins_with_kept_edges() -> None:
    """What lies outside of all edges is in the outer bins; other edges move all rows, and are maintained too."""
    values = [-1000, 1, 2, 3, 4, 5, 6, 1000, None]

    def counted(edges: list[int], values: list[int | None]) -> list[list[object]]:
        """The group, and rows and sum of y by bin."""
        bins = [1 + sum(v >= e for e in edges) for v in values if v is not None]
        return [[1, str(b), bins.count(b)] for b in sorted(set(bins))]

    sql = (
        f"select g, category, value from {FIVM.covariance_rows('moments', 'm', ['g'], True)} t "
        "where variable = 'bin' and other = 'bin'"
    )
    columns = [[f"x_{n}", "int"] for n in (1, 2, 3)]
    scenario = Scenario.model_validate(
        {
            "id": "bins",
            "tables": {"r": [["g", "int"], ["x", "int"], ["y", "int"]], "edges": columns},
            "initial": {"r": [[1, v, 7] for v in values], "edges": [[2, 4, 6]]},
            "models": [{"name": "moments", "sql": BINNED}, {"name": "v", "sql": sql}],
            "initial_expected": {"v": counted([2, 4, 6], values)},
            "steps": [
                {
                    "delta": {"r": {"delete": [[1, 1000, 7], [1, 3, 7]], "insert": [[1, -3, 7]]}},
                    "expected": {"v": counted([2, 4, 6], [-1000, 1, 2, 4, 5, 6, -3])},
                },
                {
                    "delta": {"edges": {"delete": [[2, 4, 6]], "insert": [[0, 1, 5]]}},
                    "expected": {"v": counted([0, 1, 5], [-1000, 1, 2, 4, 5, 6, -3])},
                },
            ],
        }
    )
    result = replay_scenario(scenario, tiny_workbench)
    assert result.outcome == "passed", result
