"""Where the demo finds its own files and where it writes: all of the latter is below `.demo/`."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "demo" / "project"

HOME = ROOT / ".demo"
VENV = HOME / "venv"
DIST = HOME / "dist"
STAMPS = HOME / "stamps"
IVY = HOME / "ivy"
DATA = HOME / "data"
WAREHOUSE = HOME / "warehouse"
METASTORE = HOME / "metastore"
TARGET = HOME / "target"
LOGS = HOME / "logs"
