"""A refresh that is cut off anywhere is finished by the next one, exactly once; two at a time do no harm."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from decimal import Decimal

import pytest

from cached_statements import cache_statements
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.errors import FivmError
from fivm_dbt.refresh.decide import changed_by_others
from fivm_dbt.refresh.engine import Engine, Row
from fivm_dbt.spark.formats import Commit
from fixtures.models import Bench, Interrupted, Interrupting
from fixtures.runs import fast_only

JOIN = (
    "select o.day, c.segment, count(*) as orders, sum(o.amount) as revenue "
    "from raw.orders o join raw.customers c on o.customer = c.customer group by o.day, c.segment"
)
BAG = "select o.day, c.segment, o.amount from raw.orders o join raw.customers c on o.customer = c.customer"
TOTAL = "select count(*) as orders, sum(o.amount) as revenue from raw.orders o join raw.customers c using (customer)"
NESTED = (
    "select n, count(*) as customers from (select o.customer, count(*) as n from raw.orders o "
    "join raw.customers c using (customer) group by o.customer) z group by n"
)

INNER_VIEWS = (
    "select segment, count(distinct amount) as amounts, max(day) as last_day from ("
    "select o.day, o.amount, c.segment, row_number() over (partition by o.customer order by o.day, o.amount) as n "
    "from raw.orders o left join raw.customers c on o.customer = c.customer) z where n <= 2 group by segment"
)

ORDERS = "day date, customer int, amount decimal(10,2)"
CUSTOMERS = "customer int, segment string"
FIRST_ORDERS: list[Row] = [
    ("2024-01-05", 1, "10.00"),
    ("2024-01-06", 2, "5.00"),
    ("2024-02-07", 1, "7.50"),
    ("2024-02-07", 1, "7.50"),
    (None, 3, "1.00"),
    ("2024-03-01", None, "2.00"),
]
FIRST_CUSTOMERS: list[Row] = [(1, "a"), (2, "b"), (3, None)]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    cache_statements(monkeypatch)


@dataclass(frozen=True)
class Setting:
    """A model and how its inputs are captured."""

    name: str
    sql: str = JOIN
    merge: str = "grouped"
    apply: str = "merge"
    recreated: tuple[str, ...] = ()
    feed: bool = True

    def bench(self) -> Bench:
        tables = {"raw.orders": (ORDERS, FIRST_ORDERS), "raw.customers": (CUSTOMERS, FIRST_CUSTOMERS)}
        meta: dict[str, object] = {"fivm_merge": self.merge, "fivm_apply": self.apply}
        if self.sql in (BAG, INNER_VIEWS):
            meta["fivm_buckets"] = 8
        bench = Bench.of(self.sql, tables, meta, recreated=self.recreated, feed=self.feed)
        bench.refresh()
        bench.check()
        return bench


SETTINGS = [
    Setting("grouped"),
    Setting("one MERGE per partition", merge="per_partition"),
    Setting("snapshots", recreated=("raw.orders", "raw.customers")),
    Setting("a snapshot and one MERGE per partition", merge="per_partition", recreated=("raw.customers",)),
    Setting("versions compared", feed=False),
    Setting("a bag", sql=BAG),
    Setting("one row", sql=TOTAL),
    Setting("nested", sql=NESTED),
    Setting("inner views", sql=INNER_VIEWS),
    Setting("inner views and one MERGE per partition", sql=INNER_VIEWS, merge="per_partition"),
    Setting("inner views, partitions written anew", sql=INNER_VIEWS, apply="replace"),
    Setting("partitions written anew one by one", merge="per_partition", apply="replace"),
    Setting("partitions written anew where that is cheap", sql=INNER_VIEWS, apply="auto"),
]


THOROUGH = (SETTINGS[0], SETTINGS[3], SETTINGS[8], SETTINGS[11])
"""Cut off at every place; the others where something is committed and recorded."""

ORDERS_CAME: list[Row] = [("2024-02-08", 2, "4.00"), ("2024-01-05", 3, "1.25"), (None, 1, "3.00")]
ORDERS_WENT: list[Row] = [("2024-02-07", 1, "7.50"), ("2024-01-06", 2, "5.00")]
CUSTOMERS_CAME: list[Row] = [(2, "a"), (4, "d")]
CUSTOMERS_WENT: list[Row] = [(2, "b")]


def _change(bench: Bench, *, back: bool = False) -> None:
    """Both inputs change; groups come, go and move, in several partitions and in that of NULL. ``back`` undoes it."""
    for name, came, went in (
        ("raw.orders", ORDERS_CAME, ORDERS_WENT),
        ("raw.customers", CUSTOMERS_CAME, CUSTOMERS_WENT),
    ):
        bench.engine.change(name, insert=went if back else came, delete=came if back else went)


def _merges(bench: Bench) -> int:
    """MERGEs committed to the state so far, and partitions written anew."""
    return sum(c.operation in ("MERGE", "WRITE") for c in bench.engine.commits(bench.plan.state_relation, 0))


def _statements(bench: Bench) -> list[str]:
    """The statements of a refresh to which nothing happens."""
    counting = Interrupting(bench.engine, 10**6, after=False)
    bench.refresh(counting)
    return counting.statements


def _cut(bench: Bench, number: int, *, after: bool) -> None:
    with pytest.raises(Interrupted):
        bench.refresh(Interrupting(bench.engine, number, after=after))


def _places(statements: list[str]) -> list[tuple[int, bool]]:
    """Before every statement, and after each one that commits something: its answer may be lost."""
    found = []
    for number, sql in enumerate(statements, start=1):
        found.append((number, False))
        if sql.startswith(("MERGE", "CREATE", "INSERT")):
            found.append((number, True))
    return found


IN_MORE = ("inner views", "partitions written anew one by one", "a snapshot and one MERGE per partition")
"""What is slow, and is in other settings beside something else."""


@pytest.mark.parametrize(
    "setting",
    fast_only({s.name for s in SETTINGS} - {*IN_MORE}, {s.name: s for s in SETTINGS}),
)
def test_cut_off_anywhere_and_finished_by_the_next_run(setting: Setting) -> None:
    bench = setting.bench()
    built = _merges(bench)
    _change(bench)
    statements = _statements(bench)
    merges, back = _merges(bench) - built, True
    assert len(statements) >= 3 and merges >= 1
    places = _places(statements)
    for number, after in places if setting in THOROUGH else places[-3:]:
        committed = _merges(bench)
        _change(bench, back=back)
        _cut(bench, number, after=after)
        bench.refresh()
        place = f"{'after' if after else 'before'} {statements[number - 1]}"
        assert bench.shown() == bench.newest(), place
        assert _merges(bench) == committed + merges, f"applied twice, or not at all: {place}"
        back = not back
    assert bench.refresh().action == "no change"


@pytest.mark.parametrize("setting", SETTINGS[2:4], ids=lambda s: s.name)
def test_inputs_move_on_while_a_refresh_is_interrupted(setting: Setting) -> None:
    """The interrupted refresh is finished with its own versions, then the same run goes on to the newest."""
    bench = setting.bench()
    _change(bench)
    statements, back = _statements(bench), True
    later: list[Row] = [("2024-05-01", 3, "8.00")]
    rolled: list[bool] = []
    for number, after in _places(statements)[-5:]:
        _change(bench, back=back)
        _cut(bench, number, after=after)
        bench.engine.change("raw.orders", insert=later if back else [], delete=[] if back else later)
        report = bench.refresh()
        bench.check()
        assert report.action == "refreshed"
        rolled.append(report.reason == "an interrupted refresh was finished first")
        assert rolled[-1] == report.rolled_forward
        back = not back
    assert any(rolled) == (setting.merge == "per_partition"), "of one statement nothing is half done"


@pytest.mark.parametrize("setting", SETTINGS[3:4], ids=lambda s: s.name)
def test_cut_off_again_while_it_is_being_finished(setting: Setting) -> None:
    bench = setting.bench()
    _change(bench)
    statements, back = _statements(bench), True
    merges = _merges(bench)
    for number, after in _places(statements)[-4:]:
        committed = _merges(bench)
        _change(bench, back=back)
        _cut(bench, number, after=after)
        for again in (1, 2, 4):
            try:
                bench.refresh(Interrupting(bench.engine, again, after=True))
            except Interrupted:
                continue
            break
        bench.refresh()
        bench.check()
        assert _merges(bench) == committed + merges
        back = not back


def test_an_error_that_quotes_its_statement_is_no_alarm() -> None:
    """A MERGE has the texts of its own alarms in it, and Spark quotes statements in its errors."""
    bench = Setting("quoted").bench()
    _change(bench)
    statements = _statements(bench)
    number = next(i for i, sql in enumerate(statements, start=1) if sql.startswith("MERGE"))
    _change(bench, back=True)
    with pytest.raises(Interrupted):
        bench.refresh(Interrupting(bench.engine, number, after=False, quoting=True))
    assert bench.refresh().action == "refreshed"
    bench.check()


def test_a_build_is_cut_off_anywhere() -> None:
    def bench() -> Bench:
        tables = {"raw.orders": (ORDERS, FIRST_ORDERS), "raw.customers": (CUSTOMERS, FIRST_CUSTOMERS)}
        return Bench.of(JOIN, tables, recreated=["raw.orders"])

    for number, after in _places(_statements(bench())):
        cut = bench()
        _cut(cut, number, after=after)
        assert cut.refresh().action in ("built", "no change")
        _change(cut)
        assert cut.refresh().action == "refreshed"
        cut.check()


def test_a_rebuild_that_was_cut_off_is_done_again() -> None:
    bench = Setting("rebuild").bench()
    _change(bench)
    with pytest.raises(Interrupted):
        bench.refresh(Interrupting(bench.engine, 1, after=True), full_refresh=True)
    bench.refresh()
    bench.check()


def test_an_interrupted_refresh_of_another_plan_is_rebuilt() -> None:
    bench = Setting("changed").bench()
    _change(bench)
    statements = _statements(bench)
    _change(bench, back=True)
    _cut(bench, len(statements), after=True)
    bench.with_plan(sql=JOIN.replace("count(*) as orders", "count(*) as number_of_orders"))
    assert bench.refresh().action == "rebuilt"
    bench.check()


def test_inner_views_that_the_model_no_longer_has_are_dropped() -> None:
    bench = Setting("orphans", sql=INNER_VIEWS).bench()
    states = [view.name for view in bench.plan.helpers]
    assert len(states) > 2 and all(bench.engine.exists(name) for name in states)
    bench.with_plan(sql=JOIN)
    assert bench.refresh().action == "rebuilt"
    bench.check()
    assert not any(bench.engine.exists(name) for name in states)
    assert bench.engine.exists(bench.plan.state_relation)


def test_what_an_interrupted_refresh_needs_was_cleaned_up() -> None:
    bench = Setting("vacuumed", feed=False).bench()
    _change(bench)
    statements = _statements(bench)
    _change(bench, back=True)
    _cut(bench, len(statements), after=False)
    bench.engine.change("raw.customers", insert=[(9, "z")])
    bench.engine.vacuum("raw.customers")
    bench.engine.vacuum("raw.orders")
    report = bench.refresh()
    assert report.action == "rebuilt"
    assert report.reason is not None and "can no longer be read" in report.reason
    bench.check()


@dataclass
class _Vacuuming:
    """An engine beside which somebody cleans a table up, before a refresh stages something of that name."""

    engine: DuckDbEngine
    table: str
    before: str

    def stage(self, name: str, sql: str) -> None:
        if self.before in name:
            self.engine.vacuum(self.table)
        self.engine.stage(name, sql)

    def stage_all(self, staged: Sequence[tuple[str, str]]) -> None:
        for name, sql in staged:
            self.stage(name, sql)

    def defer(self, name: str, sql: str, counts: Sequence[str]) -> None:
        if self.before in name:
            self.engine.vacuum(self.table)
        self.engine.defer(name, sql, counts)

    def __getattr__(self, name: str) -> object:
        return getattr(self.engine, name)


def test_no_old_version_is_needed_once_the_changes_are_staged() -> None:
    bench = Setting("vacuumed later").bench()
    _change(bench)
    report = bench.refresh(_Vacuuming(bench.engine, "raw.customers", before="_state"))
    assert report.action == "refreshed"
    bench.check()


def test_what_a_refresh_needs_is_cleaned_up_under_it() -> None:
    bench = Setting("vacuumed meanwhile", feed=False).bench()
    _change(bench)
    report = bench.refresh(_Vacuuming(bench.engine, "raw.customers", before="_customers_"))
    assert report.action == "rebuilt"
    assert report.reason is not None and "can no longer be read" in report.reason
    bench.check()
    _change(bench, back=True)
    assert bench.refresh().action == "refreshed"
    bench.check()


# Two at a time


class _Locked:
    """One statement at a time, and a pause where a test wants one."""

    def __init__(self, engine: DuckDbEngine, pause: Callable[[str], None] = lambda sql: None) -> None:
        self._engine = engine
        self._pause = pause

    def __getattr__(self, name: str) -> object:
        value = getattr(self._engine, name)
        if not callable(value):
            return value

        def call(*arguments: object, **named: object) -> object:
            self._pause(" ".join(map(str, arguments)))
            with _GUARD:
                return value(*arguments, **named)

        return call


_GUARD = threading.RLock()


def test_two_refreshes_at_once() -> None:
    """One wins; the other is told so, or comes when all is done."""
    bench = Setting("two threads").bench()
    for number in range(4):
        _change(bench, back=number % 2 == 1)
        barrier, outcomes = threading.Barrier(2), list[str]()

        def run(barrier: threading.Barrier = barrier, outcomes: list[str] = outcomes) -> None:
            barrier.wait()
            try:
                outcomes.append(bench.refresh(_Locked(bench.engine)).action)
            except FivmError as error:
                outcomes.append(error.code.number)
            except Exception as error:
                outcomes.append(repr(error))

        threads = [threading.Thread(target=run) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert "refreshed" in outcomes, outcomes
        assert set(outcomes) <= {"refreshed", "no change", "FIVM403"}
        assert bench.refresh().action == "no change"
        bench.check()


@pytest.fixture
def as_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Refreshes of this process stand for those of several: only the head keeps them apart."""
    monkeypatch.setattr(
        "fivm_dbt.refresh.executor.only_refresh_here", lambda session, model: nullcontext(True)
    )


