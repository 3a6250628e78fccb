"""Viewdf models against a computation of every part from scratch: the paper's examples, gaps, late data, calendars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.refresh.compare import difference_sql
from fixtures.runs import fast_only
from viewdf_bench import Bench, Interrupted, Model, Row, Table, at, minutes, stopping

MINUTE = TimeParts("ts", Length.of("minute"))
PATIENT = TimeParts("ts", Length.of("minute"), lateness=timedelta())
OLDEST = {"fivm_start": "oldest"}

HELPER = Model(
    "helper",
    """select new.src, new.dest, coalesce(prev.ct, 0) + 1 as ct, coalesce(prev.sum_loss, 0) + new.loss as sum_loss
    from {m:j} as new
    left join {helper:j-1} as prev on new.src = prev.src and new.dest = prev.dest
    where new.loss > 10""",
    "select src, dest, 1 as ct, loss as sum_loss from {m:i} where loss > 10",
    OLDEST,
)
VIEW2 = Model("view2", "select src, dest, ct, sum_loss from {helper:j} where ct >= 4", None, OLDEST)
VIEW3 = Model(
    "view3",
    "select src, dest, sum(loss) as sum_loss from {m:j*60..j*60+59} group by src, dest",
    None,
    {**OLDEST, "fivm_part_length": "hour"},
)


CSUM = Model(
    "csum",
    """select src, sum(lost) as lost, sum(n) as n from (
        select src, sum(loss) as lost, count(*) as n from {m:j} group by src
        union all select src, lost, n from {csum:j-1}) as both group by src""",
    "select src, sum(loss) as lost, count(*) as n from {m:i} group by src",
    OLDEST,
)


@contextmanager
def bench(tables: Sequence[Table], models: Sequence[Model], zone: str = "UTC") -> Iterator[Bench]:
    made = Bench(tables, models, zone)
    try:
        yield made
    finally:
        made.close()


def loss(rows: Sequence[Row] = (), parts: TimeParts = MINUTE) -> Table:
    """The paper's stream: source, destination, time, packets lost."""
    columns = [("src", "string"), ("dest", "string"), ("ts", "timestamp"), ("loss", "int")]
    return Table("m", columns, list(rows), parts)


def part(text: str) -> int:
    return Length.of("minute").part_of(at(text).replace(tzinfo=timezone.utc))


# The paper's examples


def test_view1_and_view2_of_section_2() -> None:
    """The table of packet losses, minute by minute, with the results that the paper lists."""
    losses = [
        ("10:00", 6),
        ("10:01", 12),
        ("10:02", 15),
        ("10:03", 24),
        ("10:04", 20),
        ("10:05", 16),
        ("10:06", 7),
    ]
    expected: dict[str, set[Row]] = {
        "10:04": {("s", "d", 4, 71, at("10:04"))},
        "10:05": {("s", "d", 5, 87, at("10:05"))},
    }
    seen: set[Row] = set()
    with bench([loss()], [HELPER, VIEW2]) as b:
        for minute, lost in losses:
            b.change("m", [("s", "d", at(minute), lost)])
            b.run()
            b.check()
            seen |= expected.get(minute, set())
            assert set(b.rows("view2")) == seen, minute


def test_what_fivm_exact_asks() -> None:
    """Of models whose parts are read in turn or at once nothing, unless the model is not what it should be."""
    rows: list[Row] = [("s", "d", minutes("10:00", i), 20) for i in range(30)]
    text = VIEW3.update.replace("*60", "*10").replace("+59", "+9")
    tens = Model("view3", text, None, {**OLDEST, "fivm_part_length": "10 minutes"})
    with bench([loss(rows)], [HELPER, VIEW2, tens]) as b:
        engine = b.bench.engine
        b.run()
        b.change("m", [("s", "d", minutes("10:00", 31), 11)], rows[:1])
        b.run()
        for plan in b.plans.values():
            assert engine.query(difference_sql(plan, engine)) == []
        asked = difference_sql(b.plans["view3"], engine)
        twice = asked.replace("-1 AS __fivm_sign", "-2 AS __fivm_sign")
        assert twice != asked and engine.query(twice), "the model beside its recompute twice"


def test_view3_is_date_trunc() -> None:
    rows = [("s", "d" if i % 3 else "e", minutes("10:00", i), i) for i in range(150)]
    with bench([loss(rows)], [VIEW3]) as b:
        b.run()
        b.check()
        truncated = b.bench.engine.query(
            "select src, dest, sum(loss), date_trunc('hour', ts) from m where ts < timestamp '2015-01-01 12:00:00' "
            "group by src, dest, date_trunc('hour', ts)"
        )
        assert set(b.rows("view3")) == {tuple(r) for r in truncated}
        b.change("m", [("s", "d", minutes("10:00", 30), 1000)], [("s", "d", minutes("10:00", 61), 61)])
        b.run()
        b.check()


def test_band_join_of_section_4_2() -> None:
    joined = Model("joined", "select * from {m:j} natural join {n:j}", None, OLDEST)
    other = Table("n", [("src", "string"), ("dest", "string"), ("delay", "int"), ("ts2", "timestamp")], [])
    other.parts = TimeParts("ts2", Length.of("minute"))
    with bench([loss([("s", "d", at("10:00"), 1)]), other], [joined]) as b:
        b.run()
        assert b.known("joined")["computed"] == "none", "n has no part yet"
        b.change("n", [("s", "d", 7, at("10:00:30")), ("s", "e", 8, at("10:00:10"))])
        b.run()
        b.check()
        assert set(b.rows("joined", "src, dest, loss, delay")) == {("s", "d", 1, 7)}
        b.change("m", [("s", "e", at("10:00:59"), 2), ("s", "d", at("10:01"), 3)])
        b.run()
        b.check()
        assert set(b.rows("joined", "src, dest, loss, delay")) == {("s", "d", 1, 7), ("s", "e", 2, 8)}


FIGURE_5 = [[10, 4, 2, 5, 6], [5, 3, 3, 4], [4, 4, 2, 3], [1, 1, 3, 9, 1, 4], [7, 1, 2, 1, 7]]


