"""Models that are recomputed (``fivm_policy``) keep the contract of all others: heads, versions, interruptions."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from datetime import date, datetime

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.explain.text import explain
from fivm_dbt.ir.clock import Clock
from fivm_dbt.plan.model.head import Note
from fivm_dbt.plan.model.plan import MaintainedPlan, RecomputedPlan
from fivm_dbt.refresh.compare import difference_sql
from fixtures.models import Bench, HoldingBack, Interrupted, Interrupting, plan_of, relation

RECURSIVE = (
    "with recursive c as (select 1 as n union all select n + 1 from c where n < 3) "
    "select k, x, n from raw.r, c -- every row three times"
)
ROWS = {"raw.r": ("k int, x decimal(6,2)", [(1, "1.00"), (1, "1.00"), (None, "2.00")])}
AUTO: dict[str, object] = {"fivm_policy": "auto"}
FULL: dict[str, object] = {"fivm_policy": "full"}


def _bench(sql: str = RECURSIVE, meta: dict[str, object] = AUTO) -> Bench:
    bench = Bench.of(sql, ROWS, meta)
    bench.refresh()
    return bench


def _by_day() -> Bench:
    """A model of which the days are recomputed that a change reaches."""
    sql = "select d, percentile(v, 0.5) as m from raw.e group by d"
    rows: list[tuple[object, ...]] = [(date(2024, 5, day), day) for day in (1, 1, 2, 3)]
    bench = Bench.of(sql, {"raw.e": ("d date, v int", rows)}, {"fivm_strategy": "reevaluate"})
    bench.refresh()
    return bench


def _change(bench: Bench, number: int) -> None:
    (item,) = bench.plan.inputs
    row = (date(2024, 5, number), 10 * number) if item.name == "raw.e" else (number, f"{number}.00")
    bench.engine.change(item.name, insert=[row])


BENCHES = [pytest.param(_bench, id="all rows"), pytest.param(_by_day, id="where the changes reach")]


def test_only_auto_recomputes_and_only_what_cannot_be_maintained() -> None:
    r = relation("raw.r", "k int, x decimal(6,2)")
    with pytest.raises(FivmError, match="recursive queries cannot be maintained"):
        plan_of(RECURSIVE, [r])
    plan = plan_of(RECURSIVE, [r], AUTO)
    assert isinstance(plan, RecomputedPlan)
    found = plan.recompute
    assert found.not_repeatable is None and not found.changes_by_itself
    assert (
        found.reason
        == "FIVM105 construct not supported incrementally: recursive queries cannot be maintained"
    )
    assert isinstance(plan_of("select k, sum(x) as s from raw.r group by k", [r], AUTO), MaintainedPlan)
    full = plan_of("select k, sum(x) as s from raw.r group by k", [r], FULL)
    assert full.why_recomputed == "fivm_policy: full"
    none_kept = plan_of(
        "select k, sum(x) as s from raw.r group by k", [r], {"fivm_strategy": "reevaluate"}
    ).recompute
    assert none_kept is not None and none_kept.reason == "fivm_strategy: reevaluate"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("select z from raw.r", "FIVM102"),
        ("select k from raw.other", "FIVM103"),
        ("select k, x as k from raw.r", "FIVM112"),
        ("select k from", "FIVM101"),
        ("select k from raw.r version as of 0", "FIVM105"),
        ("select k from table_changes('raw.r', 0)", "FIVM105"),
    ],
)
def test_what_a_recompute_has_no_answer_to_either(sql: str, code: str) -> None:
    for policy in (AUTO, FULL):
        with pytest.raises(FivmError) as caught:
            plan_of(sql, [relation("raw.r", "k int, x decimal(6,2)")], policy)
        assert caught.value.code.number == (code if policy is AUTO or code != "FIVM102" else "FIVM101")


def test_columns_that_no_table_stores() -> None:
    with pytest.raises(FivmError) as caught:
        plan_of("select k, interval '1' day as i from raw.r", [relation("raw.r", "k int")], FULL)
    assert caught.value.code.number == "FIVM111"


def test_errors_of_the_configuration_are_no_reason_to_recompute() -> None:
    sql, r = "select k from raw.r", relation("raw.r", "k int")
    with pytest.raises(FivmError, match="fivm_partition_by"):
        plan_of(sql, [r], {**AUTO, "fivm_partition_by": "z"})


@pytest.mark.parametrize("meta", [AUTO, FULL], ids=["auto", "full"])
def test_recomputes_when_an_input_moves_and_only_then(meta: dict[str, object]) -> None:
    bench = Bench.of(RECURSIVE, ROWS, meta)
    built = bench.refresh()
    assert (built.action, bench.finished.refresh) == ("built", 1)
    bench.check()
    before = bench.engine.commits(bench.plan.state_relation, None)
    quiet = bench.refresh()
    assert (quiet.action, quiet.statements) == ("no change", ())
    assert bench.engine.commits(bench.plan.state_relation, None) == before
    bench.engine.change("raw.r", insert=[(2, "5.00")], delete=[(1, "1.00")])
    report = bench.refresh()
    assert report.action == "recomputed" and report.recomputed is not None
    assert report.line().startswith(f"m: recomputed: {report.recomputed}; ")
    bench.check()
    finished = bench.finished
    assert finished.detail["inputs"]["raw.r"]["version"] == 1


@pytest.mark.parametrize(
    "sql",
    [
        "select k, rand() as x from raw.r",
        "select k from raw.r where cast(k as string) < 'today'",
        "select k, now() as at, rand() as x from raw.r",
        "select q.current_date, current_date as d from (select k as current_date from raw.r) q",
    ],
)
def test_what_changes_by_itself_is_recomputed_in_every_run(sql: str) -> None:
    bench = _bench(sql, FULL)
    assert isinstance(bench.plan, RecomputedPlan)
    found = bench.plan.recompute
    assert found.changes_by_itself and found.not_repeatable and not found.clock
    assert bench.refresh().action == "recomputed"


def test_the_clock_is_pinned_as_an_input_is() -> None:
    bench = Bench.of("select k, current_date as today, day(current_date()) from raw.r", ROWS, AUTO)
    bench.engine.fixed_clock = Clock.at(datetime(2024, 5, 1, 7))
    bench.refresh()
    assert isinstance(bench.plan, RecomputedPlan)
    found = bench.plan.recompute
    assert not found.changes_by_itself and found.not_repeatable is None
    assert bench.finished.detail["clock"] == {"date": "2024-05-01"}
    bench.engine.fixed_clock = Clock.at(datetime(2024, 5, 1, 23))
    assert bench.refresh().action == "no change"
    bench.engine.fixed_clock = Clock.at(datetime(2024, 5, 2))
    assert bench.engine.query(difference_sql(bench.plan, bench.engine)) == []
    report = bench.refresh()
    assert (report.action, report.reason) == ("recomputed", "the clock moved from 2024-05-01 to 2024-05-02")
    assert {row[1:] for row in bench.shown()} == {(date(2024, 5, 2), 2)}
    bench.engine.change("raw.r", insert=[(9, "9.00")])
    report = bench.refresh()
    assert (report.action, report.reason) == ("recomputed", None)
    assert bench.engine.query(difference_sql(bench.plan, bench.engine)) == []


def test_versions_that_moved_without_rows_are_read_again() -> None:
    """Nothing is known of what the text reads, so nothing can be compared."""
    bench = _bench()
    bench.engine.change("raw.r", insert=[], delete=[])
    assert bench.refresh().action == "recomputed"


def test_an_input_created_anew_needs_no_snapshot() -> None:
    bench = _bench()
    bench.engine.recreate("raw.r", [(7, "7.00")])
    report = bench.refresh()
    assert (report.action, report.reason) == ("recomputed", None)
    bench.check()


def test_cut_off_anywhere_and_shown_by_the_next_run() -> None:
    """What is written is written with its head: the next run recomputes if nothing was, and shows what was."""
    bench = _bench()
    bench.engine.change("raw.r", insert=[(3, "3.00")])
    counting = Interrupting(bench.engine, 10**6, after=False)
    bench.refresh(counting)
    assert len(counting.statements) == 2
    for number in (1, 2):
        for after in (False, True):
            bench.engine.change("raw.r", insert=[(4, "4.00")])
            with pytest.raises(Interrupted):
                bench.refresh(Interrupting(bench.engine, number, after=after))
            is_written = (number, after) != (1, False)
            assert bench.refresh().action == ("no change" if is_written else "recomputed")
            bench.check()
            assert bench.refresh().action == "no change"


@pytest.mark.parametrize("made", BENCHES)
def test_another_process_was_faster(made: Callable[[], Bench], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both read the head before either writes: the slower one writes nothing, and reads it again."""
    monkeypatch.setattr("fivm_dbt.refresh.executor.only_refresh_here", lambda *_: nullcontext(True))
    bench = made()
    _change(bench, 1)
    slow = HoldingBack(bench)

    def commit(text: str, note: Note) -> None:
        if slow.left is None:
            slow.left = (text, note)
            assert bench.refresh().action == "recomputed"
            _change(bench, 2)
        bench.engine.commit(text, note)

    slow.commit = commit  # type: ignore[method-assign]
    assert bench.refresh(slow).action == "recomputed"  # type: ignore[arg-type]
    assert slow.left is not None and ("REPLACE WHERE" in slow.left[0]) is (made is _by_day)
    bench.check()
    assert bench.refresh().action == "no change"


