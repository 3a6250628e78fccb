"""Where the project is, and where everything that it becomes is written."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = Path(__file__).resolve().parent / "dbt_project"
HOME = ROOT / ".cache" / "project"
