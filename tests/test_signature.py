"""What a state depends on, and how a difference is told."""

from __future__ import annotations

import pytest

from fivm_dbt.catalog import Catalog, Presentation, Relation
from fivm_dbt.config import load_config
from fivm_dbt.errors import FivmError
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.decide import why_rebuild
from fivm_dbt.refresh.observe import Coverage
from fixtures.models import Bench, plan_of, relation

SQL = "select g, sum(v) as s from raw.f group by g"
COLUMNS = "g string, v decimal(10,2), unused int"


def _plan(
    sql: str = SQL,
    columns: str = COLUMNS,
    session: tuple[tuple[str, str], ...] = (("timezone", "UTC"),),
    **meta: object,
) -> Plan:
    catalog = Catalog.of([relation("raw.f", columns)])
    return plan_model(ModelRequest("analytics.m", sql, catalog, load_config(meta), session))


def _changed(before: Plan, after: Plan) -> set[str]:
    keys = {*before.signature, *after.signature}
    return {key for key in keys if before.signature.get(key) != after.signature.get(key)}


@pytest.mark.parametrize(
    ("after", "parts"),
    [
        (_plan(SQL + " having count(*) > 1"), {"SQL", "presentation"}),
        (_plan(SQL.replace("sum(v)", "sum(v * 2)")), {"SQL", "root layout", "presentation"}),
        (_plan(columns=COLUMNS.replace("10,2", "12,2")), {"columns of raw.f", "presentation"}),
        (_plan(columns=COLUMNS.replace("10,2", "10,3")), {"columns of raw.f", "root layout", "presentation"}),
        (_plan(columns=COLUMNS.replace("g string", "g int")), {"columns of raw.f", "root layout"}),
        (_plan(fivm_partition_by="g"), {"partitioning"}),
        (_plan(fivm_buckets=4), {"partitioning"}),
        (_plan(fivm_static=["raw.f"]), {"fivm_static"}),
        (_plan(session=(("timezone", "Europe/Berlin"),)), {"session timezone"}),
    ],
    ids=lambda value: "-".join(sorted(value)) if isinstance(value, set) else "",
)
def test_what_matters(after: Plan, parts: set[str]) -> None:
    before = _plan()
    assert _changed(before, after) == parts
    assert before.plan_hash != after.plan_hash


@pytest.mark.parametrize(
    "after",
    [
        _plan(columns=COLUMNS.replace("unused int", "unused string")),
        _plan(columns="unused int, " + COLUMNS.replace(", unused int", "")),
        _plan(fivm_merge="per_partition"),
        _plan(fivm_on_change="fail"),
        _plan(fivm_fold_after=5),
    ],
    ids=["a column that is not read", "order of the columns", "merge", "on change", "fold after"],
)
def test_what_does_not_matter(after: Plan) -> None:
    assert after.plan_hash == _plan().plan_hash


def test_the_definition_of_a_model_upstream_matters() -> None:
    def over(sql: str) -> Plan:
        upstream = plan_of(sql, [relation("raw.f", COLUMNS)])
        shown = Relation("analytics.up", upstream.output, kind="fivm", presentation=upstream.presentation)
        catalog = Catalog.of([shown])
        return plan_model(ModelRequest("analytics.m", "select g from analytics.up", catalog, load_config({})))

    one, other = over(SQL), over(SQL + " having count(*) > 1")
    assert _changed(one, other) == {"definition of analytics.up"}
    assert isinstance(one.inputs[0].relation.presentation, Presentation)


ROWS = [("p", "1.00", 1), ("q", "2.50", 2), ("p", None, 3)]


def _bench(**meta: object) -> Bench:
    bench = Bench.of(SQL, {"raw.f": (COLUMNS, ROWS)}, meta)
    bench.refresh()
    return bench


def test_the_reason_of_a_rebuild_is_told() -> None:
    bench = _bench()
    bench.with_plan(sql="select g, sum(v) as s, count(*) as c from raw.f group by g")
    report = bench.refresh()
    assert report.action == "rebuilt"
    assert report.reason is not None and "the model's SQL changed" in report.reason
    bench.check()
    assert bench.refresh().action == "no change"


def test_the_reason_names_the_columns_that_changed() -> None:
    bench = _bench()
    wider = relation("raw.f", COLUMNS.replace("10,2", "12,2"))
    bench.plan = plan_of(SQL, [wider])
    report = bench.refresh()
    assert report.reason is not None
    assert "columns of raw.f changed: v decimal(10,2) is now v decimal(12,2)" in report.reason


def test_the_reason_names_configuration() -> None:
    bench = _bench()
    bench.with_plan(meta={"fivm_buckets": 4})
    report = bench.refresh()
    assert report.reason == "partitioning changed from bucket by size to bucket 4"


def test_the_reason_names_the_session_and_the_page_about_it() -> None:
    """dbt's session method is never in ANSI mode, a server is unless told otherwise."""
    plans = [_plan(session=(("ansi", ansi),)) for ansi in ("false", "true")]
    finished = Coverage(1, plans[0].plan_hash, {"signature": plans[0].signature}, "")
    assert why_rebuild(plans[1], finished) == (
        "session ansi changed from false to true (docs/dbt.md#one-state-for-session-and-thrift)"
    )
    assert why_rebuild(plans[0], finished) is None


def test_failing_instead_of_rebuilding() -> None:
    bench = _bench()
    before = bench.shown()
    bench.with_plan(sql=SQL + " having count(*) > 1", meta={"fivm_on_change": "fail"})
    with pytest.raises(FivmError) as caught:
        bench.refresh()
    assert caught.value.code.number == "FIVM304"
    assert "the model's SQL changed" in caught.value.message
    assert caught.value.model == "m"
    assert bench.shown() == before
    assert bench.refresh(full_refresh=True).action == "rebuilt"
    bench.check()


def test_the_partitioning_of_a_state_is_kept_until_a_rebuild() -> None:
    bench = _bench(fivm_buckets=4)
    bench.engine.change("raw.f", insert=[("r", "9.00", 1)])
    bench.with_plan(meta={"fivm_buckets": 4, "fivm_merge": "per_partition"})
    assert bench.refresh().action == "refreshed"
    bench.check()


RANKED = "select k, g, row_number() over (partition by g order by v) as n from raw.f"


@pytest.mark.parametrize("sql", [SQL, RANKED], ids=["plain", "completed"])
def test_comments_and_lines_do_not_matter(sql: str) -> None:
    """As a line of ``config()`` above the SQL leaves an empty one."""
    columns = f"k int, {COLUMNS}"
    before = _plan(sql, columns)
    after = _plan("\n\n  -- by group\n" + sql.replace(" from ", "  /* all */\nfrom\n  ") + "\n", columns)
    assert before.completions or sql == SQL
    assert _changed(before, after) == set()
    assert _changed(before, _plan(sql.replace("as n", "as `n `").replace("as s", "as `s `"), columns))
