"""The time partitions of a fivm model in the catalog of parts, where ``fivm_part_timestamp`` asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timezone
from zoneinfo import ZoneInfo

from sqlglot import exp

from fivm_dbt.naming import COUNT, PARTITION, part_catalog
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.plan import Plan
from fivm_dbt.refresh.journal import create_once
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.refresh.writes import literal
from fivm_dbt.spark.part_catalog import PartEntry, Recorded, create_catalog, forget_model, record_parts
from fivm_dbt.spark.reads import in_partitions, table


def record_partitions(
    plan: Plan, engine: Recorder, refresh: int, versions: str, touched: Sequence[object] | None
) -> None:
    """Write down which partitions a refresh has changed, and how many rows they have; all of a build (None)."""
    length = plan.partition_length
    if length is None:
        return
    create_once(engine, part_catalog(plan.relation), create_catalog(plan))
    if touched is None:
        engine.run(forget_model(plan))
    elif not touched:
        return
    found = {
        _number(value, length): int(str(rows)) for value, rows in engine.query(_rows(plan, touched)) if value
    }
    # A partition that has lost all its rows is there, and empty.
    numbers = [_number(value, length) for value in touched or () if value is not None]
    entries = [PartEntry(part, found.get(part, 0), True) for part in sorted({*found, *numbers})]
    if entries:
        by = Recorded(refresh, datetime.now(timezone.utc), versions)
        engine.run(record_parts(plan, length, entries, (), by))


def _rows(plan: Plan, touched: Sequence[object] | None) -> exp.Select:
    state = plan.root
    counted = plan.top.is_bag and not state.is_set
    rows: exp.Expr = exp.Sum(this=exp.column(COUNT)) if counted else exp.Count(this=exp.Star())
    query = exp.select(exp.column(PARTITION), exp.alias_(rows, "rows")).from_(table(state.relation))
    if touched is not None:
        query = query.where(in_partitions("", [literal(v, state.partitioning.type) for v in touched]))
    return query.group_by(exp.column(PARTITION))


def _number(value: object, length: Length) -> int:
    """The part that begins with a partition's date, or time, which are local to the zone of the session."""
    if not isinstance(value, (date, datetime)):
        value = datetime.fromisoformat(str(value))
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    if value.tzinfo is None:
        value = value.replace(tzinfo=timezone.utc if length.is_fixed else ZoneInfo(length.zone))
    return length.part_of(value)
