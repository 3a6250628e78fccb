"""dbt reads one file of profiles; it may have Jinja in it, so that it is no YAML yet."""

from __future__ import annotations

import os
import re
from pathlib import Path


def profiles_file(project_dir: Path | None, profiles_dir: Path | None = None) -> Path | None:
    """The file that dbt reads for a project, None where there is none.

    It is in the directory that is given, else in DBT_PROFILES_DIR, else in that of the project, else in the user's own.
    """
    named = profiles_dir or os.environ.get("DBT_PROFILES_DIR")
    own = [project_dir] if project_dir is not None else []
    places = [Path(named)] if named else [*own, Path.home() / ".dbt"]
    return next((file for place in places if (file := place / "profiles.yml").is_file()), None)


def says(file: Path | None, pattern: re.Pattern[str]) -> bool:
    """Whether a line of it is like this."""
    return file is not None and pattern.search(file.read_text(encoding="utf-8")) is not None
