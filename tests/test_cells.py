"""Every kind of query in every position, correlated and not, over inputs that are empty, become so, are refilled.

The table is complete by construction: what is in it is the product of ``positions`` and ``kinds``. A cell is equal to
its recompute after every step, or Spark refuses it, or it is on the list of what is not maintained yet.
"""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from fivm_dbt.sql.parse import parse
from generator.__main__ import main
from generator.cells.cell import Cell, cells, each_cell_once, each_pair_once
from generator.cells.kinds import KINDS
from generator.cells.positions import POSITIONS
from generator.cells.refusals import NOT_YET, SPARK_REFUSES, not_yet, refused_by_spark
from generator.cells.runs import EMPTIED, FILLED, FROM_NOTHING, LONG, SHORT, CellRun, alone, run_cells
from generator.cells.table import Seen, missing, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHUNKS = 16
LONG_TURNS = 3


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest) -> Iterator[None]:
    """A part of the time goes into looking for garbage."""
    if "spark" in request.fixturenames:
        yield
        return
    gc.disable()
    yield
    gc.enable()


def _is_maintained(cell: Cell) -> bool:
    return refused_by_spark(cell) is None and not_yet(cell) is None


def _failures(run: CellRun) -> list[str]:
    return [
        f"{cell}: {outcome}\n{cell.sql}\n{run.details.get(cell, '')}"
        for cell, outcome in run.outcomes.items()
        if outcome != "equal"
    ]


def test_the_table_is_the_product_of_kinds_and_positions() -> None:
    once = list(each_cell_once())
    assert len({(c.position, c.kind, c.is_correlated) for c in once}) == len(once)
    assert {(c.position, c.kind) for c in each_pair_once()} == {(c.position, c.kind) for c in once}
    assert {c.position for c in once} == set(POSITIONS) and {c.kind for c in once} == set(KINDS)
    run = {c for c in cells() if refused_by_spark(c) is None}
    assert run == {c for turn in range(12) for c in each_cell_once(turn) if refused_by_spark(c) is None}
    assert all(any(refusal.covers(c) for c in cells()) for refusal in (*SPARK_REFUSES, *NOT_YET))


def test_every_cell_says_what_it_is() -> None:
    """A part of all cells: sqlglot reads them, and one that is correlated names a column of a query around it."""
    for cell in list(each_cell_once())[::9]:
        if refused_by_spark(cell) is None:
            parse(cell.sql)
        assert "o.k" in cell.sql or "u.k" in cell.sql or not cell.is_correlated, cell.sql


def test_some_cells() -> None:
    run = run_cells([c for c in each_cell_once() if _is_maintained(c)][::600])
    assert not _failures(run), "\n\n".join(_failures(run))


