"""How long the planner takes for a six-way join, warm: ``python benchmarks/planner.py [--profile]``.

Prints the median of 20 runs in milliseconds, and how they are spent. The target is 150 ms.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
from collections.abc import Callable
from statistics import median
from time import perf_counter

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

RUNS, TARGET = 20, 150

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
        start = perf_counter()
        work()
        times.append(1e3 * (perf_counter() - start))
    return median(times)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", action="store_true", help="also print what dominates")
    options = parser.parse_args()
    catalog = _catalog()
    request = ModelRequest("analytics.revenue", SQL, catalog, Config())

    def plan() -> Plan:
        return plan_model(request)

    lowered = lower(SQL, catalog)
    query = rewrite(lowered.node)
    core = find_root(query, lowered.names).core
    planned = plan()
    whole = _milliseconds(plan)
    print(f"planner, join of {len(TABLES)}: {whole:.1f} ms (median of {RUNS}, warm; target {TARGET} ms)")
    parts: dict[str, Callable[[], object]] = {
        "parse": lambda: parse(SQL),
        "parse and lower": lambda: lower(SQL, catalog),
        "rewrite": lambda: rewrite(lowered.node),
        "derive the delta": lambda: derive(core),
        "plan hash": lambda: plan().plan_hash,
        "check every statement (builds only)": lambda: check_statements(planned),
    }
    for name, work in parts.items():
        time = _milliseconds(work) - (whole if name == "plan hash" else 0)
        print(f"  {name}: {max(0.0, time):.1f} ms")
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(lambda: [plan() for _ in range(RUNS)])
        pstats.Stats(profile).sort_stats("tottime").print_stats(15)


if __name__ == "__main__":
    main()
