"""A refresh that is expected to take longer than a build becomes one, by what earlier ones have taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.naming import state_of
from fivm_dbt.refresh.costs import MANY_ROWS, REMEMBERED, Costs, Expected, Spent
from fivm_dbt.refresh.history import history
from fivm_dbt.refresh.report import Report
from fixtures.models import Bench

TABLES = {
    "f": ("k int, x int", [(n % 10, n) for n in range(100)]),
    "d": ("k int, t string", [(n, "ab"[n % 2]) for n in range(10)]),
}
SQL = "select d.t, sum(f.x) as s, count(*) as n from f join d on f.k = d.k group by d.t"


def _costs(
    *spent: tuple[Mapping[str, int], float], build: float | None = 10.0, rows: Mapping[str, int] | None = None
) -> Costs:
    return Costs(build, rows or {}, tuple(Spent(changed, seconds) for changed, seconds in spent))


class TestEstimates:
    def test_a_change_like_those_before(self) -> None:
        known = _costs(({"f": 90}, 3.0), ({"f": 110}, 5.0), ({"f": 100}, 4.0), ({"d": 100}, 60.0))
        assert known.expected({"f": 55}) == Expected(4.0, 10.0, is_sure=True)
        assert known.expected({"d": 199}) == Expected(60.0, 10.0)

    def test_two_of_three_are_believed(self) -> None:
        """One refresh may have taken long for another reason."""
        known = _costs(({"f": 10}, 3.0), ({"f": 10}, 30.0))
        assert known.expected({"f": 10}).refresh == 3.0
        assert known.refreshed({"f": (5, 5)}, 31.0).expected({"f": 10}).refresh == 30.0

    def test_the_last_five_count(self) -> None:
        known = _costs(*(({"f": 10}, 50.0) for _ in range(9)), *(({"f": 10}, 1.0) for _ in range(5)))
        assert known.expected({"f": 10}).refresh == 1.0

    def test_a_larger_change_takes_more_in_proportion(self) -> None:
        """Above what any refresh takes, and no more than its rows are expected to take."""
        known = _costs(({"d": 1}, 1.0), ({"f": 100}, 4.8), rows={"f": 1000, "e": MANY_ROWS})
        assert known.expected({"f": 201}).refresh == pytest.approx(4.8 / 4.5 * 10 * 0.6015)
        assert known.expected({"f": 1000}).refresh == pytest.approx(4.8 / 4.5 * 10 * 1.8)
        assert known.expected({"f": 300}).refresh == pytest.approx(4.8 / 4.5 * 10 * 0.75)
        assert _costs(({"f": 100}, 3.0)).expected({"f": 10_000}).refresh == 3.0, "nobody knows how large f is"

    def test_a_change_between_others(self) -> None:
        known = _costs(({"f": 10}, 2.0), ({"f": 1000}, 6.0), ({"d": 3}, 1.0))
        assert known.expected({"f": 30}).refresh == 2 * 3
        assert known.expected({"f": 100}).refresh == 6.0
        assert known.expected({"f": 2}).refresh == 2.0, "a smaller one takes no more"

    def test_an_input_that_has_not_changed_yet(self) -> None:
        known = _costs(rows={"f": 1000, "e": MANY_ROWS})
        assert known.expected({"f": 1000}).refresh == pytest.approx(18.0)
        assert known.expected({"f": 10}).refresh == pytest.approx(3.15)
        assert known.expected({"d": 10}) == Expected(None, 10.0)
        assert _costs(rows={"f": 1000}).expected({"f": 1000}) == Expected(None, 10.0), "a build of few rows"
        assert _costs(build=None, rows={"f": 10, "e": MANY_ROWS}).expected({"f": 10}) == Expected(None, None)

    def test_inputs_one_by_one_add_up(self) -> None:
        known = _costs(({"f": 10}, 3.0), ({"d": 10}, 4.0))
        assert known.expected({"f": 10, "d": 10}).refresh == 3 + 1
        both = _costs(({"f": 10}, 3.0), ({"d": 10}, 4.0), ({"f": 10, "d": 10}, 9.0))
        assert both.expected({"f": 10, "d": 10}).refresh == 9.0
        assert known.expected({"f": 10, "e": 10}) == Expected(None, 10.0)

    def test_of_the_same_inputs_together(self) -> None:
        """A smaller change of both says more than what each of them took by itself."""
        seen = [({"f": 10}, 2.0), ({"d": 10}, 2.0), ({"f": 100, "d": 10}, 8.0)]
        known = _costs(*seen, build=100.0, rows={"f": 1000, "d": MANY_ROWS})
        assert known.expected({"f": 500, "d": 50}).refresh == 8 * 5
        assert known.expected({"f": 50, "d": 4}).refresh == 8.0, "a smaller one takes no more"
        assert known.expected({"f": 10, "d": 0}) == known.expected({"f": 10})
        short = _costs(*seen, rows={"f": 1000, "d": MANY_ROWS})
        then, now = (0.3 + 1.5 * n * (0.1 + 10 / MANY_ROWS) for n in (1, 5))
        assert short.expected({"f": 500, "d": 50}).refresh == pytest.approx(10 * now * 8 / (10 * then))

    def test_what_is_not_believed_any_more(self) -> None:
        known = _costs(({"f": 10}, 20.0))
        tried = [known]
        while tried[-1].expected({"f": 10}).is_dearer(is_read=False):
            tried.append(tried[-1].instead().built(10.0))
        assert len(tried) - 1 == 5
        sure = _costs(*[({"f": 10}, 20.0)] * 2)
        assert all(
            known.expected({"f": 10}).is_dearer(is_read=False) for known in (sure, sure.instead().built(10.0))
        )
        assert tried[-1].refreshed({"f": (5, 5)}, 20.0).given_up == 0

    def test_short_builds_of_many_rows(self) -> None:
        """Of few rows what is around the statements decides, and varies."""
        for rows, is_dearer in ((MANY_ROWS, True), (MANY_ROWS - 1, False)):
            known = _costs(*[({"f": 10}, 2.4)] * 2, build=1.5, rows={"f": rows})
            assert known.expected({"f": 10}).is_dearer(is_read=False) is is_dearer
        once = _costs(({"f": 10}, 3.4), build=1.5, rows={"f": MANY_ROWS})
        assert not once.expected({"f": 10}).is_dearer(is_read=False)

    def test_only_the_last_refreshes_are_remembered(self) -> None:
        known = Costs(10.0, {"f": 100, "d": 5})
        for number in range(REMEMBERED + 5):
            known = known.refreshed({"f": (3, 1)}, float(number))
        assert [s.seconds for s in known.spent] == [float(n) for n in range(5, REMEMBERED + 5)]
        assert known.rows == {"f": 100 + 2 * (REMEMBERED + 5), "d": 5}
        assert known.refreshed({"d": (0, 9)}, None) == replace(known, rows={**known.rows, "d": 0})

    def test_whether_a_change_has_to_be_counted(self) -> None:
        known = _costs(({"f": 10}, 20.0), rows={"d": 100, "e": MANY_ROWS})
        assert known.may_be_dearer("d", 100, is_read=False) and not known.may_be_dearer(
            "d", 10, is_read=False
        )
        assert known.may_be_dearer("f", 10, is_read=False)
        assert not known.may_be_dearer("f", 10, is_read=True)
        assert known.may_be_dearer("d", None, is_read=False), "any number of rows"
        assert not _costs(({"f": 10}, 2.0)).may_be_dearer("f", None, is_read=False)
        assert not _costs(build=None).may_be_dearer("f", None, is_read=False)

    def test_what_has_been_written_lets_expect(self) -> None:
        """The least share of what was written counts: no build stands in the place of a change of nothing."""
        known = Costs(
            10.0,
            {},
            (
                Spent({"f": 50}, 20.0, {"f": 100}),
                Spent({"f": 100}, 40.0, {"f": 100}),
                Spent({"d": 3}, 1.0),
            ),
        )
        assert known.expected_of_written({"f": 100}).refresh == 20.0
        assert known.expected_of_written({"f": 200}).refresh == 20.0
        assert known.expected_of_written({"f": 100, "d": 3}).refresh is None, "of d nobody knows"
        assert known.expected_of_written({"f": None}).refresh is None
        unread = replace(known, spent=(Spent({"f": 50}, 20.0, {"f": 100, "d": 7}),))
        assert unread.expected_of_written({"f": 200, "d": 14}).refresh == 20.0, "nothing of d is read"
        assert Costs.of(known.as_dict()) == known


def _bench(**meta: object) -> Bench:
    return Bench.of(SQL, TABLES, meta)


def _after(bench: Bench, seconds: float) -> Report:
    """A refresh, exact, that took so long."""
    report = bench.refresh()
    bench.check()
    bench.took(seconds)
    return report


def test_a_refresh_that_took_longer_than_the_build_becomes_one() -> None:
    bench = _bench()
    _after(bench, 10.0)
    bench.engine.change("d", insert=[(1, "c")], delete=[(1, "b")])
    assert _after(bench, 20.0).action == "refreshed"
    bench.engine.change("f", insert=[(1, 7)])
    assert _after(bench, 1.0).action == "refreshed"
    bench.engine.change("d", insert=[(2, "c")], delete=[(2, "a")])
    report = _after(bench, 10.0)
    assert (report.action, report.reason) == (
        "rebuilt",
        "a refresh is expected to take 20.0 s, a build 10.0 s",
    )
    assert report.expected == (20.0, 10.0) and "(expected 20.0 s, a build 10.0 s)" in report.line()
    bench.engine.change("f", insert=[(1, 8)])
    cheap = _after(bench, 1.0)
    assert (cheap.action, cheap.expected) == ("refreshed", (0.9, 10.0))
    told = history(bench.engine, "analytics.m", state_of("analytics.m"), 3)
    assert [(r.action, r.expected) for r in told] == [
        ("refreshed", (0.9, 10.0)),
        ("rebuilt", (20.0, 10.0)),
        ("refreshed", None),
    ]


def test_a_change_as_large_as_one_before_is_not_even_read() -> None:
    bench = _bench()
    _after(bench, 10.0)
    bench.engine.change("f", insert=[(n % 10, -1 - n) for n in range(50)])
    assert _after(bench, 30.0).action == "refreshed"
    bench.engine.change("f", insert=[(n % 10, -1 - n) for n in range(50)])
    report = _after(bench, 10.0)
    assert (report.action, report.expected) == ("rebuilt", (30.0, 10.0))
    assert not any("table_changes" in text for text in report.statements)


def test_an_input_that_is_written_anew_each_time_is_read() -> None:
    """What its history tells of rows says little there, also after all of them have changed once."""
    bench = _bench()
    _after(bench, 10.0)
    now = [*TABLES["f"][1]]
    for number, (kept, seconds) in enumerate([(99, 1.0), (99, 1.0), (0, 30.0), (99, 1.0)]):
        then = [*now[:kept], *((n % 10, -100 * number - n) for n in range(100 - kept))]
        bench.engine.change("f", insert=then, delete=now)
        assert _after(bench, seconds).action == "refreshed"
        now = then


def test_what_is_read_by_a_build_says_how_large_a_change_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """All facts are rewritten, and nothing like it has been seen. DuckDB fills a table by reading twice."""
    monkeypatch.setattr("fivm_dbt.refresh.costs.MANY_ROWS", 200)
    bench = Bench(_bench().plan, DuckDbEngine())
    for name, (_, rows) in TABLES.items():
        bench.engine.create_table(name, bench.plan.input(name).relation.columns, rows, change_feed=True)
    _after(bench, 10.0)
    bench.engine.change("f", insert=[(n % 10, -1 - n) for n in range(100)], delete=TABLES["f"][1])
    report = _after(bench, 10.0)
    assert (report.action, report.expected) == ("rebuilt", (18.0, 10.0))


@pytest.mark.parametrize("meta", [{"fivm_rebuild": "never"}, {}], ids=["never", "a short build"])
def test_what_is_refreshed_all_the_same(meta: dict[str, object]) -> None:
    """Where it is not wanted, or little would be saved."""
    bench = _bench(**meta)
    scale = 1.0 if meta else 0.2
    _after(bench, 10.0 * scale)
    for number in range(3):
        bench.engine.change("d", insert=[(number, "c")])
        assert _after(bench, 28.0 * scale).action == "refreshed"


def test_a_build_for_another_reason_forgets() -> None:
    bench = _bench()
    _after(bench, 10.0)
    bench.engine.change("d", insert=[(1, "c")], delete=[(1, "b")])
    _after(bench, 90.0)
    bench.refresh(full_refresh=True)
    bench.took(10.0)
    bench.engine.change("d", insert=[(2, "c")])
    assert _after(bench, 1.0).action == "refreshed"
