"""The catalog of parts: from which versions each part was computed, and which have changed since somebody looked."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import datetime, timezone
from typing import Any

import pytest

from fivm_dbt.features.viewdf.plan.model import PartPlan
from fivm_dbt.features.viewdf.refresh.record import Recording
from fivm_dbt.naming import parts_of
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import TimeParts
from viewdf_bench import Bench, Model, Row, Table, at, minutes

MINUTE = TimeParts("ts", Length.of("minute"))
OLDEST = {"fivm_start": "oldest"}
FIRST = Length.of("minute").part_of(at("10:00").replace(tzinfo=timezone.utc))

SUMS = Model("sums", "select k, sum(v) as s from {m:j} group by k", None, OLDEST)
LAST_TWO = Model("last_two", "select k, sum(s) as s from {sums:j-1..j} group by k", None, OLDEST)
JOINED = Model(
    "joined",
    "select m.k, m.v, d.name from {m:j} as m join {d} as d on m.k = d.k",
    None,
    {**OLDEST, "fivm_plain_change": "future"},
)


def _stream(*values: int) -> Table:
    rows = [("k", value, minutes("10:00", minute)) for minute, value in enumerate(values)]
    return Table("m", [("k", "string"), ("v", "int"), ("ts", "timestamp")], rows, MINUTE)


def _versions(b: Bench, model: str) -> dict[tuple[str, int], dict[str, int]]:
    """By relation and minute the versions that the catalog tells."""
    rows = b.catalog(model, "relation, part, input_versions")
    return {(relation, part - FIRST): json.loads(text) for relation, part, text in rows}


def test_from_which_versions_each_part_was_computed() -> None:
    dimension = Table("d", [("k", "string"), ("name", "string")], [("k", "old")])
    with closing(Bench([_stream(1, 2, 3), dimension], [JOINED])) as b:

        def now() -> dict[str, int]:
            heads = {name: b.bench.engine.commits(name, None)[0].version for name in ("m", "d")}
            b.run()
            b.check_catalog()
            return heads

        built = now()
        own = {("joined", minute): built for minute in range(3)}
        seen = {("m", minute): built for minute in range(3)}
        assert _versions(b, "joined") == own | seen

        b.change("m", [("k", 4, at("10:03"))])
        with_one_more = now()
        own["joined", 3] = seen["m", 3] = with_one_more
        assert _versions(b, "joined") == own | seen

        # A late row, with a new part and a newer dimension: what neither concerns is as it was.
        b.change("d", [("k", "new")], [("k", "old")])
        b.change("m", [("k", 9, at("10:01:30")), ("k", 5, at("10:04"))])
        late = now()
        assert late["d"] == built["d"] + 1 and late["m"] == built["m"] + 2
        own |= {("joined", 1): late, ("joined", 4): late}
        seen |= {("m", 1): late, ("m", 4): late}
        assert _versions(b, "joined") == own | seen

        # Computed again, and its rows are the same: they come from the newer versions all the same.
        before = b.last_updated("joined")
        b.change("m", [("nobody", 9, at("10:04:10"))])
        same = now()
        own["joined", 4] = seen["m", 4] = same
        assert _versions(b, "joined") == own | seen
        assert b.last_updated("joined") == before


def _changed_since(b: Bench, looked: object) -> set[Row]:
    """The query of the documentation, over all models."""
    wanted = f"where relation = model and last_updated > timestamp '{looked}'"
    columns = "relation, part_timestamp, row_count"
    queries = [f"select {columns} from {parts_of(name)} {wanted}" for name in b.models]
    return {tuple(row) for query in queries for row in b.bench.engine.query(query)}


def test_which_parts_have_changed_since_somebody_looked() -> None:
    with closing(Bench([_stream(1, 2, 3)], [SUMS, LAST_TWO])) as b:

        def look() -> object:
            found = [b.bench.engine.query(f"select max(last_updated) from {parts_of(m)}") for m in b.models]
            return max(moment for ((moment,),) in found)

        b.run()
        everything = {("sums", minutes("10:00", m), 1) for m in range(3)}
        everything |= {("last_two", minutes("10:00", m), 1) for m in range(1, 3)}
        assert _changed_since(b, "2000-01-01") == everything
        looked = look()
        b.run()
        assert _changed_since(b, looked) == set()

        b.change("m", [("k", 4, at("10:03")), ("late", 5, at("10:00:30"))])
        b.run()
        first = {
            ("sums", at("10:00"), 2),
            ("sums", at("10:03"), 1),
            ("last_two", at("10:01"), 2),
            ("last_two", at("10:03"), 1),
        }
        assert _changed_since(b, looked) == first
        looked_again = look()

        # A part that loses its rows has changed; one of which another sum comes out the same has not.
        b.change("m", [("k", 2, at("10:02:10")), ("k", 1, at("10:02:20"))], [("k", 3, at("10:02"))])
        b.change("m", delete=[("k", 4, at("10:03"))])
        b.run()
        second = {("sums", at("10:03"), 0), ("last_two", at("10:03"), 1)}
        assert _changed_since(b, looked_again) == second
        assert {r[:2] for r in _changed_since(b, looked)} == {r[:2] for r in first | second}
        b.check()
        b.check_catalog()


def _of_before(self: Recording, plan: PartPlan) -> dict[str, Any]:
    """What an older version has recorded in a head: its parts were rows of a table beside it."""
    return {"computed": str(self.computed), "dropped": str(self.dropped)}


def test_a_state_of_an_older_version_gets_its_catalog() -> None:
    """All of its parts are taken for changed once: when they did is not known any more."""
    with closing(Bench([_stream(1, 2, 3)], [SUMS])) as b:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Recording, "as_dict", _of_before)
            b.run()
        b.bench.engine.run("drop view sums__fivm_parts")
        b.change("m", [("k", 4, at("10:03"))])
        b.run()
        b.check_catalog()
        assert {part - FIRST for part in b.last_updated("sums")} == {0, 1, 2, 3}
        assert {part - FIRST for relation, part in b.catalog("sums", "relation, part") if relation == "m"} == {
            0, 1, 2, 3,
        }  # fmt: skip
        b.change("m", [("k", 5, at("10:04"))])
        before = b.last_updated("sums")
        b.run()
        b.check_catalog()
        assert before.items() < b.last_updated("sums").items()


DAYS = "select cast(ts as date) as day, sum(v) as s from m group by cast(ts as date)"
HOURS = "select date_trunc('hour', ts) as hour, sum(v) as s from m group by date_trunc('hour', ts)"
VIENNA, UTC = {"fivm_time_zone": "Europe/Vienna"}, {"fivm_time_zone": "UTC"}


@pytest.mark.parametrize(
    ("session", "sql", "meta", "begins"),
    [
        ("UTC", DAYS, {"batch_size": "day"}, ["2024-03-30T00", "2024-03-31T00", "2024-04-01T00"]),
        ("UTC", DAYS, {"batch_size": "day", **VIENNA}, ["2024-03-29T23", "2024-03-30T23", "2024-03-31T22"]),
        ("Europe/Vienna", DAYS, {"batch_size": "day"}, ["2024-03-29T23", "2024-03-30T23", "2024-03-31T22"]),
        ("Europe/Vienna", DAYS, {"batch_size": "day", **UTC}, ["2024-03-30T00", "2024-03-31T00", "2024-04-01T00"]),
        ("UTC", DAYS, VIENNA, ["2024-02-29T23", "2024-03-31T22"]),
        ("Asia/Kolkata", DAYS, {}, ["2024-02-29T18:30", "2024-03-31T18:30"]),
        # The days of instants are those of the session.
        ("UTC", HOURS, {"batch_size": "day", **VIENNA}, ["2024-03-30T00", "2024-03-31T00", "2024-04-01T00"]),
        ("Europe/Vienna", HOURS, {"batch_size": "hour"}, ["2024-03-30T12", "2024-03-31T12", "2024-04-01T12"]),
    ],
)  # fmt: skip
def test_a_partition_of_a_fivm_model_begins_when_the_catalog_says(
    session: str, sql: str, meta: dict[str, Any], begins: list[str]
) -> None:
    """In the zone of the days, whoever reads it in whatever zone; on the second day clocks change in Vienna."""
    rows: list[Row] = [("k", 1, datetime(2024, 3, 30, 12)), ("k", 2, datetime(2024, 3, 31, 12))]
    table = Table("m", [("k", "string"), ("v", "int"), ("ts", "timestamp")], rows)
    with closing(Bench([table], [], session)) as b:
        b.add_fivm("summed", sql, {"fivm_part_timestamp": True, **meta})
        b.run_fivm("summed")
        b.change("m", [("k", 3, datetime(2024, 4, 1, 12))])
        b.run_fivm("summed")
        expected = {datetime.fromisoformat(text) for text in begins}
        assert {moment for (moment,) in b.rows("summed", "part_timestamp")} == expected
        assert {moment for (moment,) in b.catalog("summed", "part_timestamp")} == expected
        length = b.plans["summed"].partition_length
        assert length is not None
        numbers = {length.part_of(moment.replace(tzinfo=timezone.utc)) for moment in expected}
        assert {part for (part,) in b.catalog("summed", "part")} == numbers
