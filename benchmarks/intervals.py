"""What refreshes read of a growing history: ``python -m benchmarks.intervals``.

Pings arrive hour by hour, and alerts beside them. After a history of so many days come the next hour, and then an hour
that is late by most of the history. Each model is refreshed with reads bounded by the times of the changes, and without
(``fivm_without: time_ranges``):

* ``band``: alerts with the pings of the five minutes before;
* ``left``: the same as an outer join;
* ``days``: pings of a day beside those of the day before;
* ``shifted``: alerts joined with the totals of the day before.

(Interval analysis; ViewDF, sections 4.2 and 4.3.)
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from random import Random

import click
from rich.console import Console
from rich.table import Table

from benchmarks.conclude import conclude
from benchmarks.queries.command import ENGINES, opener
from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import load_config
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.testing.workbench import TableSpec, Workbench

_WIDTH = 120
_START = datetime(2024, 1, 1)
_HOSTS = 10
_SESSION = (("timezone", "UTC"),)

CASES = {
    "band": """
        select date_trunc('hour', a.ts) as hour, a.host, count(*) as pings, sum(p.ms) as ms
        from alerts a join pings p on p.host = a.host and p.ts between a.ts - interval '5' minutes and a.ts
        group by 1, 2
    """,
    "left": """
        select date_trunc('hour', a.ts) as hour, a.host, count(*) as n, count(p.ts) as pings
        from alerts a left join pings p on p.host = a.host and p.ts between a.ts - interval '5' minutes and a.ts
        group by 1, 2
    """,
    "days": """
        select cast(p.ts as date) as day, count(*) as pairs
        from alerts p join alerts q on q.host = p.host and cast(q.ts as date) = date_sub(cast(p.ts as date), 1)
        group by 1
    """,
    "shifted": """
        select cast(a.ts as date) as day, a.host, max(t.ms) as ms
        from alerts a join (select host, cast(ts as date) as day, sum(ms) as ms from pings group by 1, 2) t
            on t.host = a.host and t.day = date_sub(cast(a.ts as date), 1)
        group by 1, 2
    """,
}


@dataclass(frozen=True)
class Measured:
    """One refresh; rows as the engine counts them, seconds on the wall."""

    case: str
    days: int
    history_rows: int
    change: str
    change_rows: int
    is_bounded: bool
    rows_read: int
    files_read: int | None
    seconds: float
    differing: int


@click.command()
@click.option("--cases", default=",".join(CASES), show_default=True, help="Which models.")
@click.option(
    "--days", multiple=True, default=(10, 100, 1_000), show_default=True, help="Days of history; repeatable."
)
@click.option("--per-hour", default=10, show_default=True, help="Pings per hour; a fifth as many alerts.")
@click.option("--engine", type=click.Choice(ENGINES), default="duckdb", show_default=True)
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
def main(cases: str, days: tuple[int, ...], per_hour: int, engine: str, report: Path | None) -> None:
    """Append an hour and bring a late one, after histories of several lengths. Exits with 1 if a model differs."""
    names = cases.split(",")
    if unknown := [name for name in names if name not in CASES]:
        raise click.BadParameter(f"{unknown[0]}: expected one of {', '.join(CASES)}")
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory() as directory:
        open_workbench = opener(engine, Path(directory))
        for name in names:
            for many in days:
                for is_bounded in (False, True):
                    click.echo(f"{name}, {many:,} days{'' if is_bounded else ', not bounded'}", err=True)
                    with closing(open_workbench()) as workbench:
                        measured += _History(workbench, name, many, per_hour).follow(is_bounded=is_bounded)
    _print(measured)
    conclude(measured, report)


class _History:
    """Pings and alerts of so many days, in tables partitioned by nothing: each hour is a commit or lies sorted."""

    def __init__(self, workbench: Workbench, case: str, days: int, per_hour: int) -> None:
        self._workbench, self._case, self._days, self._per_hour = workbench, case, days, per_hour
        self._random = Random(7)
        self._specs = {
            name: TableSpec(
                name, (Column.of("host", "int"), Column.of("ts", "timestamp"), Column.of(last, "int"))
            )
            for name, last in {"pings": "ms", "alerts": "level"}.items()
        }

    def follow(self, *, is_bounded: bool) -> list[Measured]:
        """Build the model, then refresh it after the next hour, and after a late one."""
        workbench, hours = self._workbench, 24 * self._days
        rows = {name: [r for h in range(hours) for r in self._hour(name, h)] for name in self._specs}
        for name, spec in self._specs.items():
            workbench.create(spec, rows[name])
        workbench.make_room("m")
        plan = self._plan(is_bounded=is_bounded)
        refresh(plan, workbench.engine)
        history = sum(len(r) for r in rows.values())
        late = hours // 10
        return [
            self._refreshed(plan, change, hour, history, is_bounded=is_bounded)
            for change, hour in (("appended", hours), ("late", late))
        ]

    def _hour(self, name: str, hour: int) -> list[Row]:
        many = self._per_hour if name == "pings" else max(1, self._per_hour // 5)
        begin = _START + timedelta(hours=hour)
        return sorted(
            (
                self._random.randrange(_HOSTS),
                begin + timedelta(seconds=self._random.randrange(3_600)),
                self._random.randrange(100),
            )
            for _ in range(many)
        )

    def _plan(self, *, is_bounded: bool) -> Plan:
        catalog = Catalog.of(Relation(s.name, s.columns) for s in self._specs.values())
        without = [] if is_bounded else ["time_ranges"]
        config = load_config({"fivm_without": without, "batch_size": "day"})
        request = ModelRequest("m", CASES[self._case], catalog, config, _SESSION)
        return plan_model(request, self._workbench.describe)

    def _refreshed(self, plan: Plan, change: str, hour: int, history: int, *, is_bounded: bool) -> Measured:
        workbench, changed = self._workbench, 0
        for name, spec in self._specs.items():
            came = self._hour(name, hour)
            changed += len(came)
            workbench.change(spec, came, ())
        started = time.perf_counter()
        report = refresh(plan, workbench.engine)
        seconds = time.perf_counter() - started
        return Measured(
            case=self._case,
            days=self._days,
            history_rows=history,
            change=change,
            change_rows=changed,
            is_bounded=is_bounded,
            rows_read=report.rows_read or 0,
            files_read=report.files_read,
            seconds=seconds,
            differing=len(workbench.engine.query(difference_sql(plan, workbench.engine))),
        )


def _print(measured: Sequence[Measured]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("model")
    for heading in ("days", "rows of history"):
        table.add_column(heading, justify="right")
    table.add_column("change")
    for heading in ("rows of change", "rows read", "not bounded", "seconds", "not bounded"):
        table.add_column(heading, justify="right")
    table.add_column("equal")
    plain = {(m.case, m.days, m.change): m for m in measured if not m.is_bounded}
    for m in (m for m in measured if m.is_bounded):
        other = plain[m.case, m.days, m.change]
        sizes = (f"{m.days:,}", f"{m.history_rows:,}", m.change, f"{m.change_rows:,}")
        figures = (f"{m.rows_read:,}", f"{other.rows_read:,}", f"{m.seconds:.2f}", f"{other.seconds:.2f}")
        table.add_row(m.case, *sizes, *figures, "yes" if not m.differing + other.differing else "NO")
    Console(width=_WIDTH, soft_wrap=True).print(table)


if __name__ == "__main__":
    main()
