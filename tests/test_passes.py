"""Passes that make plans cheaper can be left out: other statements, the same rows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from fivm_dbt.cli import main
from fivm_dbt.config import Pass, load_config
from fivm_dbt.errors import FivmError
from fivm_dbt.explain.text import explain
from fixtures.models import Bench
from fixtures.random_joins import random_join, random_row
from fixtures.runs import fast_only

PASSES = get_args(Pass)
TABLES = {
    "f": ("k int, g int, x decimal(10,2), unused int", [(i % 5, i % 3, i, i) for i in range(20)]),
    "d": ("k int, r decimal(4,2), t string", [(i, "0.50", "ab"[i % 2]) for i in range(5)]),
}
SQL = (
    "select d.t, sum(f.x * (1 - d.r)) as s, count(distinct f.g) as n from f join d on f.k = d.k group by d.t"
)
SUMS = "select d.t, sum(f.x * (1 - d.r)) as s from f join d on f.k = d.k group by d.t"
META = {"fivm_strategy": "factorized", "fivm_buckets": 4}


@pytest.mark.parametrize("left_out", [*((name,) for name in PASSES), PASSES])
@pytest.mark.parametrize("sql", fast_only([SUMS], [SQL, SUMS]))
def test_other_statements_and_the_same_rows(sql: str, left_out: tuple[str, ...]) -> None:
    bench = Bench.of(sql, TABLES, {**META, "fivm_without": left_out})
    # No column of these tables is a time, there is one aggregate, which counts rows, no filter and no pattern.
    # Nothing is measured.
    useless = (
        "time_ranges",
        "shared_aggregates",
        "relevant_changes",
        "magic_sets",
        "marks",
        "eager_aggregation",
        "key_ranges",
        "met_first",
        "nested_extremes",
        "separators",
        "sought",
    )
    is_useless = left_out in [(name,) for name in useless]
    is_of_use = not is_useless and (left_out != ("split_sums",) or sql == SUMS)
    assert (explain(bench.plan) != explain(Bench.of(sql, TABLES, META).plan)) is is_of_use
    bench.refresh()
    for number in range(3):
        bench.engine.change("f", insert=[(number, 1, "3.00", 7)], delete=[(number, number, number, number)])
        bench.engine.change(
            "d", insert=[(number, "0.25", "b")], delete=[(4 - number, "0.50", "ab"[number % 2])]
        )
        assert bench.refresh().action == "refreshed"
        bench.check()


def test_what_each_pass_does() -> None:
    full = explain(Bench.of(SUMS, TABLES, META).plan)
    texts = {name: explain(Bench.of(SUMS, TABLES, {**META, "fivm_without": [name]}).plan) for name in PASSES}
    assert "-- affected keys, " in full and "-- affected keys, " not in texts["look_ups"]
    assert "unused" not in full and "unused" in texts["column_pruning"]
    assert "view of d by k, t," in full and "view of d by k, r, t," in texts["split_sums"]


@pytest.mark.more
@pytest.mark.parametrize("name", PASSES)
def test_random_joins(name: str) -> None:
    for seed in range(6):
        sql, tables = random_join(seed)
        bench = Bench.of(sql, tables, {"fivm_strategy": "factorized", "fivm_without": [name]})
        bench.refresh()
        rng = random.Random(seed)
        for item in bench.plan.inputs:
            rows = [random_row(rng, len(item.relation.columns) - 1) for _ in range(3)]
            bench.engine.change(item.name, insert=rows)
        bench.refresh()
        bench.check()


def test_on_the_command_line(tmp_path: Path) -> None:
    file = tmp_path / "q.sql"
    file.write_text("create table r (k int, x int, y int); select k, sum(x) as s from r group by k")
    plain, other = (
        CliRunner().invoke(main, ["explain", str(file), *extra])
        for extra in ((), ("--without", "column_pruning"))
    )
    assert plain.exit_code == other.exit_code == 0 and plain.output != other.output
    wrong = CliRunner().invoke(main, ["explain", str(file), "--without", "everything"])
    assert wrong.exit_code == 2 and "look_ups" in wrong.output


def test_a_pass_that_there_is_not() -> None:
    with pytest.raises(FivmError, match="fivm_without"):
        load_config({"fivm_without": ["fusion"]})
