"""Dropped parts of inputs: what was computed from them stays, as if their rows had never been deleted."""

from __future__ import annotations

import random
from collections import Counter
from datetime import date, datetime, timedelta

import pytest

from fivm_dbt.catalog import Relation, Retention, TableStatistics
from fivm_dbt.delta.term import scans
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.text import explain
from fivm_dbt.operations.drop_parts import OldParts, drop_old_parts, old_parts
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.model.inputs import Reader
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.oracle import runnable_sql
from fivm_dbt.sql.splice import splice_inputs
from fixtures.models import Bench, Interrupted, Interrupting, plan_of, relation
from fixtures.runs import by_run, fast_only

DAYS = Retention("ts", Length.of("day"), timedelta(days=3))
START = datetime(2024, 3, 1)
COLUMNS = "k string, v int, ts timestamp"

QUERIES = {
    "sums": "select k, sum(v) as s, count(*) as n from m group by k",
    "largest": "select k, max(v) as top, min(v) as low from m group by k",
    "by hour": "select date_trunc('hour', ts) as h, max(v) as top from m group by date_trunc('hour', ts)",
    "by day": "select cast(ts as date) as d, k, avg(v) as a from m group by cast(ts as date), k",
    "rows": "select k, v, ts from m where v > 1",
    "distinct": "select distinct k, v from m",
    "counted once": "select count(distinct v) as n from m",
    "joined": "select m.k, m.v, d.name from m left join d on m.k = d.k",
    "other side": "select d.name, count(m.v) as n from d left join m on d.k = m.k group by d.name",
    "without": "select d.k from d where not exists (select 1 from m where m.k = d.k)",
    "previous": "select k, ts, v, lag(v) over (partition by k order by ts, v) as before from m",
    "sessions": "select k, session_window.start as b, sum(v) as s, max(v) as top from m "
    "group by k, session_window(ts, '1 day')",
    "by window": "select k, window.start as b, max(v) as top from m group by k, window(ts, '6 hours', '2 hours')",
    "running": "select k, ts, v, sum(v) over (partition by k order by ts) as s from m",
    "first ones": "select k, v from m order by v desc, k limit 4",
    "above average": "select k, v from m where v > (select avg(v) from m)",
    "patterns": "select * from m match_recognize (partition by k order by ts measures count(*) as n, sum(b.v) as s "
    "pattern (a b+) define b as b.v <> a.v) as f",
    "nested": "select n, count(*) as keys from (select k, count(*) as n from m group by k) as c group by n",
}


FEW = TableStatistics.of({"m": 100, "d": 4}, {("d", "name"): 3, ("m", "k"): 3, ("d", "k"): 4})


def _bench(
    sql: str,
    meta: dict[str, object] | None = None,
    retention: Retention | None = DAYS,
    measured: TableStatistics | None = None,
) -> Bench:
    relations = [
        relation("m", COLUMNS, retention=retention),
        relation("d", "k string, name string"),
    ]
    bench = Bench(plan_of(sql, relations, meta, measured))
    bench.engine.create_table("m", relations[0].columns, [], change_feed=True)
    bench.engine.create_table("m_ever", relations[0].columns, [], change_feed=True)
    names: list[Row] = [("a", "x"), ("b", "y"), ("c", "x"), ("z", "z")]
    bench.engine.create_table("d", relations[1].columns, names, change_feed=True)
    return bench


def _change(bench: Bench, insert: list[Row] | None = None, delete: list[Row] | None = None) -> None:
    """A change that counts, also for the table of what has ever been there."""
    for name in ("m", "m_ever"):
        bench.engine.change(name, insert=insert or [], delete=delete or [])


def _drop(bench: Bench, before: date) -> None:
    """What the owner of the table does: rows that are old enough go, in the table alone."""
    bench.engine.run(f"delete from m where ts < timestamp '{before}'")


def _check(bench: Bench) -> None:
    """The model is what its text gives for all rows that have ever been there, but for those really deleted."""
    ever = splice_inputs(runnable_sql(bench.plan), {"m": "(SELECT * FROM m_ever)"})
    columns = ", ".join(f"`{c.name}`" for c in bench.plan.output)
    expected = Counter(bench.engine.query(f"select {columns} from ({ever}) as expected"))
    assert bench.shown() == expected


def _at(day: float) -> datetime:
    return START + timedelta(days=day)


@pytest.mark.parametrize("name", QUERIES)
def test_small_inputs_are_copied_where_parts_are_dropped(name: str) -> None:
    """A refresh could read them as fast, but not what is no more there."""
    few, unknown = (_bench(QUERIES[name], measured=measured).plan for measured in (FEW, None))
    readers = [
        [v.core for v in p.views if any(s.relation == "m" for s in scans(v.core))] for p in (few, unknown)
    ]
    assert readers[0] == readers[1]


