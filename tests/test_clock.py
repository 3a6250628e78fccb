"""Models that read the clock: rows come and go with time, refreshes at rest write nothing, and times are recorded."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta, timezone

import pytest

from fivm_dbt.engines.spark.engine import Answer, SparkEngine
from fivm_dbt.ir.clock import Clock
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.engine import Row
from fivm_dbt.sql.splice import splice_clock
from fivm_dbt.testing.replay import replay_scenario
from fivm_dbt.testing.scenario import Scenario
from fixtures.models import Bench, Interrupted, Interrupting
from fixtures.runs import by_run
from generator.differential import tiny_workbench

START = datetime(2024, 5, 1, 12)
EVENTS = "k int, d date, t timestamp, x int"
CUSTOMERS = "k int, since date, days int, name string"

QUERIES = {
    "two bounds": "select k, d, x from e where d between date_sub(current_date(), 2) and current_date",
    "hours": "select k, sum(x) as s, count(*) as n from e where t > now() - interval 30 hours group by k",
    "a local time": "select k, x from e where t > localtimestamp() - interval 1 day",
    "both clocks": "select k from e where d >= current_date() or t < current_timestamp",
    "the month": "select k, count(*) as n from e where d >= date_trunc('month', current_date) group by k",
    "a day that is not always there": (
        "select k, x from e where d >= make_date(year(current_date) , 4, day(current_date))"
    ),
    "not": "select k, x from e where not (d > current_date and x > 0)",
    "equal": "select k, x from e where d = current_date() or t = now()",
    "not equal": "select k, x from e where d <> current_date()",
    "null-safe": "select k, x from e where d <=> current_date()",
    "a list": "select k, x from e where current_date in (d, date_add(d, 1))",
    "by a column": "select e.k, x from e join c on e.k = c.k where date_add(d, days) > current_date()",
    "no column": "select k, x from e where current_date() > date'2024-05-03'",
    "on both sides of a join": (
        "select c.name, sum(x) as s from e join c on e.k = c.k and c.since <= current_date() "
        "where e.d >= current_date() - interval 1 day group by c.name"
    ),
    "self-join": (
        "select a.k, a.x, b.x as y from e a join e b on a.k = b.k where a.d >= current_date and b.d < current_date"
    ),
    "left join": (
        "select c.name, count(e.k) as n from c left join e on e.k = c.k and e.d >= current_date - 1 group by c.name"
    ),
    "left join, WHERE": "select c.name, e.x from c left join e on e.k = c.k where e.d is null or e.d > current_date",
    "right join": "select c.name, e.x from e right join c on e.k = c.k and e.d >= current_date - 1",
    "full join": (
        "select c.name, e.x from (select * from e where d >= current_date) e "
        "full join (select * from c where since < current_date) c on e.k = c.k"
    ),
    "left join lateral": (
        "select c.name, z.x from c left join lateral (select x from e where e.k = c.k "
        "and date_add(e.d, c.days) > current_date()) z"
    ),
    "the kept side": (
        "select z.k, e.x from (select k, since > current_date as later from c) z "
        "left join e on e.k = z.k and z.later"
    ),
    "exists": "select name from c where exists (select 1 from e where e.k = c.k and e.d >= current_date())",
    "not exists": (
        "select name from c where not exists (select 1 from e where e.k = c.k and e.d >= current_date())"
    ),
    "exists, by the outer row": (
        "select name from c where exists (select 1 from e where e.k = c.k and e.d >= date_sub(current_date(), c.days))"
    ),
    "in": "select name from c where k in (select k from e where d >= current_date())",
    "not in": "select name from c where k not in (select k from e where d = current_date())",
    "the clock in": "select name from c where current_date() not in (select d from e where e.k = c.k)",
    "scalar subquery": (
        "select name, (select count(*) from e where e.k = c.k and e.d >= current_date) as n from c "
        "where since <= (select max(d) from e where d <= current_date)"
    ),
    "window": (
        "select k, d, row_number() over (partition by k order by d, x) as n, sum(x) over (partition by k) as s "
        "from e where d >= current_date - 1"
    ),
    "flag in a window": (
        "select k, x, sum(case when d >= current_date then x end) over (partition by k) as s from e"
    ),
    "distinct": "select distinct k, x from e where d > current_date - 2",
    "union": "select k from e where d > current_date union select k from c where since > current_date",
    "except": "select k from e where d > current_date except all select k from c where since <= current_date",
    "over a union": (
        "select k, day from (select k, d as day from e union all select k, since from c) where day < current_date"
    ),
    "having": "select k, max(d) as last, sum(x) as s from e group by k having max(d) < current_date",
    "having, without keys": "select count(*) as n from e having max(d) < current_date",
    "over groups": (
        "select n, count(*) as m from (select k, count(*) as n from e where d > current_date group by k) group by n"
    ),
    "limit": "select k, x from e where d <= current_date order by d desc, x, k limit 2",
    "qualify": "select k, d from e qualify d >= current_date and row_number() over (partition by k order by d, x) = 1",
    "filter of an aggregate": (
        "select k, sum(x) filter (where d >= current_date - 1) as s, min(x) filter (where d < current_date) as m "
        "from e group by k"
    ),
    "count distinct": "select count(distinct case when d >= current_date then k end) as n, count(*) as m from e",
    "buckets": (
        "select case when d > current_date then 'later' when d = current_date then 'today' else 'past' end as w, "
        "count(*) as n, sum(x) as s from e group by all"
    ),
    "flag": "select k, d, d > current_date as later, coalesce(t > now(), false) as later_too from e",
    "distinct flag": "select distinct k, d > current_date as later from e",
    "in a subquery": "with p as (select current_date() - 1 as day) select k, x from e, p where d >= day",
    "global": "select count(*) as n, sum(x) as s from e where d >= current_date() and t < now() + interval 1 day",
    "explode": "select k, i from e lateral view explode(sequence(1, x)) s as i where d >= current_date and x > 0",
    "grouping sets": (
        "select k, d, count(*) as n from e where d > current_date - 2 group by grouping sets ((k), (k, d))"
    ),
}


def _event(dice: random.Random, now: datetime) -> Row:
    k, x = dice.choice([1, 2, 3, None]), dice.choice([1, 2, 3, None])
    day = dice.choice([None, *((now + timedelta(days=n)).date().isoformat() for n in range(-3, 4))])
    time = dice.choice([None, *((now + timedelta(hours=12 * n)).isoformat(sep=" ") for n in range(-4, 5))])
    return (k, day, time, x)


def _customer(dice: random.Random, now: datetime) -> Row:
    since = dice.choice([None, *((now + timedelta(days=n)).date().isoformat() for n in range(-2, 3))])
    return (dice.choice([1, 2, 3, None]), since, dice.choice([0, 1, 2, None]), dice.choice("ab"))


def _step(bench: Bench, dice: random.Random, there: dict[str, list[Row]], now: datetime) -> None:
    """Changes of both tables, of one, or of none: rows of any time, late ones and future ones."""
    for name, make in (("e", _event), ("c", _customer)):
        if dice.random() < 0.4:
            continue
        gone = dice.sample(there[name], min(len(there[name]), dice.randrange(3)))
        came = [make(dice, now) for _ in range(dice.randrange(4))]
        for row in gone:
            there[name].remove(row)
        there[name] += came
        if gone or came:
            bench.engine.change(name, insert=came, delete=gone)


@pytest.mark.parametrize("name", by_run([*QUERIES][:2:2], more=[*QUERIES][2::2], long=[*QUERIES][1::2]))
def test_rows_come_and_go_with_time(name: str) -> None:
    """Against the text at the refresh's time after every step of a random stream, until nothing is there any more."""
    seed = sum(map(ord, name))
    dice = random.Random(seed)
    now = START
    there = {"e": [_event(dice, now) for _ in range(8)], "c": [_customer(dice, now) for _ in range(4)]}
    bench = Bench.of(QUERIES[name], {"e": (EVENTS, tuple(there["e"])), "c": (CUSTOMERS, tuple(there["c"]))})
    bench.engine.fixed_clock = Clock.at(now)
    bench.refresh()
    bench.check()
    for number in range(8):
        now += dice.choice(
            [timedelta(0), timedelta(hours=1), timedelta(hours=12), timedelta(days=1), -timedelta(days=2)]
        )
        bench.engine.fixed_clock = Clock.at(now)
        _step(bench, dice, there, now)
        report = bench.refresh()
        assert report.action in ("refreshed", "no change")
        assert bench.shown() == bench.newest(), f"seed {seed}, step {number}, {now}"
        assert bench.recomputed() == bench.newest()
    for table, rows in there.items():
        if rows:
            bench.engine.change(table, delete=rows)
    bench.engine.fixed_clock = Clock.at(START)
    bench.refresh()
    bench.check()


