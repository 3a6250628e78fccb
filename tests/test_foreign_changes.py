"""What others do to a model's tables between its refreshes, and inputs that are other tables by then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from cached_statements import cache_statements
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.text import explain
from fivm_dbt.refresh.engine import Row
from fivm_dbt.spark.formats import FORMAT, Commit, Touched
from fixtures.models import Bench, Interrupted, Interrupting

SUMS = "select g, count(*) as n, sum(x) as x from raw.r group by g"
FIRST: list[Row] = [(1, 10), (1, 20), (2, 5), (None, 1)]
BROKEN = "was changed by somebody else"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    cache_statements(monkeypatch)


def _bench(sql: str = SUMS, *, feed: bool = True, snapshot: bool = False, **meta: object) -> Bench:
    tables = {"raw.r": ("g int, x int", FIRST), "raw.s": ("g int, y int", FIRST[:2])}
    used = {name: table for name, table in tables.items() if name in sql}
    bench = Bench.of(sql, used, meta, feed=feed, recreated=("raw.r",) if snapshot else ())
    bench.refresh()
    bench.check()
    return bench


# States and views that others have changed, while no input moves


@pytest.mark.parametrize(
    "meta",
    [{}, {"fivm_refresh": "lazy"}, {"fivm_strategy": "reevaluate"}],
    ids=["eager", "lazy", "recomputed"],
)
def test_a_state_is_edited_while_nothing_moves(meta: dict[str, object]) -> None:
    bench = _bench(**meta)
    assert bench.refresh().action == "no change"
    bench.engine.run(f"DELETE FROM {bench.plan.state_relation} WHERE g = 1")
    report = bench.refresh()
    assert report.action in ("rebuilt", "recomputed")
    assert report.reason is not None
    assert report.reason.startswith(f"state table {bench.plan.state_relation} {BROKEN}")
    bench.check()
    assert bench.refresh().action == "no change"


def test_a_state_is_edited_before_a_change_that_cancels_out() -> None:
    bench = _bench()
    bench.engine.run("DELETE FROM analytics.m__fivm_state WHERE g = 1")
    bench.engine.change("raw.r", insert=[(7, 7)])
    bench.engine.change("raw.r", delete=[(7, 7)])
    report = bench.refresh()
    assert report.action == "rebuilt"
    assert report.reason is not None and BROKEN in report.reason
    bench.check()


def test_a_state_is_edited_and_must_not_be() -> None:
    bench = _bench(fivm_on_change="fail")
    bench.engine.run("DELETE FROM analytics.m__fivm_state WHERE g = 1")
    for _ in range(2):
        with pytest.raises(FivmError, match=BROKEN) as caught:
            bench.refresh()
        assert caught.value.code.number == "FIVM404"
    assert bench.refresh(full_refresh=True).action == "rebuilt"
    bench.check()


def test_a_state_is_laid_out_anew_by_others() -> None:
    bench = _bench()
    bench.engine.run(
        "CREATE OR REPLACE TABLE analytics.m__fivm_state AS SELECT * FROM analytics.m__fivm_state"
    )
    commits = bench.engine.tables.table("analytics.m__fivm_state").commits
    commits[-1] = replace(commits[-1], operation="OPTIMIZE")
    version = bench.engine.commits("analytics.m__fivm_state", None)
    assert bench.refresh().action == "no change"
    assert bench.engine.commits("analytics.m__fivm_state", None) == version


@pytest.mark.parametrize("meta", [{}, {"fivm_result": "factorized"}], ids=["listing", "factorized"])
def test_a_view_is_altered(meta: dict[str, object]) -> None:
    """Whatever the next run finds to do: nothing, or a change."""
    sql = "select r.g, r.x, s.y from raw.r join raw.s on r.g = s.g"
    bench = _bench(sql, **meta)
    for number, action in enumerate(("no change", "refreshed", "no change")):
        if action == "refreshed":
            bench.engine.change("raw.r", insert=[(1, 7)])
        bench.engine.run(f"CREATE OR REPLACE VIEW analytics.m AS SELECT g, x, x + {number} AS y FROM raw.r")
        report = bench.refresh()
        assert report.action == action
        if action == "no change":
            assert report.reason == "its view was dropped or altered, and has been put back"
        bench.check()
    assert bench.refresh().reason is None


# Inputs that are other tables, or have other columns, before an interrupted refresh is finished


def _statements(bench: Bench) -> int:
    counting = Interrupting(bench.engine, 10**6, after=False)
    bench.refresh(counting)
    return len(counting.statements)


def _cut(bench: Bench, number: int, *, after: bool) -> None:
    with pytest.raises(Interrupted):
        bench.refresh(Interrupting(bench.engine, number, after=after))


@pytest.mark.parametrize("feed", [True, False], ids=["feed", "versions"])
@pytest.mark.parametrize("snapshot", [True, False], ids=["snapshot", "table"])
def test_an_input_is_created_anew_before_a_refresh_is_finished(*, feed: bool, snapshot: bool) -> None:
    """Its versions are other ones, though some have the same numbers."""
    bench = _bench(feed=feed, snapshot=snapshot)
    bench.engine.change("raw.r", insert=[(1, 7), (3, 3)], delete=[(2, 5)])
    statements = _statements(bench)
    for after in (False, True):
        bench.engine.change("raw.r", insert=[(4, 4)])
        _cut(bench, statements, after=after)
        bench.engine.recreate("raw.r", [(1, 1), (9, 9)])
        for number in range(4):
            bench.engine.change("raw.r", insert=[(number, 1)])
        report = bench.refresh()
        was_told = "raw.r was dropped and created anew" in (report.reason or "")
        assert was_told == (report.action == "rebuilt")
        bench.check()
        assert bench.refresh().action == "no change"


def test_an_input_is_replaced_before_a_refresh_is_finished() -> None:
    """The feed of what was to be applied cannot be read any more, but both versions can."""
    bench = _bench()
    bench.engine.change("raw.r", insert=[(1, 7), (3, 3)], delete=[(2, 5)])
    statements = _statements(bench)
    bench.engine.change("raw.r", insert=[(4, 4)], delete=[(1, 7)])
    _cut(bench, statements, after=False)
    bench.engine.replace("raw.r", [(1, 1), (9, 9)])
    report = bench.refresh()
    assert (report.action, report.rolled_forward) == ("refreshed", False)
    assert [c.capture for c in report.inputs] == ["version difference"]
    bench.check()


# Which commits leave the columns as they are


@pytest.mark.parametrize(
    ("commit", "keeps"),
    [
        (Commit(3, "then", "WRITE"), True),
        (Commit(3, "then", "WRITE", overwrites=True), False),
        (Commit(3, "then", "STREAMING UPDATE", overwrites=True), False),
        (Commit(3, "then", "ADD COLUMNS"), True),
        *((Commit(3, "then", name), False) for name in ("DROP COLUMNS", "RENAME COLUMN", "CHANGE COLUMN")),
        *(
            (Commit(3, "then", name), False)
            for name in ("REPLACE TABLE", "RESTORE", "CLONE", "something new")
        ),
        (Commit(3, "then", "CREATE OR REPLACE TABLE AS SELECT"), False),
    ],
    ids=lambda value: value.operation if isinstance(value, Commit) else str(value),
)
def test_what_keeps_the_columns(commit: Commit, *, keeps: bool) -> None:
    assert (FORMAT.touched(commit) is not Touched.COLUMNS) is keeps


def test_versions_are_compared_across_a_replacement() -> None:
    bench = _bench()
    bench.engine.replace("raw.r", [*FIRST, (3, 3)])
    assert [c.capture for c in bench.refresh().inputs] == ["version difference"]
    bench.check()
    bench.engine.change("raw.r", insert=[(3, 4)])
    assert [c.capture for c in bench.refresh().inputs] == ["change feed"]
    bench.check()


class _Replacing:
    """An engine beside which somebody replaces a table, right before its change feed is read."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._is_done = False

    def stage(self, name: str, sql: str) -> None:
        self._replace(sql)
        self._bench.engine.stage(name, sql)

    def defer(self, name: str, sql: str, counts: Sequence[str]) -> None:
        self._replace(sql)
        self._bench.engine.defer(name, sql, counts)

    def _replace(self, sql: str) -> None:
        if "TABLE_CHANGES" in sql and not self._is_done:
            self._is_done = True
            self._bench.engine.replace("raw.r", [(8, 8)])

    def __getattr__(self, name: str) -> object:
        return getattr(self._bench.engine, name)


@pytest.mark.parametrize(
    ("sql", "deleted"),
    [(SUMS, 4), ("select a.g, sum(b.x) as x from raw.r a join raw.r b on a.g = b.g group by a.g", 0)],
    ids=["where it is read", "before"],
)
def test_a_table_is_replaced_while_its_feed_is_read(sql: str, deleted: int) -> None:
    """A change that was staged is compared up to the version that was seen; one that was not, up to the newest."""
    bench = _bench(sql)
    bench.engine.change("raw.r", insert=[(3, 4)])
    report = bench.refresh(_Replacing(bench))
    assert [(c.capture, c.inserted, c.deleted) for c in report.inputs] == [("version difference", 1, deleted)]
    bench.refresh()
    bench.check()


def test_an_own_snapshot_is_a_step_that_is_shown() -> None:
    """Before the write, with the head of which it is read next time."""
    shown = explain(_bench(snapshot=True).plan)
    kept = "-- the rows of raw.r that the next refresh compares with\nCREATE OR REPLACE TABLE"
    assert kept in shown.replace("\n  ", "\n")
    assert "compares with\n" not in explain(_bench().plan)