@pytest.mark.more
@pytest.mark.parametrize("chunk", [0, CHUNKS // 2 + 1])
def test_cells(chunk: int) -> None:
    """An eighth of the pairs of a kind and a position, over what becomes empty or what is filled."""
    run = _each_pair(chunk)
    assert not _failures(run), "\n\n".join(_failures(run))


def _pairs() -> list[Cell]:
    return [c for c in each_pair_once() if _is_maintained(c)]


def _each_pair(chunk: int) -> CellRun:
    return run_cells(_pairs()[chunk::CHUNKS], FILLED if chunk % 2 else EMPTIED, together=24)


@pytest.mark.long
@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_all_cells(chunk: int, merged: Callable[[str, int, int, Seen], Seen | None]) -> None:
    """Each kind in each position."""
    run = _each_pair(chunk)
    assert not _failures(run), "\n\n".join(_failures(run))
    total = merged("more", chunk, CHUNKS, run.seen)
    if total is not None:
        seen = {(position, kind, side) for position, kind, _, side in total}
        wanted = {
            (c.position, c.kind, side)
            for c in _pairs()
            for side in (("empty", "rows") if c.reads else ("rows",))
        }
        assert wanted == seen


@pytest.mark.more
def test_what_is_not_yet_maintained_is_what_the_list_says() -> None:
    """A line that is no longer true must go."""
    listed = [c for c in each_cell_once() if refused_by_spark(c) is None and not_yet(c)]
    outcomes = sum((alone(c) for c in listed), CellRun()).outcomes
    wrong = {str(c): (not_yet(c), now) for c, now in outcomes.items() if not_yet(c) != now}
    assert not wrong, "what the list says, and what is so now"


@pytest.mark.long
@pytest.mark.parametrize("contents", [LONG, FROM_NOTHING], ids=["long", "from nothing"])
@pytest.mark.parametrize("turn", range(LONG_TURNS))
def test_random_cells_at_length(turn: int, contents: tuple[object, ...]) -> None:
    """Correlated in other ways as well, through more steps: one of a hundred.

    ``make random ARGS=--coverage`` runs all of them.
    """
    wanted = [c for c in each_cell_once(turn) if _is_maintained(c)][turn::100]
    run = run_cells(wanted, contents=contents)  # type: ignore[arg-type]
    assert not _failures(run), "\n\n".join(_failures(run))


@pytest.fixture
def merged(
    tmp_path_factory: pytest.TempPathFactory, worker_id: str
) -> Callable[[str, int, int, Seen], Seen | None]:
    """Adds up what chunks in several processes have seen; the last one gets the sum, the others None."""
    base = tmp_path_factory.getbasetemp()
    directory = base if worker_id == "master" else base.parent

    def add(kind: str, chunk: int, count: int, seen: Seen) -> Seen | None:
        path = directory / f"fivm_cells_{kind}_{chunk}.json"
        path.with_suffix(".part").write_text(json.dumps(sorted(seen.items())), encoding="utf-8")
        path.with_suffix(".part").replace(path)
        there = sorted(directory.glob(f"fivm_cells_{kind}_*.json"))
        if len(there) < count:
            return None
        total: Seen = Counter()
        for part in there:
            total.update({tuple(key): n for key, n in json.loads(part.read_text(encoding="utf-8"))})
        return total

    return add


def test_the_table_names_its_holes() -> None:
    seen: Seen = Counter({("EXISTS", "total", "correlated", "rows"): 1})
    holes = set(missing(seen))
    assert "EXISTS / total / correlated, empty" in holes
    assert "EXISTS / total / correlated, rows" not in holes
    assert not any("ROLLUP / correlated" in hole for hole in holes), "Spark refuses it"
    assert len(table(seen).splitlines()) > len(KINDS) + len(POSITIONS)


def test_the_command() -> None:
    part = ["--coverage", "--position", "EXISTS", "--kind", "total", "--kind", "ROLLUP"]
    result = CliRunner().invoke(main, part)
    assert result.exit_code == 0, result.output
    row = next(line for line in result.output.splitlines() if line.startswith("total  "))
    assert row.split()[1:].count("##") == 1
    assert CliRunner().invoke(main, ["--coverage", "--kind", "no such"]).exit_code == 2


def test_a_wrong_answer_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cell whose recompute reads something else is not equal."""
    import fivm_dbt.testing.references as references

    real = references.recompute_sql
    monkeypatch.setattr(
        references, "recompute_sql", lambda *given: f"SELECT * FROM ({real(*given)}) AS w LIMIT 1"
    )
    cell = Cell("FROM", "rows")
    run = run_cells([cell], SHORT)
    assert run.outcomes == {cell: "wrong"} and not run.seen


def spark_conditions(spark: SparkSession, wanted: list[Cell]) -> dict[Cell, str | None]:
    """The condition of the error with which Spark refuses to plan each of these, None where it does not."""
    from pyspark.errors import PySparkException

    session = spark.newSession()
    for name, columns in {
        "o": "id int, k int, v int",
        "s": "k int, x int, g string",
        "u": "k int, y int",
        "p": "k int, x int",
    }.items():
        session.createDataFrame([], columns).createOrReplaceTempView(name)
    found: dict[Cell, str | None] = {}
    for cell in wanted:
        try:
            session.sql(cell.sql)._jdf.queryExecution().executedPlan()
        except PySparkException as error:
            found[cell] = error.getCondition()
        else:
            found[cell] = None
    return found


@pytest.mark.long
@pytest.mark.spark
def test_what_spark_refuses_is_what_the_list_says(spark: SparkSession) -> None:
    """The cells on the list, and a part of the others."""
    listed = [c for c in cells() if refused_by_spark(c) is not None]
    asked = spark_conditions(spark, listed[::250] + list(each_cell_once())[::250])
    wrong = {str(c): condition for c, condition in asked.items() if condition != refused_by_spark(c)}
    assert not wrong


@pytest.mark.long
@pytest.mark.spark
def test_what_spark_refuses_in_all_cells(spark: SparkSession) -> None:
    asked = spark_conditions(spark, list(cells()))
    wrong = {str(c): condition for c, condition in asked.items() if condition != refused_by_spark(c)}
    assert not wrong