def test_a_second_refresh_in_another_thread() -> None:
    _second_refresh("refresh in progress by another thread of this process")


def _second_refresh(message: str) -> None:
    """While the first one merges."""
    bench = Setting("busy").bench()
    _change(bench)
    errors: list[FivmError] = []

    def meanwhile(text: str) -> None:
        if "MERGE INTO" in text and not errors:
            with pytest.raises(FivmError) as caught:
                bench.refresh()
            errors.append(caught.value)

    assert bench.refresh(_Locked(bench.engine, meanwhile)).action == "refreshed"
    (error,) = errors
    assert error.code.number == "FIVM403"
    assert error.model == "m"
    assert error.message.startswith(message)
    bench.check()


def _overtaken(bench: Bench, *meanwhile: Callable[[], None]) -> Engine:
    """An engine that lets somebody else come first right before each of its first writes to the state.

    What this refresh has staged is its own, as in a session of another process.
    """
    left = list(meanwhile)

    def before(text: str) -> None:
        if left and text.startswith(("MERGE INTO", "INSERT INTO")) and bench.plan.state_relation in text[:60]:
            staged = dict(bench.engine._reads.staged)
            left.pop(0)()
            bench.engine._reads.staged.update(staged)

    return _Locked(bench.engine, before)  # type: ignore[return-value]


