"""Viewdf models that drop their old parts, beside the same models that keep them: nothing that is read is dropped."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta, timezone

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import PART_TIMESTAMP, TimeParts
from fixtures.runs import by_run
from viewdf_bench import Bench, Interrupted, Model, Row, Table, _numbers, at, minutes, stopping

MINUTE = Length.of("minute")
COLUMNS = [("k", "string"), ("v", "int"), ("ts", "timestamp")]
OLDEST = {"fivm_start": "oldest"}
PLAIN = "select k, v from {m:j}"


def _source(rows: list[Row], lateness: int | None = None) -> Table:
    late = None if lateness is None else timedelta(minutes=lateness)
    return Table("m", COLUMNS, rows, TimeParts("ts", MINUTE, late))


def _keeping(kept: str) -> Mapping[str, str]:
    return {**OLDEST, "fivm_retention": kept}


def _rows(first: int, last: int) -> list[Row]:
    return [("a", 20, minutes("10:00", i)) for i in range(first, last + 1)]


def _part(text: str) -> int:
    return MINUTE.part_of(at(text).replace(tzinfo=timezone.utc))


@contextmanager
def _bench(table: Table, *models: Model) -> Iterator[Bench]:
    made = Bench([table], models)
    try:
        yield made
    finally:
        made.close()


def _sums(name: str, source: str, meta: Mapping[str, str]) -> Model:
    return Model(
        name,
        f"select k, sum(v) as v from (select k, v from {{{source}:j}} union all select k, v from {{{name}:j-1}}) as b "
        "group by k",
        f"select k, sum(v) as v from {{{source}:i}} group by k",
        meta,
    )


def test_a_lateness_is_that_of_the_sources_behind_other_models() -> None:
    models = [Model("plain", PLAIN, None, OLDEST), _sums("sums", "plain", _keeping("1 minute"))]
    with _bench(_source(_rows(0, 0), lateness=5), *models) as b:
        b.run()
        for minute in range(1, 10):
            b.change("m", _rows(minute, minute))
            b.run()
        # Minute 4 may still change, for which minute 3 is needed.
        assert b.known("sums")["dropped"] == f"{_part('10:00')}..{_part('10:02')}"
        assert b.known("sums")["watermark"] == _part("10:04")
        b.change("m", [("a", 1, at("10:04"))])
        done = b.run()["sums"].parts
        assert done is not None and done.again == f"{_part('10:04')}..{_part('10:09')}"
        assert {r[0] for r in b.rows("sums", "v")} == {80, 101, 121, 141, 161, 181, 201}


def test_what_nobody_has_read_is_kept() -> None:
    models = [
        Model("plain", PLAIN, None, _keeping("3 minutes")),
        Model("copy", PLAIN.replace("m:", "plain:")),
    ]
    models[1].meta = OLDEST
    told: list[str] = []
    with _bench(_source(_rows(0, 0)), *models) as b:
        b.run()
        b.add_fivm("total", "select k, count(*) as n, sum(v) as v from plain group by k", {})
        b.run_fivm("total")
        b.change("m", _rows(1, 9))
        b.run("plain", progress=told.append)
        assert b.known("plain")["dropped"] == "none"
        assert any("keeping 7 parts" in line and "copy, total may still read" in line for line in told), told
        b.change("m", _rows(10, 10))
        b.run("plain", "copy")
        b.change("m", _rows(11, 11))
        b.run("plain")
        assert b.known("plain")["dropped"] == "none", "total has not been refreshed"
        b.run("copy")
        b.run_fivm("total")
        assert len(b.rows("copy")) == 12
        assert set(b.rows("total")) == {("a", 12, 240)}
        b.change("m", _rows(12, 12))
        b.run()
        b.run_fivm("total")
        assert b.known("plain")["dropped"] == f"{_part('10:00')}..{_part('10:09')}"
        assert len(b.rows("copy")) == 13
        assert set(b.rows("total")) == {("a", 13, 260)}


def test_parts_are_kept_for_the_windows_of_other_models() -> None:
    """Five minutes of three that are to be kept, and as many of what a late row may change."""
    window = Model("recent", "select k, sum(v) as v from {plain:j-4..j} group by k", None, OLDEST)
    with _bench(
        _source(_rows(0, 9), lateness=2), Model("plain", PLAIN, None, _keeping("3 minutes")), window
    ) as b:
        b.run()
        for minute in range(10, 20):
            b.change("m", _rows(minute, minute))
            b.run()
        # When minute 19 came, minute 16 could still change, which is computed from the four before it.
        assert b.known("plain")["dropped"] == f"{_part('10:00')}..{_part('10:11')}"
        b.change("m", [("a", 1, minutes("10:00", 17))])
        b.run()
        assert b.rows("recent", "v") == Counter({(100,): 13, (101,): 3})


def test_a_range_of_time_leaves_parts_to_be_read() -> None:
    copy = Model("copy", PLAIN.replace("m:", "plain:"), None, OLDEST)
    with _bench(_source(_rows(0, 9)), Model("plain", PLAIN, None, _keeping("3 minutes")), copy) as b:
        b.run("plain")
        b.run("copy", within=(at("10:08").replace(tzinfo=timezone.utc), None))
        b.change("m", _rows(10, 10))
        b.run("plain")
        assert b.known("plain")["dropped"] == "none", "minutes 0 to 7 are not computed yet"
        b.run("copy")
        assert len(b.rows("copy")) == 11


def test_all_is_built_anew_before_anything_is_dropped() -> None:
    copy = Model("copy", PLAIN.replace("m:", "plain:"), None, OLDEST)
    with _bench(_source(_rows(0, 0)), Model("plain", PLAIN, None, _keeping("3 minutes")), copy) as b:
        b.run()
        for minute in range(1, 10):
            b.change("m", _rows(minute, minute))
            b.run()
        assert b.known("plain")["dropped"] != "none"
        b.run(full_refresh=True)
        assert b.known("plain")["dropped"] == "none"
        assert len(b.rows("copy")) == 10


def test_older_rows_than_those_dropped_begin_no_part() -> None:
    with _bench(_source(_rows(5, 5)), Model("plain", PLAIN, None, _keeping("3 minutes"))) as b:
        b.run()
        for minute in range(6, 12):
            b.change("m", _rows(minute, minute))
            b.run()
        b.change("m", _rows(1, 1))
        told: list[str] = []
        done = b.run(progress=told.append)["plain"].parts
        assert done is not None and (done.computed, done.waiting) == ("none", None)
        assert b.known("plain")["first"] == _part("10:05")
        b.change("m", _rows(6, 6))
        done = b.run(progress=told.append)["plain"].parts
        assert done is not None and (done.again, done.too_late) == ("none", str(_part("10:06")))


def test_rows_later_than_that_are_an_error_where_they_are_needed() -> None:
    with _bench(_source(_rows(0, 0)), _sums("sums", "m", _keeping("3 minutes"))) as b:
        b.run()
        for minute in range(1, 10):
            b.change("m", _rows(minute, minute))
            b.run()
        b.change("m", _rows(7, 7))
        with pytest.raises(FivmError) as raised:
            b.run()
        assert raised.value.code.number == "FIVM206"


def test_a_gap_that_is_filled_later_than_that_is_given_up() -> None:
    """An error in every run would stop the parts behind the gap too."""
    pairs = Model("pairs", "select k, sum(v) as v from {plain:j-1..j} group by k", None, OLDEST)
    with _bench(_source(_rows(0, 1)), Model("plain", PLAIN, None, _keeping("3 minutes")), pairs) as b:
        b.run()
        for minute in range(3, 12):
            b.change("m", _rows(minute, minute))
            waiting = b.run()["pairs"].parts
            assert waiting is not None and waiting.waiting is not None
        before = len(b.rows("pairs"))
        b.change("m", _rows(2, 2))
        done = b.run()["pairs"].parts
        assert done is not None
        assert done.given_up == f"{_part('10:02')}..{_part('10:03')}"
        assert any("given up, as fivm_retention has dropped" in text for text in done.texts())
        assert done.waiting is None and len(b.rows("pairs")) == before
        b.change("m", _rows(12, 12))
        done = b.run()["pairs"].parts
        assert done is not None and (done.computed, done.given_up) == (str(_part("10:12")), "none")


# Interruptions


WRITES = 2
"""Those of a refresh that drops parts: what is new, and what is old."""
CUTS = sorted(
    itertools.product(range(1, WRITES + 1), range(WRITES + 1)), key=lambda cuts: cuts not in ((2, 2), (2, 1))
)
"""After which write a refresh is cut off, and after which the next one, 0 for none: those first that once failed."""


@pytest.mark.parametrize("are_read", by_run([True], more=[False]))
@pytest.mark.parametrize(
    "cuts", by_run(fast=CUTS[:2], more=CUTS[2:]), ids=lambda cuts: "-".join(map(str, cuts))
)
def test_cut_off_at_every_write_and_once_more(cuts: tuple[int, int], are_read: bool) -> None:
    """With models behind it refreshed in between or not, everything is as if nothing had happened."""
    first, second = cuts
    copy = Model("copy", PLAIN.replace("m:", "plain:"), None, OLDEST)
    with _bench(_source(_rows(0, 0)), Model("plain", PLAIN, None, _keeping("2 minutes")), copy) as b:
        b.run()
        b.add_fivm("total", "select k, count(*) as n, sum(v) as v from plain group by k", {})
        b.run_fivm("total")
        for minute in range(1, 6):
            b.change("m", _rows(minute, minute))
            b.run()
            b.run_fivm("total")
        b.change("m", _rows(6, 6))
        for write in (first, second):
            with suppress(Interrupted), stopping(b, write):
                b.run("plain")
            if are_read:
                b.run("copy")
                b.run_fivm("total")
        for minute in (7, 8):
            b.change("m", _rows(minute, minute))
            b.run()
            b.run_fivm("total")
        gone = set(_numbers(b.known("plain")["dropped"]))
        stored = {MINUTE.part_of(r[0].replace(tzinfo=timezone.utc)) for r in b.rows("plain", PART_TIMESTAMP)}
        assert gone and stored == set(_numbers(b.known("plain")["computed"])) - gone
        assert {r[1] for r in b.catalog("plain") if r[0] == "plain" and r[2] == "dropped"} == gone
        assert b.rows("copy").total() == 9
        assert set(b.rows("total")) == {("a", 9, 180)}


# Random ones


def _models(pick: random.Random, is_kept: bool) -> list[Model]:
    """Models over each other. Those that keep everything are the same but for that."""

    def meta(**more: str) -> dict[str, str]:
        kept = pick.choice((None, "1 minute", "2 minutes", "5 minutes"))
        retention = {} if is_kept or kept is None else {"fivm_retention": kept}
        return {**OLDEST, **more, **retention}

    age = pick.choice(("1 minute", "3 minutes"))
    low = pick.randint(1, 4)
    high = pick.randint(0, low)
    window = f"j-{low}..j-{high}" if high else f"j-{low}..j"
    over = pick.choice(("plain", "sums"))
    return [
        Model("plain", PLAIN, None, OLDEST if is_kept else _keeping(age)),
        _sums("sums", "plain", meta()),
        Model(
            "recent",
            f"select k, max(v) as v, count(*) as n from {{{over}:{window}}} group by k",
            None,
            meta(),
        ),
        Model(
            "coarse",
            f"select k, sum(v) as v from {{{pick.choice(('plain', 'recent'))}:span j}} group by k",
            None,
            meta(fivm_part_length=pick.choice(("2 minutes", "5 minutes"))),
        ),
    ]


def _twins(seed: int) -> int:
    """Two benches go through the same stream, one of which drops parts, and is cut off at times.

    Returns how many parts are dropped in the end.
    """
    pick, cuts = random.Random(seed), random.Random(-seed)
    lateness = pick.choice((None, 0, 2, 6))
    late = lateness or 0
    first = _some(pick, 0, 3, 6)
    dropping = Bench([_source(list(first), lateness)], _models(random.Random(seed), is_kept=False))
    keeping = Bench([_source(list(first), lateness)], _models(random.Random(seed), is_kept=True))
    fivm = f"select k, count(*) as n, sum(v) as v, max(v) as top from {pick.choice(('plain', 'recent'))} group by k"
    newest, rows = max(_minute(r) for r in first), list(first)
    try:
        for b in (dropping, keeping):
            b.add_fivm("total", fivm, {})
            b.run()
            b.run_fivm("total")
        for _ in range(8):
            oldest = newest - late
            gone = [r for r in rows if _minute(r) >= oldest]
            gone = pick.sample(gone, min(len(gone), pick.choice((0, 0, 1, 3))))
            upto = newest + pick.choice((0, 1, 1, 3, 12))
            come = [*_some(pick, oldest, upto, pick.choice((0, 2, 8))), ("a", 1, minutes("10:00", upto))]
            names = pick.sample(["plain", "sums", "recent", "coarse"], pick.choice((0, 0, 1, 2)))
            for b in (dropping, keeping):
                b.change("m", come, gone)
            if cuts.random() < 0.4:
                name, reader = cuts.choice(list(dropping.models)), cuts.choice(["sums", "recent", "coarse"])
                with suppress(Interrupted), stopping(dropping, cuts.randint(1, 8)):
                    dropping.run(name)
                dropping.run(reader)
                for b in (dropping, keeping):
                    b.run(name)
            for b in (dropping, keeping):
                for name in (n for n in b.models if n in names):
                    b.run(name)
            for row in gone:
                rows.remove(row)
            rows += come
            newest = upto
            if pick.random() < 0.3:
                continue  # what has been refreshed is ahead of the others
            for b in (dropping, keeping):
                b.run()
                b.run_fivm("total")
            keeping.check()
            _compare(dropping, keeping)
        return sum(len(_numbers(dropping.known(name)["dropped"])) for name in dropping.models)
    finally:
        dropping.close()
        keeping.close()


def _some(pick: random.Random, first: int, last: int, many: int) -> list[Row]:
    return [
        (pick.choice("abc"), pick.choice((None, 1, 2, 5)), minutes("10:00", pick.randint(first, last)))
        for _ in range(many)
    ]


def _minute(row: Row) -> int:
    return int((row[2] - at("10:00")).total_seconds()) // 60


def _compare(dropping: Bench, keeping: Bench) -> None:
    """Equal but for the rows of dropped parts; what is maintained over them is equal altogether."""
    for name in dropping.models:
        parts = dropping.plans[name].parts
        assert parts is not None
        gone = set(_numbers(dropping.known(name)["dropped"]))
        expected = Counter[Row]()
        for row, many in keeping.rows(name, f"*, {PART_TIMESTAMP} as at").items():
            start: datetime = row[-1].replace(tzinfo=timezone.utc)
            if parts.length.part_of(start) not in gone:
                expected[row[:-1]] = many
        assert dropping.rows(name) == expected, name
        assert dropping.known(name)["computed"] == keeping.known(name)["computed"], name
    assert dropping.rows("total") == keeping.rows("total")


@pytest.mark.parametrize("seed", by_run(range(1), long=range(1, 3)))
def test_what_is_left_is_what_it_would_be(seed: int) -> None:
    assert _twins(seed) > 0


@pytest.mark.more
@pytest.mark.parametrize("seed", range(10, 13))
def test_more_of_what_is_left_is_what_it_would_be(seed: int) -> None:
    _twins(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(13, 53))
def test_much_of_what_is_left_is_what_it_would_be(seed: int) -> None:
    _twins(seed)