def test_view5_and_view6_of_section_5_2() -> None:
    """MAX by panes, SUM by cumulative sums over four minutes, with the numbers of figure 5: 10, 74, 9, 65."""
    stream = Table("s", [("g", "string"), ("a", "int"), ("ts", "timestamp")], [], MINUTE)
    panes = Model("panes", "select g, max(a) as max_a from {s:j} group by g", None, OLDEST)
    view5 = Model("view5", "select g, max(max_a) as max_a from {panes:j-3..j} group by g", None, OLDEST)
    csum = Model(
        "csum",
        """select g, sum(part_sum) as sum_a, sum(part_rows) as rows_a from (
            select g, sum(a) as part_sum, count(*) as part_rows from {s:j} group by g
            union all select g, sum_a, rows_a from {csum:j-1}) as both group by g""",
        "select g, sum(a) as sum_a, count(*) as rows_a from {s:i} group by g",
        OLDEST,
    )
    view6 = Model(
        "view6",
        """select g, sum(part_sum) as sum_a from (
            select g, sum_a as part_sum, rows_a as part_rows from {csum:j}
            union all select g, -sum_a, -rows_a from {csum:j-4}) as both
        group by g having sum(part_rows) > 0""",
        "select g, sum_a from {csum:i}",
        {"fivm_start": "2015-01-01T10:03:00"},
    )
    with bench([stream], [panes, view5, csum, view6]) as b:
        for minute, values in enumerate(FIGURE_5):
            b.change("s", [("g", v, minutes("10:00", minute)) for v in values])
            b.run()
            b.check()
        assert dict((r[1], r[0]) for r in b.rows("view5", "max_a, part_timestamp")) == {
            at("10:03"): 10,
            at("10:04"): 9,
        }
        assert dict((r[1], r[0]) for r in b.rows("view6", "sum_a, part_timestamp")) == {
            at("10:03"): 74,
            at("10:04"): 65,
        }
        assert [r[0] for r in sorted(b.rows("csum", "sum_a"))] == [27, 42, 55, 74, 92]
        # A late row and one that goes: the sums of all later minutes move with them.
        b.change(
            "s",
            [("g", 100, minutes("10:00", 1)), ("h", -5, minutes("10:00", 2)), ("h", 5, minutes("10:00", 2))],
        )
        b.run()
        b.check()
        assert ("h", 0, at("10:04")) in b.rows("view6", "g, sum_a, part_timestamp"), (
            "its sum is zero, its rows are two"
        )


def test_figure_3() -> None:
    """A batch for part 9 and late rows for part 5: which parts are computed, and which are not."""
    start = at("10:00")
    rows = [("s", "d", start + timedelta(minutes=i), 20) for i in range(9)]
    rows += [("x", "y", start + timedelta(minutes=i), 30 if i in (4, 5) else 1) for i in range(9)]
    with bench([loss(rows)], [HELPER, VIEW2]) as b:
        b.run()
        base = part("10:00")
        b.change("m", [("s", "d", minutes("10:00", 9), 20), ("x", "late", minutes("10:00", 5), 40)])
        done = b.run()
        b.check()
        helper, view2 = done["helper"].parts, done["view2"].parts
        assert helper is not None and view2 is not None
        assert helper.computed == str(base + 9)
        # x and late are in Helper[5] now, and in no later one: Helper[6] is looked at, and nothing follows.
        assert (helper.again, helper.changed) == (f"{base + 5}..{base + 6}", str(base + 5))
        assert (view2.computed, view2.again, view2.changed) == (str(base + 9), str(base + 5), "none")


# Order of arrival


def test_two_days_arrive_in_reverse_order() -> None:
    daily = TimeParts("ts", Length.of("day"))
    table = loss([("s", "d", at("2015-01-01T10:00"), 20)], daily)
    with bench([table], [HELPER, VIEW2]) as b:
        b.run()
        b.change("m", [("s", "d", at("2015-01-03T10:00"), 30)])
        done = b.run()["helper"]
        b.check()
        assert b.known("helper")["computed"] == "16436"
        assert done.parts is not None and done.parts.waiting == "part 16437 for m[16437]"
        b.change("m", [("s", "d", at("2015-01-02T10:00"), 40)])
        b.run()
        b.check()
        assert b.known("helper")["computed"] == "16436..16438"
        assert ("s", "d", 3, 90, at("2015-01-03T00:00")) in b.rows("helper")


def test_parts_that_need_no_others_are_computed_over_a_gap() -> None:
    plain = Model("plain", "select src, loss from {m:j}", None, OLDEST)
    with bench([loss([("s", "d", at("10:00"), 1), ("s", "d", at("10:05"), 2)])], [plain]) as b:
        b.run()
        b.check()
        assert b.known("plain")["computed"] == f"{part('10:00')}, {part('10:05')}"
        b.change("m", [("s", "d", at("10:02"), 3)])
        b.run()
        b.check()
        assert b.known("plain")["computed"] == f"{part('10:00')}, {part('10:02')}, {part('10:05')}"


def test_a_declared_lateness_makes_gaps_empty_parts() -> None:
    with bench(
        [loss([("s", "d", at("10:00"), 20), ("s", "d", at("10:04"), 20)], PATIENT)], [HELPER, VIEW2]
    ) as b:
        b.run()
        b.check()
        assert b.known("helper")["computed"] == f"{part('10:00')}..{part('10:04')}"
        # A row of a part that was given up comes after all: its part is computed again, and what follows.
        b.change("m", [("s", "d", at("10:03"), 30)])
        done = b.run()["helper"].parts
        b.check()
        assert done is not None and done.changed == f"{part('10:03')}..{part('10:04')}"


def test_an_empty_part_is_computed_and_recorded() -> None:
    rows = [("s", "d", at("10:00"), 20), ("s", "d", at("10:01"), 1)]
    with bench([loss(rows)], [HELPER, VIEW2]) as b:
        b.run()
        assert b.catalog("helper") == {
            ("m", part("10:00"), "there", None),
            ("m", part("10:01"), "there", None),
            ("helper", part("10:00"), "computed", 1),
            ("helper", part("10:01"), "computed", 0),
        }
        # A part that loses all its rows is still there, and empty.
        b.change("m", delete=[("s", "d", at("10:01"), 1)])
        b.run()
        b.check()
        assert ("m", part("10:01"), "there", None) in b.catalog("helper")
        b.change("m", [("s", "d", at("10:02"), 40)])
        b.run()
        b.check()
        assert b.known("helper")["computed"] == f"{part('10:00')}..{part('10:02')}"


def test_rows_without_a_time_are_in_no_part() -> None:
    total = Model("total", "select count(*) as n from {m:j}", None, OLDEST)
    with bench([loss([("s", "d", None, 1), ("s", "d", at("10:00"), 2)])], [total]) as b:
        b.run()
        assert set(b.rows("total")) == {(1, at("10:00"))}
        b.change("m", [("s", "d", None, 3)])
        assert b.run()["total"].action == "no change"
        b.check()


# Late data


