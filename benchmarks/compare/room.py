"""A large run says before it begins that there is too little room."""

from __future__ import annotations

import shutil
from pathlib import Path

import click

GB_PER_SCALE = 2.0
"""Generated files, the tables, what changes leave behind in them, and what is kept by all ways."""


def check_room(directory: Path, scale: float) -> None:
    """Raise UsageError where the disk of a directory, be it still to be made, has too little room for a run."""
    there = next(d for d in (directory, *directory.parents) if d.exists())
    free = shutil.disk_usage(there).free / 1e9
    needed = GB_PER_SCALE * scale
    if free < needed:
        raise click.UsageError(
            f"{directory} has {free:.1f} GB of free disk: scale factor {scale:g} needs about {needed:.0f} GB. "
            "Free some, set TMPDIR to another disk, or take a smaller --scale"
        )
