"""How benchmarks of refreshes beside recomputes end: the figures as JSON, and an exit code that tells a difference."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any


def conclude(measured: Sequence[Any], report: Path | None) -> None:
    """Write the figures, dataclasses with ``differing`` rows, where that is wanted; exit with 1 if any row differs."""
    if report is not None:
        report.write_text(json.dumps([asdict(m) for m in measured], indent=2) + "\n", encoding="utf-8")
    if any(m.differing for m in measured):
        raise SystemExit(1)
