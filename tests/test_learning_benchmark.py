"""``python -m benchmarks.learning`` at a small size: what is kept in all ways is what is recomputed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.learning import KINDS, SHAPES, Measured, bars, main
from click.testing import CliRunner


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_moments_of_housing(kind: str, tmp_path: Path) -> None:
    sizes = ["--scale", "0.002", "--size", "10", "--batches", "1", "--report", str(tmp_path / "report.json")]
    done = CliRunner().invoke(main, ["--engine", "duckdb", "--shape", "housing", "--kind", kind, *sizes])
    assert done.exit_code == 0, done.output
    measured = [Measured(**m) for m in json.loads((tmp_path / "report.json").read_text())]
    assert {m.relation for m in measured} == {t.name for t in SHAPES["housing"].tables} | {"all"}
    assert len(bars(measured)) == 2 and all(m.changed > 0 for m in measured)
