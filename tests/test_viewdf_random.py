"""Random viewdf models over random streams: late, deleted, updated rows, parts in any order of arrival."""

from __future__ import annotations

import random
from datetime import datetime, timedelta, timezone
from unittest.mock import patch

import pytest

from fivm_dbt.features.viewdf.refresh.writer import PartWriter
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import TimeParts
from fixtures.runs import by_run
from viewdf_bench import Bench, Model, Row, Table

START = datetime(2024, 3, 30, 21)
"""Some hours before clocks change in Europe."""

LENGTHS = ("minute", "15 minutes", "hour")


def _number(shift: int) -> str:
    return "j" if shift == 0 else f"j-{shift}"


def _window(pick: random.Random, source: str, meta: dict[str, str]) -> Model:
    width = pick.randint(1, 4)
    reference = f"{{{source}:{_number(width)}..{_number(pick.randint(0, width - 1))}}}"
    queries = (
        f"select k, max(v) as top, count(*) as n from {reference} group by k having count(*) <> 2",
        f"select count(*) as n, sum(v) as s, min(k) as k from {reference}",
        f"select distinct k, v from {reference}",
        f"select k, v, row_number() over (partition by k order by v, ts) as r from {reference}",
        f"select k, v, sum(v) over (partition by k order by ts, v) as s from {reference} where v is not null",
        f"select k, v from {reference} order by v desc, k, ts limit 3",
    )
    return Model("windowed", pick.choice(queries), None, meta)


def _joined(pick: random.Random, source: str, other: str, meta: dict[str, str]) -> Model:
    left, right = f"{{{source}:{_number(pick.randint(0, 2))}}}", f"{{{other}:{_number(pick.randint(0, 2))}}}"
    queries = (
        f"select a.k, a.v, b.v as w from {left} a join {right} b on a.k = b.k",
        f"select a.k, a.v, b.v as w from {left} a left join {right} b on a.k = b.k and b.v > 0",
        f"select a.k, a.v from {left} a where not exists (select 1 from {right} b where b.k = a.k)",
        f"select a.k, a.v from {left} a where a.k in (select b.k from {right} b)",
        f"select a.k, d.name, count(*) as n from {left} a left join {{d}} d on a.k = d.k group by a.k, d.name",
        f"select k, v, 1 as side from {left} union all select k, v, 2 from {right}",
        f"select a.k, (select max(b.v) from {right} b) as top from {left} a",
        f"select a.k, count(distinct a.v) as n, max(a.v) - min(a.v) as d from {left} a group by a.k",
    )
    return Model("joined", pick.choice(queries), None, meta)


def _recursive(pick: random.Random, source: str, meta: dict[str, str]) -> Model:
    back = pick.choice(("j-1", "j-1", "j-2..j-1"))
    new, old = f"{{{source}:j}}", f"{{recursive:{back}}}"
    queries = (
        (
            f"""select k, sum(s) as s, sum(n) as n from (
                select k, sum(v) as s, count(*) as n from {new} group by k union all select k, s, n from {old}
            ) as both group by k{pick.choice(("", "", " having sum(n) < 40"))}""",
            f"select k, sum(v) as s, count(*) as n from {{{source}:i}} group by k",
        ),
        (
            f"""select k, sum(s) as s, sum(d) as d, sum(n) as n from (
                select k, v as s, cast(v as decimal(4, 1)) as d, 1 as n from {new} where v <> 3
                union all select k, s, d, n from {{recursive:j-1}}
                union all select d.name, 1, null, 2 from {new} as m join {{d}} as d on m.k = d.k) as b group by k""",
            f"select k, sum(v) as s, sum(cast(v as decimal(4, 1))) as d, count(*) as n from {{{source}:i}} group by k",
        ),
        (
            f"""select new.k, coalesce(prev.n, 0) + 1 as n from (select distinct k from {new} where v > 2) as new
                left join {{recursive:j-1}} as prev on new.k <=> prev.k""",
            f"select distinct k, 1 as n from {{{source}:i}} where v > 2",
        ),
        (
            f"""select k, max(v) as n from (
                select k, v from {new} union all select k, n from {{recursive:j-1}}) as b group by k""",
            f"select k, max(v) as n from {{{source}:i}} group by k",
        ),
    )
    update, initialize = pick.choice(queries)
    return Model("recursive", update, initialize, meta)


