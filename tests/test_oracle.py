"""The full recompute takes the user's text as it stands and replaces just the names of the inputs."""

from __future__ import annotations

import pytest

from fivm_dbt.catalog import Catalog, Relation
from fivm_dbt.config import load_config
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.oracle import recompute_sql
from fivm_dbt.sql.splice import splice_inputs
from fixtures.models import plan_of, relation

PIN = {"raw.a": "raw.a VERSION AS OF 3", "raw.b": "raw.b VERSION AS OF 4"}


@pytest.mark.parametrize(
    ("sql", "spliced"),
    [
        ("select k from raw.a", "select k from raw.a VERSION AS OF 3"),
        ("select x.k from raw.a x", "select x.k from raw.a VERSION AS OF 3 x"),
        ("select x.k from raw.a AS x", "select x.k from raw.a VERSION AS OF 3 AS x"),
        ("SELECT k\nFROM  RAW . A\n", "SELECT k\nFROM  raw.a VERSION AS OF 3\n"),
        ("select k from `raw`.`A`", "select k from raw.a VERSION AS OF 3"),
        (
            "select k -- from raw.a\nfrom /* raw.a */ raw.a -- raw.a",
            "select k -- from raw.a\nfrom /* raw.a */ raw.a VERSION AS OF 3 -- raw.a",
        ),
        ("select 'raw.a' as t, k from raw.a", "select 'raw.a' as t, k from raw.a VERSION AS OF 3"),
        ("select raw.a.k from raw.a", "select raw.a.k from raw.a VERSION AS OF 3"),
        (
            "select x.k from raw.a x join raw.a y on x.k = y.k join raw.b using (k)",
            "select x.k from raw.a VERSION AS OF 3 x join raw.a VERSION AS OF 3 y on x.k = y.k "
            "join raw.b VERSION AS OF 4 using (k)",
        ),
        ("select k from (select k from raw.a) z", "select k from (select k from raw.a VERSION AS OF 3) z"),
        ("select k from raw.a, raw.b", "select k from raw.a VERSION AS OF 3, raw.b VERSION AS OF 4"),
        (
            "select k from raw.a union all select k from raw.a",
            "select k from raw.a VERSION AS OF 3 union all select k from raw.a VERSION AS OF 3",
        ),
        (
            "with c as (select k from raw.a) select k from c",
            "with c as (select k from raw.a VERSION AS OF 3) select k from c",
        ),
        ("select k from other.a", "select k from other.a"),
        ("select k from a", "select k from a"),
    ],
)
def test_splice(sql: str, spliced: str) -> None:
    assert splice_inputs(sql, PIN) == spliced


BARE = {"a": "a VERSION AS OF 3"}


@pytest.mark.parametrize(
    ("sql", "spliced"),
    [
        (
            "with a as (select k from raw.x) select k from a",
            "with a as (select k from raw.x) select k from a",
        ),
        (
            "with c as (with a as (select 1 as k) select k from a) select c.k from c, a",
            "with c as (with a as (select 1 as k) select k from a) select c.k from c, a VERSION AS OF 3",
        ),
        (
            "with a as (select k from a) select k from a",
            "with a as (select k from a VERSION AS OF 3) select k from a",
        ),
        (
            "with c as (select k from a), a as (select k from c) select k from a",
            "with c as (select k from a VERSION AS OF 3), a as (select k from c) select k from a",
        ),
        (
            "with a as (select k from db.a) select k from A",
            "with a as (select k from db.a) select k from A",
        ),
    ],
    ids=["hidden", "only inside", "its own body reads the input", "before it is defined", "case"],
)
def test_a_cte_hides_an_input_of_its_name(sql: str, spliced: str) -> None:
    """Where a CTE is visible its name means the CTE: not in its own body, and not before it is defined."""
    assert splice_inputs(sql, BARE) == spliced


def test_a_subquery_keeps_the_name_of_the_relation() -> None:
    replacement = {"raw.`order`": "(SELECT 1 AS k)"}
    assert (
        splice_inputs("select k from raw.`order`", replacement) == "select k from (SELECT 1 AS k) AS `order`"
    )
    assert splice_inputs("select k from raw.`order` o", replacement) == "select k from (SELECT 1 AS k) o"


def test_every_input_is_pinned() -> None:
    tables = [relation("raw.a", "k int, v int"), relation("raw.b", "k int, w int")]
    plan = plan_of("select a.k, sum(w) as s from raw.a join raw.b using (k) group by a.k", tables)
    assert recompute_sql(plan, {"raw.a": 7, "raw.b": 9}) == (
        "select a.k, sum(w) as s from raw.a VERSION AS OF 7 join raw.b VERSION AS OF 9 using (k) group by a.k"
    )


def test_a_model_upstream_is_read_through_its_state() -> None:
    upstream = plan_of("select k, count(*) as c from raw.a group by k", [relation("raw.a", "k int")])
    shown = Relation("analytics.m", upstream.output, kind="fivm", presentation=upstream.presentation)
    request = ModelRequest(
        "analytics.n", "select k from analytics.m where c > 1", Catalog.of([shown]), load_config({})
    )
    sql = recompute_sql(plan_model(request), {"analytics.m": 5})
    assert "FROM analytics.m__fivm_state VERSION AS OF 5 WHERE __fivm_view = 'root') AS m where c > 1" in sql
