"""One run: tables are loaded, models are built by each way, and after each change all are brought up to date."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.compare.cases import Compared, chosen_cases
from benchmarks.compare.data import Change, Data
from benchmarks.compare.dbt_ways import ByTimeWay
from benchmarks.compare.measured import Measured, Results
from benchmarks.compare.room import check_room, needed_gb, used_gb
from benchmarks.compare.wanted import Wanted
from benchmarks.compare.way import MODELS, Ran, Way
from benchmarks.compare.ways import TABLE, way
from benchmarks.queries.tpch_data import CACHE
from fivm_dbt.engines.spark.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Told = Callable[[str], None]


class Comparison:
    """The models of all cases, each by its ways with the recompute first.

    A way that raises an error is not run any more for that case: ``failures`` say which, and why.
    """

    def __init__(
        self, session: SparkSession, chosen: Sequence[Compared], by: Sequence[str], told: Told
    ) -> None:
        self.session = session
        self.told = told
        self.data = tuple({each.data.schema: each.data for each in chosen}.values())
        self._chosen = chosen
        self._by = by
        self._kept: list[tuple[Compared, list[Way]]] = []
        self.failures: list[str] = []

    def build(self, scale: float) -> None:
        """Load the tables that are needed, and build everything."""
        for data in self.data:
            self.told(f"loading the tables of {data.schema}")
            data.load(self.session, scale)
        self.session.sql(f"CREATE SCHEMA {MODELS}")
        for compared in self._chosen:
            found = (way(self.session, compared, name) for name in (TABLE, *self._by))
            built = [(each, self._tried(each, "build")) for each in found if each is not None]
            self._kept.append((compared, [each for each, done in built if done is not None]))
            for each, done in built:
                if done is not None:
                    self.told(f"{compared.name}, {each.name}: {done[1].action} in {done[0]:.1f} s")

    def after(self, data: Data, change: Change, round_: int) -> Iterator[Measured]:
        """Change the tables, and bring all models over them up to date."""
        change.make(self.session, round_)
        for number, (compared, ways) in enumerate(self._kept):
            if compared.data is data:
                # Who comes first finds the tables' files cold, so it is another one each time.
                first = (number + round_) % len(ways)
                found = {each: self._tried(each, change.name) for each in (*ways[first:], *ways[:first])}
                ways[:] = [each for each in ways if found[each] is not None]
                done = {each: ran for each, ran in found.items() if ran is not None}
                yield from self._measured(change.name, round_, compared, done)

    def _tried(self, each: Way, when: str) -> tuple[float, Ran] | None:
        """Seconds, and what was done; None where it failed."""
        started = time.perf_counter()
        try:
            ran = each.run()
        except Exception as error:
            if each.name == TABLE:
                raise
            self.failures.append(f"{each.compared.name}, {each.name}, {when}: {str(error).strip()[:500]}")
            self.told(f"FAILED: {self.failures[-1]}")
            return None
        return time.perf_counter() - started, ran

    def _measured(
        self, change: str, round_: int, compared: Compared, found: Mapping[Way, tuple[float, Ran]]
    ) -> Iterator[Measured]:
        reference = next(each for each in found if each.name == TABLE)
        recompute_seconds, _ = found[reference]
        others = [each for each in found if each is not reference]
        for each, wrong in _wrong(self.session, reference, others).items():
            seconds, ran = found[each]
            self.told(
                f"{change}, {compared.name}, {each.name}: {ran.action} {seconds:.1f} s of {recompute_seconds:.1f} s"
                + (f", {wrong} ROWS DIFFER" if wrong else "")
            )
            yield Measured(
                query=compared.name,
                change=change,
                round=round_,
                way=each.name,
                action=ran.action,
                seconds=seconds,
                recompute_seconds=recompute_seconds,
                wrong=wrong,
                expected=ran.expected,
                chosen=ran.chosen,
                statements=ran.statements,
                rows_read=ran.rows_read,
            )
            if wrong and isinstance(each, ByTimeWay):
                # Each change is judged by itself.
                each.repair()


def run(wanted: Wanted, told: Told, report: Path | None = None) -> Results:
    """Run it all. What has been measured is in the ``report`` after each change, if somebody ends it early."""
    check_room(Path(tempfile.gettempdir()), needed_gb(wanted.scale, len(wanted.ways)))
    check_room(CACHE, needed_gb(wanted.scale, 0))
    started = time.perf_counter()
    measured: list[Measured] = []
    with tempfile.TemporaryDirectory() as directory:
        session = local_session(Path(directory), settings={"spark.driver.memory": wanted.memory})
        machine = f"{os.cpu_count()} cores, Spark {session.version}, {wanted.memory} of memory for Java"
        comparison = Comparison(session, chosen_cases(wanted.queries), wanted.ways, told)

        def results() -> Results:
            minutes = (time.perf_counter() - started) / 60
            failures = tuple(comparison.failures)
            return Results(wanted.scale, wanted.rounds, machine, minutes, tuple(measured), failures)

        try:
            comparison.build(wanted.scale)
            for found in _all(comparison, wanted):
                measured += found
                if report is not None:
                    results().write(report)
            told(f"{used_gb(Path(directory)):.1f} GB of disk")
        finally:
            session.stop()
        return results()


def _all(comparison: Comparison, wanted: Wanted) -> Iterator[list[Measured]]:
    """What is measured after each change."""
    for round_ in range(1, wanted.rounds + 1):
        for data in comparison.data:
            for change in data.changes:
                if change.name in wanted.changes:
                    yield [*comparison.after(data, change, round_)]


def differing_rows(session: SparkSession, reference: str, others: Sequence[str]) -> list[int]:
    """Of each query the rows that only one of it and the reference has, as bags.

    These are the rows of EXCEPT ALL both ways, of all queries by one grouping.
    """
    if not others:
        return []
    columns = ", ".join(f"`{name}`" for name in session.sql(reference).columns)
    each = (f"SELECT *, {n} AS `of query` FROM ({query})" for n, query in enumerate((reference, *others)))
    numbers = range(1, len(others) + 1)
    more = ", ".join(f"count_if(`of query` = {n}) - count_if(`of query` = 0) AS `more {n}`" for n in numbers)
    counted = f"SELECT {more} FROM ({' UNION ALL '.join(each)}) GROUP BY {columns}"
    total = ", ".join(f"coalesce(sum(abs(`more {n}`)), 0)" for n in numbers)
    return [int(rows) for rows in session.sql(f"SELECT {total} FROM ({counted})").collect()[0]]


def _wrong(session: SparkSession, reference: Way, ways: Sequence[Way]) -> dict[Way, int]:
    """Of each way the rows that differ from the recompute, of all models that it has."""
    found = dict.fromkeys(ways, 0)
    for model in reference.compared.models:
        kept = [each for each in ways if model in each.kept]
        rows = differing_rows(session, reference.shown(model), [each.shown(model) for each in kept])
        for each, differing in zip(kept, rows, strict=True):
            found[each] += differing
    return found