def _refreshes(bench: Bench) -> None:
    assert bench.refresh().action == "refreshed"


@pytest.mark.usefixtures("as_processes")
@pytest.mark.parametrize("apply", ["merge", "replace"])
def test_another_process_was_faster(apply: str) -> None:
    """Both read the head before either writes: the slower one reads it again, and finds that all is done."""
    bench = Setting("race", apply=apply).bench()
    _change(bench)
    merges = _merges(bench)
    assert bench.refresh(_overtaken(bench, lambda: _refreshes(bench))).action == "no change"
    assert _merges(bench) == merges + 1
    bench.check()


@pytest.mark.usefixtures("as_processes")
def test_another_process_was_faster_twice() -> None:
    bench = Setting("race lost twice").bench()
    _change(bench)
    merges = _merges(bench)

    def meanwhile() -> None:
        _refreshes(bench)
        _change(bench, back=True)

    def again() -> None:
        _refreshes(bench)
        _change(bench)

    with pytest.raises(FivmError, match="by another process, which was faster") as caught:
        bench.refresh(_overtaken(bench, meanwhile, again))
    assert caught.value.code.number == "FIVM403"
    assert _merges(bench) == merges + 2
    assert bench.refresh().action == "refreshed"
    bench.check()


@pytest.mark.usefixtures("as_processes")
def test_moving_on_does_not_hide_a_refresh_that_was_faster() -> None:
    """A sees versions that changed nothing; B is faster, sees more, writes; nothing is applied twice."""
    bench = Setting("race of an advance").bench()
    bench.engine.change("raw.orders", insert=FIRST_ORDERS[:1], delete=FIRST_ORDERS[:1])

    def meanwhile() -> None:
        _change(bench)
        _refreshes(bench)

    assert bench.refresh(_overtaken(bench, meanwhile)).action == "no change"
    bench.check()
    assert bench.refresh().action == "no change"