def _bench(sql: str, *rows: Row) -> Bench:
    bench = Bench.of(sql, {"e": (EVENTS, rows)})
    bench.engine.fixed_clock = Clock.at(START)
    bench.refresh()
    return bench


def _row(day: int, x: int = 1) -> Row:
    return (1, f"2024-05-{day:02}", f"2024-05-{day:02} 06:00:00", x)


def _go_to(bench: Bench, **later: int) -> None:
    bench.engine.fixed_clock = Clock.at(START + timedelta(**later))


def _written(bench: Bench) -> tuple[int, int]:
    """The version of the state, and the number of the last refresh."""
    newest = bench.engine.commits(bench.plan.state_relation, None)[0].version
    return newest, bench.finished.refresh


DAYS = "select d, sum(x) as s from e where d >= current_date() group by d"
HOURS = "select d, sum(x) as s from e where t >= now() group by d"


def test_a_date_that_did_not_move_is_no_change() -> None:
    bench = _bench(DAYS, _row(1), _row(2))
    before = _written(bench)
    _go_to(bench, hours=11)
    report = bench.refresh()
    assert (report.action, report.statements, _written(bench)) == ("no change", (), before)


def test_a_new_date_that_moves_no_row_is_only_recorded() -> None:
    bench = _bench(DAYS, _row(5))
    _go_to(bench, days=1)
    report = bench.refresh()
    assert report.action == "no change"
    assert bench.finished.detail["clock"] == {"date": "2024-05-02"}
    (written,) = (s for s in report.statements if s.startswith(("INSERT INTO", "MERGE INTO")))
    assert written.startswith(f"INSERT INTO {bench.plan.state_relation} SELECT CAST(NULL"), "the head alone"
    _go_to(bench, days=1, hours=1)
    assert bench.refresh().statements == ()


