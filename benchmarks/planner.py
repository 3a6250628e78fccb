"""How long the planner takes: ``python -m benchmarks.planner``.

Prints milliseconds of the processor for a six-way join, the first one of the process and then the median of 20, and
how they are spent. Then seconds of a project of 200 models, which are TPC-H's queries in turn, each planned once.
"""

from __future__ import annotations

import cProfile
import pstats
from collections.abc import Callable
from statistics import median
from time import process_time

import click
from rich.console import Console

from benchmarks.bars import Bar, bars_table
from benchmarks.compare.cases import Model
from benchmarks.queries.tpch_data import TABLES as TPCH_TABLES
from benchmarks.queries.tpch_suite import tpch_query
from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import Config
from fivm_dbt.delta import derive
from fivm_dbt.plan.layout.root import find_root
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.rewrite.pipeline import rewrite
from fivm_dbt.spark.check import check_statements
from fivm_dbt.sql.lower import lower
from fivm_dbt.sql.parse import parse

RUNS = 20

COLD_MS, PROJECT_SECONDS = 150, 5
"""Bars: of the first plan of a process, and of all models of a project."""

MODELS, QUERIES = 200, 22

TABLES = {
    "raw.lineitem": "orderkey bigint, partkey bigint, suppkey bigint, quantity decimal(12,2), price decimal(12,2), "
    "discount decimal(12,2), shipdate date",
    "raw.orders": "orderkey bigint, custkey bigint, orderdate date, priority string",
    "raw.customer": "custkey bigint, nationkey int, segment string",
    "raw.part": "partkey bigint, brand string",
    "raw.supplier": "suppkey bigint, nationkey int",
    "raw.nation": "nationkey int, name string",
}

SQL = """
with sales as (
    select l.*, l.price * (1 - l.discount) as revenue from raw.lineitem l where l.quantity > 0
)
select s.shipdate, n.name as nation, p.brand, c.segment, count(*) as lines, sum(s.revenue) as revenue,
       avg(s.quantity) as quantity
from sales s
join raw.orders o on s.orderkey = o.orderkey
join raw.customer c on o.custkey = c.custkey
join raw.part p on s.partkey = p.partkey
join raw.supplier u on s.suppkey = u.suppkey
join raw.nation n on u.nationkey = n.nationkey
where o.priority <> '5-LOW'
group by s.shipdate, n.name, p.brand, c.segment
having count(*) > 1
"""


def _catalog() -> Catalog:
    return Catalog.of(Relation(name, _columns(text)) for name, text in TABLES.items())


def _columns(text: str) -> tuple[Column, ...]:
    parts = text.replace("(12,2)", "(12.2)").split(", ")
    return tuple(Column.of(n, t.replace(".", ",")) for n, t in (part.split(" ", 1) for part in parts))


def _milliseconds(work: Callable[[], object]) -> float:
    work()
    times = []
    for _ in range(RUNS):
        start = process_time()
        work()
        times.append(1e3 * (process_time() - start))
    return median(times)


def _seconds_of_a_project() -> float:
    """All models planned one after the other, without a connection."""
    catalog = Catalog.of(Relation(f"tpch.{t.name}", t.columns) for t in TPCH_TABLES)
    names = {t.name: f"tpch.{t.name}" for t in TPCH_TABLES}
    models = [Model(f"m{n}", tpch_query(n % QUERIES + 1).sql) for n in range(MODELS)]
    requests = [ModelRequest(f"marts.{m.name}", m.over(names), catalog, Config()) for m in models]
    start = process_time()
    for request in requests:
        plan_model(request)
    return process_time() - start


@click.command()
@click.option("--profile", is_flag=True, help="Also print what dominates.")
def main(profile: bool) -> None:
    """Print the figures, and bars."""
    catalog = _catalog()
    request = ModelRequest("analytics.revenue", SQL, catalog, Config())

    def plan() -> Plan:
        return plan_model(request)

    start = process_time()
    planned = plan()
    cold = 1e3 * (process_time() - start)
    lowered = lower(SQL, catalog)
    query = rewrite(lowered.node)
    core = find_root(query, lowered.names).core
    whole = _milliseconds(plan)
    click.echo(
        f"join of {len(TABLES)}: {cold:.1f} ms for the first time, then {whole:.1f} ms (median of {RUNS})"
    )
    parts: dict[str, Callable[[], object]] = {
        "parse": lambda: parse(SQL),
        "parse and lower": lambda: lower(SQL, catalog),
        "rewrite": lambda: rewrite(lowered.node),
        "derive the delta": lambda: derive(core),
        "plan hash": lambda: plan().plan_hash,
        "check every statement (builds only)": lambda: check_statements(planned),
    }
    for name, work in parts.items():
        took = _milliseconds(work) - (whole if name == "plan hash" else 0)
        click.echo(f"  {name}: {max(0.0, took):.1f} ms")
    if profile:
        profiler = cProfile.Profile()
        profiler.runcall(lambda: [plan() for _ in range(RUNS)])
        pstats.Stats(profiler).sort_stats("tottime").print_stats(15)
    seconds = _seconds_of_a_project()
    click.echo(f"{MODELS} models: {seconds:.1f} s")
    bars = (
        Bar("milliseconds of the first plan", cold, COLD_MS),
        Bar(f"seconds of {MODELS} models", seconds, PROJECT_SECONDS),
    )
    Console(width=90).print(bars_table(bars))


if __name__ == "__main__":
    main()
