"""``python -m benchmarks.learning`` at a small size, and how many maps a covariance would have without a ring."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from benchmarks.learning.__main__ import main
from benchmarks.learning.data import Data
from benchmarks.learning.kept import Measured, ways_of
from benchmarks.learning.maps import count_views, maps_of, planned
from benchmarks.learning.report import bars
from benchmarks.learning.shapes import CONTINUOUS, HOUSING, KINDS, RETAILER, SHAPES, SUM, Shape
from benchmarks.streams import as_file
from click.testing import CliRunner

from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.testing.workbench import DuckDbWorkbench


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_benchmark_of_housing(kind: str, tmp_path: Path) -> None:
    sizes = ["--scale", "0.002", "--size", "10", "--batches", "1", "--report", str(tmp_path / "report.json")]
    written = [*sizes, "--images", str(tmp_path)]
    done = CliRunner().invoke(main, ["--engine", "duckdb", "--shape", "housing", "--kind", kind, *written])
    assert done.exit_code == 0, done.output
    measured = [Measured(**m) for m in json.loads((tmp_path / "report.json").read_text())]
    assert {m.relation for m in measured} == {t.name for t in SHAPES["housing"].tables} | {"all"}
    assert {m.way for m in measured} == set(ways_of(kind)) and all(m.changed > 0 for m in measured)
    assert len(bars(measured)) == (0 if kind == SUM else 2)
    assert "the article" in (tmp_path / "learning_ratios.svg").read_text()


def test_maps_of_five_variables() -> None:
    """One relation with five variables has 21 moments by postcode, and each of the others its count."""
    counted = count_views(HOUSING, HOUSING.sums(5))
    assert (counted.moments, counted.tree, counted.maps) == (21, 7, 21 + 5)


@pytest.mark.long
def test_maps_of_all_variables() -> None:
    """A relation with k variables has 1 + k·(k + 3) / 2 moments by postcode, each a map. Its k sums are there twice:
    beside the variables of another relation, they are kept with how many values are known.
    """
    counted = count_views(HOUSING, HOUSING.sums())
    assert counted.moments == 378
    assert counted.maps == sum(1 + t.own * (t.own + 3) // 2 + t.own for t in HOUSING.tables)


@pytest.mark.parametrize(("shape", "maps"), [(HOUSING, 6), (RETAILER, 12)])
def test_five_variables_by_recursive_maps(shape: Shape, maps: int, tmp_path: Path) -> None:
    """All 21 moments in one query, kept by recursive maps that they share, after every batch."""
    moments = ", ".join(f"{moment} as m_{n}" for n, moment in enumerate(shape.sums(5)))
    plan = planned(shape, f"select {moments} from {shape.join}", "recursive")
    assert len(maps_of(plan)) == maps
    data, rng = Data(shape, CONTINUOUS, 0.002, 7), random.Random(7)
    workbench = DuckDbWorkbench()
    for table in shape.tables:
        file = as_file(table.spec, data.rows[table.name], tmp_path / table.name)
        workbench.load(table.spec, file)
    refresh(plan, workbench.engine)
    for _ in range(6):
        for table in rng.sample(shape.tables, 2):
            workbench.change(table.spec, *data.batch(table, 8))
        refresh(plan, workbench.engine)
        assert not workbench.engine.query(difference_sql(plan, workbench.engine))
