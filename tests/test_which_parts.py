"""Which parts a refresh of viewdf models computes, in which order, and what it says of those that have to wait."""

from __future__ import annotations

import random
import re
from collections import Counter
from contextlib import closing
from datetime import datetime, timedelta, timezone

import pytest

from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.refresh.report import Report
from fixtures.runs import by_run
from viewdf_bench import Bench, Model, Row, Table, at, minutes

OLDEST = {"fivm_start": "oldest"}
COLUMNS = [("k", "string"), ("v", "int"), ("ts", "timestamp")]


def _parts(length: str, lateness: timedelta | None = None) -> TimeParts:
    return TimeParts("ts", Length.of(length), lateness)


def _table(name: str, length: str, rows: list[Row], lateness: timedelta | None = None) -> Table:
    return Table(name, COLUMNS, rows, _parts(length, lateness))


def _every_minute(*numbers: int, key: str = "k") -> list[Row]:
    """A row in each of these minutes after ten o'clock."""
    return [(key, number, minutes("10:00", number)) for number in numbers]


def _part(text: str, length: str = "minute") -> int:
    return Length.of(length).part_of(at(text).replace(tzinfo=timezone.utc))


# Order


def _written(done: Report) -> list[list[str]]:
    """By statement that writes parts, in the order of execution, when the ranges begin that it writes."""
    writes = [s for s in done.statements if s.startswith(f"INSERT INTO {done.model}__fivm_state")]
    # Without the head, which some set alone.
    writes = [s.split(") AS written ")[0] for s in writes if ") AS written " in s]
    return [
        re.findall(r"part_timestamp >= CAST\('2015-01-01 (\d+:\d+):00\+00:00'", s.rsplit(" WHERE ", 1)[1])
        for s in writes
    ]


SUMS = "select k, sum(v) as s from {m:j} group by k"


@pytest.mark.parametrize(
    ("order", "written"),
    [("oldest", [["10:02", "10:05", "10:09"]]), ("stalest", [["10:05"], ["10:02", "10:09"]])],
)
def test_parts_that_are_out_of_date_first(order: str, written: list[list[str]]) -> None:
    """Late rows in minute 5; minutes 2, which is older, and 9 are new."""
    sums = Model("sums", SUMS, None, {**OLDEST, "fivm_part_order": order})
    with closing(Bench([_table("m", "minute", _every_minute(0, 5, 6))], [sums])) as b:
        b.run()
        b.change("m", _every_minute(2, 9, 5, key="late"))
        done = b.run()["sums"]
        b.check()
        b.check_computed()
        assert _written(done) == written


@pytest.mark.parametrize("order", ["oldest", "stalest"])
def test_a_model_that_reads_itself_goes_by_time(order: str) -> None:
    """Whatever is configured: a part follows from those before it. Minute 7 is new, and so late rows come first."""
    seen = Model(
        "seen",
        "select k from {m:j} union select k from {seen:j-1}",
        "select distinct k from {m:i}",
        {**OLDEST, "fivm_part_order": order},
    )
    with closing(Bench([_table("m", "minute", _every_minute(*range(6)))], [seen])) as b:
        b.run()
        b.change("m", _every_minute(4, 6, key="late"))
        done = b.run()["seen"]
        b.check()
        assert _written(done) == [["10:04"], ["10:05"], ["10:06"]]


# Several lengths


UP = Model(
    "up",
    """select m.k, sum(m.v) as of_fives, max(q.top) as of_quarters, max(h.top) as of_hour
    from {m:j*12..j*12+11} as m
    left join (select k, max(v) as top from {q:j*4..j*4+3} group by k) as q on q.k = m.k
    left join (select k, max(v) as top from {h:j} group by k) as h on h.k = m.k
    group by m.k""",
    None,
    OLDEST,
)
"""Of hours, since nothing is said and those of ``h`` are the longest."""

THIRDS = Model(
    "thirds", "select a.k, count(*) as n from {q:j} as a, {m:j*3..j*3+2} as b group by a.k", None, OLDEST
)
"""Of 15 minutes, the longer ones of its inputs."""

ACROSS = Model(
    "across",
    """select q.k, q.v, u.of_fives, h.v as of_hour from {q:j} as q
    join {up:j/4-1..j/4} as u on q.k = u.k left join {h:j/4} as h on h.k = q.k""",
    None,
    {**OLDEST, "fivm_part_length": "15 minutes"},
)
DOWN = Model(
    "down",
    """select m.k, m.v - u.of_fives as rest, t.n from {m:j} as m
    join {up:j/12-1} as u on m.k = u.k left join {thirds:j/3} as t on m.k = t.k""",
    None,
    {**OLDEST, "fivm_part_length": "5 minutes"},
)
IN_LENGTHS = {"up": "hour", "thirds": "15 minutes", "across": "15 minutes", "down": "5 minutes"}