@pytest.mark.parametrize("name", fast_only(list(QUERIES)[:16:2], QUERIES.keys()))
def test_dropped_parts_are_no_deletions(name: str) -> None:
    bench = _bench(QUERIES[name], measured=FEW)
    bench.refresh()
    _change(bench, [("a", 5, _at(0.1)), ("a", 2, _at(0.5)), ("b", 9, _at(1.2)), (None, None, _at(1.3))])
    bench.refresh()
    _change(bench, [("a", 3, _at(8.1)), ("b", 3, _at(8.2)), ("c", 4, None)], [("a", 2, _at(0.5))])
    bench.refresh()
    _check(bench)
    _drop(bench, _at(5).date())
    report = bench.refresh()
    _check(bench)
    assert report.action == "no change"
    assert bench.finished.detail["dropped"] == {"m": "19783..19784"}
    # What is still there is maintained as before, and a late row of a dropped day comes on top.
    _change(bench, [("a", 1, _at(8.3)), ("b", 7, _at(1.7))], [("b", 3, _at(8.2)), ("c", 4, None)])
    bench.refresh()
    _check(bench)
    _drop(bench, _at(5).date())
    bench.refresh()
    _check(bench)


@pytest.mark.parametrize("seed", by_run(range(2), more=range(2, 16), long=range(16, 40)))
def test_random_histories(seed: int) -> None:
    pick = random.Random(seed)
    bench = _bench(QUERIES[list(QUERIES)[seed % len(QUERIES)]])
    bench.refresh()
    live: list[Row] = []
    dropped_to = 0
    for day in range(1, 10):
        come: list[Row] = [
            (pick.choice(["a", "b", None]), pick.choice([None, 1, 2, 5]), _at(day - pick.random() * 5))
            for _ in range(pick.choice((0, 1, 8)))
        ]
        come += [("c", 1, _at(day)), ("c", pick.randint(1, 9), None)]
        # What is deleted for another reason than its age is not old enough when the model sees it.
        young = [row for row in live if row[2] is None or row[2] >= _at(max(0, day - 2))]
        is_refreshed = pick.random() < 0.7
        gone = pick.sample(young, min(len(young), pick.choice((0, 1, 3)))) if is_refreshed else []
        _change(bench, come, gone)
        live += come
        for row in gone:
            live.remove(row)
        if not is_refreshed:
            continue
        bench.refresh()
        _check(bench)
        if pick.random() < 0.5 and day > 3:
            # Together with the next day's changes, which may bring late rows of the days that were dropped.
            dropped_to = max(dropped_to, pick.randint(1, day - 3))
            _drop(bench, _at(dropped_to).date())
            live = [row for row in live if row[2] is None or row[2] >= _at(dropped_to)]
    bench.refresh()
    _check(bench)


def test_a_deletion_is_one_in_young_parts_and_where_rows_are_left() -> None:
    bench = _bench(QUERIES["sums"])
    _change(
        bench, [("a", 1, _at(0)), ("a", 2, _at(0.5)), ("b", 4, _at(1)), ("b", 8, _at(6)), ("a", 3, _at(9))]
    )
    bench.refresh()
    # One row of an old day of which another is left, and all rows of a young one.
    _change(bench, delete=[("a", 1, _at(0)), ("a", 3, _at(9))])
    bench.refresh()
    _check(bench)
    assert "dropped" not in bench.finished.detail
    bench.engine.change("m", delete=[("a", 2, _at(0.5))])
    report = bench.refresh()
    assert bench.shown() == Counter([("a", 2, 1), ("b", 12, 2)])
    assert (report.action, bench.finished.detail["dropped"]) == ("no change", {"m": "19783"})


def test_no_build_in_the_place_of_a_refresh() -> None:
    """Once parts have been dropped, a refresh that takes long stays one: a build would lose what they had."""
    bench = _bench(QUERIES["sums"])
    _change(bench, insert=[("a", n, _at(n)) for n in range(6)])
    bench.refresh()
    bench.took(10.0)
    _change(bench, insert=[("a", 7, _at(6))])
    bench.refresh()
    bench.took(30.0)
    _drop(bench, _at(3).date())
    _change(bench, insert=[("a", 8, _at(6))])
    assert bench.refresh().action == "refreshed"
    bench.took(30.0)
    _change(bench, insert=[("b", 9, _at(6))])
    report = bench.refresh()
    assert (report.action, report.expected) == ("refreshed", (30.0, 10.0))
    _check(bench)