# What was not foreseen about inputs and state


def _codes(bench: Bench) -> str:
    with pytest.raises(FivmError) as caught:
        bench.refresh()
    assert caught.value.model == "m"
    return caught.value.code.number


def test_a_static_input_changes() -> None:
    tables = {"raw.orders": (ORDERS, FIRST_ORDERS), "raw.customers": (CUSTOMERS, FIRST_CUSTOMERS)}
    bench = Bench.of(JOIN, tables, {"fivm_static": ["customers"]})
    bench.refresh()
    bench.engine.change("raw.orders", insert=[("2024-04-01", 2, "1.00")])
    assert bench.refresh().action == "refreshed"
    bench.check()
    bench.engine.change("raw.customers", insert=[(1, "a")], delete=[(1, "a")])
    assert bench.refresh().action == "no change"
    bench.engine.change("raw.customers", insert=[(9, "z")])
    assert _codes(bench) == "FIVM305"
    assert _codes(bench) == "FIVM305", "it stays an error"
    assert bench.refresh(full_refresh=True).action == "rebuilt"
    bench.check()


def test_an_input_is_dropped_and_created_anew() -> None:
    """Its version numbers restart: a rebuild once, and then it is compared with an own snapshot."""
    bench = Setting("seed").bench()
    bench.engine.recreate("raw.customers", [(1, "a"), (2, "x")])
    report = bench.refresh()
    assert report.action == "rebuilt"
    assert report.reason is not None and "raw.customers was dropped and created anew" in report.reason
    bench.check()
    bench.engine.recreate("raw.customers", [(1, "a"), (2, "y"), (3, "z")])
    report = bench.refresh()
    assert report.action == "refreshed"
    assert [(c.relation, c.capture, c.inserted, c.deleted) for c in report.inputs] == [
        ("raw.customers", "snapshot", 2, 1)
    ]
    bench.check()
    bench.engine.recreate("raw.customers", [(3, "z"), (1, "a"), (2, "y")])
    assert bench.refresh().action == "no change"
    bench.check()


