"""``fivm_part_timestamp`` gives a fivm model the time partition of a row as a column, as viewdf models have it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import sqlglot
from sqlglot import exp

from fivm_dbt.catalog import Presentation
from fivm_dbt.catalog.types import DATE
from fivm_dbt.config import Config
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.moments import session_zone
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
    query = sqlglot.parse_one(top.presentation.sql, dialect=SparkText)
    assert isinstance(query, exp.Select)
    length = Length.of(config.batch_size or "month", _zone(top.state, config, session))
    begins = _begins(top.state, length.zone)
    shown = query.select(exp.alias_(begins, PART_TIMESTAMP), copy=False)
    presentation = Presentation(top.presentation.root, shown.sql(dialect="spark"))
    return (*views[:-1], replace(top, presentation=presentation)), length


def _zone(state: StateTable, config: Config, session: Mapping[str, str]) -> str:
    """Whose days the partitions are: of instants those of the session, dates may be those of any zone."""
    by = state.partitioning.expression
    assert by is not None
    of_dates = all(k.type == DATE for k in state.keys if ("", k.name) in by.columns)
    return (config.fivm_time_zone if of_dates else None) or session_zone(tuple(session.items()))


def _begins(state: StateTable, zone: str) -> exp.Expr:
    """When a partition begins, as the catalog of parts has it: a cast would ask for the zone of whoever reads."""
    by = state.partitioning
    assert by.expression is not None
    if by.type != DATE:
        return by.expression.ast()
    days = exp.Anonymous(this="UNIX_DATE", expressions=[by.expression.ast()])
    seconds = exp.Mul(this=days, expression=exp.Literal.number(86_400))
    in_utc = exp.Anonymous(this="TIMESTAMP_SECONDS", expressions=[seconds])
    if zone == "UTC":
        return in_utc
    return exp.Anonymous(this="TO_UTC_TIMESTAMP", expressions=[in_utc, exp.Literal.string(zone)])
