"""What dbt does of an incremental model, as an expert writes it: ``merge`` of the last days, and ``microbatch``.

Both recompute rows by the newest time. They miss what has changed before it, in facts and in dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Literal

import sqlglot
from sqlglot import exp

BATCH = "batch"
"""The column by which a microbatch model is partitioned. It has to be one of the table."""


@dataclass(frozen=True)
class ByTime:
    """How a model is kept by its time, the output column ``day``.

    The rows since ``days`` before the newest day are merged by ``keys``. A microbatch model computes its last
    ``batches`` anew, beside the one that time is in. ``never_before`` are columns of other inputs that are no earlier
    than ``day``: without them both would read all rows of these inputs.
    """

    day: str
    keys: tuple[str, ...]
    days: int = 3
    batches: int = 1
    batch: Literal["MM", "YEAR"] = "MM"
    never_before: tuple[str, ...] = ()


def newest(by_time: ByTime, relation: str) -> str:
    """Asks for the newest day of what is kept, as ``is_incremental()`` blocks of models do."""
    return f"SELECT max({by_time.day}) FROM {relation}"


def merge(sql: str, by_time: ByTime, relation: str, day: date) -> str:
    """The MERGE of an incremental model into a relation whose newest day is ``day``, as dbt writes it."""
    rows = _between(sql, by_time, day - timedelta(days=by_time.days), None)
    matched = " AND ".join(f"old.{key} = new.{key}" for key in by_time.keys)
    return (
        f"MERGE INTO {relation} AS old USING ({rows}) AS new ON {matched} "
        "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )


def partitioned(sql: str, by_time: ByTime) -> str:
    """The rows of a microbatch model: with the column of their batch."""
    return f"SELECT *, cast(trunc({by_time.day}, '{by_time.batch}') AS date) AS {BATCH} FROM ({sql})"


def batches(by_time: ByTime, day: date) -> list[tuple[date, date]]:
    """The batches of a run on ``day``, each up to but without its end: dbt has one more than ``lookback`` says.

    >>> [(str(start), str(end)) for start, end in batches(ByTime("d", ("d",)), date(1998, 1, 31))]
    [('1997-12-01', '1998-01-01'), ('1998-01-01', '1998-02-01')]
    """
    return [*_batches(by_time, day)][::-1]


def _batches(by_time: ByTime, day: date) -> Iterator[tuple[date, date]]:
    """The newest one first."""
    months = 1 if by_time.batch == "MM" else 12
    begin = day.replace(day=1) if months == 1 else day.replace(month=1, day=1)
    for back in range(by_time.batches + 1):
        yield _months_later(begin, -back * months), _months_later(begin, (1 - back) * months)


def _months_later(day: date, months: int) -> date:
    count = day.year * 12 + day.month - 1 + months
    return day.replace(year=count // 12, month=count % 12 + 1)


def overwrites(
    sql: str, by_time: ByTime, relation: str, batch: tuple[date, date], view: str
) -> tuple[str, str]:
    """The two statements of a batch, as dbt-spark sends them: a view of its rows, and a dynamic overwrite.

    dbt filters the input that has the ``event_time``. Joins here are inner ones: it is the same to filter the query.
    """
    rows = partitioned(_between(sql, by_time, *batch), by_time)
    return (
        f"CREATE OR REPLACE TEMPORARY VIEW {view} AS {rows}",
        f"INSERT OVERWRITE TABLE {relation} PARTITION ({BATCH}) SELECT * FROM {view}",
    )


DYNAMIC = "SET spark.sql.sources.partitionOverwriteMode = DYNAMIC"
"""What dbt-spark says before."""


def _between(sql: str, by_time: ByTime, start: date, end: date | None) -> str:
    """The query of the rows of some days."""
    query = sqlglot.parse_one(sql, dialect="spark")
    assert isinstance(query, exp.Select)
    day = next(p for p in query.selects if p.alias_or_name == by_time.day).unalias().sql(dialect="spark")
    conditions = [f"{column} >= date '{start}'" for column in (day, *by_time.never_before)]
    if end is not None:
        conditions.append(f"{day} < date '{end}'")
    return query.where(*conditions, dialect="spark").sql(dialect="spark")
