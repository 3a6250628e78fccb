"""``fivm_float: approximate``: sums of doubles and what follows from them, by addition."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import pytest

from fivm_dbt.refresh.engine import Row
from fivm_dbt.refresh.heads import next_head, read_state
from fivm_dbt.rings.doubles import DOUBLES
from fivm_dbt.spark.merge import merge
from fivm_dbt.spark.places import Place
from fivm_dbt.steps.binding import staged_state
from fivm_dbt.testing.compare import compare_rows
from fixtures.models import Bench, plan_of, relation
from fixtures.runs import fast_only

APPROXIMATE: dict[str, object] = {"fivm_float": "approximate"}
NAN, INF = math.nan, math.inf
SUMS = "select k, sum(x) as s, avg(x) as a, count(x) as n from raw.r group by k"


def _bench(sql: str, columns: str = "k int, x double", rows: Sequence[Row] = (), **meta: object) -> Bench:
    bench = Bench.of(sql, {"raw.r": (columns, rows)}, {**APPROXIMATE, **meta})
    bench.refresh()
    return bench


def _step(bench: Bench, insert: Sequence[Row] = (), delete: Sequence[Row] = ()) -> None:
    bench.engine.change("raw.r", insert=insert, delete=delete)
    report = bench.refresh()
    assert report.action in ("refreshed", "no change")
    shown, wanted = list(bench.shown().elements()), list(bench.newest().elements())
    difference = compare_rows(shown, wanted, [c.type for c in bench.plan.output])
    assert not difference, "\n".join(difference.lines("maintained", "recomputed"))


# Sums


@pytest.mark.parametrize("apply", ["merge", "replace"])
def test_infinities_and_nan_come_and_go(apply: str) -> None:
    bench = _bench(SUMS, rows=[(1, 1.5), (1, INF), (2, None)], fivm_apply=apply)
    _step(bench, insert=[(1, -INF), (2, NAN), (None, -INF)])
    _step(bench, delete=[(1, INF)])
    _step(bench, delete=[(1, -INF), (2, NAN)], insert=[(2, INF), (2, INF)])
    _step(bench, delete=[(2, INF), (None, -INF)])
    _step(bench, delete=[(2, INF), (2, None), (1, 1.5)])
    assert bench.engine.query(
        f"select count(*) from {bench.plan.state_relation} where __fivm_view <> 'tail'"
    ) == [(0,)]


def test_a_sum_out_of_range_comes_back() -> None:
    """The state is never infinite, the sum that is shown is."""
    large = 1.5e308
    bench = _bench(SUMS.replace("avg(x) as a, ", ""), rows=[(1, large), (1, 1e300)])
    bench.engine.change("raw.r", insert=[(1, large)])
    bench.refresh()
    assert list(bench.shown()) == [(1, INF, 3)]
    _step(bench, delete=[(1, large)])


def test_squares_out_of_range_come_back() -> None:
    """Infinite squares are counted, so the variance is a number again; its digits are those of the largest value."""
    bench = _bench("select var_pop(x) as v, sum(x * x) as q from raw.r", rows=[(1, 1.0), (1, 3.0)])
    bench.engine.change("raw.r", insert=[(1, 1e200)])
    bench.refresh()
    ((variance, squares),) = bench.shown()
    assert isinstance(variance, float) and not math.isfinite(variance) and squares == INF
    bench.engine.change("raw.r", delete=[(1, 1e200)])
    bench.refresh()
    ((variance, squares),) = bench.shown()
    assert isinstance(variance, float) and math.isfinite(variance) and squares == 10.0


def test_what_is_left_of_a_sum_is_no_row() -> None:
    """0.1 + 0.2 − 0.1 − 0.2 is not zero in doubles; counts are."""
    bench = _bench(SUMS, rows=[(1, 0.1), (1, 0.2)], fivm_apply="merge")
    _step(bench, delete=[(1, 0.1), (1, 0.2)])
    assert bench.engine.query(f"select * from {bench.plan.state_relation} where __fivm_view <> 'tail'") == []
    _step(bench, insert=[(1, 0.1)])
    _step(bench, insert=[(1, None)], delete=[(1, 0.1)])


def test_a_key_that_comes_and_goes_within_one_delta_leaves_nothing() -> None:
    bench = _bench(SUMS, rows=[(1, 1.0)])
    root = bench.plan.state_relation
    engine = bench.engine
    names = bench.plan.root.payload_names
    values = ", ".join(f"{'1e-30' if name.startswith('__fivm_sum') else 0} AS {name}" for name in names)
    engine.stage(staged_state(bench.plan, bench.plan.top), f"SELECT 7 AS k, {values}, 0 AS __fivm_partition")
    before = engine.query(f"select * from {root} where __fivm_view <> 'tail'")
    head = read_state(engine, bench.plan.state_relation).head
    assert head is not None
    written = merge(bench.plan, [Place(bench.plan.top, None)], next_head(head, {}))
    engine.run(written.sql(dialect="spark"))
    assert engine.query(f"select * from {root} where __fivm_view <> 'tail'") == before


def test_the_error_stays_within_what_is_told() -> None:
    """At most 2^−53 of the largest sum that the group has had, for each addition."""
    generator = random.Random(7)
    values = [generator.uniform(-1e6, 1e6) for _ in range(400)]
    bench = _bench("select k, sum(x) as s, count(*) as n from raw.r group by k", rows=[(1, 0.125)])
    for start in range(0, 400, 50):
        bench.engine.change("raw.r", insert=[(1, x) for x in values[start : start + 50]])
        bench.refresh()
    for start in range(0, 400, 50):
        bench.engine.change("raw.r", delete=[(1, x) for x in values[start : start + 50]])
        bench.refresh()
    ((k, s, n),) = bench.shown()
    assert (k, n) == (1, 1)
    assert isinstance(s, float) and abs(s - 0.125) <= 2.0**-53 * 800 * sum(abs(x) for x in values)


# Moments


CALLS = (
    "var_pop(x) as vp, var_samp(x) as vs, variance(x) as va, stddev_pop(x) as sp, stddev(x) as sd, "
    "covar_pop(x, y) as cp, covar_samp(x, y) as cs, regr_sxx(y, x) as sxx, regr_syy(y, x) as syy, "
    "regr_sxy(y, x) as sxy, regr_count(y, x) as rc, regr_avgx(y, x) as ax, regr_avgy(y, x) as ay, count(*) as n"
)


@pytest.mark.parametrize(
    "type_",
    fast_only(
        ["double", "decimal(8,2)"], ["double", "int", "bigint", "decimal(8,2)", "decimal(20,6)", "float"]
    ),
)
def test_moments_by_addition(type_: str) -> None:
    bench = _bench(f"select k, {CALLS} from raw.r group by k", f"k int, x {type_}, y {type_}")
    assert bench.plan.root.payload
    kinds = {p.numbers for p in bench.plan.root.payload}
    assert (DOUBLES in kinds) is (type_ not in ("int", "decimal(8,2)"))
    _step(bench, insert=[(1, 2, 4), (1, 4, 7), (1, 4, None), (2, 5, 5), (None, None, 1)])
    _step(bench, insert=[(1, 9, -3), (2, 5, 6)], delete=[(1, 4, 7)])
    _step(bench, delete=[(1, 9, -3), (1, 2, 4), (2, 5, 5)], insert=[(None, 3, 3)])
    _step(bench, delete=[(1, 4, None), (None, None, 1)])


def test_integers_far_from_zero_lose_nothing() -> None:
    offset = 4_000_000_000_000
    bench = _bench(
        "select var_samp(x) as v from raw.r", "k int, x bigint", [(1, offset + 1), (1, offset + 3)]
    )
    _step(bench, insert=[(1, offset + 8)])
    _step(bench, insert=[(1, 5 * 10**14), (1, -(5 * 10**14))])
    _step(bench, delete=[(1, 5 * 10**14), (1, -(5 * 10**14)), (1, offset + 1)])


def test_equal_values_do_not_vary() -> None:
    bench = _bench("select k, var_pop(x) as v, stddev(x) as s from raw.r group by k", rows=[(1, 0.1)] * 7)
    assert list(bench.shown()) == [(1, 0.0, 0.0)]
    _step(bench, insert=[(1, 0.1)] * 5)
    _step(bench, delete=[(1, 0.1)] * 11)


def test_with_filter_and_over_a_join() -> None:
    _step(_bench("select var_pop(x) filter (where k > 1) as v from raw.r", rows=[(1, 9.0), (2, 1.0), (3, 2.0)]),
          insert=[(1, 7.0), (4, 4.0)], delete=[(3, 2.0)])  # fmt: skip
    bench = _bench("select a.k, stddev_pop(b.x) as s from raw.r a join raw.r b on a.k = b.k group by a.k")
    _step(bench, insert=[(1, 0.5), (1, 2.5), (2, 1.0)])
    _step(bench, insert=[(1, 4.0)], delete=[(1, 0.5)])


def test_one_call_that_does_not_add_up_recomputes_the_group() -> None:
    plan = plan_of(
        "select k, max(x) as m, sum(x) as s from raw.r group by k",
        [relation("raw.r", "k int, x double")],
        APPROXIMATE,
    )
    assert plan.root.payload == ()


@pytest.mark.parametrize("strategy", ["auto", "first_order"])
def test_below_other_operators_it_is_an_inner_view_that_is_added_up(strategy: str) -> None:
    """The inner sums and what is added up of them, over many changes."""
    inner_sums = "select k, sum(x) as s from raw.r group by k"
    sql = f"select k % 3 as g, sum(s) as t, count(*) as n from ({inner_sums}) q group by g"
    generator = random.Random(11)
    rows = [(generator.randrange(9), generator.uniform(-1e3, 1e3)) for _ in range(200)]
    bench = Bench.of(sql, {"raw.r": ("k int, x double", rows)}, {**APPROXIMATE, "fivm_strategy": strategy})
    bench.refresh()
    (inner,) = bench.plan.helpers
    assert [p.numbers for p in inner.state.payload].count(DOUBLES) == 1
    for start in range(0, 200, 40):
        _step(bench, delete=rows[start : start + 40], insert=[(start % 7, start / 3), (None, 0.1)])
        kept = bench.engine.query(f"select sum(sum_x) from ({inner.presentation.sql}) q")
        shown = bench.engine.query(f"select sum(t) from {bench.plan.relation}")
        ((below,), (above,)) = (*kept, *shown)
        assert math.isclose(float(str(below)), float(str(above)), rel_tol=1e-12)


@pytest.mark.parametrize("merge_by", ["grouped", "per_partition"])
def test_a_rest_that_is_no_row_is_no_change_of_an_inner_view(merge_by: str) -> None:
    """The MERGE of such a delta changes nothing, and is no commit: there is no change feed to read."""
    sums = "select a.k, sum(a.x) as s from raw.a join raw.b on a.j = b.j group by a.k"
    bench = Bench.of(
        f"select count(*) as n, sum(s) as t from ({sums}) q",
        {"raw.a": ("j int, k int, x double", [(2, 1, 0.5)]), "raw.b": ("j int", [(1,), (2,)])},
        {**APPROXIMATE, "fivm_merge": merge_by, "fivm_apply": "merge"},
    )
    bench.refresh()
    (inner,) = bench.plan.helpers
    bench.engine.change("raw.a", insert=[(1, 7, 0.1), (1, 7, 0.2), (1, 7, 0.3)])
    bench.engine.change("raw.b", delete=[(1,)])
    report = bench.refresh()
    assert [(v.relation, v.rows_merged) for v in report.inner_views] == [(inner.name, 1)]
    assert list(bench.shown()) == [(1, 0.5)]
    bench.engine.change("raw.b", insert=[(1,)])
    bench.refresh()
    ((n, t),) = bench.shown()
    assert n == 2 and isinstance(t, float) and math.isclose(t, 1.1)


def test_the_default_recomputes() -> None:
    plan = plan_of(SUMS, [relation("raw.r", "k int, x double")])
    assert plan.root.payload == ()


def test_switching_rebuilds() -> None:
    bench = _bench(SUMS, rows=[(1, 0.5)])
    bench.with_plan(meta={})
    report = bench.refresh()
    assert report.action == "rebuilt" and report.reason is not None
    assert report.reason.endswith(" changed; presentation changed; root layout changed")
