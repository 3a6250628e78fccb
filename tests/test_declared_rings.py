"""Rings that a project declares: laws are proved, calls become sums, and what is kept follows deletes and joins."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fivm_dbt.errors import FivmError
from fivm_dbt.rings.declared import DECLARED, DeclaredRing, load_rings
from fivm_dbt.sql.declared_rings import in_sums
from fivm_dbt.sql.edits import edited
from fivm_dbt.sql.parse import is_beyond_spark
from fixtures.models import Bench
from fixtures.project_rings import spread, weighted_ratio

RINGS = ["fixtures.project_rings:weighted_ratio", "fixtures.project_rings:spread"]
Row = tuple[Any, ...]
TABLES = {"a": "k int, g string, x int", "b": "k int, w int"}
JOINED = """
select a.g, weighted_ratio(a.x + 1, b.w) as ratio, spread(b.w) filter (where a.x > 0) as spread, count(*) as n
from a join b on a.k = b.k group by a.g
"""


@pytest.fixture(autouse=True)
def _rings(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are there in each test, and forgotten behind it."""
    monkeypatch.setitem(DECLARED, "weighted_ratio", weighted_ratio)
    monkeypatch.setitem(DECLARED, "spread", spread)


@pytest.mark.parametrize(
    ("law", "component", "broken"),
    [
        ("(a + b) × c = a × c + b × c", "both", {"both": "l.both + r.both"}),
        ("(a + b) × c = a × c + b × c", "rows", {"rows": "l.rows * r.rows + 1"}),
        ("1 × a = a", "values", {"values": "l.values * r.rows"}),
        ("1 × a = a", "weights", {"weights": "l.weights * r.rows + 2 * l.rows * r.weights"}),
        ("a × b = b × a", "both", {"both": "l.both * r.rows + l.rows * r.both + l.values * r.weights"}),
        ("(a × b) × c = a × (b × c)", "weights", {"rows": "l.rows * r.rows + l.values * r.values"}),
    ],
)  # fmt: skip
def test_a_law_that_does_not_hold_is_named(law: str, component: str, broken: dict[str, str]) -> None:
    ring = weighted_ratio.model_copy(update={"multiply": {**weighted_ratio.multiply, **broken}})
    with pytest.raises(FivmError) as caught:
        ring.check()
    assert caught.value.code.number == "FIVM209"
    assert f"the ring of weighted_ratio breaks the law {law} in component {component}:" in str(caught.value)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"one": {"row": "1"}}, "one.row: no such component (expected one of rows, values, weights, both)"),
        ({"result": "both / weight"}, "result.weight: no such component"),
        ({"lift": {"value": {"rows": "1"}}}, "lift has to have an entry for each argument"),
        ({"arguments": {"value": "string", "weight": "bigint"}}, "arguments.value: string is not bigint"),
        ({"arguments": {"value": "decimal(30,2)", "weight": "bigint"}}, "values adds up products of 41 digits"),
        ({"function": "sum"}, "sum is a function of Spark"),
        ({"one": {"rows": "abs(1)"}}, "one.rows: ABS(1) is neither a number, nor one of nothing"),
        ({"one": {"rows": "1 +"}}, "one.rows: '1 +' is no SQL expression"),
        ({"lift": {"value": {"rows": "weight"}, "weight": {}}}, "weight is neither a number, nor one of value"),
    ],
)  # fmt: skip
def test_a_declaration_that_makes_no_sense(changed: dict[str, Any], told: str) -> None:
    with pytest.raises(FivmError) as caught:
        weighted_ratio.model_copy(update=changed).check()
    assert caught.value.code.number == "FIVM209" and told in str(caught.value)


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("fixtures.project_rings:no_ring", "is no DeclaredRing"),
        ("fixtures.project_rings:missing", "is not found"),
        ("nowhere:ring", "No module named 'nowhere'"),
        ("fixtures.project_rings:another_ratio", "there is another ring of weighted_ratio"),
    ],
)
def test_what_is_named_has_to_be_there(place: str, told: str) -> None:
    with pytest.raises(FivmError) as caught:
        load_rings([place])
    assert caught.value.code.number == "FIVM209" and told in str(caught.value)


def test_calls_become_sums() -> None:
    """The rest of the text stays letter by letter; coefficients stand before the sums."""
    sql = "select 1+spread(x) filter (where y > 0) /* kept */ as s from r"
    assert edited(sql, in_sums(sql)) == (
        "select 1+((COALESCE(SUM(CASE WHEN (CAST(x AS BIGINT)) IS NULL THEN 0 ELSE 1 END) FILTER(WHERE y > 0), 0)) "
        "* (COALESCE(SUM(CAST(x AS BIGINT) * CAST(x AS BIGINT)) FILTER(WHERE y > 0), 0)) "
        "- (COALESCE(SUM(CAST(x AS BIGINT)) FILTER(WHERE y > 0), 0)) "
        "* (COALESCE(SUM(CAST(x AS BIGINT)) FILTER(WHERE y > 0), 0))) /* kept */ as s from r"
    )
    assert is_beyond_spark(sql) and not is_beyond_spark("select 'spread' as s from r")
    ring = DeclaredRing(
        function="twice", arguments={"x": "bigint"}, one={"n": "1"}, lift={"x": {"n": "x - 3 * x + 4"}},
        multiply={"n": "l.n * r.n"}, result="n",
    )  # fmt: skip
    assert ring.payload()["n"].sql == "- 2 * argument.x + 4"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("spread(x, x) as s", "spread takes 1 arguments"),
        ("spread(distinct x) as s", "spread takes 1 arguments, each once"),
        ("spread(spread(x)) as s", "spread inside of such a call"),
        ("spread(x) over (partition by k) as s", "spread over a window"),
        ("spread(x)", "FIVM112"),
        ("spread(colour) as s", "FIVM102"),
    ],
)
def test_a_call_that_makes_no_sense(call: str, told: str) -> None:
    with pytest.raises(FivmError) as caught:
        Bench.of(f"select k, {call} from a group by k", {"a": ("k int, x int", [])}, {"fivm_rings": RINGS})
    assert told in str(caught.value)


