"""Sizes of inputs are measured before a build: rows, and about how many values columns have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from fivm_dbt.catalog import TableStatistics
from fivm_dbt.naming import staged_name
from fivm_dbt.plan.model.inputs import PlanInput
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.refresh.engine import Engine
from fivm_dbt.spark.formats import MissingRelation, NotVersioned
from fivm_dbt.spark.pieces import Query
from fivm_dbt.spark.sizes import of_pieces, pieces_query, sample_query, sampled, statistics_query, together

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
    large = [i for i in plan.inputs if i.name in wanted and _is_large(engine, i.table)]
    looks = {i.name: _Sampled(i.name) for i in large} | dict(_in_pieces(plan, engine, large))
    try:
        for name, (counted, *values) in _measured(wanted, looks, engine).items():
            rows[name] = counted
            distinct |= {(name, column): n for column, n in zip(wanted[name], values, strict=True)}
    finally:
        for look in looks.values():
            if isinstance(look, _Pieces):
                engine.unstage(look.name)
    return TableStatistics.of(rows, distinct, appends=not plan.is_read, changed=changed)


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


def _is_large(engine: Engine, table: str) -> bool:
    try:
        return (engine.size(table) or 0) >= SAMPLED_FROM
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