def test_a_time_that_moves_no_row_writes_nothing() -> None:
    bench = _bench(HOURS, _row(5))
    before = _written(bench)
    _go_to(bench, hours=1)
    report = bench.refresh()
    assert (report.action, _written(bench)) == ("no change", before)
    assert [s.split()[0] for s in report.statements] == ["CACHE"]
    assert bench.finished.detail["clock"] == {"timestamp": "2024-05-01 12:00:00+00:00"}
    _go_to(bench, days=4)
    report = bench.refresh()
    assert report.reason == "the clock moved from 2024-05-01 12:00:00+00:00 to 2024-05-05 12:00:00+00:00"
    assert bench.shown() == bench.newest() == {}


def test_versions_without_net_change_are_recorded_with_the_time() -> None:
    bench = _bench(HOURS, _row(5))
    bench.engine.change("e", insert=[_row(6)])
    bench.engine.change("e", delete=[_row(6)])
    _go_to(bench, hours=1)
    assert bench.refresh().action == "no change"
    assert bench.finished.detail["kind"] == "advance"
    assert bench.finished.detail["clock"] == {"timestamp": "2024-05-01 13:00:00+00:00"}


def test_only_the_rows_between_both_times_are_read() -> None:
    """The statement compares the column with the literals of both times, which is what lets Delta skip files."""
    bench = _bench("select d, x from e where d >= current_date() - interval 7 days", _row(1))
    _go_to(bench, days=2)
    delta = bench.refresh().statements[0]
    assert "e.d >= CAST('2024-05-01' AS DATE) - INTERVAL '7' DAYS" in delta
    assert "e.d < CAST('2024-05-03' AS DATE) - INTERVAL '7' DAYS" in delta
    assert "current_date" not in delta.lower() and delta.count("COALESCE") == 1, "of the partition"


