"""``fivm_expose: table``: the model is a table, which follows its states by what has changed."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter

import pytest

from fivm_dbt.refresh.engine import Row
from fixtures.models import Bench
from fixtures.runs import by_run

TABLE: dict[str, object] = {"fivm_expose": "table"}
COLUMNS = "k int, x int, d date"
QUERIES = {
    "groups": "select k, sum(x) as s, count(*) as n from r group by k",
    "rows, some of them often": "select k, x from r where x is null or x <> 2",
    "groups that look the same": "select sum(x) as s from r group by k",
    "one row": "select sum(x) as s from r",
    "having": "select k, count(*) as n from r group by k having count(*) > 1",
    "nested": "select n, count(*) as c from (select k, count(*) as n from r group by k) as g group by n",
    "bounded by a date": "select d, k, x from r",
    "nothing to bound it": "select cast(x as string) as t from r",
    "recomputed": "select k, x from r",
}


def _bench(name: str, rows: list[Row]) -> Bench:
    meta = {**TABLE, **({"fivm_policy": "full"} if name == "recomputed" else {})}
    bench = Bench.of(QUERIES[name], {"r": (COLUMNS, rows)}, meta)
    bench.refresh()
    bench.check()
    return bench


def _row(rng: random.Random) -> Row:
    day = rng.choice((None, dt.date(2024, 1, 1), dt.date(2024, 2, 3)))
    return (rng.choice((1, 2, 3, None)), rng.choice((None, 0, 1, 2, 3)), day)


@pytest.mark.parametrize("seed", by_run(range(3), more=range(3, 8), long=range(8, 16)))
@pytest.mark.parametrize("name", QUERIES)
def test_it_is_what_the_states_show(name: str, seed: int) -> None:
    rng = random.Random(f"{name} {seed}")
    rows = [_row(rng) for _ in range(rng.randrange(12))]
    bench = _bench(name, rows)
    assert "analytics.m" in bench.engine.tables
    for _ in range(5):
        gone = rng.sample(rows, min(len(rows), rng.randrange(4)))
        come = [_row(rng) for _ in range(rng.randrange(4))]
        bench.exchange("r", rows, come, gone)
        bench.refresh()
        bench.check()


ROWS: list[Row] = [(1, 1, None), (1, 2, None), (2, 3, None), (2, 3, None)]


def _version(bench: Bench) -> int:
    return bench.engine.commits("analytics.m", None)[0].version


def test_only_what_has_changed_is_written() -> None:
    bench = _bench("groups", ROWS)
    report = bench.changed("r", [(1, 5, None)])
    assert [s.split()[0] for s in report.statements if "analytics.m " in s][-1] == "MERGE"
    copied, after = _version(bench), bench.engine.tables.table("analytics.m")
    assert (copied, after.commits[-1].operation) == (1, "MERGE")
    report = bench.refresh()
    assert report.action == "no change" and _version(bench) == copied
    # What groups do not show changes nothing in the table.
    bench.changed("r", [(2, 0, dt.date(2024, 1, 1))], [])
    assert _version(bench) == copied + 1


def test_a_run_that_was_cut_off_before_the_table_is_completed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = _bench("rows, some of them often", ROWS)
    bench.engine.change("r", insert=[(1, 1, None), (7, 7, None)], delete=[(2, 3, None)])

    def stop(*_: object) -> bool:
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr("fivm_dbt.refresh.publish.bring_up_to_date", stop)
        with pytest.raises(InterruptedError):
            bench.refresh()
    assert bench.shown() != bench.recomputed(), "the states have it, and the table has not"
    assert bench.refresh().action == "no change"
    bench.check()
    assert bench.engine.tables.table("analytics.m").commits[-1].operation == "MERGE"


@pytest.mark.parametrize(
    "statement", ["delete from analytics.m where k = 1", "insert into analytics.m values (9, 9, 9)"]
)
def test_what_somebody_else_has_written_is_written_over(statement: str) -> None:
    bench = _bench("groups", ROWS)
    bench.engine.run(statement)
    bench.refresh()
    bench.check()
    assert bench.engine.tables.table("analytics.m").commits[-1].operation.startswith("CREATE OR REPLACE")


def test_a_table_that_is_gone_is_made_again() -> None:
    bench = _bench("groups", ROWS)
    bench.engine.run("drop table analytics.m")
    bench.refresh()
    bench.check()


def test_a_rebuild_copies_the_table() -> None:
    bench = _bench("groups", ROWS)
    bench.with_plan("select k, max(x) as s, count(*) as n from r group by k", TABLE)
    assert bench.refresh().action == "rebuilt"
    bench.check()


def test_its_states_are_not_appended_to() -> None:
    """The change feed of the states has to tell what has changed, and others read the table by its own."""
    bench = Bench.of(QUERIES["groups"], {"r": (COLUMNS, ROWS)}, {**TABLE, "fivm_apply": "append"})
    bench.refresh()
    bench.changed("r", [(1, 5, None)])
    assert bench.plan.is_read and bench.plan.read_by is None


def test_rows_are_counted_as_bags() -> None:
    bench = _bench("groups that look the same", [(1, 3, None), (2, 3, None), (3, 1, None)])
    assert bench.shown() == Counter({(3,): 2, (1,): 1})
    bench.changed("r", [(4, 3, None)], [(3, 1, None)])
    assert bench.shown() == Counter({(3,): 3})
