"""Golden plans: a few whole models, their plan as JSON and as text, the same bytes in every process.

``FIVM_UPDATE=1 pytest tests/test_golden.py`` writes them anew; review the difference.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fivm_dbt.explain.text import explain
from fivm_dbt.project.offline import plan_of_file

GOLDEN = Path(__file__).resolve().parent / "golden"
MODELS = sorted(path.stem for path in GOLDEN.glob("*.sql"))

_PRINT = """
import json, sys
from pathlib import Path
from fivm_dbt.explain.text import explain
from fivm_dbt.project.offline import plan_of_file
plans = {name: plan_of_file(Path(sys.argv[1]) / f"{name}.sql") for name in sys.argv[2:]}
sys.stdout.reconfigure(encoding="utf-8")
json.dump({name: [plan.to_json(), explain(plan), plan.plan_hash] for name, plan in plans.items()}, sys.stdout)
"""


@pytest.mark.parametrize("name", MODELS)
def test_plan(name: str) -> None:
    plan = plan_of_file(GOLDEN / f"{name}.sql")
    _check(GOLDEN / f"{name}.plan.json", plan.to_json() + "\n")
    _check(GOLDEN / f"{name}.explain.txt", explain(plan))


def _check(path: Path, text: str) -> None:
    if os.environ.get("FIVM_UPDATE"):
        path.write_text(text, encoding="utf-8")
    else:
        assert text == path.read_text(encoding="utf-8")


def _printing(seed: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _PRINT, str(GOLDEN), *MODELS]
    env = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True, encoding="utf-8")


def _printed(process: subprocess.Popen[str]) -> dict[str, list[str]]:
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    found: dict[str, list[str]] = json.loads(text)
    return found


@pytest.mark.more
def test_other_processes_plan_the_same_bytes() -> None:
    processes = [_printing("1"), _printing("4242")]
    first, second = map(_printed, processes)
    assert list(first) == MODELS
    for name in MODELS:
        plan = plan_of_file(GOLDEN / f"{name}.sql")
        assert first[name] == second[name] == [plan.to_json(), explain(plan), plan.plan_hash], name


def test_every_golden_file_has_its_model() -> None:
    found = {path.name.split(".")[0] for path in GOLDEN.iterdir()}
    assert found == set(MODELS)
    assert len(MODELS) >= 8
    assert len(list(GOLDEN.iterdir())) == 3 * len(MODELS)


def test_plans_differ() -> None:
    hashes = [plan_of_file(GOLDEN / f"{name}.sql").plan_hash for name in MODELS]
    assert len(set(hashes)) == len(MODELS)
