"""``python -m benchmarks.in_a_row`` at a small size: all ways find the same runs."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.in_a_row import Measured, bars, main
from click.testing import CliRunner


def test_all_ways_find_the_same(tmp_path: Path) -> None:
    sizes = ["--rows", "300", "--keys", "20", "--days", "5", "--more", "1"]
    done = CliRunner().invoke(main, [*sizes, "--report", str(tmp_path / "report.json")])
    assert done.exit_code == 0, done.output
    measured = [Measured(**m) for m in json.loads((tmp_path / "report.json").read_text())]
    assert [(m.event, m.way) for m in measured if m.statements] == [
        ("build", "fivm"),
        ("one more day", "fivm"),
        ("corrected", "fivm"),
    ]
    assert "NO " not in done.output and len(bars(measured)) == 3
