"""No text ends in a traceback: each gives a plan, or an error with a code and a remedy."""

from __future__ import annotations

import os
from collections import Counter
from functools import cache
from itertools import islice
from pathlib import Path

import pytest

from fivm_dbt.catalog import Catalog, Column, Relation
from fivm_dbt.testing.load import load_scenarios
from generator.fuzz import Fuzzed, Source, deep, fuzzed, planned, sources

HERE = Path(__file__).parent
SEED = int(os.environ.get("FIVM_SEED", "22"))


@cache
def _sources() -> tuple[Source, ...]:
    files = [*sorted((HERE / "scenarios").glob("*.jsonl")), *sorted((HERE / "saved_cases").glob("*.jsonl"))]
    return sources([found.scenario for found in load_scenarios(files)])


def _run(seed: int, number: int) -> tuple[Counter[str], list[str]]:
    """How many texts ended how, and a crash of each kind with the shortest text that gives it."""
    tally: Counter[str] = Counter()
    crashes: dict[str, str] = {}
    for text in islice(fuzzed(seed, _sources()), number):
        ended = planned(text)
        tally[ended.how] += 1
        if ended.is_crash and len(text.sql) < len(crashes.get(ended.where, "x" * 10_000)):
            crashes[ended.where] = text.sql
            tally[f"crash: {ended.where}"] += 1
    return tally, [f"{where}\n    {sql}" for where, sql in sorted(crashes.items())]


def test_a_mutated_text_ends_in_a_plan_or_an_error() -> None:
    tally, crashes = _run(SEED, 400)
    assert crashes == []
    assert tally["plan"] >= 40, tally
    assert {"FIVM101", "FIVM102", "FIVM105"} <= set(tally), tally


CRASHED = (
    "select id, max_by(ts) over (partition by g) as m from r",
    "select o.id from o left join lateral ((null)) as q(a) on o.id = q.a",
    "select id, size((select null from s where s.k = o.k)) as f from o",
    "select k, (select null from s where s.k = r.k) as n, (select sum(y) from s where s.k = r.k) as t from r",
    "select id, row_number() over w as a, rank() over w as k from r window w as "
    "(partition by row_number() over (partition by g order by x) order by ts)",
    "select k, x from r where exists (select 1 from s where s.k = if(r.x > (select avg(y) from s), 1, 2))",
    "select * from (select t.k, (select count(*) from s where s.k = t.k and s.x > 3) as n "
    "from (select distinct k from s) as t) a natural join (select t.k, "
    "(select count(*) from s where s.k = t.k and s.x > 3) as n from (select distinct k from s) as t) b",
    "select g, percentile(x",
    "select g, any((select max(s.x) > 3 from s)) as a from r group by g",
    "select id from range(1, 99999999999999999999999999) n",
    "select k from r where exists (select (select max(x) from s where s.k = r.ts) from o where o.g = r.k) or x > 25",
    "select id from o where exists (select 1 from r where r.x = o.id and o.k not in (select s.k from s))",
    "select g, fivm_covariance(fivm_categorical()) as m from r group by g",
)
"""Texts that once ended in a traceback."""


@pytest.mark.parametrize("strategy", ["auto", "factorized"])
@pytest.mark.parametrize("sql", CRASHED)
def test_a_text_that_crashed_ends_in_a_plan_or_an_error(sql: str, strategy: str) -> None:
    columns = tuple(Column.of(c, "int") for c in ("id", "k", "g", "ts", "x", "y"))
    catalog = Catalog.of([Relation(name, columns) for name in ("o", "r", "s")])
    ended = planned(Fuzzed(sql, Source(sql, catalog), strategy))
    assert not ended.is_crash, ended.trace
    assert ended.how != "FIVM103", "its tables are there"


@pytest.mark.long
@pytest.mark.parametrize("seed", range(SEED, SEED + 5))
def test_fifty_thousand_mutated_texts_end_in_a_plan_or_an_error(seed: int) -> None:
    tally, crashes = _run(seed, 10_000)
    print(f"seed {seed}: {sum(tally.values())} texts")
    for how, number in tally.most_common():
        print(f"  {number:>6} {how}")
    print(*crashes, sep="\n")
    assert not crashes


@pytest.mark.parametrize("text", (*deep(40), *deep(300)), ids=lambda t: t.sql[:40])
def test_text_that_nests_or_repeats_is_planned_or_refused(text: Fuzzed) -> None:
    ended = planned(text)
    assert not ended.is_crash, ended.trace


@pytest.mark.more
@pytest.mark.parametrize("text", deep(3000), ids=lambda t: t.sql[:40])
def test_text_that_nests_or_repeats_without_end_is_planned_or_refused(text: Fuzzed) -> None:
    ended = planned(text, seconds=120)
    assert not ended.is_crash, ended.trace


def test_the_same_seed_gives_the_same_texts() -> None:
    first, second = (list(islice(fuzzed(7, _sources()), 50)) for _ in range(2))
    assert first == second and len({text.sql for text in first}) == 50
