"""Which parts a refresh of viewdf models computes, in which order, and what it says of those that have to wait."""

from __future__ import annotations

import random
import re
from collections import Counter
from contextlib import closing
from datetime import datetime, timedelta, timezone

import pytest

from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import TimeParts
from fivm_dbt.refresh.report import Report
from viewdf_bench import Bench, Model, Row, Table, at, minutes

OLDEST = {"fivm_start": "oldest"}
COLUMNS = [("k", "string"), ("v", "int"), ("ts", "timestamp")]


def _parts(length: str, lateness: timedelta | None = None) -> TimeParts:
    return TimeParts("ts", Length.of(length), lateness)


def _table(name: str, length: str, rows: list[Row], lateness: timedelta | None = None) -> Table:
    return Table(name, COLUMNS, rows, _parts(length, lateness))


def _every_minute(*numbers: int, key: str = "k") -> list[Row]:
    """A row in each of these minutes after ten o'clock."""
    return [(key, number, minutes("10:00", number)) for number in numbers]


def _part(text: str, length: str = "minute") -> int:
    return Length.of(length).part_of(at(text).replace(tzinfo=timezone.utc))


# Order


def _written(done: Report) -> list[list[str]]:
    """By statement that writes parts, in the order of execution, when the ranges begin that it writes."""
    writes = [s for s in done.statements if s.startswith(f"INSERT INTO {done.model}__fivm_root")]
    return [
        re.findall(r"part_timestamp >= CAST\('2015-01-01 (\d+:\d+):00\+00:00'", s.split(" SELECT ")[0])
        for s in writes
    ]


SUMS = "select k, sum(v) as s from {m:j} group by k"


@pytest.mark.parametrize(
    ("order", "written"),
    [("oldest", [["10:02", "10:05", "10:09"]]), ("stalest", [["10:05"], ["10:02", "10:09"]])],
)
def test_parts_that_are_out_of_date_first(order: str, written: list[list[str]]) -> None:
    """Late rows in minute 5; minutes 2, which is older, and 9 are new."""
    sums = Model("sums", SUMS, None, {**OLDEST, "fivm_part_order": order})
    with closing(Bench([_table("m", "minute", _every_minute(0, 5, 6))], [sums])) as b:
        b.run()
        b.change("m", _every_minute(2, 9, 5, key="late"))
        done = b.run()["sums"]
        b.check()
        b.check_computed()
        assert _written(done) == written


@pytest.mark.parametrize("order", ["oldest", "stalest"])
def test_a_model_that_reads_itself_goes_by_time(order: str) -> None:
    """Whatever is configured: a part follows from those before it. Minute 7 is new, and so late rows come first."""
    seen = Model(
        "seen",
        "select k from {m:j} union select k from {seen:j-1}",
        "select distinct k from {m:i}",
        {**OLDEST, "fivm_part_order": order},
    )
    with closing(Bench([_table("m", "minute", _every_minute(*range(6)))], [seen])) as b:
        b.run()
        b.change("m", _every_minute(4, 6, key="late"))
        done = b.run()["seen"]
        b.check()
        assert _written(done) == [["10:04"], ["10:05"], ["10:06"]]
