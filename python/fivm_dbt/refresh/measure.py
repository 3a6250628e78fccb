"""Sizes of inputs are measured before a build: rows, about how many values columns have, in whose order rows lie."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fivm_dbt.catalog import KeyRange, TableStatistics
from fivm_dbt.ir.presentation import stored_columns
from fivm_dbt.naming import staged_name
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.refresh.engine import Engine
from fivm_dbt.spark.formats import MissingRelation, NotVersioned
from fivm_dbt.spark.pieces import Query
from fivm_dbt.spark.sizes import of_pieces, pieces_query, sample_query, sampled, statistics_query, together

ORDERED_FROM = 2**18
"""Rows. Fewer are read in no time, and written."""

ORDERED_BYTES = 2 * 2**20
"""Such a table may have so many rows, at the least."""

MOST_OF_THE_VALUES = 0.2
"""So large a share of a column's values a file has on average, at most, where rows lie in its order."""

SAMPLED_FROM = 64 * 2**20
"""Bytes of an input from which on a part of its rows is looked at."""


def measure(
    plan: MaintainedPlan, engine: Engine, changed: Mapping[str, float] | None = None
) -> TableStatistics:
    """Rows of what ``plan`` would choose by, and about how many values their columns have: a look at each.

    ``changed`` is how often which inputs have changed lately.

    An input that is not there is left out: whoever builds says so.
    """
    rows: dict[str, int] = {}
    distinct: dict[tuple[str, str], int] = {}
    wanted = dict(plan.measurable)
    if not wanted:
        return TableStatistics.of(
            {}, appends=not plan.is_read, changed=changed, ranges=dict(_ranges(plan, engine))
        )
    large = [i for i in plan.inputs if i.name in wanted and _has_bytes(engine, i.table, SAMPLED_FROM)]
    looks = {i.name: _Sampled(i.name) for i in large} | dict(_in_pieces(plan, engine, large))
    try:
        for name, (counted, *values) in _measured(wanted, looks, engine).items():
            rows[name] = counted
            distinct |= {(name, column): n for column, n in zip(wanted[name], values, strict=True)}
    finally:
        for look in looks.values():
            if isinstance(look, _Pieces):
                engine.unstage(look.name)
    ranges = dict(_ranges(plan, engine))
    return TableStatistics.of(rows, distinct, appends=not plan.is_read, changed=changed, ranges=ranges)


def _ranges(plan: MaintainedPlan, engine: Engine) -> Iterator[tuple[tuple[str, str], KeyRange]]:
    """The columns in whose order the rows of inputs lie, as their files tell."""
    for name, columns in plan.orderable:
        item = plan.input(name)
        if not _has_bytes(engine, item.table, ORDERED_BYTES):
            continue
        stored = stored_columns(item.relation.presentation, columns)
        found = engine.files(item.table, tuple(stored.values()))
        for column, of in stored.items():
            known = ordered([f[of] for f in found if of in f])
            if known is not None:
                yield (name, column), known


def ordered(files: Sequence[KeyRange]) -> KeyRange | None:
    """All values of a column, where each file has few of them; None where rows lie in another order, or are few.

    >>> ordered([KeyRange(n * 99_999, (n + 1) * 100_000, 100_000) for n in range(10)])
    KeyRange(low=0, high=1000000, rows=1000000)
    >>> ordered([KeyRange(n, 1_000_000 - n, 100_000) for n in range(10)]) is None
    True
    """
    rows = sum(file.rows for file in files)
    if rows < ORDERED_FROM:
        return None
    low, high = min(file.low for file in files), max(file.high for file in files)
    covered = sum(file.rows * (file.high - file.low + 1) for file in files)
    return KeyRange(low, high, rows) if covered <= MOST_OF_THE_VALUES * rows * (high - low + 1) else None


@dataclass(frozen=True)
class _Whole:
    """A look at all rows of the relation ``name``."""

    name: str

    def query(self, columns: Sequence[str]) -> Query:
        return statistics_query(self.name, columns)

    def answer(self, found: Sequence[int]) -> tuple[int, ...]:
        """Rows, and by column its values."""
        return tuple(found)


class _Sampled(_Whole):
    """A pass over all rows that looks at some."""

    def query(self, columns: Sequence[str]) -> Query:
        return sample_query(self.name, columns)

    def answer(self, found: Sequence[int]) -> tuple[int, ...]:
        return sampled(found)


@dataclass(frozen=True)
class _Pieces(_Whole):
    """A look at pieces of a table, which lie under ``name``. The table has ``times`` as many rows."""

    times: float

    def query(self, columns: Sequence[str]) -> Query:
        return pieces_query(self.name, columns)

    def answer(self, found: Sequence[int]) -> tuple[int, ...]:
        return of_pieces(found, self.times)


def _in_pieces(plan: Plan, engine: Engine, large: Sequence[PlanInput]) -> Iterator[tuple[str, _Pieces]]:
    """The tables that are looked at in pieces."""
    for item in large:
        name = staged_name(plan.relation, f"{item.name}_sample")
        times = engine.sample(name, item.table) if item.table == item.name else None
        if times is not None:
            yield item.name, _Pieces(name, times)


def _has_bytes(engine: Engine, table: str, least: int) -> bool:
    try:
        return (engine.size(table) or 0) >= least
    except (MissingRelation, NotVersioned):
        return False  # whoever builds says so


def _measured(
    wanted: Mapping[str, Sequence[str]], looks: Mapping[str, _Whole], engine: Engine
) -> dict[str, tuple[int, ...]]:
    """Of each input that is there its rows, and the values of each column, by one statement."""
    used = {name: looks.get(name, _Whole(name)) for name in wanted}
    queries = [used[name].query(columns) for name, columns in wanted.items()]
    try:
        found = engine.query(together(queries).sql(dialect="spark"))
    except MissingRelation:
        # Whoever builds says which one is not there.
        each = [{name: columns} for name, columns in wanted.items()] if len(wanted) > 1 else []
        return {name: counted for one in each for name, counted in _measured(one, looks, engine).items()}
    names, measured = list(wanted), {}
    for number, *answers in found:
        name = names[int(str(number))]
        measured[name] = used[name].answer([int(str(n)) for n in answers if n is not None])
    return measured
