"""A large run says before it begins that there is too little room."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

DATA_GB, WAY_GB = 1.0, 0.4
"""Of disk, for each scale factor: tables, as generated and as changed; and what each way keeps, in all its versions."""


def needed_gb(scale: float, ways: int) -> float:
    """About how much a run writes.

    >>> needed_gb(10, 6)
    34.0
    """
    return scale * (DATA_GB + WAY_GB * ways)


def check_room(directory: Path, needed: float) -> None:
    """Raise UsageError where the disk of a directory, be it still to be made, has less free."""
    there = next(d for d in (directory, *directory.parents) if d.exists())
    free = shutil.disk_usage(there).free / 1e9
    if free < needed:
        raise click.UsageError(
            f"{directory} has {free:.1f} GB of free disk, and the run needs about {needed:.0f} GB: "
            "free some, set TMPDIR to another disk, or take a smaller --scale or fewer ways"
        )


def used_gb(directory: Path) -> float:
    """What the files below a directory take."""
    return sum(file.stat().st_size for file in directory.rglob("*") if file.is_file()) / 1e9