@pytest.mark.parametrize(
    ("feed", "capture"), [(True, "change feed"), (False, "version difference")], ids=["on", "off"]
)
def test_capture(feed: bool, capture: str) -> None:
    bench = Setting("capture", feed=feed).bench()
    _change(bench)
    report = bench.refresh()
    assert {(c.relation, c.capture, c.inserted, c.deleted) for c in report.inputs} == {
        ("raw.orders", capture, 3, 2),
        ("raw.customers", capture, 2, 1),
    }
    bench.check()


def test_a_change_feed_that_does_not_reach_back() -> None:
    bench = Setting("gap").bench()
    table = bench.engine.tables.table("raw.orders")
    table.has_feed = False
    bench.engine.change("raw.orders", insert=[("2024-04-01", 2, "1.00")])
    table.has_feed = True
    bench.engine.change("raw.orders", insert=[("2024-04-02", 2, "1.00")])
    report = bench.refresh()
    assert [c.capture for c in report.inputs] == ["version difference"]
    bench.check()


def test_the_recorded_version_is_gone() -> None:
    for on_change in ("rebuild", "fail"):
        bench = Setting("vacuum", feed=False).bench()
        bench.with_plan(meta={"fivm_on_change": on_change})
        _change(bench)
        bench.engine.vacuum("raw.orders")
        if on_change == "fail":
            assert _codes(bench) == "FIVM306"
            assert bench.refresh(full_refresh=True).action == "rebuilt"
        else:
            report = bench.refresh()
            assert report.action == "rebuilt"
            assert report.reason is not None and "can no longer be read" in report.reason
        bench.check()


