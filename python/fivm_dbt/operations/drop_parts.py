"""Old parts of sources, seeds and other models are dropped once every model that reads them has seen them.

Viewdf models drop their own in their runs. Tables that fivm does not write are only touched when somebody asks for it
(``dbt run-operation fivm_drop_parts``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta

from fivm_dbt.catalog import Relation
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.plan.model.inputs import Reader
from fivm_dbt.refresh.engine import Engine
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.observe import Finished
from fivm_dbt.spark.dropped import delete_before, ends_query


@dataclass(frozen=True)
class OldParts:
    """The parts of a relation that are old enough to go; ``waiting`` are the models that have not seen them all."""

    relation: Relation
    parts: Intervals
    waiting: tuple[str, ...]

    def __str__(self) -> str:
        retention = self.relation.retention
        assert retention is not None
        if not self.parts:
            return f"{self.relation.name}: no part is that old"
        end = retention.length.end_of(self.parts.last)
        what = (
            f"{self.relation.name}: {len(self.parts):,} parts ({self.parts}), before {end:%Y-%m-%d %H:%M} UTC"
        )
        if self.waiting:
            return f"{what}: kept, because {', '.join(self.waiting)} did not see the newest version"
        return what

    @property
    def can_go(self) -> bool:
        return bool(self.parts) and not self.waiting


def old_parts(engine: Engine, relation: Relation, lateness: timedelta, readers: Iterable[Reader]) -> OldParts:
    """The parts of a relation that are older than its retention, and than late rows may be that still come.

    ``readers`` are the models over it. Rows that one of them has not seen would be lost to it.
    """
    assert relation.retention is not None
    version = engine.commits(relation.name, None)[0].version
    waiting = tuple(r.model for r in sorted(readers) if _seen(engine, r, relation.name) != version)
    ((oldest, newest),) = engine.query(ends_query(relation, version).sql(dialect="spark"))
    if oldest is None or newest is None:
        return OldParts(relation, Intervals(), waiting)
    there = Intervals.of((int(str(oldest)), int(str(newest))))
    kept = replace(relation.retention, age=max(relation.retention.age, lateness))
    return OldParts(relation, kept.old(there, there.last), waiting)


def drop_old_parts(engine: Engine, found: Iterable[OldParts]) -> Iterator[OldParts]:
    """Delete the rows of the parts that can go, and tell which these were."""
    for item in found:
        if item.can_go:
            engine.run(delete_before(item.relation, item.parts.last).sql(dialect="spark"))
            yield item


def _seen(engine: Engine, reader: Reader, relation: str) -> int | None:
    """The version of a relation that a model was computed from, None where it has never been or is not now."""
    state = read_state(engine, reader.state)
    if not isinstance(state, Finished) or state.unfinished is not None or relation not in state.inputs:
        return None
    return state.inputs[relation].commit.version
