"""What the last refreshes of a model have done, by the history of its states."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from datetime import timedelta

from fivm_dbt.naming import state_of
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.refresh.heads import now
from fivm_dbt.refresh.history import Refreshed, history, table_of
from fixtures.models import Bench
from viewdf_bench import Bench as PartBench
from viewdf_bench import Model, Table, at, minutes

SUMS = "select k, sum(x) as s, count(*) as n from r group by k"
STATE = state_of("analytics.m")
NESTED = "select n, count(*) as c from (select k, count(*) as n from r group by k) group by n"


def _bench(sql: str = SUMS, **meta: object) -> Bench:
    return Bench.of(sql, {"r": ("k int, x int", [(1, 1), (1, 2), (2, 3)])}, meta)


def _told(bench: Bench, limit: int = 20) -> list[tuple[object, ...]]:
    found = history(bench.engine, "analytics.m", STATE, limit)
    return [(r.number, r.action, r.changed, r.rows, r.reason) for r in found]


def test_what_each_refresh_has_done_newest_first() -> None:
    bench = _bench()
    assert history(bench.engine, "analytics.m", STATE, 20) == []
    bench.refresh()
    bench.engine.change("r", insert=[(1, 5), (3, 5)], delete=[(2, 3)])
    bench.refresh()
    bench.engine.change("r", insert=[(7, 7)])
    bench.engine.change("r", delete=[(7, 7)])
    bench.refresh()
    assert bench.refresh().action == "no change"
    bench.with_plan(sql=f"{SUMS} having count(*) > 1")
    bench.refresh()
    changed = "the model's SQL changed; presentation changed"
    assert _told(bench) == [
        (4, "rebuilt", "", None, changed),
        (3, "no change", "", None, ""),
        (2, "refreshed", "r +2 -1", 3, ""),
        (1, "built", "", None, ""),
    ]
    assert _told(bench, 2) == _told(bench)[:2]
    assert [r.model for r in history(bench.engine, "analytics.m", STATE, 1)] == ["analytics.m"]


def test_a_recomputed_model_tells_too() -> None:
    bench = _bench(fivm_policy="full")
    bench.refresh()
    bench.engine.change("r", insert=[(1, 5)])
    bench.refresh()
    assert _told(bench) == [(2, "recomputed", "", None, ""), (1, "built", "", None, "")]


def test_a_refresh_of_several_commits_is_one() -> None:
    bench = _bench(NESTED, fivm_merge="per_partition", fivm_apply="merge", fivm_buckets=4)
    bench.refresh()
    for number in range(5):
        bench.engine.change("r", insert=[(i, number) for i in range(10)])
        bench.refresh()
    commits = len(bench.engine.commits(bench.plan.state_relation, 0))
    assert commits > 6 + 2
    assert [told[0] for told in _told(bench)] == [6, 5, 4, 3, 2, 1]
    assert [told[0] for told in _told(bench, 3)] == [6, 5, 4]


def test_commits_of_others_are_left_out() -> None:
    bench = _bench()
    bench.refresh()
    bench.engine.run(f"UPDATE {bench.plan.state_relation} SET __fivm_count = 7 WHERE k = 1")
    bench.refresh()
    (rebuilt, built) = _told(bench)
    assert rebuilt[:2] == (2, "rebuilt") and "changed by somebody else" in str(rebuilt[-1])
    assert built[:2] == (1, "built")


def test_parts_that_were_computed() -> None:
    source = Table(
        "m",
        [("src", "string"), ("ts", "timestamp")],
        [("s", minutes("10:00", i)) for i in range(9)],
        TimeParts("ts", Length.of("minute"), lateness=timedelta()),
    )
    counts = Model(
        "counts", "select src, count(*) as n from {m:j} group by src", None, {"fivm_start": "oldest"}
    )
    with closing(PartBench([source], [counts])) as bench:
        bench.run()
        bench.change("m", [("s", at("10:09"))])
        bench.run()
        new, built = history(bench.bench.engine, "counts", state_of("counts"), 20)
    assert (built.action, new.action) == ("built", "refreshed")
    assert new.changed.startswith("m +1 -0, parts ") and new.changed.endswith(" computed")


def test_seconds_and_sizes_are_those_of_the_commits() -> None:
    """From the begin of a refresh to its commit. A state is as large as the next refresh found it, or as it is now."""
    bench = _bench()
    bench.refresh()
    bench.engine.change("r", insert=[(1, 5)])
    bench.refresh()
    commits = bench.engine.tables.table(bench.plan.state_relation).commits
    assert [r.seconds for r in history(bench.engine, "analytics.m", STATE, 9)] == [
        None,
        None,
    ], "another clock"
    commits[-1] = replace(commits[-1], timestamp=now())
    newest, first = history(bench.engine, "analytics.m", STATE, 9)
    assert newest.seconds is not None and newest.seconds > 0 and first.seconds is None
    assert newest.bytes == bench.engine.size(bench.plan.state_relation)
    assert first.bytes == bench.finished.detail["state_bytes"]


def test_lines_under_headings() -> None:
    refreshed = Refreshed(
        "a.daily", 12, "2024-05-01T12:00:00+00:00", "refreshed", "r +1 -0", 3, 2.04, (1.5, 9), 1500, "why"
    )
    assert table_of([refreshed]) == [
        "model  refresh  at (UTC)             action     changed  rows  seconds  expected   state bytes  reason",
        "daily  12       2024-05-01 12:00:00  refreshed  r +1 -0  3     2.0      1.5 / 9.0  1,500        why",
    ]