def test_a_model_without_the_clock_does_not_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench.of("select k, x from e where d >= date'2024-05-01'", {"e": (EVENTS, [_row(1)])})
    monkeypatch.setattr(bench.engine, "clock", lambda: pytest.fail("the clock was read"))
    bench.refresh()
    bench.engine.change("e", insert=[_row(2)])
    bench.refresh()
    assert "clock" not in bench.finished.detail


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_interrupted_refresh_has_done_all_or_nothing(number: int, after: bool) -> None:
    """Whatever the clock says when the next run goes on to the present."""
    bench = _bench(DAYS, _row(1), _row(2), _row(3), _row(4))
    bench.engine.change("e", insert=[_row(2, 5)])
    _go_to(bench, days=1)
    with pytest.raises(Interrupted):
        bench.refresh(Interrupting(bench.engine, number, after=after))
    recorded = bench.finished.detail["clock"]["date"]
    assert recorded == ("2024-05-02" if after and number == 3 else "2024-05-01")
    _go_to(bench, days=2)
    bench.refresh()
    assert bench.shown() == bench.newest() == bench.recomputed()
    assert sorted(day for day, _ in bench.shown()) == [date(2024, 5, 3), date(2024, 5, 4)]


@pytest.mark.parametrize(
    ("sql", "spliced"),
    [
        ("select now() as n", "select TIMESTAMP_LTZ'T' as n"),
        ("select NOW ( ) as n", "select TIMESTAMP_LTZ'T' as n"),
        ("select current_timestamp, current_timestamp()", "select TIMESTAMP_LTZ'T', TIMESTAMP_LTZ'T'"),
        ("select current_date as current_date", "select DATE'D' as current_date"),
        ("select d current_date from e", "select d current_date from e"),
        ("select e.current_date, now from e", "select e.current_date, now from e"),
        ("select 'current_date' as x -- now()\nfrom e", "select 'current_date' as x -- now()\nfrom e"),
        ("select curdate()-1, localtimestamp()", "select DATE'D'-1, TIMESTAMP_NTZ'L'"),
        (
            "with current_date as (select 1 as a) select a, current_date from current_date",
            "with current_date as (select 1 as a) select a, DATE'D' from current_date",
        ),
        (
            "select year(current_date), cast(now() as date)",
            "select year(DATE'D'), cast(TIMESTAMP_LTZ'T' as date)",
        ),
    ],
)
def test_the_text_at_a_time(sql: str, spliced: str) -> None:
    assert splice_clock(sql, Clock("D", "T", "L")) == spliced


def test_the_data_test_compares_at_the_recorded_time() -> None:
    bench = _bench(DAYS, _row(1), _row(2))
    _go_to(bench, days=1)
    bench.refresh()
    _go_to(bench, days=9)
    assert bench.engine.query(difference_sql(bench.plan, bench.engine)) == []
    bench.engine.fixed_clock = None
    assert bench.shown() != bench.newest()


def test_the_clock_of_spark_is_one_reading() -> None:
    """Date and local time of the session, and the instant whatever its time zone is."""
    asked: list[str] = []

    def execute(sql: str, *, fetch: bool) -> Answer:
        asked.append(sql)
        return Answer(("d", "m", "l"), (("2024-04-30", 1714525200500000, "2024-04-30 21:00:00.5"),))

    clock = SparkEngine(execute).clock()
    assert clock == Clock("2024-04-30", "2024-05-01 01:00:00.500000+00:00", "2024-04-30 21:00:00.5")
    assert len(asked) == 1


def test_a_scenario_without_a_time_has_the_real_one() -> None:
    now = datetime.now(timezone.utc).date()
    rows = [[(now + timedelta(days=n)).isoformat(), n] for n in (-2, 2)]
    scenario = Scenario.model_validate(
        {
            "id": "real",
            "tables": {"e": [["d", "date"], ["x", "int"]]},
            "initial": {"e": rows},
            "sql": "select x from e where d >= current_date()",
            "view": "v",
            "initial_expected": {"v": [[2]]},
            "steps": [{"now": "2001-01-01T00:00:00", "expected": {"v": [[-2], [2]]}}],
        }
    )
    assert replay_scenario(scenario, tiny_workbench).outcome == "passed"


def test_inner_views_of_a_model_at_rest_are_not_written() -> None:
    sql = (
        "select n, count(*) as m from (select k, count(*) as n from e where t >= now() group by k) group by n"
    )
    bench = _bench(sql, _row(5), _row(6))
    assert bench.plan.helpers
    before = bench.engine.commits(bench.plan.state_relation, None)
    _go_to(bench, hours=1)
    assert bench.refresh().action == "no change"
    assert bench.engine.commits(bench.plan.state_relation, None) == before
    _go_to(bench, days=4)
    assert bench.refresh().action == "refreshed"
    assert bench.shown() == bench.newest() == bench.recomputed()