def test_taken_for_deleted() -> None:
    bench = _bench(QUERIES["largest"], {"fivm_dropped_parts": "retract"})
    _change(bench, [("a", 5, _at(0)), ("a", 2, _at(8))])
    bench.refresh()
    _drop(bench, _at(5).date())
    bench.refresh()
    bench.check()
    assert bench.shown() == Counter([("a", 2, 2)])


def test_the_time_is_read_where_the_model_does_not() -> None:
    bench = _bench(QUERIES["sums"])
    assert [c.name for c in bench.plan.input("m").columns] == ["k", "v", "ts"]
    assert [c.name for c in _bench(QUERIES["sums"], retention=None).plan.input("m").columns] == ["k", "v"]


def test_explained() -> None:
    text = explain(_bench(QUERIES["sums"]).plan)
    assert "parts of ts, a day long, are dropped when older than 3 days: their results stay" in text
    assert "are dropped" not in explain(_bench(QUERIES["sums"], {"fivm_dropped_parts": "retract"}).plan)


def test_statements_are_few() -> None:
    """Nothing is asked of a change that takes no rows away, and three small questions of one that does."""
    asked = {}
    for retention in (DAYS, None):
        bench = _bench(QUERIES["sums"], retention=retention)
        _change(bench, [("a", 5, _at(0)), ("a", 2, _at(8))])
        bench.refresh()
        counts = []
        for come, gone in (([("a", 4, _at(9))], []), ([], [("a", 4, _at(9))])):
            _change(bench, come, gone)
            counts.append(len(bench.refresh().statements))
        asked[retention] = counts
    assert [a - b for a, b in zip(asked[DAYS], asked[None], strict=True)] == [0, 2]


@pytest.mark.parametrize("meta", [{}, {"fivm_on_change": "rebuild"}])
def test_no_rebuild_that_nobody_asked_for(meta: dict[str, object]) -> None:
    bench = _bench(QUERIES["sums"], meta)
    _change(bench, [("a", 5, _at(0)), ("a", 2, _at(8))])
    bench.refresh()
    _drop(bench, _at(5).date())
    bench.refresh()
    before = bench.shown()
    bench.with_plan("select k, sum(v) as s, count(v) as n from m group by k", meta)
    with pytest.raises(FivmError) as caught:
        bench.refresh()
    assert caught.value.code.number == "FIVM206"
    assert "m[19783]" in str(caught.value)
    assert bench.shown() == before
    bench.refresh(full_refresh=True)
    bench.check()
    assert bench.shown() == Counter([("a", 2, 1)])
    assert "dropped" not in bench.finished.detail


@pytest.mark.parametrize("after", fast_only(["after"], {"before": False, "after": True}))
def test_cut_off_at_every_statement(after: bool) -> None:
    def prepared() -> Bench:
        bench = _bench(QUERIES["largest"])
        _change(bench, [("a", 5, _at(0)), ("b", 7, _at(1)), ("a", 2, _at(8)), ("b", 1, _at(8))])
        bench.refresh()
        _drop(bench, _at(5).date())
        _change(bench, [("a", 3, _at(9))], [("b", 1, _at(8))])
        return bench

    bench = prepared()
    whole = Interrupting(bench.engine, 0, after=after)
    bench.refresh(whole)
    for number in range(1, len(whole.statements) + 1):
        bench = prepared()
        with pytest.raises(Interrupted):
            bench.refresh(Interrupting(bench.engine, number, after=after))
        bench.refresh()
        _check(bench)
        assert bench.finished.detail["dropped"] == {"m": "19783..19784"}


@pytest.mark.parametrize("feed", ["version difference", "snapshot"])
def test_without_a_change_feed(feed: str) -> None:
    is_seed = feed == "snapshot"
    source = relation("m", COLUMNS, retention=DAYS, is_recreated=is_seed)
    bench = Bench(plan_of(QUERIES["largest"], [source]))
    for name in ("m", "m_ever"):
        bench.engine.create_table(name, source.columns, [], change_feed=False)
    _change(bench, [("a", 5, _at(0)), ("a", 2, _at(8))])
    bench.refresh()
    _drop(bench, _at(5).date())
    report = bench.refresh()
    assert [i.capture for i in report.inputs] == [feed]
    _check(bench)


