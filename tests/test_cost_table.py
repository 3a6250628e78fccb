"""What refreshes cost, model by model and change by change: statements, commits, rows read and written.

They are counted on DuckDB: rows of what a statement names, in the partitions that it names by literals. A plan that
secretly reads an input again, or writes what has not changed, changes the table. Statements are counted on Spark in
tests/test_statement_counts.py.
"""

from __future__ import annotations

import os
import re
from datetime import date, timedelta
from pathlib import Path

from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.refresh.engine import Row
from fixtures.models import Bench, plan_of, relation

TABLE = Path(__file__).parent / "fixtures" / "costs.txt"
HEADINGS = ("model", "change", "statements", "commits", "rows read", "rows written")

COLUMNS = {
    "sales": "id int, shop int, item int, day date, amount decimal(10,2)",
    "shops": "shop int, city string",
    "items": "item int, kind string",
}
FIRST = date(2024, 1, 1)
MODELS = {
    "sum": "select day, sum(amount) as total from sales group by day",
    "filtered": "select id, amount from sales where amount > 900",
    "join": "select s.day, c.city, sum(s.amount) as total from sales s join shops c on s.shop = c.shop "
    "group by s.day, c.city",
    "star": "select c.city, i.kind, sum(s.amount) as total, count(*) as n from sales s join shops c on s.shop = c.shop "
    "join items i on s.item = i.item group by c.city, i.kind",
    "left join": "select s.day, s.id, c.city from sales s left join shops c on s.shop = c.shop",
    "without": "select i.item, i.kind from items i where not exists (select 1 from sales s where s.item = i.item)",
    "nested": "select n, count(*) as shops from (select shop, count(*) as n from sales group by shop) group by n",
    "extrema": "select day, max(amount) as most, min(amount) as least from sales group by day",
    "distinct": "select day, count(distinct item) as items from sales group by day",
    "window": "select id, day, row_number() over (partition by day order by amount desc, id) as place from sales",
    "largest": "select id, amount from sales order by amount desc, id limit 5",
}
CHANGES: dict[str, dict[str, tuple[list[Row], list[Row]]]] = {
    "nothing": {},
    "new day": {"sales": ([(9001, 1, 2, date(2024, 12, 1), 5), (9002, 2, 3, date(2024, 12, 1), 7)], [])},
    "late and gone": {"sales": ([(9003, 3, 4, FIRST, 11)], [(7, 7, 7, FIRST + timedelta(days=7), 7)])},
    "dimension": {"shops": ([(4, "new")], [(4, "c4")]), "items": ([(4, "new")], [(4, "k1")])},
}


def _rows() -> dict[str, list[Row]]:
    return {
        "sales": [(n, n % 20, n % 30, FIRST + timedelta(days=n % 300), n) for n in range(1200)],
        "shops": [(n, f"c{n % 5}") for n in range(20)],
        "items": [(n, f"k{n % 3}") for n in range(40)],
    }


def _costs(name: str) -> list[tuple[str, ...]]:
    """A model through the changes, one after the other; exact after each."""
    used = [t for t in COLUMNS if re.search(rf"(from|join) {t}\b", MODELS[name])]
    bench = Bench(plan_of(MODELS[name], [relation(t, COLUMNS[t]) for t in used]), DuckDbEngine())
    for table, rows in _rows().items():
        if table in used:
            bench.engine.create_table(table, relation(table, COLUMNS[table]).columns, rows, change_feed=True)
    bench.refresh()
    found = []
    for change, moved in CHANGES.items():
        if moved and not moved.keys() & set(used):
            continue
        for table, (come, gone) in moved.items():
            if table in used:
                bench.engine.change(table, insert=come, delete=gone)
        before = bench.engine.commits(bench.plan.state_relation, None)[0].version
        report = bench.refresh()
        commits = [c for c in bench.engine.commits(bench.plan.state_relation, before) if c.version > before]
        written = sum(c.written or 0 for c in commits)
        cells = (len(report.statements), len(commits), report.rows_read, written)
        found.append((name, change, *map(str, cells)))
        bench.check()
    return found


def laid_out(rows: list[tuple[str, ...]]) -> list[str]:
    """The lines of a table."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [" | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def test_the_table_of_costs() -> None:
    """``FIVM_UPDATE=1`` writes it anew; review what has become dearer."""
    lines = laid_out([HEADINGS, *(row for name in MODELS for row in _costs(name))])
    if os.environ.get("FIVM_UPDATE"):
        TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    assert TABLE.read_text(encoding="utf-8").splitlines() == lines


def test_nothing_is_done_where_nothing_changed() -> None:
    lines = TABLE.read_text(encoding="utf-8").splitlines()[1:]
    rows = [[cell.strip() for cell in line.split("|")] for line in lines]
    assert len(rows) >= 20
    idle = [row[2:] for row in rows if row[1] == "nothing"]
    assert idle == [["0"] * 4] * len(MODELS)
    assert all(row[3] == "1" for row in rows if row[1] != "nothing"), "one commit each"
