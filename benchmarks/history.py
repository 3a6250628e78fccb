"""One more part, and one late row, over a growing history of parts: ``python -m benchmarks.history``.

Viewdf models over a stream with rows of ``--keys`` sources per minute, as many minutes as the history is long:

* ``helper``: how often in a row a source has lost more than ten packets, from the minute before (ViewDF, section 2);
* ``sliding``: the largest loss of the last hour, from sixty parts of a model with one row per source (section 5.2.1);
* ``csum``: sums since the beginning, added to those of the minute before (section 5.2.2);
* ``hourly``: sums by the hour, of sixty parts;
* ``sum_by_panes`` and ``sum_by_csum``: sums of the last hour, from sixty parts of ``pane_sums``, a row per source each,
  or as the difference of two parts of ``csum`` (section 7.2.2: 49 against 34 seconds there).

For each history the minute after it arrives, and then a row for a minute that is 100 back changes. ``by hand`` is what
somebody would write who needs ``panes`` and ``sliding`` for just this minute: two INSERTs, with neither heads nor
late data.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import product
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table
from sqlglot import exp

from benchmarks.conclude import conclude
from benchmarks.part_models import PartModels, initialize, part
from benchmarks.plots import Line, plot
from benchmarks.queries.command import ENGINES, opener
from benchmarks.streams import arrive
from fivm_dbt.catalog import Column
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.spark.state import create_table
from fivm_dbt.testing.workbench import TableSpec, Workbench

START = datetime(2024, 1, 1)
STREAM = TableSpec(
    "measurements", (Column.of("src", "int"), Column.of("ts", "timestamp"), Column.of("loss", "int"))
)
_SPAN = "'j-59', 'j'"
_M, _I = part("measurements"), part("measurements", "'i'")
MODELS = {
    "helper": initialize(f"select src, 1 as ct, loss as sum_loss from {_I} where loss > 10")
    + f"""select new.src, coalesce(prev.ct, 0) + 1 as ct, coalesce(prev.sum_loss, 0) + new.loss as sum_loss
        from {_M} as new left join {part("helper", "'j-1'")} as prev on new.src = prev.src where new.loss > 10""",
    "panes": f"select src, max(loss) as top from {_M} group by src",
    "sliding": f"select src, max(top) as top from {part('panes', _SPAN)} group by src",
    "csum": initialize(f"select src, sum(loss) as lost, count(*) as n from {_I} group by src")
    + f"""select src, sum(lost) as lost, sum(n) as n from (
        select src, sum(loss) as lost, count(*) as n from {_M} group by src
        union all select src, lost, n from {part("csum", "'j-1'")}) as both group by src""",
    "pane_sums": f"select src, sum(loss) as lost from {_M} group by src",
    "sum_by_panes": f"select src, sum(lost) as lost from {part('pane_sums', _SPAN)} group by src",
    "sum_by_csum": f"""select src, sum(lost) as lost from (
        select src, lost, n from {part("csum")} union all select src, -lost, -n from {part("csum", "'j-60'")}
        ) as both group by src having sum(n) > 0""",
    "hourly": f"""select src, sum(loss) as lost
        from {part("measurements", "'j*60', 'j*60+59'")} group by src""",
}
LENGTHS = {"hourly": "hour"}


@dataclass(frozen=True)
class Measured:
    """One refresh of a model: what had come, what was computed, and what that took."""

    model: str
    history: int
    keys: int
    what: str
    computed: str
    again: str
    statements: int
    rows_read: int
    rows_written: int
    seconds: float
    differing: int


@click.command()
@click.option(
    "--history", multiple=True, default=(240, 720, 1440), show_default=True, help="Minutes; repeatable."
)
@click.option(
    "--keys",
    multiple=True,
    default=(50,),
    show_default=True,
    type=click.IntRange(1),
    help="Sources, a row each per minute; repeatable.",
)
@click.option(
    "--models", default=",".join(MODELS), show_default=True, help="Which models, with those they read."
)
@click.option("--engine", type=click.Choice(ENGINES), default="duckdb", show_default=True)
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
@click.option(
    "--images",
    type=click.Path(path_type=Path),
    help="Draw what one more minute reads of histories, or takes with some numbers of sources, in this directory.",
)
def main(
    history: tuple[int, ...],
    keys: tuple[int, ...],
    models: str,
    engine: str,
    report: Path | None,
    images: Path | None,
) -> None:
    """Exits with 1 if one of the models differs from its recompute."""
    chosen = models.split(",")
    unknown = sorted(set(chosen) - set(MODELS))
    if unknown:
        raise click.BadParameter(f"{', '.join(unknown)}: expected some of {', '.join(MODELS)}")
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory() as directory:
        open_workbench = opener(engine, Path(directory))
        for many, sources in product(history, keys):
            with closing(open_workbench()) as workbench:
                measured += _Stream(workbench, many, sources, chosen, Path(directory)).follow()
    _print(measured)
    if images is not None:
        _draw(measured, images)
    conclude(measured, report)


_HOUR = 60
"""The source has come by the hour, a file each."""


class _Stream:
    """The stream with a history, and the models over it."""

    def __init__(
        self, workbench: Workbench, history: int, keys: int, models: Sequence[str], directory: Path
    ) -> None:
        self._workbench, self._history, self._keys = workbench, history, keys
        self._file = directory / "minutes.parquet"
        workbench.create(STREAM, [])
        for first in range(0, history, _HOUR):
            self._arrive(first, min(first + _HOUR, history))
        self._models = PartModels(workbench, STREAM, "ts")
        for name in models:
            self._models.add(name, MODELS[name], length=LENGTHS.get(name))

    def _arrive(self, first: int, end: int) -> None:
        """The rows of some minutes, in one commit."""
        query = (
            f"SELECT CAST(src AS INTEGER) AS src, TIMESTAMP '{START}' + minute * INTERVAL 1 MINUTE AS ts, "
            "CAST(CASE WHEN (src + minute) % 7 = 0 THEN 5 ELSE 12 + src % 9 END AS INTEGER) AS loss "
            f"FROM (SELECT UNNEST(range({self._keys})) AS src), (SELECT UNNEST(range({first}, {end})) AS minute)"
        )
        arrive(self._workbench, STREAM, query, self._file)

    def follow(self) -> list[Measured]:
        """Build the models; then a minute more, then a late row."""
        click.echo(f"{self._history:,} minutes of {self._keys:,} sources: building", err=True)
        for name in self._models.plans:
            self._models.refresh(name)
        is_compared = {"panes", "sliding"} <= set(self._models.plans)
        if is_compared:
            self._begin_by_hand()
        self._arrive(self._history, self._history + 1)
        found = self._refresh("one more minute")
        if is_compared:
            found += self._by_hand()
        self._correct(self._history - 100)
        return found + self._refresh("a late row, 100 back")

    def _correct(self, minute: int) -> None:
        """Another loss in one row: on Spark by UPDATE, so that what is written, and read of it, is the row's file."""
        engine = self._workbench.engine
        of_row = f"src = 0 AND ts = TIMESTAMP '{START + timedelta(minutes=minute)}'"
        if engine.name == "spark":
            engine.run(f"UPDATE {STREAM.name} SET loss = 99 WHERE {of_row}")
        else:
            rows = engine.query(f"SELECT src, ts, loss FROM {STREAM.name} WHERE {of_row}")
            self._workbench.change(STREAM, [(*row[:2], 99) for row in rows], rows)

    def _begin_by_hand(self) -> None:
        panes = (
            "select src, max(loss) as top, date_trunc('minute', ts) as at from measurements group by src, at"
        )
        for name, query in (("hand_panes", panes), ("hand_sliding", "select * from hand_panes where false")):
            rows = exp.maybe_parse(query, dialect="spark", into=exp.Select)
            self._workbench.engine.run(create_table(name, rows, {}).sql(dialect="spark"))

    def _by_hand(self) -> list[Measured]:
        """The minute that has come, written by hand, and compared with the model."""
        engine, now = self._workbench.engine, START + timedelta(minutes=self._history)
        at, since = (f"timestamp '{t}'" for t in (now, now - timedelta(minutes=59)))
        started = time.perf_counter()
        engine.run(
            f"insert into hand_panes select src, max(loss) as top, {at} as at from measurements where ts >= {at} "
            "group by src"
        )
        engine.run(
            f"insert into hand_sliding select src, max(top) as top, {at} as at from hand_panes where at >= {since} "
            "group by src"
        )
        seconds = round(time.perf_counter() - started, 2)
        ours = engine.query(f"select src, top from sliding where part_timestamp = {at}")
        by_hand = engine.query("select src, top from hand_sliding")
        differing = len(set(ours) ^ set(by_hand))
        rows = self._keys
        return [
            Measured(
                "by hand", self._history, rows, "one more minute", "", "", 2, 0, 2 * rows, seconds, differing
            )
        ]

    def _refresh(self, what: str) -> list[Measured]:
        return [self._refreshed(name, what) for name in self._models.plans]

    def _refreshed(self, name: str, what: str) -> Measured:
        started = time.perf_counter()
        report = self._models.refresh(name)
        seconds = time.perf_counter() - started
        assert report.parts is not None
        difference = difference_sql(self._models.plans[name], self._workbench.engine)
        return Measured(
            name,
            self._history,
            self._keys,
            what,
            report.parts.computed,
            report.parts.again,
            len(report.statements),
            report.rows_read or 0,
            report.parts.rows,
            round(seconds, 2),
            len(self._workbench.engine.query(difference)),
        )


