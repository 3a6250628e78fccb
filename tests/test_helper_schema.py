"""What fivm keeps of a model may be in a schema of its own."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from fivm_dbt.explain.helpers import helpers_of
from fivm_dbt.naming import kept_under, state_of
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.plan.model.inputs import Reader
from fivm_dbt.refresh.heads import read_state
from fixtures.models import Bench
from viewdf_bench import Bench as PartBench
from viewdf_bench import Model, Table, at, minutes

HELPERS = {"fivm_helper_schema": "helpers"}
TABLES = {
    "r": ("k int, x int", [(1, 1), (1, 2), (2, 3), (None, 4)]),
    "s": ("k int, y int", [(1, 10), (2, 20), (2, 20)]),
}


@pytest.mark.parametrize(
    ("sql", "meta"),
    [
        ("select k, sum(x) as s from r group by k", {}),
        ("select n, count(*) as c from (select k, count(*) as n from r group by k) as g group by n", {}),
        (
            "select r.k, sum(x * y) as s from r join s on r.k = s.k group by r.k",
            {"fivm_strategy": "factorized"},
        ),
        ("select k, x, row_number() over (partition by k order by x) as n from r", {}),
        ("select k, x from r", {"fivm_policy": "full"}),
    ],
)
def test_states_and_inner_views_are_there(sql: str, meta: dict[str, object]) -> None:
    bench = Bench.of(sql, TABLES, {**meta, **HELPERS})
    bench.changed("r", [(1, 7), (3, 1)], [(1, 2)])
    bench.changed("r", [], [(1, 1), (1, 7)])
    under = kept_under("analytics.m", "helpers")
    assert bench.plan.state_relation == f"{under}__fivm_state" == "helpers.analytics__m__fivm_state"
    assert bench.engine.exists(bench.plan.state_relation)
    assert all(view.name.startswith(under) and bench.engine.exists(view.name) for view in bench.plan.helpers)
    assert all(helper.relation.startswith("helpers.") for helper in helpers_of(bench.plan).helpers)
    assert not bench.engine.exists(state_of("analytics.m"))


def test_models_of_one_name_are_told_apart() -> None:
    assert kept_under("mart.daily", "helpers") != kept_under("stage.daily", "helpers")


def test_parts_are_kept_for_readers_whose_states_are_there() -> None:
    stream = Table(
        "m",
        [("k", "string"), ("v", "int"), ("ts", "timestamp")],
        [("a", 1, at("10:00"))],
        TimeParts("ts", Length.of("minute")),
    )
    meta = {"fivm_start": "oldest", **HELPERS}
    plain = Model("plain", "select k, v from {m:j}", None, {**meta, "fivm_retention": "2 minutes"})
    copy = Model("copy", "select k, v from {plain:j}", None, meta)
    with closing(PartBench([stream], [plain, copy])) as b:
        reader = Reader.of("copy", "helpers")
        parts = replace(b.plans["plain"].parts, readers=(reader,))
        b.plans["plain"] = replace(b.plans["plain"], parts=parts)
        b.run()
        for minute in range(1, 6):
            b.change("m", [("a", minute, minutes("10:00", minute))])
            b.run("plain")
        known = read_state(b.bench.engine, b.plans["plain"].state_relation).finished
        assert known is not None and known.detail["parts"]["dropped"] == "none", "copy has not seen them"
        b.run("copy")
        b.change("m", [("a", 6, minutes("10:00", 6))])
        b.run("plain", "copy")
        known = read_state(b.bench.engine, b.plans["plain"].state_relation).finished
        assert known is not None and known.detail["parts"]["dropped"] != "none"
        assert len(b.rows("copy")) == 7
