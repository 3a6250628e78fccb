"""``fivm_part_timestamp`` puts the time partitions of a fivm model into the catalog of parts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from zoneinfo import ZoneInfo

from fivm_dbt.catalog import SparkType
from fivm_dbt.naming import parts_of
from fivm_dbt.parts.length import Length
from fivm_dbt.plan.model.plan import MaintainedPlan, Plan
from fivm_dbt.refresh.recorder import Recorder
from fivm_dbt.spark.formats import MissingRelation
from fivm_dbt.spark.part_catalog import PartEntry, Recorded, create_catalog, record_parts
from fivm_dbt.spark.partition_text import partition_time
from fivm_dbt.spark.recorded_partitions import last_recorded_query, rows_query


def record_partitions(
    plan: MaintainedPlan, engine: Recorder, refresh: int, versions: str, touched: Sequence[object] | None
) -> None:
    """Write down which partitions a refresh has changed, and how many rows they have; all of a build (None)."""
    length = plan.partition_length
    if length is None:
        return
    if touched is not None and not touched:
        return
    is_there = touched is not None and engine.exists(parts_of(plan.relation))
    touched = touched if is_there else None
    type_ = plan.root.partitioning.type
    # A partition that has lost all its rows is there, and empty.
    rows = {text: 0 for text in touched or ()} | {
        text: int(str(n)) for text, n in engine.query(rows_query(plan, touched))
    }
    found = [(_number(text, type_, length), n) for text, n in rows.items()]
    entries = sorted((PartEntry(part, n) for part, n in found if part is not None), key=lambda e: e.part)
    by = Recorded(refresh, datetime.now(timezone.utc), versions)
    if touched is None:
        engine.run(create_catalog(plan, length, entries, by))
    elif entries:
        engine.run(record_parts(plan, length, entries, by))


def last_recorded(plan: Plan, engine: Recorder) -> int | None:
    """The last refresh of which something is written down, None if nothing is."""
    try:
        ((refresh,),) = engine.query(last_recorded_query(plan))
    except MissingRelation:
        return None
    return None if refresh is None else int(str(refresh))


def _number(text: object, type_: SparkType, length: Length) -> int | None:
    """The part that begins with a partition's date, or time, which are local to the zone of the session."""
    value = partition_time(str(text), type_)
    if value is None:
        return None
    if not isinstance(value, datetime):
        zone = timezone.utc if length.is_fixed else ZoneInfo(length.zone)
        value = datetime(value.year, value.month, value.day, tzinfo=zone)
    return length.part_of(value)