@pytest.mark.parametrize("seed", by_run(range(1), long=range(1, 3)))
def test_inputs_of_different_lengths(seed: int) -> None:
    """Longer and shorter ones than the model, in any order of arrival; rows that come late, and that go."""
    pick = random.Random(seed)
    lengths = {"m": 5, "q": 15, "h": 60}

    def rows(name: str, low: int, high: int) -> list[Row]:
        """A row in most of the parts between two minutes."""
        among = [n for n in range(low, high, lengths[name]) if pick.random() < 0.95]
        return [
            (pick.choice("ab"), pick.randint(0, 9), minutes("10:00", n + pick.randint(0, 4))) for n in among
        ]

    waits = None if seed == 2 else timedelta()
    tables = [
        _table(name, f"{many} minutes", rows(name, 0, 120), waits if name == "m" else timedelta())
        for name, many in lengths.items()
    ]
    with closing(Bench(tables, [UP, THIRDS, ACROSS, DOWN])) as b:
        for name, length in IN_LENGTHS.items():
            plan = b.plans[name].parts
            assert plan is not None and plan.length == Length.of(length)
        b.run()
        arrived, again = dict.fromkeys(lengths, 120), Counter[str]()
        for _ in range(4):
            for name in pick.sample(list(lengths), 2):
                upto = arrived[name] + pick.choice((0, 15, 60))
                late = [("a", 50, minutes("10:00", pick.randrange(arrived[name])))]
                gone = pick.sample(b.tables[name].rows, pick.choice((0, 1)))
                b.change(name, rows(name, arrived[name], upto) + late, gone)
                arrived[name] = upto
            for name, report in b.run().items():
                assert report.parts is not None
                again[name] += report.parts.again != "none"
            b.check()
            b.check_computed()
        b.check_catalog()
        if waits is not None:
            assert set(again.elements()) == set(b.models), "late rows reach all of them"


def test_minutes_from_hours_of_minutes() -> None:
    """What a minute is of the hour before it, and late rows that change an hour and all minutes of the next one."""
    hourly = Model(
        "hourly",
        "select k, sum(v) as s from {m:j*60..j*60+59} group by k",
        None,
        {**OLDEST, "fivm_part_length": "hour"},
    )
    share = Model(
        "share",
        "select m.k, m.v, h.s from {m:j} as m left join {hourly:j/60-1} as h on m.k = h.k",
        None,
        {"fivm_start": "2015-01-01T11:30:00", "fivm_part_length": "minute"},
    )
    with closing(Bench([_table("m", "minute", _every_minute(*range(100)))], [hourly, share])) as b:
        b.run()
        b.check()
        b.check_computed()
        b.change("m", _every_minute(*range(100, 123), 7))
        done = b.run()
        b.check()
        b.check_computed()
        report = done["share"].parts
        assert report is not None
        assert report.again == f"{_part('11:30')}..{_part('11:39')}" == report.changed
        assert report.computed == f"{_part('11:40')}..{_part('12:02')}"


# Many parts at once


def test_a_catch_up_of_500_minutes() -> None:
    """In as many statements for 500 minutes as for 50, and what they give is what one query over all gives."""
    sliding = Model(
        "sliding", "select k, sum(v) as s, count(*) as n from {m:j-9..j} group by k", None, OLDEST
    )
    totals = Model(
        "totals",
        """select k, sum(s) as s, sum(n) as n from (
            select k, sum(v) as s, count(*) as n from {m:j} group by k
            union all select k, s, n from {totals:j-1}) as both group by k""",
        "select k, sum(v) as s, count(*) as n from {m:i} group by k",
        OLDEST,
    )
    many: dict[int, dict[str, int]] = {}
    for number in (50, 500):
        with closing(Bench([_table("m", "minute", _every_minute(*range(20)))], [sliding, totals])) as b:
            b.run()
            b.change("m", _every_minute(*range(20, 20 + number)))
            done = b.run()
            many[number] = {name: len(report.statements) for name, report in done.items()}
            for name, back in (("sliding", 9), ("totals", 10_000)):
                assert b.rows(name) == _sums_over_time(b, back, since=0 if name == "totals" else 9)
    # The first one asks in which parts rows have come, and tells the second.
    assert many[50] == many[500] == {"sliding": 2, "totals": 1}


def _sums_over_time(b: Bench, back: int, since: int) -> Counter[Row]:
    """Per minute the sum and the number of the rows of so many minutes before it, by a join of all rows with all."""
    rows = b.bench.engine.query(
        f"""select a.k, sum(b.v), count(*), a.ts from m as a join m as b
        on a.k = b.k and b.ts <= a.ts and b.ts >= a.ts - interval '{back}' minutes
        where a.ts >= timestamp '{minutes("10:00", since)}' group by a.k, a.ts"""
    )
    return Counter(tuple(row) for row in rows)