@pytest.mark.parametrize("made", BENCHES)
def test_a_statement_that_comes_late_changes_nothing(made: Callable[[], Bench]) -> None:
    bench = made()
    _change(bench, 1)
    slow = HoldingBack(bench)
    with pytest.raises(Interrupted):
        bench.refresh(slow)  # type: ignore[arg-type]
    for number in (2, 3):
        bench.refresh()
        _change(bench, number)
    bench.refresh()
    before = bench.engine.commits(bench.plan.state_relation, None)
    slow.late()
    assert bench.engine.commits(bench.plan.state_relation, None) == before
    bench.check()
    assert bench.refresh().action == "no change"


def test_what_others_do_to_the_state() -> None:
    bench = _bench()
    bench.engine.run(f"DELETE FROM {bench.plan.state_relation} WHERE __fivm_view = 'root'")
    report = bench.refresh()
    assert report.action == "recomputed" and "changed by somebody else" in (report.reason or "")
    bench.check()


def test_a_policy_that_changes_rebuilds() -> None:
    bench = _bench("select k, sum(x) as s from raw.r group by k", {})
    bench.with_plan(meta=FULL)
    report = bench.refresh()
    assert report.action == "recomputed" and "maintenance changed" in (report.reason or "")
    bench.check()
    bench.with_plan(meta={})
    report = bench.refresh()
    assert report.action == "rebuilt" and "maintenance changed" in (report.reason or "")
    bench.engine.change("raw.r", insert=[(1, "9.00")])
    assert bench.refresh().action == "refreshed"
    bench.check()


