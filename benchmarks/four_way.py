"""A four-way join of TPC-H by day, nation and segment under each strategy: ``python -m benchmarks.four_way``.

Two changes: one row in a hundred of *lineitem* in eight of its months, and one customer in a hundred with another
segment. For every way of keeping the model up to date the seconds and the rows that were read stand beside those of the
full recompute, all in one run.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table

from benchmarks.conclude import conclude
from benchmarks.queries.tpch_data import tpch_files
from benchmarks.timed import TimedEngine
from fivm_dbt.catalog import Catalog, Relation, TableStatistics
from fivm_dbt.config import load_config
from fivm_dbt.delta.term import scans
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.engines.spark.session import local_session
from fivm_dbt.explain.operators import reads_in_full
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.layout import Promises, settled_plan
from fivm_dbt.refresh.observe import State
from fivm_dbt.refresh.oracle import recompute_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY = """
    select l_shipdate, n_name, c_mktsegment, count(*) as lines,
        sum(l_extendedprice * (1 - l_discount)) as revenue
    from tpch.lineitem
    join tpch.orders on l_orderkey = o_orderkey
    join tpch.customer on o_custkey = c_custkey
    join tpch.nation on c_nationkey = n_nationkey
    group by l_shipdate, n_name, c_mktsegment