def test_a_backfill_of_ten_years_of_days() -> None:
    """3,653 parts: what is asked for first, then all others in one statement."""
    first = datetime(2005, 1, 1)
    rows: list[Row] = [("ab"[n % 2], n % 7, first + timedelta(days=n, hours=n % 24)) for n in range(3653)]
    weekly = Model("weekly", "select k, sum(v) as s, count(*) as n from {m:j-6..j} group by k", None, OLDEST)
    with closing(Bench([_table("m", "day", rows)], [weekly])) as b:
        done = b.run(within=(None, datetime(2005, 3, 1, tzinfo=timezone.utc)))["weekly"]
        assert done.parts is not None and (done.parts.computed, len(done.statements)) == ("12790..12842", 5)
        done = b.run()["weekly"]
        assert len(b.rows("weekly", "part_timestamp")) == 3653 - 6
        assert len(done.statements) == 1 + 1, "the catalog, and up to 5,000 parts at a time"
        expected = b.bench.engine.query(
            """select m.k, sum(m.v), count(*), d.day from m
            join (select distinct date_trunc('day', ts) as day from m) as d
            on m.ts >= d.day - interval '6' days and m.ts < d.day + interval '1' day
            where d.day >= timestamp '2005-01-07' group by m.k, d.day"""
        )
        assert b.rows("weekly") == Counter(tuple(row) for row in expected)


# What is missing


def _waiting(b: Bench, name: str) -> str | None:
    parts = b.run()[name].parts
    assert parts is not None
    b.check()
    b.check_computed()
    return parts.waiting


def _beside(*numbers: int) -> Table:
    return _table("n", "minute", _every_minute(*numbers))


PAIRED = Model(
    "paired", "select m.k, m.v, n.v as w from {m:j} as m join {n:j-1..j} as n on m.k = n.k", None, OLDEST
)


def test_a_gap_in_one_of_two_inputs() -> None:
    """The first part that cannot be computed, and for which parts of which input; the later ones do not wait for it."""
    with closing(
        Bench([_table("m", "minute", _every_minute(*range(8))), _beside(0, 1, 2, 4, 5, 6, 7)], [PAIRED])
    ) as b:
        assert _waiting(b, "paired") == f"part {_part('10:03')} for n[{_part('10:03')}]"
        assert (
            b.known("paired")["computed"]
            == f"{_part('10:01')}..{_part('10:02')}, {_part('10:05')}..{_part('10:07')}"
        )
        # A gap in the other one too: each part says what it misses itself.
        b.change("m", _every_minute(9))
        b.change("n", _every_minute(8, 9))
        assert _waiting(b, "paired") == f"part {_part('10:03')} for n[{_part('10:03')}]"
        b.change("n", _every_minute(3))
        assert _waiting(b, "paired") == f"part {_part('10:08')} for m[{_part('10:08')}]"
        assert b.run()["paired"].parts == b.run()["paired"].parts, "told as long as it holds"
        b.change("m", _every_minute(8))
        assert _waiting(b, "paired") is None
        assert b.known("paired")["computed"] == f"{_part('10:01')}..{_part('10:09')}"


def test_a_gap_in_both_inputs_at_once() -> None:
    tables = [_table("m", "minute", _every_minute(0, 1, 2, 4)), _beside(0, 1, 2, 5)]
    with closing(Bench(tables, [PAIRED])) as b:
        three = _part("10:03")
        assert _waiting(b, "paired") == f"part {three} for m[{three}], n[{three}]"
        b.change("n", _every_minute(3))
        assert _waiting(b, "paired") == f"part {three} for m[{three}]"


def test_nothing_is_missing_where_nothing_later_is_there() -> None:
    """The next part is not late: it has not come yet. An input without any part keeps the model from its first one."""
    with closing(Bench([_table("m", "minute", _every_minute(0, 1)), _beside()], [PAIRED])) as b:
        assert _waiting(b, "paired") == "the first part of n"
        b.change("n", _every_minute(0))
        assert _waiting(b, "paired") is None, "n has come to ten o'clock, and m to a minute later"
        b.change("n", _every_minute(1))
        assert _waiting(b, "paired") is None
        assert b.known("paired")["computed"] == str(_part("10:01"))


@pytest.mark.parametrize("lateness", [None, timedelta(minutes=5)])
def test_an_hour_waits_for_its_minutes(lateness: timedelta | None) -> None:
    """For those that are missing of it, in the input's numbers; with a declared lateness until that is over."""
    hourly = Model(
        "hourly",
        "select k, sum(v) as s from {m:j*60..j*60+59} group by k",
        None,
        {**OLDEST, "fivm_part_length": "hour"},
    )
    rows = _every_minute(*(n for n in range(64) if n not in (20, 21, 58)))
    with closing(Bench([_table("m", "minute", rows, lateness)], [hourly])) as b:
        ten = _part("10:00", "hour")
        late = "" if lateness else f"{_part('10:20')}..{_part('10:21')}, "
        assert _waiting(b, "hourly") == f"part {ten} for m[{late}{_part('10:58')}]"
        b.change("m", _every_minute(64))
        if lateness:
            assert _waiting(b, "hourly") is None, "minute 58 ended five minutes ago"
        else:
            assert "10:58" not in (_waiting(b, "hourly") or "")
            b.change("m", _every_minute(58, 21))
            assert _waiting(b, "hourly") == f"part {ten} for m[{_part('10:20')}]"
            b.change("m", _every_minute(20))
            assert _waiting(b, "hourly") is None
        assert b.known("hourly")["computed"] == str(ten)
        # The next hour has come to its fifth minute, and waits for nothing that would be late.
        b.change("m", _every_minute(65))
        assert _waiting(b, "hourly") is None
