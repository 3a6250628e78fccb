"""A small change of a table with a long log: ``python -m benchmarks.long_log``.

Sales of some days are added up by day and store. Rounds of a changed day are timed while the table has a file for each
of these days, and again after its log has got a file list as of ``--partitions`` days with ``--files`` files in all.
With ``--state`` so has the log of the model's state. The files that are added are entries of the log alone, as if
somebody had compacted a large table: whatever reads one of them fails, so a refresh that passes has read none.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from benchmarks.bars import Bar, bars_table
from benchmarks.statement_runs import Followed
from fivm_dbt.config import Config
from fivm_dbt.engines.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT_MOST = 1.3
"""Bar of the seconds with the long log to those before."""

DAYS = 20
SALES = "raw.sales"
MODEL = "shop.by_day"
_SQL = f"SELECT day, store, count(*) AS sales, sum(amount) AS amount FROM {SALES} GROUP BY day, store"
_FIRST = date(2024, 1, 1)
_BEFORE = date(2000, 1, 1)
"""Days of files that are not there are before it."""

_IN_A_COMMIT = 20_000


@dataclass(frozen=True)
class Round:
    """One day changes: the seconds of that, and of the refresh after it."""

    change: float
    refresh: float


@click.command()
@click.option("--partitions", default=20_000, show_default=True, type=click.IntRange(1, 200_000))
@click.option("--files", default=200_000, show_default=True, type=click.IntRange(1))
@click.option("--rounds", default=6, show_default=True, type=click.IntRange(2))
@click.option("--state", "is_state_too", is_flag=True, help="The log of the model's state becomes as long.")
def main(partitions: int, files: int, rounds: int, is_state_too: bool) -> None:
    """Print seconds of refreshes before and after. Exits with 1 if the model is not its recompute at the end."""
    console = Console(width=110)
    with tempfile.TemporaryDirectory() as directory:
        session = local_session(Path(directory))
        try:
            warehouse = Path(directory) / "warehouse"
            _create(session)
            model = Followed.build(session, warehouse, MODEL, _SQL, (SALES,), Config(batch_size="day"))
            before = [_round(session, model, number) for number in range(rounds)]
            of_days = {SALES: {"day": ""}}
            if is_state_too:
                of_days[model.plan.state_relation] = {"__fivm_view": "root", "__fivm_partition": ""}
            for relation, values in of_days.items():
                started = time.perf_counter()
                _list_files(warehouse, relation, values, partitions, files)
                _checkpoint(session, relation)
                took = time.perf_counter() - started
                console.print(f"{relation} lists {files:,} more files of {partitions:,} days: {took:.1f} s")
            after = [_round(session, model, number) for number in range(rounds, 2 * rounds)]
            model.check(f"day >= date'{_FIRST}'")
        finally:
            session.stop()
    _print(console, before, after)


def _create(session: SparkSession) -> None:
    for schema in ("raw", "shop"):
        session.sql(f"CREATE SCHEMA {schema}")
    session.sql(
        f"CREATE TABLE {SALES} USING DELTA PARTITIONED BY (day) "
        "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true') AS "
        f"SELECT date_add(date'{_FIRST}', cast(id % {DAYS} AS int)) AS day, id % 50 AS store, "
        f"cast(id % 1000 / 10 AS decimal(10, 2)) AS amount FROM range({DAYS * 1_000})"
    )


def _round(session: SparkSession, model: Followed, number: int) -> Round:
    """A hundred sales of one day come, and one store's of that day get another amount."""
    day = _FIRST + timedelta(days=number % DAYS)
    started = time.perf_counter()
    session.sql(
        f"INSERT INTO {SALES} SELECT date'{day}', id % 50, cast(id AS decimal(10, 2)) FROM range(100)"
    )
    session.sql(f"UPDATE {SALES} SET amount = amount + 1 WHERE day = date'{day}' AND store = {number % 50}")
    changed = time.perf_counter() - started
    return Round(changed, model.refreshed().seconds)


def _list_files(warehouse: Path, relation: str, values: dict[str, str], partitions: int, files: int) -> None:
    """Commits that add files of days before all others. In ``values`` an empty one stands for the day."""
    schema, name = relation.replace("`", "").split(".")[-2:]
    log = warehouse / f"{schema}.db" / name / "_delta_log"
    version = max(int(path.stem) for path in log.glob("*.json"))
    actions = (_file(number, values, partitions) for number in range(files))
    while chunk := list(islice(actions, _IN_A_COMMIT)):
        version += 1
        lines = (json.dumps(action) for action in (_COMMIT_INFO, *chunk))
        (log / f"{version:020d}.json").write_text("\n".join(lines) + "\n", encoding="utf-8")


_COMMIT_INFO = {
    "commitInfo": {"timestamp": int(time.time() * 1000), "operation": "OPTIMIZE", "operationParameters": {}}
}


def _file(number: int, values: dict[str, str], partitions: int) -> dict[str, object]:
    day = str(_BEFORE - timedelta(days=1 + number % partitions))
    where = {column: value or day for column, value in values.items()}
    stats: dict[str, object] = {"numRecords": 10_000}
    if "day" not in values:
        # What looks for other days skips the file by these.
        stats |= {"minValues": {"day": day}, "maxValues": {"day": day}, "nullCount": {"day": 0}}
    path = "/".join([*(f"{column}={value}" for column, value in where.items()), f"part-{number}.parquet"])
    return {
        "add": {
            "path": path,
            "partitionValues": where,
            "size": 1_000_000,
            "modificationTime": 0,
            "dataChange": False,
            "stats": json.dumps(stats),
        }
    }


def _checkpoint(session: SparkSession, relation: str) -> None:
    """What Delta does by itself now and then."""
    jvm, java_session = session._jvm, session._jsparkSession
    assert jvm is not None
    identifier = java_session.sessionState().sqlParser().parseTableIdentifier(relation)
    jvm.org.apache.spark.sql.delta.DeltaLog.forTable(java_session, identifier).checkpoint()


def _print(console: Console, before: Sequence[Round], after: Sequence[Round]) -> None:
    table = Table("", "change s", "refresh s", box=None)
    figures = {}
    for name, rounds in (("before", before), ("after", after)):
        # The first rounds of a session are slower, because Java compiles while it runs.
        warm = rounds[len(rounds) // 2 :]
        figures[name] = median(r.refresh for r in warm)
        table.add_row(name, f"{median(r.change for r in warm):.2f}", f"{figures[name]:.2f}")
    table.add_row("the first after", f"{after[0].change:.2f}", f"{after[0].refresh:.2f}")
    console.print(table)
    console.print(bars_table([Bar("refresh after / before", figures["after"] / figures["before"], AT_MOST)]))


if __name__ == "__main__":
    main()