@pytest.mark.more
def test_late_data_100_parts_back_computes_what_depends_on_it() -> None:
    rows = [("s", "d", minutes("10:00", i), 20 if i != 40 else 1) for i in range(120)]
    windowed_of = Model(
        "windowed", "select src, sum(loss) as total from {m:j-9..j} group by src", None, OLDEST
    )
    with bench([loss(rows)], [HELPER, VIEW2, windowed_of]) as b:
        b.run()
        before = b.last_updated("helper")
        b.change("m", [("s", "d", minutes("10:00", 20), 5)], [("s", "d", minutes("10:00", 20), 20)])
        done = b.run()
        b.check()
        base = part("10:00")
        helper, windowed = done["helper"].parts, done["windowed"].parts
        assert helper is not None and windowed is not None
        # The count starts anew after minute 20, and minute 40 ends it anyway: 41 is as it was.
        assert helper.changed == f"{base + 20}..{base + 39}"
        assert helper.again == f"{base + 20}..{base + 40}"
        assert windowed.again == f"{base + 20}..{base + 29}" == windowed.changed
        after = b.last_updated("helper")
        assert {p for p in after if after[p] != before[p]} == set(range(base + 20, base + 40))


def test_a_change_that_changes_nothing_stops_at_once() -> None:
    rows = [("s", "d", minutes("10:00", i), 5) for i in range(5)]
    with bench([loss(rows)], [HELPER, VIEW2]) as b:
        b.run()
        before = b.catalog("helper", "relation, part, last_updated")
        b.change("m", [("s", "d", at("10:01"), 6)], [("s", "d", at("10:01"), 5)])
        done = b.run()
        b.check()
        helper = done["helper"].parts
        assert helper is not None and (helper.again, helper.changed) == (str(part("10:01")), "none")
        assert done["view2"].action == "no change"
        own = {r for r in before if r[0] == "helper"}
        assert own == {r for r in b.catalog("helper", "relation, part, last_updated") if r[0] == "helper"}


def test_an_earlier_part_moves_the_oldest_one() -> None:
    with bench([loss([("s", "d", at("10:02"), 20), ("s", "d", at("10:03"), 20)])], [HELPER, VIEW2]) as b:
        b.run()
        b.change("m", [("s", "d", at("10:01"), 30)])
        b.run()
        b.check()
        assert b.known("helper")["first"] == part("10:01")
        assert ("s", "d", 3, 70, at("10:03")) in b.rows("helper")


def test_the_newest_part_is_the_first_one_by_default() -> None:
    model = Model(HELPER.name, HELPER.update, HELPER.initialize)
    with bench([loss([("s", "d", at("10:02"), 20), ("s", "d", at("10:03"), 20)])], [model]) as b:
        b.run()
        assert b.known("helper")["computed"] == str(part("10:03"))
        b.change("m", [("s", "d", at("10:01"), 30), ("s", "d", at("10:04"), 30)])
        b.run()
        b.check()
        assert set(b.rows("helper", "ct, part_timestamp")) == {(1, at("10:03")), (2, at("10:04"))}


# Dimensions


@pytest.mark.parametrize(("of", "changed"), [("all", 4), ("future", 0), ("2 minutes", 2)])
def test_a_changed_dimension(of: str, changed: int) -> None:
    names = Table("names", [("src", "string"), ("label", "string")], [("s", "old")])
    labelled = Model(
        "labelled",
        "select n.label, m.loss from {m:j} as m join {names} as n on m.src = n.src",
        None,
        {**OLDEST, "fivm_plain_change": of},
    )
    rows = [("s", "d", minutes("10:00", i), i) for i in range(4)]
    with bench([loss(rows), names], [labelled]) as b:
        b.run()
        b.check()
        b.change("names", [("s", "new")], [("s", "old")])
        b.change("m", [("s", "d", minutes("10:00", 4), 4)])
        b.run()
        labels = [r[0] for r in b.rows("labelled", "label, loss")]
        assert labels.count("new") == changed + 1
        if of == "all":
            b.check()


# Calendars


def test_days_on_which_clocks_change_have_23_and_25_hours() -> None:
    zone = "Europe/Vienna"
    hourly = TimeParts("ts", Length.of("hour"))
    table = Table("m", [("ts", "timestamp"), ("x", "int")], [], hourly)
    begins = datetime(2024, 3, 29, 23, tzinfo=timezone.utc)
    table.rows += [((begins + timedelta(hours=i)).replace(tzinfo=None), i) for i in range(24 * 4)]
    daily = Model(
        "daily",
        "select count(*) as hours, min(x) as first from {m:span j}",
        None,
        {**OLDEST, "fivm_part_length": "day"},
    )
    with bench([table], [daily], zone) as b:
        b.run()
        b.check()
        days = {r[1]: r[0] for r in b.rows("daily", "hours, part_timestamp")}
        assert days[datetime(2024, 3, 30, 23)] == 23, "the 31st of March"
        assert [days[k] for k in sorted(days)] == [24, 23, 24, 24]
        late = (begins + timedelta(hours=40)).replace(tzinfo=None)
        b.change("m", [(late, -1)])
        done = b.run()["daily"].parts
        b.check()
        assert done is not None and done.again == "19813"
    table.rows = [((datetime(2024, 10, 26, 22) + timedelta(hours=i)), i) for i in range(24 * 2)]
    with bench([table], [daily], zone) as b:
        b.run()
        b.check()
        assert set(b.rows("daily", "hours")) == {(25,)}


def test_months_and_a_leap_day() -> None:
    days = TimeParts("d", Length.of("day"))
    table = Table("m", [("d", "date"), ("x", "int")], [], days)
    first = datetime(2024, 1, 1).date()
    table.rows += [(first + timedelta(days=i), 1) for i in range(31 + 29 + 31)]
    monthly = Model(
        "monthly",
        "select count(*) as n, sum(x) as s from {m:span j}",
        None,
        {**OLDEST, "fivm_part_length": "month"},
    )
    with bench([table], [monthly]) as b:
        b.run()
        b.check()
        assert {r[1].month: r[0] for r in b.rows("monthly", "n, part_timestamp")} == {1: 31, 2: 29, 3: 31}
        b.change("m", [(datetime(2024, 2, 29).date(), 7)])
        done = b.run()["monthly"].parts
        b.check()
        assert done is not None and done.again == str(54 * 12 + 1)


# Ranges of time, backfill, retention


def test_a_range_of_time_and_what_is_left_to_do() -> None:
    rows = [("s", "d", minutes("10:00", i), 20) for i in range(10)]
    plain = Model("plain", "select src, loss from {m:j}", None, OLDEST)
    with bench([loss(rows)], [plain]) as b:
        some = (
            minutes("10:00", 2).replace(tzinfo=timezone.utc),
            minutes("10:00", 5).replace(tzinfo=timezone.utc),
        )
        b.run(within=some)
        b.check()
        assert b.known("plain")["computed"] == f"{part('10:02')}..{part('10:04')}"
        b.run()
        b.check()
        assert b.known("plain")["computed"] == f"{part('10:00')}..{part('10:09')}"
        b.change("m", [("s", "d", at("10:01"), 7), ("s", "d", at("10:03"), 7)])
        b.run(within=some)
        assert b.known("plain")["pending"] == str(part("10:01"))
        b.run()
        b.check()
        assert b.known("plain")["pending"] == "none"


