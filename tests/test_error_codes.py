"""Every error code is triggered by a test: here, or in the test module that is named here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest

from fivm_dbt.catalog import EventTime
from fivm_dbt.config import load_config
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.errors import CODES, FivmError, Span, underline
from fivm_dbt.features.viewdf.parts.schedule import Recurrence
from fivm_dbt.parts.reference import PartReference
from fivm_dbt.plan.model.head import Note
from fivm_dbt.refresh.compare import difference_sql
from fivm_dbt.refresh.owner import only_refresh_here
from fivm_dbt.rings.declared import load_rings
from fivm_dbt.spark.validate import validate
from fivm_dbt.testing.load import load_scenarios
from fivm_dbt.viewtree.order_file import read_order
from fixtures.models import Bench, plan_of, relation

TESTS = Path(__file__).resolve().parent
TABLES = [
    relation("raw.a", "k int, name string, v int, x double, m map<string,int>"),
    relation("raw.b", "k int, name string"),
]

QUERIES = {
    "FIVM101": "select k from raw.a where",
    "FIVM102": "select colour from raw.a",
    "FIVM103": "select k from raw.nothing",
    "FIVM104": "select name from raw.a, raw.b",
    "FIVM105": "select k from raw.a version as of 3",
    "FIVM106": "select k, rand() as r from raw.a",
    "FIVM107": "select k from raw.a limit 3",
    "FIVM108": (
        "select q.s, size(q.m) as n, count(*) as c from (select v, sum(x) as s, "
        "max_by(map('a', 1), k) as m from raw.a group by v) q group by q.s, size(q.m)"
    ),
    "FIVM109": "select round(cast(v as decimal(10, 2)), k) as p from raw.a",
    "FIVM110": "select k, v, count(*) as c from raw.a group by k",
    "FIVM111": "select k, m from raw.a",
    "FIVM112": "select k, v as k from raw.a",
    "FIVM113": "select k, v from raw.a union all select k from raw.b",
}

ELSEWHERE = {
    "FIVM206": "test_viewdf",
    "FIVM207": "test_dbt_",
    "FIVM208": "test_trained",
    "FIVM303": "test_dbt_",
    "FIVM501": "test_doctor",
    "FIVM502": "test_doctor",
    "FIVM503": "test_doctor",
    "FIVM504": "test_macros",
    "FIVM505": "test_doctor",
}
"""Codes that need Spark, dbt or a broken environment, and the start of the name of the module that triggers them."""


def _query(code: str) -> Callable[[], object]:
    return lambda: plan_of(QUERIES[code], TABLES)


def _bench(**meta: object) -> Bench:
    bench = Bench.of(
        "select k, sum(v) as s from raw.a group by k", {"raw.a": ("k int, v int", [(1, 5), (2, 6)])}, meta
    )
    bench.refresh()
    return bench


def _missing() -> None:
    bench = _bench()
    bench.engine.drop("raw.a")
    bench.refresh()


def _no_delta() -> None:
    bench = _bench()
    bench.engine.drop("raw.a")
    bench.engine.run("CREATE OR REPLACE VIEW raw.a AS SELECT 1 AS k, 2 AS v")
    bench.refresh()


def _other_plan() -> None:
    bench = _bench()
    bench.with_plan("select k, sum(v + 1) as s from raw.a group by k", {"fivm_on_change": "fail"})
    bench.refresh()


def _static() -> None:
    bench = _bench(fivm_static=["raw.a"])
    bench.engine.change("raw.a", insert=[(3, 1)])
    bench.refresh()


def _too_late() -> None:
    sql = (
        "select * from raw.a match_recognize (partition by k order by t measures count(*) as n pattern (a b) "
        "define b as x > prev(x)) as m"
    )
    a = replace(relation("raw.a", "k int, t date, x int"), event_time=EventTime("t", lateness="1 day"))
    bench = Bench(plan_of(sql, [a], {"fivm_on_change": "fail"}))
    bench.engine.create_table("raw.a", a.columns, [], change_feed=True)
    bench.refresh()
    for day in (9, 1):
        bench.engine.change("raw.a", insert=[(1, date(2024, 5, day), 1)])
        bench.refresh()


def _vacuumed() -> None:
    bench = _bench(fivm_on_change="fail")
    bench.engine.tables.table("raw.a").has_feed = False
    bench.engine.change("raw.a", insert=[(3, 1)])
    bench.engine.vacuum("raw.a")
    bench.refresh()


def _tampered() -> None:
    bench = _bench(fivm_apply="merge")
    bench.tamper(f"DELETE FROM {bench.plan.state_relation} WHERE k = 1")
    bench.engine.change("raw.a", delete=[(1, 5)])
    bench.refresh()


def _never_built() -> None:
    bench = _bench()
    difference_sql(bench.plan, DuckDbEngine(tiny=True))


def _at_work() -> None:
    bench = _bench()
    with only_refresh_here(bench.engine.session, bench.plan.relation):
        bench.refresh()


def _twice() -> None:
    a = replace(relation("raw.a", "k int, v int"), keys=(("k",),))
    bench = Bench(plan_of("select k, v from raw.a", [a], {"fivm_trust_keys": True}))
    bench.engine.create_table("raw.a", a.columns, [(1, 2), (1, 2)])
    bench.refresh()


def _scenario(tmp_path: Path) -> None:
    path = tmp_path / "broken.json"
    path.write_text('{"id": "broken", "tables": {}}', encoding="utf-8")
    load_scenarios([path])


TRIGGERS: dict[str, Callable[[], object]] = {
    **{code: _query(code) for code in QUERIES},
    "FIVM201": lambda: load_config({"fivm_merge": "all"}, model="m"),
    "FIVM202": lambda: plan_of("select k from raw.a", TABLES, {"fivm_partition_by": "v"}),
    "FIVM203": lambda: load_config({"fivm_expose": "table", "fivm_result": "factorized"}, model="m"),
    "FIVM204": lambda: read_order("1 1\n0 A int -1 {} 0\nR 0 A,B\n"),
    "FIVM205": lambda: Recurrence("m", (PartReference.of("m", "j+1"),), ()),
    "FIVM209": lambda: load_rings(["fixtures.project_rings:no_ring"]),
    "FIVM301": _no_delta,
    "FIVM302": _missing,
    "FIVM304": _other_plan,
    "FIVM305": _static,
    "FIVM306": _vacuumed,
    "FIVM307": _too_late,
    "FIVM401": _tampered,
    "FIVM403": _at_work,
    "FIVM404": _never_built,
    "FIVM405": _twice,
    "FIVM901": lambda: validate("SELECT k FROM raw.a", []),
}


@pytest.mark.parametrize("code", TRIGGERS)
def test_triggered(code: str) -> None:
    with pytest.raises(FivmError) as caught:
        TRIGGERS[code]()
    error = caught.value
    assert error.code.number == code
    text = str(error)
    assert text.startswith(f"{code} {CODES[code].title}")
    assert text.endswith(f"more about it: fivm error {code}")
    assert error.remedy and f"what to do: {error.remedy}" in text
    if code in QUERIES:
        assert error.model == "m" and error.sql == QUERIES[code]


class _Listening:
    """An engine that keeps the errors of its statements."""

    def __init__(self, engine: DuckDbEngine) -> None:
        self._engine = engine
        self.errors: list[str] = []

    def commit(self, sql: str, note: Note) -> None:
        try:
            self._engine.commit(sql, note)
        except Exception as error:
            self.errors.append(str(error))
            raise

    def __getattr__(self, name: str) -> object:
        return getattr(self._engine, name)


def test_an_overflow_stops_the_merge() -> None:
    """FIVM402: the refresh itself goes on with a rebuild."""
    bench = Bench.of(
        "select k, sum(v) as s from raw.a group by k",
        {"raw.a": ("k int, v decimal(38,0)", [(1, 5)])},
        {"fivm_apply": "merge"},
    )
    bench.refresh()
    bench.tamper(f"UPDATE {bench.plan.state_relation} SET __fivm_sum_v = NULL")
    bench.engine.change("raw.a", insert=[(1, 1)])
    listening = _Listening(bench.engine)
    report = bench.refresh(listening)
    (error,) = listening.errors
    assert "FIVM402 analytics.m__fivm_root" in error
    assert report.action == "rebuilt"
    bench.check()


def test_scenario_files(tmp_path: Path) -> None:
    with pytest.raises(FivmError) as caught:
        _scenario(tmp_path)
    assert caught.value.code.number == "FIVM601"
    assert "broken.json:1: models: there is no model" in caught.value.message


def test_every_code_is_triggered() -> None:
    assert sorted({*TRIGGERS, *ELSEWHERE, "FIVM402", "FIVM601", "FIVM602"}) == sorted(CODES)
    assert not TRIGGERS.keys() & ELSEWHERE.keys()


@pytest.mark.parametrize("code", ELSEWHERE)
def test_codes_triggered_elsewhere_are_named_there(code: str) -> None:
    modules = sorted(TESTS.glob(f"{ELSEWHERE[code]}*.py"))
    assert any(code in path.read_text(encoding="utf-8") for path in modules), [path.name for path in modules]


def test_the_page_of_errors_has_a_section_per_code() -> None:
    text = (TESTS.parent / "docs" / "errors.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (FIVM\d+)$", text, flags=re.MULTILINE) == sorted(CODES)


def test_titles_are_of_one_kind() -> None:
    assert len({code.title for code in CODES.values()}) == len(CODES)
    for code in CODES.values():
        assert not code.title.endswith("."), code.number


@pytest.mark.parametrize(
    ("text", "span", "expected"),
    [
        ("select k", Span(7, 8), "line 1, column 8\n    select k\n           ^"),
        ("a\nbc\nd", Span(2, 4), "line 2, column 1\n    bc\n    ^^"),
        ("a\nbc\nd", Span(3, 6), "line 2, column 2\n    bc\n     ^"),
        ("\tx y", Span(1, 2), "line 1, column 2\n     x y\n     ^"),
        ("x", Span(0, 0), "line 1, column 1\n    x\n    ^"),
    ],
)
def test_underline(text: str, span: Span, expected: str) -> None:
    assert underline(text, span) == expected


def test_positions_of_wrapped_queries_are_those_of_the_users_text() -> None:
    sql = "-- the colours\nselect k,\n       colour\nfrom raw.a\n"
    with pytest.raises(FivmError) as caught:
        plan_of(sql, TABLES)
    assert "line 3, column 8\n           colour\n           ^^^^^^\n" in str(caught.value)