@pytest.mark.parametrize(
    ("type_", "text"), [("date", "2024-03-{:02}"), ("timestamp_ntz", "2024-03-{:02} 12:00:00")]
)
@pytest.mark.parametrize("part", ["day", "week", "month"])
def test_other_times(type_: str, text: str, part: str) -> None:
    retention = Retention("ts", Length.of(part, "America/New_York"), timedelta(days=20))
    source = relation("m", f"k string, v int, ts {type_}", retention=retention)
    bench = Bench(plan_of("select sum(v) as s from m", [source]))
    read = date.fromisoformat if type_ == "date" else datetime.fromisoformat
    rows: list[Row] = [("a", day, read(text.format(day))) for day in (1, 2, 28, 29)]
    rows.append(("a", 100, read(text.format(1).replace("-03-", "-06-"))))
    bench.engine.create_table("m", source.columns, rows, change_feed=True)
    bench.refresh()
    bench.engine.run("delete from m where v < 5")
    bench.refresh()
    # Of the month, March, rows are left.
    assert bench.shown() == Counter([(160 if part != "month" else 157,)])
    bench.engine.run("delete from m where v < 50")
    bench.refresh()
    assert bench.shown() == Counter([(160 if part != "month" else 157,)])


class TestComparedWithARecompute:
    def test_rows_of_parts_that_are_there(self) -> None:
        bench = _bench("select cast(ts as date) as d, count(*) as n from m group by cast(ts as date)")
        _change(bench, [("a", 5, _at(0)), ("a", 2, _at(8)), ("b", 2, _at(9))])
        bench.refresh()
        _drop(bench, _at(5).date())
        bench.refresh()
        question = difference_sql(bench.plan, bench.engine)
        assert bench.engine.query(question) == []
        for day, wrong in ((START.date(), 0), (_at(9).date(), 2)):
            state = bench.plan.state_relation
            bench.tamper(f"update {state} set __fivm_count = 7 where d = date '{day}'")
            assert len(bench.engine.query(question)) == wrong

    def test_no_time_in_the_result(self) -> None:
        bench = _bench(QUERIES["sums"])
        _change(bench, [("a", 5, _at(0)), ("a", 2, _at(8))])
        bench.refresh()
        assert bench.engine.query(difference_sql(bench.plan, bench.engine)) == []
        _drop(bench, _at(5).date())
        bench.refresh()
        with pytest.raises(FivmError, match="cannot be compared") as caught:
            difference_sql(bench.plan, bench.engine)
        assert caught.value.code.number == "FIVM206"


class TestRefused:
    @pytest.mark.parametrize("policy", ["full", "auto"])
    def test_a_recompute(self, policy: str) -> None:
        source: Relation = relation("m", COLUMNS, retention=DAYS)
        sql = "select k, rand() as r from m" if policy == "auto" else QUERIES["sums"]
        with pytest.raises(FivmError) as caught:
            plan_of(sql, [source], {"fivm_policy": policy})
        assert caught.value.code.number == "FIVM206"
        plan_of(sql, [source], {"fivm_policy": policy, "fivm_dropped_parts": "retract"})


class TestDropping:
    """``fivm_drop_parts``: old parts of a table go once all models over it have seen them."""

    LATE = timedelta()

    def _built(self) -> Bench:
        bench = _bench(QUERIES["sums"])
        _change(
            bench, [("a", 5, _at(0)), ("b", 7, _at(4.9)), ("b", 1, _at(6)), ("a", 2, _at(8)), ("c", 1, None)]
        )
        bench.refresh()
        return bench

    def _found(
        self, bench: Bench, lateness: timedelta = LATE, readers: tuple[str, ...] = ("analytics.m",)
    ) -> OldParts:
        return old_parts(
            bench.engine, bench.plan.input("m").relation, lateness, [Reader.of(r) for r in readers]
        )

    def test_what_all_have_seen(self) -> None:
        bench = self._built()
        found = self._found(bench)
        assert str(found) == "m: 6 parts (19783..19788), before 2024-03-07 00:00 UTC"
        assert list(drop_old_parts(bench.engine, [found])) == [found]
        assert {row[1] for row in bench.engine.query("select * from m")} == {1, 2}
        bench.refresh()
        _check(bench)
        # Another time there is nothing to do, and what has been seen is all that there is.
        assert not self._found(bench).parts

    def test_a_model_that_has_not_seen_the_newest_rows(self) -> None:
        bench = self._built()
        _change(bench, [("a", 9, _at(0.5))])
        found = self._found(bench, readers=("analytics.m", "analytics.never_built"))
        assert str(found).endswith(
            "kept, because analytics.m, analytics.never_built did not see the newest version"
        )
        assert list(drop_old_parts(bench.engine, [found])) == []
        bench.refresh()
        assert self._found(bench).can_go

    def test_late_rows_may_still_come(self) -> None:
        bench = self._built()
        assert self._found(bench, timedelta(days=7)).parts == Intervals.of((19783, 19784))
        assert str(self._found(bench, timedelta(days=70))) == "m: no part is that old"

    def test_an_empty_table(self) -> None:
        bench = _bench(QUERIES["sums"])
        bench.refresh()
        assert not self._found(bench).can_go