def test_a_late_change_waits_where_it_leads_out_of_the_range() -> None:
    rows = [("s", "d", minutes("10:00", i), 20) for i in range(10)]
    with bench([loss(rows)], [HELPER]) as b:
        b.run()
        b.change("m", [("s", "d", at("10:03"), 7)], [("s", "d", at("10:03"), 20)])
        b.run(within=(None, at("10:05").replace(tzinfo=timezone.utc)))
        assert b.known("helper")["pending"] == str(part("10:05"))
        b.run()
        b.check()


def test_retention_drops_parts_and_retracts_nothing() -> None:
    helper = Model(HELPER.name, HELPER.update, HELPER.initialize, {**OLDEST, "fivm_retention": "3 minutes"})
    with bench([loss([("s", "d", at("10:00"), 20)])], [helper, VIEW2]) as b:
        for i in range(1, 10):
            b.change("m", [("s", "d", minutes("10:00", i), 20)])
            b.run()
        assert b.known("helper")["dropped"] == f"{part('10:00')}..{part('10:06')}"
        assert {r[0] for r in b.rows("helper", "ct")} == {8, 9, 10}
        assert {r[0] for r in b.rows("view2", "ct")} == set(range(4, 11)), "dependants keep their results"
        assert ("helper", part("10:00"), "dropped", 0) in b.catalog("helper")
        # Late data that would need a part that is gone.
        b.change("m", [("s", "d", at("10:07"), 30)], [("s", "d", at("10:07"), 20)])
        with pytest.raises(FivmError) as raised:
            b.run()
        assert raised.value.code.number == "FIVM206"
        assert "which fivm_retention has dropped" in str(raised.value)


def test_retention_keeps_what_a_declared_lateness_needs() -> None:
    patient = TimeParts("ts", Length.of("minute"), lateness=timedelta(minutes=4))
    helper = Model(HELPER.name, HELPER.update, HELPER.initialize, {**OLDEST, "fivm_retention": "1 minute"})
    with bench([loss([("s", "d", at("10:00"), 20)], patient)], [helper]) as b:
        for i in range(1, 10):
            b.change("m", [("s", "d", minutes("10:00", i), 20)])
            b.run()
        # Minute 5 may still change, for which minute 4 is needed.
        assert b.known("helper")["dropped"] == f"{part('10:00')}..{part('10:03')}"
        b.change("m", [("s", "d", at("10:06"), 30)], [("s", "d", at("10:06"), 20)])
        b.run()
        assert set(b.rows("helper", "sum_loss")) == {(100,), (120,), (150,), (170,), (190,), (210,)}


def test_dropped_parts_of_a_source_are_no_deletions() -> None:
    """What was computed from them stays, also where a dimension changes; to need them again is an error."""
    lost = Model(
        "lost",
        "select m.src, d.name, sum(loss) as lost from {m:j-1..j} as m left join {d} as d on m.src = d.src "
        "group by m.src, d.name",
        None,
        OLDEST,
    )
    rows = [("s", "d", minutes("10:00", i), 20) for i in range(8)]
    source = replace(loss(rows), retention=timedelta(minutes=3))
    names = Table("d", [("src", "string"), ("name", "string")], [("s", "old")])
    with bench([source, names], [lost]) as b:
        b.run()
        # The owner takes minutes 0 to 3; the newest one, 7, leaves minutes 5 to 7 to be kept.
        b.change("m", delete=rows[:4])
        report = b.run()["lost"]
        assert report.action == "no change"
        gone = {r[1] for r in b.catalog("lost") if r[0] == "m" and r[2] == "dropped"}
        assert gone == {part(f"10:0{i}") for i in range(4)}
        assert b.known("lost")["computed"] == f"{part('10:01')}..{part('10:07')}"
        assert sum(r[0] for r in b.rows("lost", "lost").elements()) == 7 * 40
        # A late row of minute 6 changes what is there.
        b.change("m", [("s", "d", at("10:06"), 5)])
        b.run()
        assert sum(r[0] for r in b.rows("lost", "lost").elements()) == 7 * 40 + 10
        # A new name is seen in the parts that can be computed again: minute 4 reads minute 3.
        b.change("d", [("s", "new")], [("s", "old")])
        b.run()
        shown = b.rows("lost", "name, part_timestamp")
        assert {r[1].minute for r in shown if r[0] == "new"} == {5, 6, 7}
        assert {r[1].minute for r in shown if r[0] == "old"} == {1, 2, 3, 4}
        # A late row of a minute that is gone, and with it a change of the model that nobody has asked for.
        b.change("m", [("s", "d", at("10:02"), 5)])
        with pytest.raises(FivmError, match="fivm_retention has dropped") as raised:
            b.run()
        assert raised.value.code.number == "FIVM206"
        b.models["lost"] = replace(lost, update=lost.update.replace("sum(", "max("))
        b.plans["lost"] = b.plan(b.models["lost"])
        with pytest.raises(FivmError, match="has to be rebuilt") as raised:
            b.run()
        assert raised.value.code.number == "FIVM206"
        b.run(full_refresh=True)
        b.check()


def test_a_fivm_model_keeps_results_of_dropped_parts() -> None:
    helper = Model(HELPER.name, HELPER.update, HELPER.initialize, {**OLDEST, "fivm_retention": "3 minutes"})
    with bench([loss([("s", "d", at("10:00"), 20)])], [helper]) as b:
        b.run()
        b.add_fivm("summed", "select src, count(*) as n, max(ct) as longest from helper group by src", {})
        b.run_fivm("summed")
        for i in range(1, 10):
            b.change("m", [("s", "d", minutes("10:00", i), 20)])
            b.run("helper")
            b.run_fivm("summed")
        assert len(b.rows("helper")) == 3
        assert set(b.rows("summed")) == {("s", 10, 10)}
        b.change("m", [("s", "e", at("10:09"), 20)])
        b.run("helper")
        b.run_fivm("summed")
        assert set(b.rows("summed")) == {("s", 11, 10)}


