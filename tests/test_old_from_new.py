"""Old rows of inputs as new rows less the change: where they are read so, and that nothing differs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlglot import exp

from fivm_dbt.catalog import Retention
from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.delta.old_from_new import old_from_new
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.node import Item, Node, Side
from fivm_dbt.ir.nodes import Distinct, Filter, Join, Map, UnionAll
from fivm_dbt.ir.one_sided import OuterJoin, Restrict
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.naming import COUNT, TIMES
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.refresh.engine import Row
from fivm_dbt.spark.reads import side_reader
from fivm_dbt.spark.select import select
from fivm_dbt.spark.state import delta_query
from fivm_dbt.steps.example import example
from fixtures.models import Bench, plan_of, relation
from fixtures.runs import fast_only

ROWS = (("k", INT),)
NEW_A, OLD_A, OLD_B = (
    Scan("a", "a", ROWS, Side.NEW),
    Scan("a", "a", ROWS, Side.OLD),
    Scan("b", "b", ROWS, Side.OLD),
)
DELTA = Scan("d", "d", (*ROWS, (COUNT, BIGINT)), Side.DELTA)
COUNTED_A = Scan("a", "a", (*ROWS, (COUNT, BIGINT)), Side.COUNTED)
CHANGE, ONCE = Scalar.column("d", COUNT), Scalar.number(1)


def _key(table: str) -> Item:
    return Item("k", Scalar.column(table, "k"), INT)


def _of(node: Node, multiplicity: Scalar = ONCE, changed: str = "a") -> Term:
    return old_from_new(Term(node, multiplicity), set(changed))


def test_a_join_multiplies() -> None:
    join = Join((DELTA, OLD_A, OLD_B), ())
    one, both = _of(join, CHANGE), _of(join, CHANGE, "ab")
    assert one == Term(Join((DELTA, COUNTED_A, OLD_B), ()), Scalar.parse("d.__fivm_count * a.__fivm_count"))
    assert both.multiplicity.sql == "d.__fivm_count * a.__fivm_count * b.__fivm_count"
    assert _of(join, CHANGE, "c") == Term(join, CHANGE)
    assert _of(Join((DELTA, NEW_A), ()), CHANGE) == Term(Join((DELTA, NEW_A), ()), CHANGE)


@pytest.mark.parametrize(
    ("number", "product"), [(1, "a.__fivm_count"), (-1, "-a.__fivm_count"), (2, "2 * a.__fivm_count")]
)
def test_constant_multiplicities(number: int, product: str) -> None:
    assert _of(OLD_A, Scalar.number(number)).multiplicity.sql == product


def test_a_negative_multiplicity_is_of_the_whole_product() -> None:
    assert (
        _of(Join((OLD_A, OLD_B), ()), Scalar.number(-1), "ab").multiplicity.sql
        == "-(a.__fivm_count * b.__fivm_count)"
    )
    minus = Scalar.parse("-d.__fivm_count")
    assert _of(Join((DELTA, OLD_A), ()), minus).multiplicity.sql == "(-d.__fivm_count) * a.__fivm_count"


def test_a_projection_carries_it() -> None:
    term = _of(Filter(Map(Filter(OLD_A, ()), "m", (_key("a"),)), ()), Scalar.number(-1))
    assert term.multiplicity.sql == f"-m.{TIMES}"
    assert term.node.inputs[0] == Map(
        Filter(COUNTED_A, ()), "m", (_key("a"), Item(TIMES, Scalar.column("a", COUNT), BIGINT))
    )


def test_each_branch_of_a_union_carries_it() -> None:
    union = UnionAll((Map(OLD_A, "x", (_key("a"),)), Map(OLD_B, "y", (_key("b"),))), "u")
    term = _of(union)
    assert term.multiplicity == Scalar.column("u", TIMES)
    assert [f.id for f in term.node.fields] == [("u", "k"), ("u", TIMES)]
    shown = [Scalar.column("x", TIMES), Scalar.parse("cast(1 as bigint)")]
    assert [branch.items[-1].value for branch in term.node.inputs if isinstance(branch, Map)] == shown
    assert _of(union, ONCE, "c").node == union


def test_the_left_side_alone() -> None:
    """Each row on the left is treated by itself, those on the right are not."""
    right = Distinct(Map(OLD_A, "r", (_key("a"),)))
    restricted = Restrict(OLD_B, right, ((Scalar.column("b", "k"), Scalar.column("r", "k")),))
    assert _of(restricted, changed="a").node == restricted
    assert _of(restricted, changed="ab").multiplicity.sql == "b.__fivm_count"
    outer = OuterJoin(OLD_A, OLD_B, ())
    assert _of(outer, changed="ab").node == OuterJoin(COUNTED_A, OLD_B, ())


TABLES: dict[str, str] = {
    "r": "k int, j int, x decimal(10,2)",
    "s": "k int, j int, y int",
    "t": "j int, z string",
    "u": "z string, w-n bigint",
}
LINEAR = {
    "sums": "select r.k, sum(r.x * s.y) as x, avg(s.y) as y, count(*) as n from r join s on r.k = s.k group by r.k",
    "wide decimals": "select t.z, sum(cast(r.x as decimal(38,2))) as x from r join t on r.j = t.j group by t.z",
    "no keys": "select count(*) as n, sum(r.x) as x from r join s on r.k = s.k and r.j < s.j",
    "a bag": "select r.x, s.y, t.z from r join s on r.k <=> s.k join t on s.j = t.j",
    "no columns": "select count(*) as n from r, t",
    "a self-join": "select a.k, b.j, count(*) as n, sum(b.x) as x from r a join r b on a.k = b.j group by a.k, b.j",
    "three of one": "select a.k, count(*) as n from r a join r b on a.k = b.j join r c on b.k = c.k group by a.k",
    "four": "select t.z, sum(r.x) as x, avg(u.`w-n`) as w, count(s.y) as n from r join s on r.k = s.k "
    "join t on s.j = t.j join u on t.z = u.z group by t.z",
    "a union": "select p.k, sum(r.x) as x from r join (select k, y from s where y > 0 union all select j, j from t) p "
    "on r.k = p.k group by p.k",
    "rows of rows": "select v.e, count(*) as n from r join s on r.k = s.k lateral view explode(array(r.j, s.y)) v as e "
    "group by v.e",
}
OTHERS = {
    "a left join": "select q.k, q.y, t.z from (select r.k, s.y, s.j from r join s on r.k = s.k) q "
    "left join t on q.j = t.j",
    "exists": "select r.k, s.y from r join s on r.k = s.k where not exists (select 1 from t where t.j = s.j)",
    "a largest": "select s.y, max(r.x) as x from r join s on r.k = s.k group by s.y",
    "distinct": "select distinct r.j, s.y from r join s on r.k = s.k",
}
STRATEGIES = ("first_order", "factorized", "recursive")


def _plan(sql: str, **meta: object) -> Plan:
    return plan_of(sql, [relation(n, columns) for n, columns in TABLES.items()], meta)


def _versions_read(plan: Plan) -> Iterator[tuple[str, str]]:
    """The versions of inputs that the deltas of a refresh read in which all of them changed; 1 is the old one."""
    binding = example(plan)
    inputs = {i.name for i in plan.inputs}
    for view in plan.stored:
        for table in delta_query(plan, view, binding).find_all(exp.Table):
            version = table.args.get("version")
            if version is not None and table.name in inputs:
                yield table.name, version.expression.name


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("sql", LINEAR.values(), ids=LINEAR)
def test_no_old_version_is_read(sql: str, strategy: str) -> None:
    read = set(_versions_read(_plan(sql, fivm_strategy=strategy)))
    assert "1" not in {version for _, version in read}
    assert read or strategy != "first_order"


def test_what_is_not_linear_reads_the_old_version() -> None:
    """The old rows of s in a left join are affected by its old right side."""
    sql = "select r.k, s.y from r left join s on r.k = s.k"
    assert {("s", "1"), ("r", "2")} <= set(_versions_read(_plan(sql, fivm_strategy="first_order")))


def test_doubles_do_not_come_and_go() -> None:
    sql = "select r.k, sum(cast(r.x as double)) as x from r join s on r.k = s.k group by r.k"
    read = set(_versions_read(_plan(sql, fivm_strategy="first_order", fivm_float="approximate")))
    assert {version for _, version in read} == {"1", "2"}


def test_dropped_rows_are_met_in_the_old_version() -> None:
    kept = Retention("day", Length.of("day"), timedelta(days=30))
    relations = [relation("r", "k int, day timestamp", retention=kept), relation("s", "k int, y int")]
    plan = plan_of("select s.y, count(*) as n from s join r on r.k = s.k group by s.y", relations)
    assert set(_versions_read(plan)) == {("r", "1"), ("s", "2")}


def test_both_halves_have_the_bounds_of_the_read() -> None:
    relations = [relation(n, "k int, ts timestamp") for n in ("r", "s")]
    sql = "select r.k, count(*) as n from r join s on s.ts between r.ts and r.ts + interval '5' minutes group by r.k"
    query = delta_query(plan := plan_of(sql, relations), plan.top, example(plan))
    (union,) = (
        u for u in query.find_all(exp.Union) if "VERSION" in u.this.sql() and u.find_ancestor(exp.Join)
    )
    bounds = [u.find(exp.Where) for u in (union.left, union.right)]
    assert bounds[0] is not None and bounds[0] == bounds[1]


def test_columns_and_names() -> None:
    """What a counted read selects, of a name that has to be quoted."""
    plan = _plan(LINEAR["four"], fivm_strategy="first_order")
    counted = Scan("u", "u x", (("w-n", BIGINT), (COUNT, BIGINT)), Side.COUNTED)
    text = select(counted, side_reader(plan, plan.top, example(plan))).sql(dialect="spark")
    assert text.endswith(") AS `u x`")
    assert "(SELECT `w-n`, CAST(1 AS BIGINT) AS __fivm_count FROM u VERSION AS OF 2 AS new UNION ALL" in text
    assert "SELECT `w-n`, -__fivm_count AS __fivm_count FROM fivm_" in text


def _random_row(rng: random.Random, name: str) -> Row:
    numbers = (None, 1, 2, 3)
    value = {
        "int": lambda: rng.choice(numbers),
        "bigint": lambda: rng.choice((None, -1, 5)),
        "string": lambda: rng.choice((None, "a", "b")),
        "decimal(10,2)": lambda: rng.choice((None, "-1.50", "0.25", "7.00")),
    }
    return tuple(value[c.type.text]() for c in relation(name, TABLES[name]).columns)


CAPTURES = ("feed", "versions", "snapshots")


@pytest.mark.parametrize("sql", fast_only([*LINEAR, *OTHERS][::2], LINEAR | OTHERS))
def test_exact_when_everything_changes(sql: str) -> None:
    """All tables change at once: rows with duplicates and NULLs come and go, keys are updated on all sides."""
    rng = random.Random(sql)
    for strategy, capture in zip(STRATEGIES, CAPTURES, strict=True):
        names = [i.name for i in _plan(sql).inputs]
        rows = {n: [_random_row(rng, n) for _ in range(12)] for n in names}
        bench = Bench.of(
            sql,
            {n: (TABLES[n], rows[n]) for n in names},
            {"fivm_strategy": strategy},
            recreated=names if capture == "snapshots" else (),
            feed=capture == "feed",
        )
        bench.refresh()
        for _ in range(4):
            for name, present in rows.items():
                gone = rng.sample(present, rng.randrange(6))
                came = [_random_row(rng, name) for _ in range(1 + rng.randrange(4))]
                came += rng.choices(came + gone, k=2)
                bench.engine.change(name, insert=came, delete=gone)
                rows[name] = list((Counter(present) - Counter(gone) + Counter(came)).elements())
            bench.refresh()
            bench.check()