"""
TABLES = ("lineitem", "orders", "customer", "nation")
MONTHS = tuple(f"{year}-{month:02}" for year in (1994, 1996) for month in (2, 5, 8, 11))
"""The months of which lineitems change: eight of some eighty."""

WAYS = (
    ("first_order", "merge"),
    ("factorized", "merge"),
    ("factorized", "replace"),
    ("recursive", "merge"),
    ("auto", "merge"),
    ("auto", "replace"),
)


@dataclass(frozen=True)
class Measured:
    """One refresh by one way, beside the recompute of the same versions."""

    strategy: str
    apply: str
    changed: str
    views: int
    statements: int
    rows: int | None
    lineitem_in_full: bool
    seconds: float
    recompute_seconds: float
    differing: int

    @property
    def ratio(self) -> float:
        return self.seconds / self.recompute_seconds


@click.command()
@click.option("--scale", default=1.0, show_default=True, help="Scale factor; 1 is six million lineitems.")
@click.option("--only", multiple=True, help="Only strategies of this name.")
@click.option(
    "--rounds", default=2, show_default=True, help="How often each change is made; the last one counts."
)
@click.option("--statements", is_flag=True, help="Print the seconds of each statement of the last round.")
@click.option("--report", type=click.Path(path_type=Path), help="Write the figures as JSON too.")
def main(scale: float, only: tuple[str, ...], rounds: int, statements: bool, report: Path | None) -> None:
    """Keep the model by every way through the same changes. Exits with 1 if one differs from its recompute."""
    ways = [way for way in WAYS if not only or way[0] in only]
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory() as directory:
        session = local_session(Path(directory), settings={"spark.driver.memory": "6g"})
        try:
            click.echo("loading the tables", err=True)
            _load(session, tpch_files(scale))
            models = [_built(session, number, *way) for number, way in enumerate(ways, start=1)]
            for round_ in range(1, rounds + 1):
                for changed, change in (("lineitem", _change_lineitem), ("customer", _change_customer)):
                    change(session, round_)
                    click.echo(f"round {round_}: {changed}", err=True)
                    shown = statements and round_ == rounds
                    found = [_refreshed(session, model, changed, shown=shown) for model in models]
                    measured += found if round_ == rounds else []
        finally:
            session.stop()
    _print(measured)
    conclude(measured, report)


def _load(session: SparkSession, files: dict[str, Path]) -> None:
    session.sql("CREATE SCHEMA tpch")
    session.sql("CREATE SCHEMA models")
    for table in TABLES:
        source = f"SELECT * FROM parquet.`{files[table].resolve()}`"
        partitioned = ""
        if table == "lineitem":
            partitioned = "PARTITIONED BY (l_shipmonth)"
            month = "date_format(l_shipdate, 'yyyy-MM') AS l_shipmonth"
            source = f"SELECT /*+ REBALANCE(l_shipmonth) */ *, {month} FROM ({source})"
        properties = "TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"
        session.sql(f"CREATE TABLE tpch.{table} USING DELTA {partitioned} {properties} AS {source}")


@dataclass(frozen=True)
class _Model:
    strategy: str
    apply: str
    plan: Plan


def _built(session: SparkSession, number: int, strategy: str, apply: str) -> _Model:
    engine = SparkEngine.of_session(session)
    relations = [Relation(f"tpch.{t}", engine.describe(f"SELECT * FROM tpch.{t}")) for t in TABLES]
    config = load_config({"fivm_strategy": strategy, "fivm_apply": apply})
    request = ModelRequest(f"models.m{number}", QUERY, Catalog.of(relations), config)
    started = time.perf_counter()

    def planner(measured: TableStatistics | None, promises: Promises | None = None) -> Plan:
        return plan_model(replace(request, measured=measured), engine.describe)

    plan = settled_plan(planner, engine, State())
    model = _Model(strategy, apply, plan)
    refresh(model.plan, engine)
    click.echo(f"built by {strategy}, {apply}: {time.perf_counter() - started:.1f} s", err=True)
    return model


def _change_lineitem(session: SparkSession, round_: int) -> None:
    """In eight months a hundredth of all lineitems gets another discount."""
    months = ", ".join(f"'{month}'" for month in MONTHS)
    session.sql(
        "UPDATE tpch.lineitem SET l_discount = CASE WHEN l_discount > 0.05 THEN 0.01 ELSE 0.07 END "
        f"WHERE l_shipmonth IN ({months}) AND pmod(l_orderkey + {round_}, 10) = 0"
    )


def _change_customer(session: SparkSession, round_: int) -> None:
    session.sql(
        "UPDATE tpch.customer SET c_mktsegment = CASE c_mktsegment WHEN 'BUILDING' THEN 'MACHINERY' ELSE 'BUILDING' "
        f"END WHERE pmod(c_custkey + {round_}, 100) = 0"
    )


def _refreshed(session: SparkSession, model: _Model, changed: str, *, shown: bool) -> Measured:
    engine, plan = TimedEngine(session), model.plan
    started = time.perf_counter()
    report = refresh(plan, engine)
    seconds = time.perf_counter() - started
    if shown:
        click.echo(f"{model.strategy}, {model.apply}: {report.line()}", err=True)
        for timing in engine.taken():
            click.echo(f"  {timing.seconds:6.2f} s  {timing.statement}", err=True)
    if report.action != "refreshed":
        raise RuntimeError(f"{model.strategy}: {report.line()}")
    versions = {i.name: engine.commits(i.name, None)[0].version for i in plan.inputs}
    started = time.perf_counter()
    session.sql(recompute_sql(plan, versions)).write.format("delta").mode("overwrite").saveAsTable(
        f"{plan.relation}_recomputed"
    )
    recompute_seconds = time.perf_counter() - started
    differing = session.sql(difference_sql(plan, engine)).count()
    return Measured(
        strategy=model.strategy,
        apply=model.apply,
        changed=changed,
        views=len(plan.views),
        statements=len(report.statements),
        rows=report.rows_read,
        lineitem_in_full=changed in _read_lineitem_in_full(plan),
        seconds=seconds,
        recompute_seconds=recompute_seconds,
        differing=differing,
    )


def _read_lineitem_in_full(plan: Plan) -> set[str]:
    """The inputs whose change makes a delta read all lineitems, be it through the change of an inner view."""
    reading = {
        changed
        for view in plan.views
        for name, when in reads_in_full(view)
        if name == "tpch.lineitem"
        for changed in when
    }
    return {name.split(".")[-1] for changed in reading for name in _inputs_of(plan, changed)}


def _inputs_of(plan: Plan, name: str) -> Iterator[str]:
    helper = plan.helper(name)
    if helper is None:
        yield name
        return
    for scan in scans(helper.core):
        yield from _inputs_of(plan, scan.relation)


def _print(measured: list[Measured]) -> None:
    heads = "changed,strategy,apply,views,statements,rows read,lineitem,s,recompute s,ratio"
    table = Table(*heads.split(","))
    for m in measured:
        rows = "n/a" if m.rows is None else f"{m.rows:,}"
        verdict = f"{m.ratio:.2f}" if not m.differing else f"{m.differing} ROWS DIFFER"
        reads = "in full" if m.lineitem_in_full else ""
        cells = (m.changed, m.strategy, m.apply, m.views, m.statements, rows, reads)
        table.add_row(*map(str, cells), f"{m.seconds:.1f}", f"{m.recompute_seconds:.1f}", verdict)
    Console().print(table)


if __name__ == "__main__":
    main()
