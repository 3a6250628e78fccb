"""An aggregate of all rows that a kept view repeats is computed anew from the view: they are not kept once more."""

from __future__ import annotations

import random

import pytest

from fivm_dbt.refresh.engine import Row
from fixtures.models import Bench

TABLES = "k int, v int"
GENERATORS = ("explode(sequence(1, total))", "explode_outer(if(total > 3, sequence(1, total), null))")
CALLS = (
    "max(copies.k) as most, min(copies.k) as least, count(distinct copies.k) as many, "
    "max_by(totals.k, copies.k * 100 + totals.k) as last"
)


def _rows(draw: random.Random, many: int) -> list[Row]:
    return [(draw.choice((None, 1, 2, 3)), draw.choice((None, 1, 1, 2, 3))) for _ in range(many)]


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize(("by", "views"), [("", 1), ("totals.k", 1), ("copies.k", 2)])
def test_repeated_rows_come_and_go(generator: str, by: str, views: int) -> None:
    """The groups are a view, and not their copies, unless these are to be found by what tells them apart."""
    query = (
        f"select {by + ',' if by else ''} {CALLS} from (select k, sum(v) as total from f group by k) as totals "
        f"lateral view {generator} copies as k {'group by ' + by if by else ''}"
    )
    draw = random.Random(f"{generator} {by}")
    rows = _rows(draw, 6)
    bench = Bench.of(query, {"f": (TABLES, rows)})
    assert len(bench.plan.helpers) == views
    bench.refresh()
    bench.check()
    for _ in range(12):
        gone = draw.sample(rows, draw.randint(0, min(3, len(rows))))
        come = _rows(draw, draw.randint(0, 3))
        bench.exchange("f", rows, come, gone)
    for row in list(rows):
        bench.exchange("f", rows, [], [row])


def test_nobody_looks_for_a_change_that_is_one() -> None:
    """An outer generator has a row for each: a change of the view is a change of the copies, without a query for it."""
    texts = {}
    for generator in GENERATORS:
        bench = Bench.of(
            f"select count(distinct n) as many, max(n) as most from (select k, sum(v) as total from f group by k) as t "
            f"lateral view {generator} copies as n",
            {"f": (TABLES, [(1, 4)])},
        )
        texts[generator] = {key_set.name for view in bench.plan.views for key_set in view.key_sets}
    assert [bool(texts[generator]) for generator in GENERATORS] == [True, False]