def _row(draw: random.Random, table: str) -> Row:
    def number() -> int | None:
        return draw.choice([None, -2, 0, 1, 3])

    k = draw.choice([None, 1, 2])
    return (k, draw.choice([None, "p", "q"]), number()) if table == "a" else (k, number())


def _expected(tables: dict[str, list[Row]]) -> set[Row]:
    """By hand over the joined rows."""
    groups: dict[str | None, list[tuple[int | None, int | None]]] = {}
    for k, g, x in tables["a"]:
        for other, w in tables["b"]:
            if k is not None and k == other:
                groups.setdefault(g, []).append((x, w))
    found = set()
    for g, pairs in groups.items():
        known = [(x + 1, w) for x, w in pairs if x is not None and w is not None]
        weights = sum(w for _, w in known)
        own = [w for x, w in pairs if x is not None and x > 0 and w is not None]
        ratio = sum(x * w for x, w in known) / weights if weights else None
        found.add((g, ratio, len(own) * sum(w * w for w in own) - sum(own) ** 2, len(pairs)))
    return found


@pytest.mark.parametrize("strategy", ["first_order", "factorized", "recursive"])
@pytest.mark.parametrize("seed", range(2))
def test_changes_of_both_sides_of_a_join(seed: int, strategy: str) -> None:
    draw = random.Random(seed)
    tables = {name: [_row(draw, name) for _ in range(8)] for name in TABLES}
    meta: dict[str, object] = {"fivm_rings": RINGS, "fivm_strategy": strategy}
    bench = Bench.of(JOINED, {n: (TABLES[n], list(rows)) for n, rows in tables.items()}, meta)
    for _ in range(4):
        bench.refresh()
        bench.check()
        assert set(bench.engine.query("select * from analytics.m")) == _expected(tables)
        for name, rows in tables.items():
            gone = draw.sample(rows, min(len(rows), draw.randint(0, 4)))
            bench.exchange(name, rows, [_row(draw, name) for _ in range(draw.randint(0, 3))], gone)


def test_components_have_their_parts_in_the_relations() -> None:
    """Each side of the join keeps sums of its own arguments, and how many rows know them, by the key that joins."""
    bench = Bench.of(
        "select a.g, weighted_ratio(a.x, b.w) as ratio from a join b on a.k = b.k group by a.g",
        {name: (columns, []) for name, columns in TABLES.items()},
        {"fivm_rings": RINGS, "fivm_strategy": "factorized"},
    )
    left, right, _ = bench.plan.views
    assert [k.name for k in left.state.keys] == ["k", "g"] and len(left.state.payload) == 2
    assert [k.name for k in right.state.keys] == ["k"] and len(right.state.payload) == 2


def test_another_result_builds_the_model_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    meta: dict[str, object] = {"fivm_rings": RINGS}
    bench = Bench.of("select spread(x) as s from a", {"a": ("x int", [(1,), (3,)])}, meta)
    bench.refresh()
    assert bench.engine.query("select * from analytics.m") == [(4,)]
    monkeypatch.setitem(DECLARED, "spread", spread.model_copy(update={"result": "q"}))
    bench.with_plan(meta={})
    assert bench.refresh().action == "rebuilt"
    assert bench.engine.query("select * from analytics.m") == [(10,)]


@pytest.mark.parametrize("is_told", [False, True])
def test_modules_of_the_project_are_found(tmp_path: Path, is_told: bool) -> None:
    """Python looks by itself neither in the directory that dbt is started in, nor in that of the project."""
    (tmp_path / "our_rings.py").write_text(
        "from fivm_dbt.rings.declared import DeclaredRing\n"
        "total = DeclaredRing(function='our_total', arguments={'x': 'bigint'}, one={'n': '1'},\n"
        "                     lift={'x': {'n': 'x'}}, multiply={'n': 'l.n * r.n'}, result='n')\n"
    )
    code = (
        "from pathlib import Path; from fivm_dbt.rings.declared import DECLARED, load_rings, look_in; "
        f"{f'look_in(Path({str(tmp_path)!r})); ' if is_told else ''}load_rings(['our_rings:total']); print(*DECLARED)"
    )
    told = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=None if is_told else tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.strip() == "our_total"