def test_old_parts_are_merged_into_longer_periods() -> None:
    """Of minutes those of days that are over: reading them, and late data, work as before."""
    helper = Model(HELPER.name, HELPER.update, HELPER.initialize, {**OLDEST, "fivm_rollup": "1 hour"})
    days = [at("2015-01-01T23:58"), at("2015-01-01T23:59"), at("2015-01-02T00:00"), at("2015-01-02T00:30")]
    patient = TimeParts("ts", Length.of("minute"), lateness=timedelta())
    with bench([loss([("s", "d", moment, 20) for moment in days], patient)], [helper, VIEW2]) as b:
        b.run()
        assert b.known("helper")["merged"] == "none", "the day ended half an hour ago"
        b.change("m", [("s", "d", at("2015-01-02T01:05"), 20)])
        statements = b.run()["helper"].statements
        b.check()
        optimized = [s for s in statements if s.startswith("OPTIMIZE")]
        old = "__fivm_view = 'tail' OR (__fivm_view = 'root' AND __fivm_partition < 'v2015-01-02')"
        assert optimized == [f"OPTIMIZE helper__fivm_state WHERE {old}"]
        first = Length.of("minute").part_of(days[0].replace(tzinfo=timezone.utc))
        assert b.known("helper")["merged"] == f"{first}..{first + 1}"
        fields = "part, status, merged_into"
        assert {
            r[1:]
            for r in b.catalog("helper", f"relation, {fields}")
            if r[1] in (first, first + 1) and r[0] != "m"
        } == {
            (first, "merged", days[0].date()),
            (first + 1, "merged", days[0].date()),
        }
        b.change("m", [("s", "d", days[1], 30)], [("s", "d", days[1], 20)])
        b.run()
        b.check()
        assert (first + 1, "merged") in {r[1:] for r in b.catalog("helper", "relation, part, status")}


# What a catch-up costs


def test_a_catch_up_in_turn_is_one_statement_per_part() -> None:
    told: list[str] = []
    with bench([loss(TWENTY)], [HELPER]) as b:
        b.run()
        counts = {}
        for many in (1, 2, 40):
            minute = len(b.tables["m"].rows)
            b.change("m", [("s", "d", minutes("10:00", minute + i), 20) for i in range(many)])
            statements = b.run(progress=told.append)["helper"].statements
            b.check()
            counts[many] = len(statements)
            writes = [s for s in statements if s.startswith("INSERT INTO helper__fivm_state")]
            assert len(writes) == many
        # In which parts rows have come, and the parts.
        assert counts == {1: 2, 2: 3, 40: 41}
        assert sum("then 39 more" in line for line in told) == 1


def test_late_data_in_turn_is_one_statement_per_part_and_one_to_write_it() -> None:
    with bench([loss([*TWENTY, ("s", "d", at("10:06"), 1), ("s", "d", at("10:07"), 20)])], [HELPER]) as b:
        b.run()
        b.change("m", [("s", "d", at("10:03"), 30)], [("s", "d", at("10:03"), 20)])
        statements = b.run()["helper"].statements
        b.check()
        # Minutes 3 to 5 change, 6 ends what happens in a row, and is looked at.
        assert sum(s.startswith("CACHE TABLE fivm_helper__delta_helper") for s in statements) == 4
        writes = [s for s in statements if s.startswith("INSERT INTO helper__fivm_state")]
        assert ["REPLACE WHERE" in s for s in writes] == [True, True, True, False], (
            "the last one sets the head"
        )
        # The change; each part; those that are written; the head.
        assert len(statements) == 1 + 4 + 3 + 1


def test_rows_that_come_again_as_they_were_compute_no_part() -> None:
    row: Row = ("s", "d", at("10:03"), 20)
    with bench([loss(TWENTY)], [HELPER]) as b:
        b.run()
        b.change("m", [row], [row])
        done = b.run()["helper"]
        b.check()
        assert (done.action, len(done.inputs)) == ("no change", 1)
        assert (done.inputs[0].inserted, done.inputs[0].deleted) == (0, 0)
        # The change, and the head.
        assert len(done.statements) == 2


def test_a_refresh_says_how_many_rows_the_written_parts_have() -> None:
    two = [("s", "d", minutes("10:00", i), 20) for i in range(4)] + [
        ("t", "d", minutes("10:00", i), 30) for i in range(4)
    ]
    model = Model("flat", "select src, dest, loss from {m:j}", None, OLDEST)
    with bench([loss(two)], [model]) as b:
        b.run()
        b.change(
            "m", [("s", "d", at("10:01"), 21), ("u", "d", at("10:04"), 9)], [("s", "d", at("10:02"), 20)]
        )
        done = b.run()["flat"]
        b.check()
        # Minute 1 has three rows now, minute 2 has one, and minute 4 is new.
        assert (done.parts.computed, done.parts.changed, done.parts.rows) == (
            str(part("10:04")),
            f"{part('10:01')}..{part('10:02')}",
            5,
        )
        assert not any("COUNT(*) AS rows" in s for s in done.statements)


def test_a_part_that_comes_to_what_it_was_is_not_written() -> None:
    model = Model(
        "top",
        "select src, max(loss) as top, count(distinct loss) > 1 as more from {m:j} group by src",
        None,
        OLDEST,
    )
    with bench([loss([("s", "d", minutes("10:00", i), 20) for i in range(3)])], [model]) as b:
        b.run()
        b.change("m", [("s", "d", at("10:01"), 20)])
        done = b.run()["top"]
        b.check()
        assert (done.parts.again, done.parts.changed, done.parts.rows) == (str(part("10:01")), "none", 0)
        # The change, the part, and the head.
        assert len(done.statements) == 3


# Interruptions


@contextmanager
def watching(engine: Any, asked: list[str]) -> Iterator[None]:
    """Take down what is asked."""
    query = engine.query

    def watched(sql: str) -> Any:
        asked.extend([sql] if sql.startswith("SELECT") else [])
        return query(sql)

    engine.query = watched
    try:
        yield
    finally:
        del engine.query


TWENTY: list[Row] = [("s", "d", minutes("10:00", i), 20) for i in range(6)]
LATE: dict[str, list[Row]] = {
    "insert": [("s", "d", at("10:02"), 25), *(("s", "d", minutes("10:06", i), 30) for i in range(2))],
    "delete": [("s", "d", at("10:02"), 20)],
}


@pytest.mark.parametrize(
    ("what_follows", "every"),
    [
        ("undone", 3),
        pytest.param("more", 1, marks=pytest.mark.more),
        *(pytest.param(follows, 1, marks=pytest.mark.long) for follows in ("undone", "nothing", "earlier")),
    ],
)
def test_an_interrupted_refresh_leaves_nothing_out(what_follows: str, every: int) -> None:
    """Stopped before every ``every``th of its writes; then what it had seen is undone, or more comes, or nothing."""
    stopped = 0
    while True:
        with bench([loss(TWENTY)], [HELPER, CSUM]) as b:
            b.run()
            b.change("m", **LATE)
            with stopping(b, stopped + 1):
                try:
                    b.run()
                    break
                except Interrupted:
                    stopped += every
            if what_follows == "undone":
                b.change("m", LATE["delete"], LATE["insert"])
            elif what_follows == "more":
                b.change("m", [("t", "d", at("10:04"), 40), ("s", "d", at("10:08"), 5)], LATE["insert"][:1])
            elif what_follows == "earlier":
                b.change("m", [("s", "d", at("09:59"), 50)], LATE["insert"][1:])
            b.run()
            b.check()
            b.check_catalog()
            if what_follows in ("nothing", "more"):
                b.check_computed()
    assert stopped >= 8, "each part is a write"


