"""One more part, and late rows, of models of time parts: statements and commits, whatever there was before."""

from __future__ import annotations

import os
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.refresh.engine import Row
from test_cost_table import laid_out
from viewdf_bench import Bench, Model, Table

TABLE = Path(__file__).parent / "fixtures" / "part_costs.txt"
HEADINGS = ("model", "parts before", "change", "statements", "commits", "rows of the parts written")

HISTORIES = (14, 1440)
START = datetime(2024, 1, 1)
COLUMNS = [("k", "string"), ("ts", "timestamp"), ("v", "bigint")]
OLDEST = {"fivm_start": "oldest"}
MODELS = (
    Model("own", "select k, sum(v) as v from {m:j} group by k", None, OLDEST),
    Model("ten", "select k, max(v) as v from {own:j-9..j} group by k", None, OLDEST),
    Model(
        "so_far",
        "select k, sum(v) as v from (select k, v from {m:j} union all select k, v from {so_far:j-1}) as b group by k",
        "select k, sum(v) as v from {m:i} group by k",
        OLDEST,
    ),
)


def _row(minute: int, value: int = 1) -> Row:
    return ("k", START + timedelta(minutes=minute), value)


def _costs(history: int) -> list[tuple[str, ...]]:
    """The models after so many minutes: a minute more, a row that comes late, and one that goes."""
    rows = [_row(minute) for minute in range(history)]
    stream = Table("m", COLUMNS, rows, TimeParts("ts", Length.of("minute"), timedelta()))
    changes: dict[str, tuple[list[Row], list[Row]]] = {
        "a minute more": ([_row(history)], []),
        "a late row": ([_row(history - 5, 7)], []),
        "a row gone": ([], [_row(history - 5)]),
    }
    found = []
    with closing(Bench([stream], MODELS)) as bench:
        bench.run()
        for change, (come, gone) in changes.items():
            bench.change("m", come, gone)
            before = {name: _version(bench, name) for name in bench.models}
            for name, report in bench.run().items():
                assert report.parts is not None
                commits = _version(bench, name) - before[name]
                cells = (history, change, len(report.statements), commits, report.parts.rows)
                found.append((name, *map(str, cells)))
        if history < 100:
            bench.check()
    return found


def _version(bench: Bench, name: str) -> int:
    return bench.bench.engine.commits(f"{name}__fivm_state", None)[0].version


def test_the_table_of_costs() -> None:
    """``FIVM_UPDATE=1`` writes it anew; review what has become dearer."""
    lines = laid_out([HEADINGS, *(row for history in HISTORIES for row in _costs(history))])
    if os.environ.get("FIVM_UPDATE"):
        TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert TABLE.read_text(encoding="utf-8").splitlines() == lines


def test_a_part_costs_the_same_after_any_history() -> None:
    lines = TABLE.read_text(encoding="utf-8").splitlines()[1:]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    short, long = ([[n, *cells] for n, h, *cells in rows if h == str(history)] for history in HISTORIES)
    assert short and short == long
    more = {cells[0]: cells[2:4] for cells in short if cells[1] == "a minute more"}
    # The first one asks in which parts rows have come. Heads tell it of models, and the answer all others.
    assert more == {"own": ["2", "1"], "ten": ["1", "1"], "so_far": ["1", "1"]}