def test_an_input_is_missing_or_no_table() -> None:
    bench = Setting("missing").bench()
    bench.engine.drop("raw.customers")
    assert _codes(bench) == "FIVM302"
    bench.engine.run(
        "CREATE OR REPLACE VIEW raw.customers AS SELECT customer, 'x' AS segment FROM raw.orders"
    )
    assert _codes(bench) == "FIVM301"


@pytest.mark.parametrize("sql", [JOIN, INNER_VIEWS])
def test_somebody_else_wrote_to_a_state(sql: str) -> None:
    for number in range(len(Setting("foreign", sql=sql).bench().plan.views)):
        bench = Setting("foreign", sql=sql).bench()
        state, label = bench.plan.state_relation, bench.plan.layout.label(bench.plan.views[number])
        bench.engine.run(f"DELETE FROM {state} WHERE __fivm_view = '{label}'")
        _change(bench)
        report = bench.refresh()
        assert report.action == "rebuilt"
        assert report.reason is not None
        assert report.reason.startswith(f"state table {state} was changed by somebody else")
        bench.check()
        _change(bench, back=True)
        assert bench.refresh().action == "refreshed"
        bench.check()


def test_somebody_else_wrote_to_a_state_and_must_not() -> None:
    bench = Setting("foreign").bench()
    bench.with_plan(meta={"fivm_on_change": "fail"})
    bench.engine.run(f"DELETE FROM {bench.plan.state_relation} WHERE TRUE")
    _change(bench)
    assert _codes(bench) == "FIVM404"
    assert bench.refresh(full_refresh=True).action == "rebuilt"
    bench.check()


def test_what_others_may_do_to_a_state() -> None:
    """OPTIMIZE lays files out anew and is done at night; RESTORE takes rows back."""
    plan = Setting("foreign").bench().plan
    name = plan.state_relation
    commits = [Commit(7, "later", "VACUUM END"), Commit(6, "then", "OPTIMIZE"), Commit(5, "then", "MERGE")]
    assert changed_by_others(plan, commits, 5) is None
    assert changed_by_others(plan, commits, 4) == (f"state table {name} was changed by somebody else (MERGE)")
    assert changed_by_others(plan, commits, 9) == (
        f"state table {name} was dropped and created anew by somebody else"
    )


def test_the_state_is_missing() -> None:
    bench = Setting("dropped").bench()
    bench.engine.drop(bench.plan.state_relation)
    report = bench.refresh()
    assert (report.action, report.reason) == (
        "rebuilt",
        f"state table {bench.plan.state_relation} is missing",
    )
    bench.check()


def test_the_view_is_missing() -> None:
    bench = Setting("no view").bench()
    bench.engine.run(f"DROP VIEW {bench.plan.relation}")
    assert bench.refresh().action == "no change"
    bench.check()


@pytest.mark.parametrize("merge", ["grouped", "per_partition"])
def test_a_tampered_state_is_noticed(merge: str) -> None:
    bench = Setting("tampered", merge=merge).bench()
    root = bench.plan.state_relation
    bench.tamper(f"DELETE FROM {root} WHERE segment = 'a'")
    bench.engine.change("raw.orders", delete=FIRST_ORDERS[:1])
    before = bench.shown()
    assert _codes(bench) == "FIVM401"
    assert bench.shown() == before, "nothing was written"
    assert _codes(bench) == "FIVM401"
    assert bench.refresh(full_refresh=True).action == "rebuilt"
    bench.check()