def test_a_new_part_is_there_once_when_an_interrupted_refresh_goes_on() -> None:
    """What is new to the model is appended, but for what the attempt may have written."""
    with bench([loss(TWENTY)], [HELPER]) as b:
        b.run()
        b.change("m", **LATE)
        with stopping(b, 6), pytest.raises(Interrupted):
            b.run()
        assert b.bench.engine.query(f"SELECT 1 FROM helper WHERE part_timestamp = TIMESTAMP'{at('10:06')}'")
        b.run()
        b.check()


def test_a_part_of_which_nothing_is_left_when_an_interrupted_refresh_goes_on() -> None:
    """It is no part then: the attempt's rows of it go, and the part before the first one has none either."""
    with bench([loss(TWENTY[2:])], [HELPER]) as b:
        b.run()
        later = [("s", "d", at("10:01"), 30), ("s", "d", at("10:06"), 30)]
        b.change("m", later)
        with stopping(b, 4), pytest.raises(Interrupted):
            b.run()
        b.change("m", delete=later)
        b.run()
        b.check()
        b.check_catalog()
        assert b.known("helper")["computed"] == f"{part('10:02')}..{part('10:05')}"
        b.change("m", later)
        b.run()
        b.check()
        b.check_catalog()


@contextmanager
def _written_twice(b: Bench, model: str, times: int) -> Iterator[None]:
    """The first statements that write a model's state are run again: by a process that seemed dead and is not."""
    engine: Any = b.bench.engine
    run = engine.run

    def twice(sql: str) -> None:
        nonlocal times
        run(sql)
        if times and sql.startswith(f"INSERT INTO {model}__fivm_"):
            times -= 1
            run(sql)

    engine.run = twice
    try:
        yield
    finally:
        engine.run = run


COUNTS = Model("counts", "select src, count(*) as n from {m:j} group by src", None, {"fivm_start": "oldest"})


@pytest.mark.parametrize(
    "model",
    fast_only(["together", "running sums"], {"together": COUNTS, "in turn": HELPER, "running sums": CSUM}),
)
def test_parts_that_somebody_else_writes_at_the_same_time(model: Model) -> None:
    """They would be there twice. The refresh notices it, and computes again what has been written meanwhile."""
    with bench([loss(TWENTY)], [model]) as b:
        for step in ("build", "a new part", "late rows", "rebuild"):
            if step == "a new part":
                b.change("m", [("s", "d", at("10:06"), 30)])
            elif step == "late rows":
                b.change("m", [("s", "d", at("10:03"), 30), ("s", "d", at("10:07"), 30)])
            with _written_twice(b, model.name, 1):
                b.run(full_refresh=step == "rebuild")
            b.check()
            b.check_catalog()
            b.check_computed()


def test_somebody_else_writes_again_and_again() -> None:
    """The refresh gives up; the next one finds what was left."""
    with bench([loss(TWENTY)], [COUNTS]) as b:
        b.run()
        b.change("m", [("s", "d", at("10:06"), 30)])
        with _written_twice(b, "counts", 9), pytest.raises(FivmError, match="FIVM403"):
            b.run()
        b.run()
        b.check()
        b.check_catalog()


