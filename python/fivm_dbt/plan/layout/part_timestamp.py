"""``fivm_part_timestamp`` gives a fivm model the time partition of a row as a column, as viewdf models have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from fivm_dbt.catalog.types import DATE
from fivm_dbt.config import Config
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.build import call, text
from fivm_dbt.ir.moments import session_zone
from fivm_dbt.ir.presentation import with_column
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import PART_TIMESTAMP
from fivm_dbt.plan.model.state import StateTable
from fivm_dbt.plan.model.view import View


def with_part_timestamp(
    views: tuple[View, ...], config: Config, session: Mapping[str, str]
) -> tuple[tuple[View, ...], Length]:
    """The views, the topmost one showing when the partition of a row begins, and how long the partitions are.

    Raises FIVM202 where the state is not partitioned by time, FIVM112 where the model has such a column.
    """
    top = views[-1]
    if top.state.partitioning.kind != "time":
        raise FivmError(
            "FIVM202",
            f"fivm_part_timestamp is set, but the state is partitioned by a {top.state.partitioning.reason}",
            remedy="group by a date or by date_trunc(...), or leave fivm_part_timestamp out",
        )
    if any(c.name.lower() == PART_TIMESTAMP for c in top.columns):
        raise FivmError(
            "FIVM112",
            f"{PART_TIMESTAMP} is a column of the query, and fivm_part_timestamp adds one",
            remedy="give it another name, or leave fivm_part_timestamp out",
        )
    length = Length.of(config.batch_size or "month", _zone(top.state, config, session))
    shown = with_column(top.presentation, PART_TIMESTAMP, _begins(top.state, length.zone))
    return (*views[:-1], replace(top, presentation=shown)), length


def _zone(state: StateTable, config: Config, session: Mapping[str, str]) -> str:
    """Whose days the partitions are: of instants those of the session, dates may be those of any zone."""
    by = state.partitioning.expression
    assert by is not None
    of_dates = all(k.type == DATE for k in state.keys if ("", k.name) in by.columns)
    return (config.fivm_time_zone if of_dates else None) or session_zone(tuple(session.items()))


def _begins(state: StateTable, zone: str) -> Scalar:
    """When a partition begins, as the catalog of parts has it: a cast would ask for the zone of whoever reads."""
    by = state.partitioning
    assert by.expression is not None
    if by.type != DATE:
        return by.expression
    days = call("UNIX_DATE", by.expression)
    in_utc = call("TIMESTAMP_SECONDS", days.cast("bigint").times(Scalar.number(86_400)))
    return in_utc if zone == "UTC" else call("TO_UTC_TIMESTAMP", in_utc, text(zone))