def _print(measured: Sequence[Measured]) -> None:
    table = Table(box=None, pad_edge=False)
    for heading in (
        "model",
        "history",
        "sources",
        "what came",
        "statements",
        "rows read",
        "rows written",
        "seconds",
        "equal",
    ):
        table.add_column(heading, justify="left" if heading in ("model", "what came", "equal") else "right")
    for m in sorted(measured, key=lambda m: ([*MODELS, "by hand"].index(m.model), m.what, m.history, m.keys)):
        table.add_row(
            m.model, f"{m.history:,}", f"{m.keys:,}", m.what, str(m.statements),
            f"{m.rows_read:,}", f"{m.rows_written:,}", f"{m.seconds:.2f}", "yes" if not m.differing else "NO",
        )  # fmt: skip
    Console(width=120).print(table)


def _draw(measured: Sequence[Measured], images: Path) -> None:
    """Rows read over the history; of several numbers of sources, and one history, the seconds over these."""
    is_by_keys = len({m.keys for m in measured}) > 1
    lines = []
    for model in dict.fromkeys(m.model for m in measured if m.rows_read):
        points = [m for m in measured if (m.model, m.what) == (model, "one more minute")]
        xs = tuple(float(m.keys if is_by_keys else m.history) for m in points)
        lines.append(Line(model, xs, tuple(float(m.seconds if is_by_keys else m.rows_read) for m in points)))
    if is_by_keys:
        plot(images / "time_parts_sources.svg", lines, "sources", "seconds of one more minute")
    else:
        plot(images / "time_parts_history.svg", lines, "minutes of history", "rows read by one more minute")


if __name__ == "__main__":
    main()
