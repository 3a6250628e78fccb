"""Where rows may tie the text is completed: what is put in, where, and that it then has one answer."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.config import load_config
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.text import explain
from fivm_dbt.ir.printer import render
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.oracle import recompute_sql
from fivm_dbt.sql.edits import edited, without_comments
from fivm_dbt.sql.lower import lower
from fixtures.models import plan_of, relation

R = relation("r", "id int, g int, ts timestamp, x int, s string, m map<string,int>, l array<int>")
KEYED = replace(relation("keyed", "id int, g int, ts timestamp"), keys=(("id",),))
NAMED = relation("db.`odd one`", "id int, ts int")
ODD = Relation("odd", (Column.of("the id", "int"), Column.of("Order", "int"), Column.of("ts", "int")))
TABLES = Catalog.of([R, KEYED, NAMED, ODD, relation("b", "id int, w int")])


def completed(sql: str) -> str:
    return edited(sql, lower(sql, TABLES).completions)


def unchanged(sql: str) -> tuple[str, str]:
    return sql, sql


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "select id, row_number() over (partition by g order by ts) as n from r",
            "select id, row_number() over (partition by g order by ts, r.id) as n from r",
        ),
        unchanged("select g, ts, row_number() over (partition by g order by ts) as n from r"),
        unchanged("select id, rank() over (order by ts) as n, sum(x) over (order by ts) as t from r"),
        unchanged("select id, last_value(g) over (order by id) as n from keyed"),
        unchanged("select id, nth_value(x, 2) over (partition by g order by x) as n from r"),
        (
            "select g, row_number() over (order by ts) as n, row_number() over (order by ts desc) as d from keyed",
            "select g, row_number() over (order by ts, keyed.id) as n, "
            "row_number() over (order by ts desc, keyed.id) as d from keyed",
        ),
        (
            "select t.id, sum(t.x) over (order by t.ts rows between 1 preceding and current row) as n from r t",
            "select t.id, sum(t.x) over (order by t.ts, t.id, t.x rows between 1 preceding and current "
            "row) as n from r t",
        ),
        (
            "select id, lag(id) over (order by ts -- order by rows (\n) as n from r",
            "select id, lag(id) over (order by ts, r.id -- order by rows (\n) as n from r",
        ),
        (
            "select id, 'over (order by' as t, lag(id) over (order by concat(s, ') rows') /* ) */) as n from r",
            "select id, 'over (order by' as t, lag(id) over (order by concat(s, ') rows'), r.id, r.s "
            "/* ) */) as n from r",
        ),
        (
            "select id, row_number() over w as n, rank() over w as k, lag(x) over (w) as p from r "
            "window w as (partition by g order by ts)",
            "select id, row_number() over (partition by g order by ts, r.id, r.x) as n, rank() over w as k, "
            "lag(x) over (partition by g order by ts, r.id, r.x) as p from r window w as (partition by g order by ts)",
        ),
        (
            "select id from r qualify row_number() over (order by ts) = 1",
            "select id from r qualify row_number() over (order by ts, r.id) = 1",
        ),
        (
            "select `the id`, `Order`, lead(ts) over (order by ts) as n from odd",
            "select `the id`, `Order`, lead(ts) over (order by ts, odd.`the id`, odd.`Order`) as n from odd",
        ),
        (
            "select id, lead(id) over (order by ts) as n from db.`odd one`",
            "select id, lead(id) over (order by ts, `odd one`.id) as n from db.`odd one`",
        ),
        (
            "select id, row_number() over (order by ts) as n from (select id, ts from r)",
            "select id, row_number() over (order by ts, id) as n from (select id, ts from r)",
        ),
        (
            "with c as (select id, row_number() over (order by ts) as n from r) select a.n from c a "
            "join c d using (id)",
            "with c as (select id, row_number() over (order by ts, r.id) as n from r) "
            "select a.n from c a join c d using (id)",
        ),
        (
            "select id, (select max_by(w, b.id) from b where b.id = r.id) as m from r",
            "select id, (select max_by(w, if((b.id) is null, null, named_struct('y', b.id, 'x', w))) from b where b.id "
            "= r.id) as m from r",
        ),
        (
            "select a.id, b.w, row_number() over (order by a.ts) as n from r a join b on a.id = b.id",
            "select a.id, b.w, row_number() over (order by a.ts, a.id, b.w) as n from r a join b on a.id = b.id",
        ),
        (
            "select id, e.k, row_number() over (order by ts) as n from r lateral view explode(l) e as k",
            "select id, e.k, row_number() over (order by ts, r.id, e.k) as n from r lateral view explode(l) e as k",
        ),
        (
            "select g, sum(x) as t, row_number() over (order by sum(x) desc) as n from r group by g, 1 + x",
            "select g, sum(x) as t, row_number() over (order by sum(x) desc, g, 1 + x) as n from r group by g, 1 + x",
        ),
        (
            "select g, s, row_number() over (order by count(*)) as n from r group by cube(g, s)",
            "select g, s, row_number() over (order by count(*), g, s, grouping_id()) as n from r group by cube(g, s)",
        ),
        (
            "with d as (select g, ts, count(*) as n from r group by g, ts) "
            "select g, lag(n) over (partition by g order by ts) as p, ntile(2) over (order by n) as t from d",
            "with d as (select g, ts, count(*) as n from r group by g, ts) "
            "select g, lag(n) over (partition by g order by ts) as p, ntile(2) over (order by n, d.g, "
            "d.ts) as t from d",
        ),
        (
            "from b |> extend row_number() over (order by w) as n |> select id, n |> order by n |> limit 3",
            "from b |> extend row_number() over (order by w, b.id) as n |> select id, n |> order by n, 1 |> limit 3",
        ),
    ],
)
def test_windows(sql: str, expected: str) -> None:
    assert completed(sql) == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("max_by(x, ts)", "max_by(x, if((ts) is null, null, named_struct('y', ts, 'x', x)))"),
        (
            "min_by(s, x + 1 /* , */) filter (where x > 1)",
            "min_by(s, if((x + 1) is null, null, named_struct('y', x + 1, 'x', s)) /* , */) filter (where x > 1)",
        ),
        ("max_by(x, ts, 2)", "max_by(x, if((ts) is null, null, named_struct('y', ts, 'x', x)), 2)"),
        ("max_by(x, struct(ts, x))", "max_by(x, struct(ts, x))"),
        ("max_by(x, x)", "max_by(x, x)"),
        ("max_by(1, ts)", "max_by(1, ts)"),
        ("collect_list(x)", "sort_array(collect_list(x))"),
        ("array_join(collect_set(s), ',')", "array_join(sort_array(collect_set(s)), ',')"),
        (
            "array_agg(distinct x) filter (where (x > 1))",
            "sort_array(array_agg(distinct x) filter (where (x > 1)))",
        ),
        ("size(collect_list(x))", "size(collect_list(x))"),
        ("sort_array((collect_list(x)), false)", "sort_array((collect_list(x)), false)"),
        (
            "array_sort(collect_list(x), (a, b) -> a % 2 - b % 2)",
            "array_sort(sort_array(collect_list(x)), (a, b) -> a % 2 - b % 2)",
        ),
        ("mode(x)", "mode(x, true)"),
        ("mode(x, true)", "mode(x, true)"),
        ("mode() within group (order by x)", "mode() within group (order by x)"),
        (
            "listagg(s, ',') within group (order by ts desc)",
            "listagg(s, ',') within group (order by ts desc, s)",
        ),
        ("listagg(s) within group (order by x, s)", "listagg(s) within group (order by x, s)"),
        ("listagg(distinct s) within group (order by s)", "listagg(distinct s) within group (order by s)"),
        ("string_agg(s, ',')", "string_agg(s, ',') within group (order by s)"),
        ("listagg(distinct s, '|')", "listagg(distinct s, '|') within group (order by s)"),
        (
            "listagg(s) filter (where (x > 1))",
            "listagg(s) within group (order by s) filter (where (x > 1))",
        ),
    ],
)
def test_aggregates(written: str, expected: str) -> None:
    assert (
        completed(f"select g, {written} as a from r group by g")
        == f"select g, {expected} as a from r group by g"
    )


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("select id, x from r order by x limit 3", "select id, x from r order by x, 1 limit 3"),
        ("select id, x from r order by 2, 1 desc limit 3", "select id, x from r order by 2, 1 desc limit 3"),
        ("select x from r order by id offset 3", "select x from r order by id, 1 offset 3"),
        ("select x from r order by id", "select x from r order by id"),
        (
            "(select id, x from r order by x /* limit 1 */ limit 1) union all select id, w from b order by x limit 2",
            "(select id, x from r order by x, 1 /* limit 1 */ limit 1) union all select id, w from b "
            "order by x, 1 limit 2",
        ),
        (
            "select id from r order by row_number() over (order by ts) limit 2",
            "select id from r order by row_number() over (order by ts, r.id), 1 limit 2",
        ),
    ],
)
def test_limits(sql: str, expected: str) -> None:
    assert completed(sql) == expected


def _filled(extreme: str, by: str, value: str = "x") -> str:
    return f"{extreme}({value}, if(({value}) is null, null, named_struct({by}, 'value', {value})))"


BY_TS = "'known_1', (ts) is not null, 'by_1', ts"
BY_TS_NULLS_HIGH = "'known_1', (ts) is null, 'by_1', ts"


@pytest.mark.parametrize(
    ("call", "order", "expected"),
    [
        ("last_value(x, true)", "ts", _filled("max_by", BY_TS)),
        ("last(x) ignore nulls", "ts desc", _filled("min_by", BY_TS)),
        ("first_value(x) ignore nulls", "ts asc", _filled("min_by", BY_TS)),
        ("any_value(x, true)", "ts desc nulls first", _filled("max_by", BY_TS_NULLS_HIGH)),
        ("last_value(x, true)", "ts nulls last", _filled("max_by", BY_TS_NULLS_HIGH)),
        ("last_value(x + 1, true)", "ts", _filled("max_by", BY_TS, "x + 1")),
        (
            "last_value(x, true)",
            "date(ts), g /* , */ range between unbounded preceding and current row",
            _filled(
                "max_by",
                "'known_1', (date(ts)) is not null, 'by_1', date(ts), 'known_2', (g) is not null, 'by_2', g",
            ),
        ),
    ],
)
def test_values_that_pass_over_nulls(call: str, order: str, expected: str) -> None:
    """Rows that are equal in the order begin and end a frame together, so the order cannot be completed."""
    assert (
        completed(f"select id, {call} over (partition by g order by {order}) as a from r")
        == f"select id, {expected} over (partition by g order by {order}) as a from r"
    )
    assert completed(
        f"select id, {call} over w as a, rank() over w as k from r window w as (order by {order})"
    ) == (f"select id, {expected} over w as a, rank() over w as k from r window w as (order by {order})")


def test_an_order_up_and_down_has_no_one_extreme() -> None:
    with pytest.raises(FivmError, match="has rows that are equal in its ORDER BY"):
        completed("select id, last_value(x, true) over (order by ts, g desc) as a from r")


def _numbered(columns: str, number: int, name: str, text: str = "") -> str:
    first = columns.split(", ")[0]
    listed = f"{columns}, row_number() over (partition by {columns} order by {first})"
    return f"(select {listed} as __fivm_number_{number} from {text or name}) as {name}"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "select g, row_number() over (order by ts) as a, row_number() over (order by ts desc) as b from r",
            "select g, row_number() over (order by ts, r.g, r.__fivm_number_1) as a, "
            "row_number() over (order by ts desc, r.g desc, r.__fivm_number_1 desc) as b "
            f"from {_numbered('r.g, r.ts', 1, 'r')}",
        ),
        (
            "select t.* except (l, m), lag(x) over (order by g) as a, lead(x) over (order by x) as b from r as t",
            "select t.* except (__fivm_number_1), "
            "lag(x) over (order by g, t.id, t.ts, t.x, t.s, t.__fivm_number_1) as a, "
            "lead(x) over (order by x, t.id, t.g, t.ts, t.s, t.__fivm_number_1) as b "
            f"from {_numbered('t.id, t.g, t.ts, t.x, t.s', 1, 't', 'r as t')}",
        ),
        (
            # What has a key needs no number.
            "select keyed.g, w, row_number() over (order by ts) as a, sum(w) over (order by w rows 1 preceding) as s "
            "from keyed left join (select id, w from b) as c using (id)",
            "select keyed.g, w, row_number() over (order by ts, keyed.id, c.id, c.w, c.__fivm_number_2) as a, "
            "sum(w) over (order by w, keyed.id, c.id, c.__fivm_number_2 rows 1 preceding) as s "
            f"from keyed left join {_numbered('c.id, c.w', 2, 'c', '(select id, w from b) as c')} using (id)",
        ),
        (
            "select u.b, row_number() over w as n, ntile(2) over (order by u.b) as t from odd as u(a, b, c) "
            "where u.a > 1 window w as (order by u.c)",
            "select u.b, row_number() over (order by u.c, u.a, u.b, u.__fivm_number_1) as n, "
            "ntile(2) over (order by u.b, u.a, u.c, u.__fivm_number_1) as t "
            f"from {_numbered('u.a, u.b, u.c', 1, 'u', 'odd as u(a, b, c)')} where u.a > 1 window w as (order by u.c)",
        ),
        (
            # Rows that are equal in the order of one of the two have equal values there.
            "select g, ntile(2) over (order by ts) as a, first_value(g) over (order by ts desc) as b from r",
            "select g, ntile(2) over (order by ts, r.g) as a, first_value(g) over (order by ts desc, r.g) as b from r",
        ),
    ],
)
def test_rows_in_several_orders_are_numbered(sql: str, expected: str) -> None:
    """Otherwise it is open which a goes with which b where two rows have one g and one ts."""
    assert completed(sql) == expected


@pytest.mark.parametrize(
    "rest",
    [
        "r lateral view explode(l) e as k",
        "(select g, ts, m from r) as q where m['a'] = 1",
        "(select g, ts from r)",
        "r full join (select id as other from b) as c on r.id = c.other",
    ],
)
def test_what_cannot_be_numbered_is_refused(rest: str) -> None:
    two = "row_number() over (order by ts) as a, row_number() over (order by ts desc) as b"
    with pytest.raises(FivmError, match="is ordered in another way than a window beside it"):
        completed(f"select g, {two} from {rest}")


def test_columns_keep_the_names_of_the_text_as_written() -> None:
    sql = "select g, collect_list(x) from r group by g -- and no more\n;"
    lowered = lower(sql, TABLES)
    assert lowered.names == ("g", "collect_list(x)")
    assert edited(sql, lowered.completions) == (
        "SELECT * FROM (\nselect g, sort_array(collect_list(x)) from r group by g\n"
        ") AS completed(g, `collect_list(x)`) -- and no more\n;"
    )


def test_errors_point_into_the_text_as_written() -> None:
    with pytest.raises(FivmError) as caught:
        lower("select id, row_number() over (order by ts) as n,\n rand() as q from r", TABLES)
    assert "line 2, column 2\n     rand() as q from r\n     ^^^^" in str(caught.value)


SQL = "select id, row_number() over (order by ts) as n from raw.t"


def test_both_sides_run_the_completed_text() -> None:
    plan = plan_of(SQL, [relation("raw.t", "id int, ts int")])
    assert "ORDER BY t.ts, t.id" in render(plan.query).replace("order by", "ORDER BY")
    assert recompute_sql(plan, {"raw.t": 3}) == (
        "select id, row_number() over (order by ts, t.id) as n from raw.t VERSION AS OF 3"
    )
    assert plan.signature["SQL"] == without_comments(SQL)
    assert plan.signature["completed SQL"] == without_comments(plan.completed_sql)


def test_a_text_without_ties_has_the_signature_that_it_had() -> None:
    plan = plan_of("select id from raw.t", [relation("raw.t", "id int, ts int")])
    assert "completed SQL" not in plan.signature


def test_explain_shows_what_was_put_in() -> None:
    text = explain(plan_of(SQL, [relation("raw.t", "id int, ts int")]))
    assert (
        "== completed where rows may tie: this is maintained, and recomputed\n"
        "  line 1, column 42: , t.id\n"
        "select id, row_number() over (order by ts, t.id) as n from raw.t\n"
    ) in text


SCENARIOS = [
    json.loads(line)
    for line in (Path(__file__).parent / "scenarios" / "ties.jsonl").read_text().splitlines()
    if "expected_error" not in line
]


def _marks(number: int) -> list[pytest.MarkDecorator]:
    if number % 4:
        return [pytest.mark.long]
    return [pytest.mark.more] if number % 12 else []


@pytest.mark.parametrize(
    "scenario",
    [pytest.param(s, id=s["id"], marks=_marks(n)) for n, s in enumerate(SCENARIOS)],
)
def test_the_order_of_reading_does_not_matter(scenario: dict) -> None:  # type: ignore[type-arg]
    """The completed texts over the same rows in twenty orders."""
    keys = tuple((name,) for name in scenario.get("keys", {}).get("r", []))
    relations = [Relation("r", tuple(Column.of(n, t) for n, t in scenario["tables"]["r"]), keys=keys)]
    rows = list(scenario["initial"]["r"])
    texts = {}
    for model in scenario.get("models") or [{"name": "v", "sql": scenario["sql"]}]:
        request = ModelRequest(model["name"], model["sql"], Catalog.of(relations), load_config({}))
        plan = plan_model(request)
        texts[model["name"]] = plan.completed_sql
        relations.append(Relation(model["name"], plan.output))
    answers = [_answers(texts, rows, seed, scenario["tables"]["r"]) for seed in range(20)]
    assert all(answer == answers[0] for answer in answers)


def test_without_completions_the_order_of_reading_matters() -> None:
    """So the test above can fail."""
    rows = [[i, None, 1, i, "a"] for i in range(5)]
    texts = {"v": "select id, row_number() over (order by ts) as n from r"}
    assert _answers(texts, rows, 0) != _answers(texts, rows, 1)


COLUMNS = [["id", "int"], ["g", "int"], ["ts", "int"], ["x", "int"], ["s", "string"]]


def _answers(
    texts: dict[str, str], rows: list[list[object]], seed: int, columns: list[list[str]] = COLUMNS
) -> dict[str, Counter[str]]:
    engine = DuckDbEngine(tiny=True)
    shuffled = random.Random(seed).sample(rows, len(rows))
    values = ", ".join(f"({', '.join(_literal(v) for v in row)})" for row in shuffled)
    typed = ", ".join(f"CAST({name} AS {type_}) AS {name}" for name, type_ in columns)
    names = ", ".join(name for name, _ in columns)
    engine.run(f"CREATE OR REPLACE TABLE r USING DELTA AS SELECT {typed} FROM VALUES {values} AS t({names})")
    found = {}
    for name, text in texts.items():
        found[name] = Counter(map(str, engine.query(text)))
        engine.run(f"CREATE OR REPLACE TABLE {name} USING DELTA AS {text}")
    return found


def _literal(value: object) -> str:
    return "NULL" if value is None else (f"'{value}'" if isinstance(value, str) else str(value))