def test_a_model_whose_view_is_gone_and_a_full_refresh() -> None:
    bench = _bench()
    bench.engine.run(f"DROP VIEW {bench.plan.relation}")
    assert bench.refresh().action == "no change"
    bench.check()
    report = bench.refresh(full_refresh=True)
    assert (report.action, report.reason) == ("recomputed", "full refresh")


def test_columns_of_odd_names_and_a_partition_column() -> None:
    bench = _bench(
        "select k as `the key`, count(*) from raw.r group by k", {**FULL, "fivm_partition_by": "`the key`"}
    )
    assert bench.plan.output[0].name == "the key"
    assert bench.plan.root.partitioning.kind == "value"
    bench.check()


def test_a_broken_promise_rebuilds_where_the_policy_allows_it() -> None:
    sql = "select k, count(*) as n from raw.r group by k"
    bench = Bench.of(sql, ROWS, {**AUTO, "fivm_static": ["raw.r"]})
    bench.refresh()
    bench.engine.change("raw.r", insert=[(5, "5.00")])
    report = bench.refresh()
    assert (report.action, report.reason) == ("rebuilt", "raw.r is declared static but its rows changed")
    bench.check()


def test_nothing_to_compare_with() -> None:
    bench = _bench("select k from raw.r limit 1")
    with pytest.raises(FivmError, match="LIMIT without ORDER BY takes any rows") as caught:
        difference_sql(bench.plan, bench.engine)
    assert caught.value.code.number == "FIVM106"
    bench = _bench()
    assert bench.engine.query(difference_sql(bench.plan, bench.engine)) == []


def test_explain() -> None:
    text = explain(plan_of("select first(k) as f from raw.r", [relation("raw.r", "k int")], AUTO))
    assert "== recomputed, when an input has moved\nFIVM106 non-deterministic expression: FIRST(r.k)" in text
    assert "not comparable: FIRST(k) depends on the order in which rows are read" in text
    assert "raw.r\n  read in full, at its newest version" in text
    random = explain(plan_of("select rand() as t from raw.r", [relation("raw.r", "k int")], AUTO))
    assert "== recomputed, in every run: its result changes by itself" in random
    clock = explain(plan_of("select now() as t from raw.r", [relation("raw.r", "k int")], AUTO))
    assert "== recomputed, when an input or the clock has moved" in clock
    assert "the clock [timestamp]\n  read once per refresh and kept in the head" in clock
    assert "not comparable" not in clock


def test_a_plan_as_json() -> None:
    plan = plan_of("select now() as t from raw.r", [relation("raw.r", "k int")], AUTO)
    assert json.loads(plan.to_json())["recompute"]["clock"] == ["timestamp"]
