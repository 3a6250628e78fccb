"""What a refresh reads, construct by construct: ``python -m benchmarks.constructs [--only NAME]``.

Rows, files and bytes for a table of a million rows of which a thousand change, all of two keys: they show whether a
rule looks up what is affected or secretly reads everything. Seconds say little at this size; all are of one run.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from benchmarks.conclude import conclude
from fivm_dbt.catalog import Catalog, Relation
from fivm_dbt.config import load_config
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.engines.spark.session import local_session
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.oracle import recompute_sql
from fivm_dbt.refresh.report import Report

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS, BUCKETS = 2_000, 64

FACTS = {
    "filter and projection": "select id, k, x * 2 as x2 from raw.facts where y < 500",
    "sum, count, avg": "select k, count(*) as n, sum(x) as s, avg(y) as a from raw.facts group by k",
    "group by day": "select day, sum(x) as s from raw.facts group by day",
    "inner join": "select d.region, sum(f.x) as s from raw.facts f join raw.dims d on f.k = d.k group by d.region",
    "min, max": "select k, min(x) as lo, max(x) as hi from raw.facts group by k",
    "count distinct": "select k, count(distinct y) as ys, sum(distinct y) as s from raw.facts group by k",
    "stddev, percentile": "select k, stddev(y) as s, percentile(y, 0.9) as p from raw.facts group by k",
    "sum of doubles": "select k, sum(w) as s from raw.facts group by k",
    "rollup": "select region, k, sum(x) as s from (select d.region, f.k, f.x from raw.facts f join raw.dims d "
    "on f.k = d.k) group by rollup(region, k)",
    "row_number (QUALIFY)": "select id, k from raw.facts qualify row_number() over (partition by k order by id) <= 3",
    "running sum": "select id, sum(x) over (partition by k order by id) as s from raw.facts",
    "lag": "select id, x - lag(x) over (partition by k order by id) as step from raw.facts",
    "left join": "select d.k, count(f.id) as n from raw.dims d left join raw.facts f on d.k = f.k group by d.k",
    "EXISTS": "select d.k, d.region from raw.dims d where exists "
    "(select 1 from raw.facts f where f.k = d.k and f.y < 20)",
    "NOT IN": "select d.k from raw.dims d where d.k not in (select f.k from raw.facts f where f.y < 20)",
    "scalar subquery, correlated": "select f.id from raw.facts f where f.x > "
    "(select 1.9 * avg(g.x) from raw.facts g where g.k = f.k)",
    "threshold": "select k, n from (select k, count(*) as n from raw.facts group by k) c where n > "
    "(select count(*) / 2100 from raw.facts)",
    "nested aggregate": "select n, count(*) as ks from "
    "(select k, count(*) as n from raw.facts group by k) c group by n",
    "nested aggregate drives a join": "select f.k, d.region, sum(f.x) as s from raw.facts f join raw.dims d "
    "on f.k = d.k where f.k in (select k from raw.facts group by k having sum(x) > 249000) group by f.k, d.region",
    "distinct": "select distinct k, y from raw.facts",
    "except": "select k, y from raw.facts where y < 500 except select k, y from raw.facts where x > 800",
    "top 3 of each": "select k, id, x from (select k, id, x, rank() over (partition by k order by x desc, id) as r "
    "from raw.facts) where r <= 3",
    "limit": "select id, x from raw.facts order by x desc, id limit 10",
    "pivot": "select * from (select k, g, x from raw.facts) pivot (sum(x) for g in (0 as a, 1 as b))",
    "explode": "select k, c, count(*) as n from raw.facts lateral view explode(array(g, y % 3)) e as c group by k, c",
    "outer join, window, count distinct": "select region, count(distinct y) as ys, max(x) as hi from ("
    "select f.y, f.x, d.region, row_number() over (partition by f.k order by f.id) as r "
    "from raw.facts f left join raw.dims d on f.k = d.k) where r <= 5 group by region",
}
DIMENSION = (
    "left join",
    "EXISTS",
    "inner join",
    "outer join, window, count distinct",
)
"""Constructs that are also measured after a change of the dimension: two rows change their region, one goes."""


@dataclass(frozen=True)
class Measured:
    """A refresh beside the recompute of the same model. Bytes and files are those of all scans."""

    construct: str
    changed: str
    views: int
    statements: int
    rows: int | None
    files: int | None
    bytes: int | None
    seconds: float
    recompute_rows: int | None
    recompute_files: int | None
    recompute_bytes: int | None
    recompute_seconds: float
    differing: int


@click.command()
@click.option("--only", multiple=True, help="Only constructs with this in their name.")
@click.option("--rows", default=1_000_000, show_default=True, help="Rows of the table.")
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
def main(only: tuple[str, ...], rows: int, report: Path | None) -> None:
    """Refresh every construct after a small change and print what was read, beside what the recompute reads."""
    chosen = {n: q for n, q in FACTS.items() if not only or any(part in n for part in only)}
    if not chosen:
        raise click.BadParameter(f"no construct has {' or '.join(only)} in its name: {', '.join(FACTS)}")
    measured = []
    with tempfile.TemporaryDirectory() as directory:
        session = local_session(Path(directory))
        try:
            _create(session, rows)
            for number, (name, query) in enumerate(chosen.items(), start=1):
                click.echo(f"{number}/{len(chosen)} {name}", err=True)
                measured += list(_measure(session, f"m{number}", name, query, rows))
        finally:
            session.stop()
    _print(measured)
    conclude(measured, report)


def _create(session: SparkSession, rows: int) -> None:
    feed = "USING DELTA {} TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
    session.sql("CREATE SCHEMA raw")
    session.sql("CREATE SCHEMA models")
    session.sql(
        f"CREATE TABLE raw.facts {feed.format('PARTITIONED BY (day)')} AS SELECT /*+ REBALANCE(day) */ id, "
        f"CAST(pmod(id * 7919, {KEYS}) AS INT) AS k, date_add(date'2024-01-01', CAST(id % 50 AS INT)) AS day, "
        "CAST(id % 4 AS INT) AS g, CAST(id % 997 AS DECIMAL(10,2)) AS x, CAST(id % 1009 AS INT) AS y, "
        f"id / 7.0D AS w FROM range({rows})"
    )
    session.sql(
        f"CREATE TABLE raw.dims {feed.format('')} AS SELECT CAST(id AS INT) AS k, concat('r', id % 20) AS region "
        f"FROM range({KEYS})"
    )


def _measure(session: SparkSession, model: str, name: str, query: str, rows: int) -> Iterator[Measured]:
    engine = SparkEngine.of_session(session)
    relations = [Relation(n, engine.describe(f"SELECT * FROM {n}")) for n in ("raw.facts", "raw.dims")]
    config = load_config({"fivm_buckets": BUCKETS})
    request = ModelRequest(f"models.{model}", query, Catalog.of(relations), config)
    plan = plan_model(request, engine.describe)
    refresh(plan, engine)
    _change_facts(session, rows)
    yield _refreshed(session, engine, plan, name, "facts")
    if name in DIMENSION:
        session.sql("DELETE FROM raw.dims WHERE k = 17")
        session.sql("UPDATE raw.dims SET region = concat(region, 'x') WHERE k IN (18, 19)")
        yield _refreshed(session, engine, plan, name, "dimension")
        session.sql("INSERT INTO raw.dims VALUES (17, 'r17')")
    for view in plan.views:
        session.sql(f"DROP TABLE {view.name}")


def _change_facts(session: SparkSession, rows: int) -> None:
    """A thousand rows of two keys on the days that they have: half of them go, as many come."""
    keys = "k IN (101, 1202)"
    session.sql(f"DELETE FROM raw.facts WHERE {keys} AND pmod(id, 4) < 2")
    session.sql(
        f"INSERT INTO raw.facts SELECT {rows} + id, CASE WHEN id % 2 = 0 THEN 101 ELSE 1202 END, date'2024-02-01', "
        "CAST(id % 4 AS INT), CAST(id % 1000 AS DECIMAL(10,2)), CAST(id % 1100 AS INT), id / 3.0D FROM range(500)"
    )


def _refreshed(session: SparkSession, engine: SparkEngine, plan: Plan, name: str, changed: str) -> Measured:
    started = time.perf_counter()
    report: Report = refresh(plan, engine)
    seconds = time.perf_counter() - started
    if report.action != "refreshed":
        raise RuntimeError(f"{name}: {report.line()}")
    versions = {i.name: engine.commits(i.name, None)[0].version for i in plan.inputs}
    tag = f"recompute {plan.relation} {changed}"
    started = time.perf_counter()
    engine.start_measuring(tag)
    session.sql(recompute_sql(plan, versions)).write.format("noop").mode("overwrite").save()
    again = engine.measured(tag)
    recompute_seconds = time.perf_counter() - started
    differing = session.sql(difference_sql(plan, engine)).count()
    return Measured(
        construct=name,
        changed=changed,
        views=len(plan.views),
        statements=len(report.statements),
        rows=report.rows_read,
        files=report.files_read,
        bytes=report.bytes_read,
        seconds=seconds,
        recompute_rows=again.rows_read,
        recompute_files=again.files_read,
        recompute_bytes=again.bytes_read,
        recompute_seconds=recompute_seconds,
        differing=differing,
    )


def _print(measured: list[Measured]) -> None:
    table = Table(
        "construct",
        "changed",
        "views",
        "statements",
        "rows",
        "share",
        "files",
        "MB",
        "s",
        "s recompute",
        box=None,
    )
    for m in measured:
        share = f"{m.rows / m.recompute_rows:.1%}" if m.rows is not None and m.recompute_rows else "n/a"
        files = f"{m.files} / {m.recompute_files}"
        size = f"{(m.bytes or 0) / 1e6:.1f} / {(m.recompute_bytes or 0) / 1e6:.1f}"
        verdict = m.construct if not m.differing else f"{m.construct}: {m.differing} ROWS DIFFER"
        row = (verdict, m.changed, m.views, m.statements, f"{m.rows:,}", share, files, size)
        table.add_row(*map(str, row), f"{m.seconds:.1f}", f"{m.recompute_seconds:.1f}")
    console = Console()
    # Piped into a file it is not cut to the width of a terminal that is not there.
    Console(width=console.width if console.is_terminal else 200).print(table)


if __name__ == "__main__":
    main()