def test_a_multiplicity_below_zero_is_noticed() -> None:
    bench = Setting("below zero").bench()
    bench.tamper(f"UPDATE {bench.plan.state_relation} SET __fivm_count = 1 WHERE segment = 'a'")
    bench.engine.change("raw.orders", delete=FIRST_ORDERS[2:4])
    assert _codes(bench) == "FIVM401"
    assert bench.refresh(full_refresh=True).action == "rebuilt"
    bench.check()


WIDE = "decimal(38,0)"


@pytest.mark.parametrize("apply", ["merge", "replace"])
def test_an_overflow_is_rebuilt_from(apply: str) -> None:
    """A sum beyond 38 digits stops what writes the state; the rebuild gives what the text gives."""
    large = Decimal("9" * 38)
    tables: dict[str, tuple[str, Sequence[Row]]] = {
        "raw.f": (f"g string, v {WIDE}", [("p", large), ("q", 1)])
    }
    bench = Bench.of(
        "select g, count(*) as c, sum(v) as s from raw.f group by g", tables, {"fivm_apply": apply}
    )
    bench.refresh()
    bench.tamper(f"UPDATE {bench.plan.state_relation} SET __fivm_sum_v = NULL WHERE g = 'q'")
    bench.engine.change("raw.f", insert=[("q", Decimal(2))])
    report = bench.refresh()
    assert report.action == "rebuilt"
    assert report.reason is not None and "overflowed" in report.reason
    bench.check()
    bench.engine.change("raw.f", insert=[("q", Decimal(3))])
    assert bench.refresh().action == "refreshed"
    bench.check()


def test_nothing_is_written_when_nothing_changed() -> None:
    bench = Setting("quiet").bench()
    version = bench.engine.commits(bench.plan.state_relation, None)
    for _ in range(3):
        report = bench.refresh()
        assert (report.action, report.statements) == ("no change", ())
    assert bench.engine.commits(bench.plan.state_relation, None) == version


def test_a_view_that_is_gone_is_put_back() -> None:
    """Whatever the next run finds to do: nothing, a change that cancels out, a change, a refresh to finish."""
    bench = Setting("gone").bench()
    steps: list[tuple[str, Callable[[], object]]] = [
        ("no change", lambda: None),
        (
            "no change",
            lambda: [
                bench.engine.change("raw.orders", insert=ORDERS_CAME),
                bench.engine.change("raw.orders", delete=ORDERS_CAME),
            ],
        ),
        ("refreshed", lambda: _change(bench)),
        ("refreshed", lambda: [_change(bench, back=True), _cut(bench, 3, after=True)]),
    ]
    for action, happens in steps:
        happens()
        bench.engine.run(f"DROP VIEW {bench.plan.relation}")
        assert bench.refresh().action == action
        assert bench.shown() == bench.newest()


def test_columns_that_are_not_read_change_nothing() -> None:
    tables: dict[str, tuple[str, Sequence[Row]]] = {
        "raw.f": ("g string, note string", [("p", "x"), ("q", "y")])
    }
    bench = Bench.of("select g, count(*) as c from raw.f group by g", tables)
    bench.refresh()
    bench.engine.change("raw.f", insert=[("p", "z")], delete=[("p", "x")])
    report = bench.refresh()
    assert report.action == "no change"
    assert [(c.inserted, c.deleted) for c in report.inputs] == [(0, 0)]
    assert bench.refresh().inputs == (), "the head has gone forward"
    bench.check()


def test_a_replaced_input_still_gives_a_small_change() -> None:
    bench = Setting("replaced").bench()
    bench.engine.replace("raw.orders", [*FIRST_ORDERS, ("2024-04-01", 2, "1.00")])
    report = bench.refresh()
    assert [(c.inserted, c.deleted) for c in report.inputs] == [(1, 0)]
    bench.check()


def test_the_stream_backwards_leads_back_to_nothing() -> None:
    bench = Setting("backwards").bench()
    bench.engine.change("raw.orders", delete=FIRST_ORDERS)
    bench.refresh()
    assert bench.shown() == bench.newest() and not bench.shown()
    assert list(
        bench.engine.query(f"SELECT COUNT(*) FROM {bench.plan.state_relation} WHERE __fivm_view <> 'tail'")
    ) == [(0,)]
    bench.engine.change("raw.orders", insert=FIRST_ORDERS)
    bench.refresh()
    bench.check()
