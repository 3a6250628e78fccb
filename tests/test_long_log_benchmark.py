"""``python -m benchmarks.long_log`` at a small size: files that are not there are listed, and none is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.long]

ROOT = Path(__file__).parent.parent


def test_a_refresh_reads_none_of_the_files_that_are_only_listed() -> None:
    options = ("--partitions", "40", "--files", "400", "--rounds", "2", "--state")
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.long_log", *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count("400 more files of 40 days") == 2 and "refresh after / before" in ran.stdout
