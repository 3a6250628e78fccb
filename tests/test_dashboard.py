"""The example of a dashboard, over rows as ``dbt show`` prints them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dbt_project import REPOSITORY

sys.path.append(str(REPOSITORY / "examples" / "dashboard"))
import dashboard

MODEL = {
    "model": "analytics.daily",
    "materialized": "fivm",
    "inputs": "raw.orders",
    "description": None,
    "known_since": "2024-05-01T04:00:00",
    "refreshes": 3,
    "rebuilds": 1,
    "last_at": "2024-05-03T04:00:12",
    "last_action": "refreshed",
    "last_seconds": 1.25,
    "state_bytes": 3_106_000,
    "median_seconds": 1.25,
    "build_seconds": 9.5,
}
NEW = dict.fromkeys(MODEL) | {"model": "analytics.new", "refreshes": 0, "description": "<New> & not built"}


def _refresh(day: int, action: str, seconds: float | None, reason: str | None = None) -> dict[str, object]:
    at = f"2024-05-0{day}T04:00:12"
    return {
        "model": "analytics.daily",
        "recorded_at": at,
        "action": action,
        "seconds": seconds,
        "reason": reason,
    }


REFRESHES = [
    _refresh(3, "refreshed", 1.25),
    _refresh(2, "rebuilt", 9.5, "the model's SQL changed"),
    _refresh(1, "built", None),
]


def _shown(rows: list[dict[str, object]]) -> str:
    return "04:00:00  Running with dbt\n" + json.dumps({"node": "inline_query", "show": rows})


def test_page(tmp_path: Path) -> None:
    models, refreshes, out = tmp_path / "models.json", tmp_path / "refreshes.json", tmp_path / "fivm.html"
    models.write_text(_shown([NEW, MODEL]))
    refreshes.write_text(_shown(REFRESHES))
    done = CliRunner().invoke(dashboard.main, [str(models), str(refreshes), "--out", str(out)])
    assert done.exit_code == 0, done.output
    page = out.read_text()
    for text in ("analytics.daily", "reads raw.orders", "3.1 MB", "1.2 s", "2024-05-03 04:00", "not built"):
        assert text in page
    assert "&lt;New&gt; &amp; not built" in page
    assert "the model&#39;s SQL changed" in page
    assert page.count("<svg") == 1


def test_what_is_no_output_of_dbt_show(tmp_path: Path) -> None:
    file = tmp_path / "empty.json"
    file.write_text("04:00:00  Nothing to do")
    done = CliRunner().invoke(dashboard.main, [str(file), str(file)])
    assert done.exit_code == 1
    assert "dbt --quiet show --output json" in done.output


@pytest.mark.parametrize(
    ("count", "text"), [(None, ""), (999, "999 bytes"), (2.5e9, "2.5 GB"), (3e15, "3,000.0 TB")]
)
def test_sizes(count: float | None, text: str) -> None:
    assert dashboard._size(count) == text
