"""What the random tests stand on: coverage adds up, queries shrink, and DuckDB answers as Spark would."""

from __future__ import annotations

from contextlib import closing

import pytest
from click.testing import CliRunner

from fivm_dbt.catalog import Column
from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.testing.scenario import Scenario
from generator.__main__ import main
from generator.cases import random_case
from generator.coverage import Coverage, Events
from generator.minimise import minimised
from generator.minimise_sql import smaller_queries
from generator.queries.query import Query

ROWS = ((1, 2, "a"), (None, None, None), (2, -1, "b"), (2, -1, "b"))


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (
            "select k, e from r lateral view outer explode(sequence(1, x)) v as e where k = 1",
            {(1, 1), (1, 2)},
        ),
        ("select e from r lateral view outer explode(sequence(1, x)) v as e where k is null", {(None,)}),
        ("select e from r lateral view explode(sequence(1, x)) v as e where k = 2", {(1,), (0,), (-1,)}),
        ("select p, e from r lateral view posexplode(array(x, k)) v as p, e where k = 1", {(0, 2), (1, 1)}),
        ("select explode_outer(case when k = 1 then array(k) end) as e from r", {(1,), (None,)}),
        ("select k, count(*) as n from r group by k with rollup", {(1, 1), (None, 1), (2, 2), (None, 4)}),
        ("select k, count(*) as n from r where k > 9 group by rollup(k)", set()),
        ("select max_by(case when x < 0 then k end, x) as a from r", {(None,)}),
        ("select median(cast(k as decimal(3,1))) as a from r where k = 1 or k = 2 and x > 0", {(1.0,)}),
        (
            "select percentile_cont(0.25) within group (order by k desc) as a, "
            "percentile_disc(0.4) within group (order by x) filter (where k = 2 or x > 0) as b from r",
            {(2.0, -1.0)},
        ),
        ("select percentile(k, 0.5) as a, percentile(k, 0.25) as b from r", {(2.0, 1.5)}),
        ("select size(collect_list(k)) as n, size(collect_set(k)) as m from r where k is null", {(0, 0)}),
        ("select count(distinct k, x) as n from r", {(2,)}),
        ("select first_value(k) over (order by k) as f from r", {(None,)}),
        (
            "select * from (select k, g, x from r) pivot (sum(x) for g in ('a' as a))",
            {(1, 2), (None, None), (2, None)},
        ),
        ("select u, v from r unpivot (v for u in (k, x)) where g = 'a'", {("k", 1), ("x", 2)}),
        ("from r |> where k = 2 |> aggregate count(*) as n group by g", {("b", 2)}),
    ],
)
def test_duckdb_answers_as_spark(query: str, rows: set[tuple[object, ...]]) -> None:
    with closing(DuckDbEngine(tiny=True)) as engine:
        columns = (Column.of("k", "int"), Column.of("x", "int"), Column.of("g", "string"))
        engine.create_table("r", columns, ROWS)
        assert set(engine.query(query)) == rows


def test_versions_with_the_same_rows_share_a_copy() -> None:
    """And what is read stays right: after a change is undone, after a table is dropped, after old ones are gone."""
    with closing(DuckDbEngine(tiny=True)) as engine:
        engine.create_table("r", (Column.of("k", "int"),), [(1,)])
        engine.change("r", insert=[(2,)])
        engine.change("r", delete=[(2,)])
        versions = [engine.query(f"select sum(k) from r version as of {v}") for v in range(3)]
        assert versions == [[(1,)], [(3,)], [(1,)]]
        engine.vacuum("r")
        assert engine.query("select sum(k) from r") == [(1,)]
        with pytest.raises(ValueError, match="is not there"):
            engine.change("r", delete=[(2,)])
        engine.drop("r")
        engine.create_table("r", (Column.of("k", "int"),), [(7,)])
        assert engine.query("select sum(k) from r version as of 0") == [(7,)]


def test_a_query_shrinks_to_what_fails() -> None:
    sql = (
        "with c as (select k, sum(x) as s from r group by k) "
        "select a.k, a.s, (select max(x) from r where r.k = a.k) as m from c a left join r b on a.k = b.k "
        "where exists (select 1 from r where r.k = a.k and r.x > 0) or a.s > 1 order by a.k, a.s limit 3"
    )
    tables = {"r": [["k", "int"], ["x", "int"]]}
    scenario = Scenario.model_validate({"id": "s", "tables": tables, "view": "v", "sql": sql})
    small = minimised(scenario, lambda s: any("LEFT JOIN" in m.sql.upper() for m in s.models), seconds=20)
    assert len(small.models[0].sql) < 60
    assert any("EXISTS" not in q for q in smaller_queries(sql))
    assert all(q.count("LIMIT") <= 1 for q in smaller_queries(sql))


def test_coverage_adds_up_and_survives_a_file() -> None:
    query = Query("", (), frozenset({"sum"}), frozenset({"sum", "max"}), frozenset({("sum", "max")}))
    coverage = Coverage.of_query(query) + Coverage.of_query(query) + Coverage.of_refusal(query, "FIVM105")
    assert Coverage.from_dict(coverage.as_dict()) == coverage
    assert coverage.accepted["max"] == 2 and coverage.refused["sum", "FIVM105"] == 1
    assert ("sum", "sum") in coverage.missing_nestings(["sum", "max"])
    assert ("sum", "max") not in coverage.missing_nestings(["sum", "max"])
    assert "FIVM105 1" in coverage.tables()


def test_events_of_a_step() -> None:
    tables = {"r": [["k", "int"], ["d", "date"]]}
    steps = [
        {"delta": {"r": {"insert": [[1, "2024-01-01"]]}}},
        {"delta": {"r": {"insert": [[None, "2024-03-01"]], "delete": [[1, "2024-02-01"]]}}},
        {"delta": {"r": {"insert": [[2, "2024-01-01"]], "delete": [[1, "2024-01-01"]]}}},
    ]
    data = {"id": "e", "tables": tables, "initial": {"r": [[1, "2024-02-01"]]}, "steps": steps}
    scenario = Scenario.model_validate({**data, "view": "v", "sql": "select k from r"})
    events = Events(scenario)
    found = [events.of_step(step)["r"] for step in scenario.steps]
    assert found[0] == {"insert", "late row"}
    assert found[1] == {"insert", "delete", "NULL key"}
    assert found[2] == {"insert", "delete", "update", "late row"}


def test_every_query_knows_what_it_is_made_of() -> None:
    case = random_case(5, models=8)
    for query in case.queries.values():
        assert query.top <= query.uses
        assert all(parent in query.uses and child in query.uses for parent, child in query.nestings)


def test_the_command() -> None:
    result = CliRunner().invoke(main, ["--only", "left join", "--alone", "--seeds", "2", "--weight", "in=3"])
    assert result.exit_code == 0, result.output
    assert "0 failures" in result.output
    assert CliRunner().invoke(main, ["--weight", "no such=1"]).exit_code == 2