@pytest.mark.parametrize("model", [HELPER, CSUM], ids=["in turn", "running sums"])
def test_readers_of_a_model_that_is_rebuilt_see_all_of_it(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before each statement that writes: what was there before or what is there in the end, never a part of it."""
    with bench([loss(TWENTY)], [model]) as b:
        b.run()
        before = b.rows(model.name)
        b.change("m", [("s", "d", at("10:06"), 30)])
        engine: Any = b.bench.engine
        run, seen = engine.run, []

        def watched(sql: str) -> None:
            run(sql)
            seen.append(b.rows(model.name))

        with monkeypatch.context() as patch:
            patch.setattr(engine, "run", watched)
            done = b.run(full_refresh=True)[model.name]
        assert done.action == "rebuilt"
        after = b.rows(model.name)
        assert before != after
        assert [rows in (before, after) for rows in seen] == [True] * len(seen)
        assert seen.index(after) > 3
        b.check()
        assert not engine.exists(f"{model.name}__fivm_next")


@pytest.mark.parametrize("other", fast_only(["another process"], ["nobody", "another process", "a rebuild"]))
def test_what_another_model_says_is_asked_anew_where_it_has_been_written_since(other: str) -> None:
    """The head knows what has been computed, whoever has done it."""
    with bench([loss(TWENTY)], [HELPER, VIEW2]) as b:
        b.run()
        for minute in (6, 7):
            before = [row for row in b.tables["m"].rows if row[2] == at("10:02")]
            b.change(
                "m", [("s", "d", minutes("10:00", minute), 30), ("s", "d", at("10:02"), 20 + minute)], before
            )
            b.run("helper")
            if other != "nobody":
                b.change(
                    "m", [("s", "d", minutes("10:30", minute), 40), ("t", "d", minutes("10:00", minute), 40)]
                )
                b.run("helper", full_refresh=other == "a rebuild")
            asked: list[str] = []
            with watching(b.bench.engine, asked):
                done = b.run("view2")["view2"]
            # Its head says it, beside the newest commit.
            assert not [s for s in asked if "__fivm_coverage" in s]
            assert done.parts is not None and done.parts.computed != "none"
            b.check()


@pytest.mark.more
def test_an_interrupted_build_is_a_build() -> None:
    """Stopped before each of its writes: what was there is shown, and the next run builds until the build is shown."""
    stopped, reasons = 0, []
    while True:
        with bench([loss(TWENTY)], [HELPER]) as b:
            b.run()
            before = b.rows("helper")
            b.change("m", [("s", "d", at("10:02"), 25)], TWENTY[2:3])
            with stopping(b, stopped + 1):
                try:
                    b.run(full_refresh=True)
                    break
                except Interrupted:
                    stopped += 1
            shown = b.rows("helper")
            reasons.append(b.run()["helper"].reason)
            b.check()
            b.check_catalog()
            assert (shown == b.rows("helper")) == (reasons[-1] is None and stopped > 1)
            assert shown in (before, b.rows("helper"))
            assert not b.bench.engine.exists("helper__fivm_next")
    interrupted = [reason == "a build was interrupted" for reason in reasons]
    many = sum(interrupted)
    # Before the first write nobody knows that a build is wanted; once the state is replaced it is finished.
    assert many == 2 + len(TWENTY) and interrupted[: 1 + many] == [False, *[True] * many]


# Cumulative helpers


@pytest.mark.parametrize(
    ("insert", "delete", "in_one"),
    [
        pytest.param([("s", "d", at("10:05"), 7)], [], True, id="a late row"),
        pytest.param(
            [("new", "d", at("10:05"), 7)], [], True, id="a key that is nowhere else", marks=pytest.mark.more
        ),
        pytest.param([("late", "d", at("10:05"), 7)], [], True, id="a key that comes later"),
        pytest.param(
            [("s", "d", at("10:05"), 7)],
            [("s", "d", at("10:05"), 5)],
            True,
            id="another value",
            marks=pytest.mark.more,
        ),
        pytest.param(
            [(None, "d", at("10:05"), None)], [], True, id="nothing but NULLs", marks=pytest.mark.more
        ),
        pytest.param(
            [("nulls", "d", at("10:05"), 1)], [], True, id="a sum that was NULL", marks=pytest.mark.more
        ),
        pytest.param([], [("s", "d", at("10:05"), 5)], True, id="a row less", marks=pytest.mark.more),
        pytest.param([], [("once", "d", at("10:05"), 3)], False, id="a key that goes"),
        pytest.param(
            [("nulls", "d", at("10:05"), None)],
            [("nulls", "d", at("10:05"), 4)],
            False,
            id="a sum that becomes NULL",
        ),
    ],
)
def test_late_data_is_added_to_all_later_sums(insert: list[Row], delete: list[Row], in_one: bool) -> None:
    rows: list[Row] = [("s", "d", minutes("10:00", i), i) for i in range(60)]
    rows += [("late", "d", minutes("10:00", 30), 1), ("once", "d", at("10:05"), 3)]
    rows += [("nulls", "d", at("10:02"), None)] + ([("nulls", "d", at("10:05"), 4)] if not in_one else [])
    with bench([loss(rows)], [CSUM]) as b:
        b.run()
        b.check()
        b.change("m", insert, delete)
        done = b.run()["csum"]
        b.check()
        merges = [s for s in done.statements if s.startswith("MERGE INTO csum__fivm_state")]
        assert len(merges) == int(in_one)
        assert len(done.statements) < 20, "fifty-five parts change"
        assert done.parts is not None and done.parts.changed == f"{part('10:05')}..{part('10:59')}"
        assert {
            r[1] for r in b.catalog("csum", "relation, part, row_count") if r[0] == "csum" and r[2] == 0
        } == set()


def test_late_data_in_two_parts_and_a_new_one() -> None:
    rows: list[Row] = [("s", "d", minutes("10:00", i), i) for i in range(60)]
    with bench([loss(rows)], [CSUM]) as b:
        b.run()
        b.change("m", [("s", "d", at("10:05"), 7), ("t", "d", at("10:20"), 7), ("s", "d", at("11:00"), 7)])
        done = b.run()["csum"]
        b.check()
        assert sum(s.startswith("MERGE INTO csum__fivm_state") for s in done.statements) == 2
        assert done.parts is not None and done.parts.computed == str(part("11:00"))


TOTALS = Model(
    "totals",
    """select src, dest, sum(lost) as lost, sum(money) as money, sum(n) as n from (
        select src, dest, sum(loss) as lost, sum(cast(loss as decimal(12, 2))) as money, count(*) as n
        from {m:j} group by src, dest
        union all select src, dest, lost, money, n from {totals:j-1}
        union all select src, 'all', loss, 0.5, 1 from {m:j} where loss <> 3) as three group by src, dest""",
    "select src, dest, sum(loss) as lost, sum(cast(loss as decimal(12, 2))) as money, count(*) as n from {m:i} "
    "group by src, dest",
    OLDEST,
)


def test_many_parts_of_sums_are_one_statement() -> None:
    """Built, and caught up with: NULL keys, keys that begin late, values that are NULL, parts without rows."""
    rows: list[Row] = [("s", "d", minutes("10:00", i), i) for i in range(0, 40, 3)]
    rows += [(None, "d", at("10:04"), 1), (None, None, at("10:07"), None), (None, None, at("10:30"), 2)]
    rows += [
        ("nulls", "d", at("10:05"), None),
        ("nulls", "d", at("10:20"), None),
        ("minus", "d", at("10:09"), -3),
    ]
    with bench([loss(rows, PATIENT)], [CSUM, TOTALS]) as b:
        done = b.run()
        b.check()
        for name in ("csum", "totals"):
            writes = [s for s in done[name].statements if s.startswith(f"INSERT INTO {name}__fivm_state")]
            assert len(writes) == 2, "INITIALIZE, and all others"
        b.change("m", [("s", "d", minutes("11:00", i), 1) for i in range(20)] + [(None, "d", at("11:05"), 9)])
        done = b.run()
        b.check()
        for name in ("csum", "totals"):
            assert sum(s.startswith(f"INSERT INTO {name}__fivm_state") for s in done[name].statements) == 1
        # A key goes, another comes, and there is something new: what follows is computed in one statement.
        b.change(
            "m", [("new", "d", at("10:33"), 5), ("s", "d", at("11:30"), 5)], [(None, "d", at("10:04"), 1)]
        )
        done = b.run()
        b.check()
        b.check_computed()
        assert len(done["totals"].statements) < 30


def test_sums_that_overflow_are_computed_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark loses such a sum in one part, and begins anew in the next one; a running sum stops with an error."""
    with bench([loss([("s", "d", minutes("10:00", i), i) for i in range(4)])], [TOTALS]) as b:
        engine: Any = b.bench.engine
        run = engine.run

        def overflowing(sql: str) -> None:
            if "OVER (PARTITION BY" in sql and "a decimal sum overflowed" in sql:
                raise RuntimeError(
                    "[USER_RAISED_EXCEPTION] FIVM402 totals__fivm_state: a decimal sum overflowed"
                )
            run(sql)

        with monkeypatch.context() as patch:
            patch.setattr(engine, "run", overflowing)
            done = b.run()["totals"]
        b.check()
        assert sum(s.startswith("INSERT INTO totals__fivm_state") for s in done.statements) == 1 + 1 + 3


@pytest.mark.parametrize("having", ["", " having sum(n) < 9"])
def test_what_is_left_out_is_no_running_sum(having: str) -> None:
    model = Model("csum", CSUM.update + having, CSUM.initialize, OLDEST)
    with bench([loss([("s", "d", minutes("10:00", i), i) for i in range(12)])], [model]) as b:
        plan = b.plans["csum"].parts
        assert plan is not None and (plan.cumulative is None) == bool(having)
        b.run()
        b.check()


# What is refused

ITSELF = "select src from {m:j+1} union all select src from {helper:j}"
DECIMALS = "select src, cast(loss as decimal(5, 2)) as n from {m:i}"
REFUSED: list[tuple[str, str | None, dict[str, Any], str]] = [
    ("select 1 as a", None, {}, "it reads no part of any input"),
    (ITSELF, "select src from {m:i}", {}, "is not before the one computed"),
    ("select src from {m:j*60}", None, {}, "write {{ fivm.part(..., 'j') }}"),
    ("select src from {m:j}", None, {"fivm_part_length": "hour"}, "'j*60'"),
    ("select src from {m:span j}", None, {"fivm_part_length": "90 seconds"}, "do not divide"),
    ("select src from {helper:j-1}", None, {"fivm_part_length": 60}, "what the first one is"),
    ("select src, n from {helper:j-1}", "select src, 'x' as n, 1 as m from {m:i}", {}, "INITIALIZE gives"),
    (
        "select src, 1 as n from {helper:j-1}",
        "select src, 'x' as n from {m:i}",
        {},
        "string in INITIALIZE and int",
    ),
    ("select src, part_timestamp from {helper:j-1}", "select src from {m:i}", {}, "by itself"),
    ("select src, current_timestamp() as t from {m:j}", None, {}, "reads the clock"),
    ("select src, rand() as r from {m:j}", None, {}, "could not be computed again"),
    ("select src from {names:j}", None, {}, "nothing is known of the parts of names"),
    ("select src from {m:j}", None, {"fivm_start": "soon"}, "'soon' is no time"),
    ("select src from {m:j}", None, {"fivm_part_length": "fortnight"}, "is no length"),
    ("select src from {m:j..j-1}", None, {}, "has no parts"),
    ("select src, sum(n) as n from {helper:j-1} group by src", DECIMALS, {}, "types of UPDATE grow"),
]


@pytest.mark.parametrize(("update", "initialize", "meta", "told"), REFUSED, ids=[r[-1] for r in REFUSED])
def test_refused(update: str, initialize: str | None, meta: dict[str, Any], told: str) -> None:
    names = Table("names", [("src", "string")])
    with (
        pytest.raises(FivmError) as raised,
        bench([loss(), names], [Model("helper", update, initialize, meta)]),
    ):
        pass
    assert told in str(raised.value)
    assert raised.value.code.number in ("FIVM105", "FIVM106", "FIVM201", "FIVM205")


def test_types_of_both_queries_are_brought_together() -> None:
    counted = Model(
        "counted",
        "select sum(n) as n from (select count(*) as n from {m:j} union all select n from {counted:j-1}) as both",
        "select max(1) as n from {m:i}",
        OLDEST,
    )
    with bench([loss([("s", "d", minutes("10:00", i), i) for i in range(3)])], [counted]) as b:
        assert [c.type.text for c in b.plans["counted"].output] == ["bigint", "timestamp"]
        b.run()
        b.check()


def test_a_star_over_another_viewdf_model() -> None:
    star = Model("star", "select * from {helper:j} where ct > 1", None, OLDEST)
    with bench([loss([("s", "d", minutes("10:00", i), 20) for i in range(3)])], [HELPER, star]) as b:
        assert [c.name for c in b.plans["star"].output] == ["src", "dest", "ct", "sum_loss", "part_timestamp"]
        b.run()
        b.check()


# The time partitions of fivm models


def test_a_fivm_model_shows_its_partitions_where_that_is_asked_for() -> None:
    table = Table(
        "m", [("src", "string"), ("ts", "timestamp"), ("loss", "int")], [("s", at("2015-01-31T10:00"), 1)]
    )
    sql = "select cast(ts as date) as day, src, sum(loss) as loss from m group by cast(ts as date), src"
    with bench([table], []) as b:
        b.add_fivm("daily", sql, {"fivm_part_timestamp": True, "batch_size": "day"})
        b.run_fivm("daily")
        b.change("m", [("s", at("2015-02-01T00:00"), 2), ("t", at("2015-02-01T23:00"), 3)])
        b.run_fivm("daily")
        day = Length.of("day").part_of(at("2015-01-31").replace(tzinfo=timezone.utc))
        assert b.catalog("daily") == {("daily", day, "computed", 1), ("daily", day + 1, "computed", 2)}
        assert set(b.rows("daily", "src, loss, part_timestamp")) == {
            ("s", 1, at("2015-01-31T00:00")),
            ("s", 2, at("2015-02-01T00:00")),
            ("t", 3, at("2015-02-01T00:00")),
        }
        before = b.last_updated("daily")
        b.change("m", delete=[("s", at("2015-01-31T10:00"), 1)])
        b.run_fivm("daily")
        after = b.last_updated("daily")
        assert {p for p in after if after[p] != before[p]} == {day}
        assert ("daily", day, "computed", 0) in b.catalog("daily")


def test_part_timestamp_needs_a_time() -> None:
    table = Table("m", [("src", "string"), ("ts", "timestamp")], [])
    with bench([table], []) as b, pytest.raises(FivmError) as raised:
        b.add_fivm("plain", "select src, count(*) as n from m group by src", {"fivm_part_timestamp": True})
    assert raised.value.code.number == "FIVM202"


def test_keys_of_viewdf_models_mean_nothing_of_others() -> None:
    with bench([Table("m", [("src", "string")], [])], []) as b, pytest.raises(FivmError) as raised:
        b.add_fivm("plain", "select src from m", {"fivm_retention": "2 days"})
    assert raised.value.code.number == "FIVM201"


def test_patterns_and_ties_within_a_part() -> None:
    """MATCH_RECOGNIZE is written out for each part; a window whose order leaves ties is completed in both queries."""
    falling = Model(
        "falling",
        """select src, n from {m:j-4..j} match_recognize (
            partition by src order by ts measures count(*) as n
            pattern (a b+) define b as b.loss < prev(b.loss)) as f""",
        None,
        OLDEST,
    )
    first = Model(
        "firsts",
        "select src, loss from {m:j} qualify row_number() over (partition by src order by ts) = 1",
        "select src, loss from {m:i} qualify row_number() over (partition by src order by ts) = 1",
        OLDEST,
    )
    losses = [9, 7, 5, 8, 6, 6, 4]
    rows: list[Row] = [("s", "d", minutes("10:00", i), value) for i, value in enumerate(losses)]
    with bench([loss([*rows, ("s", "d", at("10:00"), 1)])], [falling, first]) as b:
        b.run()
        assert set(b.rows("firsts", "src, loss, part_timestamp")) >= {("s", 1, at("10:00"))}
        # The last five are 5, 8 6, 6 4.
        assert b.rows("falling", "n, part_timestamp")[2, at("10:06")] == 2
        b.change("m", [("s", "d", at("10:05"), 5)], [("s", "d", at("10:05"), 6)])
        b.run()
        assert [r for r in b.rows("falling", "n, part_timestamp") if r[1] == at("10:06")] == [
            (4, at("10:06"))
        ]


def test_late_rows_in_many_parts_that_are_no_neighbours() -> None:
    """What lies between the parts that are written is not touched."""
    plain = Model("plain", "select src, loss from {m:j}", None, OLDEST)
    with bench([loss([("s", "d", minutes("10:00", i), i) for i in range(180)])], [plain]) as b:
        b.run()
        b.change("m", [("late", "d", minutes("10:00", i), 1) for i in range(0, 180, 3)])
        done = b.run()["plain"].parts
        b.check()
        assert done is not None and done.changed.count(",") == 59