def _coarse(pick: random.Random, source: str, meta: dict[str, str], zone: str) -> Model:
    length = pick.choice(("hour", "2 hours", "day"))
    if length == "day":
        meta = {**meta, "fivm_time_zone": zone}
    query = f"select k, count(*) as n, sum(v) as s from {{{source}:span j}} group by k"
    return Model("coarse", query, None, {**meta, "fivm_part_length": length})


def _rows(pick: random.Random, many: int, span: timedelta) -> list[Row]:
    found: list[Row] = []
    for _ in range(many):
        when = None if pick.random() < 0.03 else START + span * pick.random()
        key = None if pick.random() < 0.1 else pick.choice("abc")
        found.append((key, pick.choice((None, -1, 0, 2, 3, 7)), when and when.replace(microsecond=0)))
    return found


def _run(seed: int) -> None:
    """One random bench. With even seeds a part that has changed is written with all of its period."""
    with patch.object(PartWriter, "_are_small", return_value=seed % 2 == 0):
        _follow(random.Random(seed))


def _follow(pick: random.Random) -> None:
    length = pick.choice(LENGTHS)
    span = timedelta(seconds=Length.of(length).many * 12)
    lateness = pick.choice((None, timedelta(), timedelta(minutes=20)))
    parts = TimeParts("ts", Length.of(length), lateness)
    columns = [("k", "string"), ("v", "int"), ("ts", "timestamp")]
    tables = [
        Table(name, columns, _rows(pick, pick.choice((0, 5, 60)), span / 2), parts) for name in ("m", "o")
    ]
    tables.append(Table("d", [("k", "string"), ("name", "string")], [("a", "x"), ("b", "y")]))
    meta = {
        "fivm_start": pick.choice(("oldest", "newest", "2024-03-30T21:00:00")),
        "fivm_part_order": pick.choice(("oldest", "stalest")),
    }
    models = [
        _recursive(pick, "m", meta),
        _window(pick, pick.choice("mo"), meta),
        _joined(pick, "m", "o", meta),
    ]
    models.append(_coarse(pick, "m", meta, "Europe/Vienna"))
    if pick.random() < 0.5:
        # A model over a model, whose parts may be empty.
        top = f"select k, n, n as v from {{recursive:{_number(pick.randint(0, 2))}}} where n > 1"
        models.append(Model("top", top, None, meta))
    bench = Bench(tables, pick.sample(models[:4], 3) + models[4:] if len(models) == 4 else models)
    try:
        bench.run()
        bench.check()
        bench.check_computed()
        for _ in range(5):
            _change(pick, bench, span)
            low = START + span * pick.random()
            some = (low.replace(tzinfo=timezone.utc), (low + span / 3).replace(tzinfo=timezone.utc))
            if pick.random() < 0.2:
                bench.run(within=some)
            bench.run()
            bench.check()
            bench.check_computed()
    finally:
        bench.close()


def _change(pick: random.Random, bench: Bench, span: timedelta) -> None:
    for name in ("m", "o"):
        rows = bench.tables[name].rows
        gone = pick.sample(rows, min(len(rows), pick.choice((0, 1, 3))))
        come = _rows(pick, pick.choice((0, 1, 3, 30)), span)
        if gone and pick.random() < 0.5:
            come.append((gone[0][0], 3, gone[0][2]))
        if gone or come:
            bench.change(name, come, gone)
    if pick.random() < 0.3:
        bench.change("d", [(pick.choice("abc"), pick.choice("xyz"))], bench.tables["d"].rows[:1])


@pytest.mark.parametrize("seed", by_run(range(1), more=range(1, 6), long=range(6, 12)))
def test_random_models(seed: int) -> None:
    _run(seed)


@pytest.mark.more
@pytest.mark.parametrize("seed", range(100, 108))
def test_more_random_models(seed: int) -> None:
    _run(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(108, 168))
def test_many_random_models(seed: int) -> None:
    _run(seed)
