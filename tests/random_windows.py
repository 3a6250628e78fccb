"""Random models over windows of time, and random changes: late rows, NULLs, duplicates, updates, sums of zero."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any

Row = tuple[Any, ...]

START = datetime(2024, 3, 30, 22, 0)
COLUMNS = [["k", "string"], ["ts", "timestamp"], ["x", "int"], ["y", "decimal(10,2)"], ["z", "double"]]
_CALLS = (
    "count(*)", "count(x)", "sum(x)", "avg(x)", "sum(y)", "avg(y)", "min(x)", "max(x)", "max(y)", "min(ts)",
    "count_if(x > 0)", "bool_or(x > 1)", "bit_xor(x)", "sum(z)", "avg(z)", "median(x)", "count(distinct x)",
    "max(x) filter (where x < 2)", "sum(x) filter (where y > 0)", "stddev(x)",
)  # fmt: skip
_ADDING = ("count(*)", "count(x)", "sum(x)", "avg(x)", "sum(y)", "avg(y)", "sum(x) filter (where y > 0)")
_MERGING = (*_ADDING, "min(x)", "max(x)", "max(y)", "bool_or(x > 1)", "sum(z)", "avg(z)", "count_if(x > 0)")
_FRAMES = (
    "range between interval '30 minutes' preceding and current row",
    "range between interval '20 minutes' preceding and interval '10 minutes' following",
    "range between current row and interval '1 hour' following",
    "range between interval '2 hours' preceding and interval '1 hour' preceding",
)

_WEEKS = (
    "range between interval '60 days' preceding and current row",
    "range between interval '60 days' preceding and interval '9 days' following",
    "range between interval '40 days' preceding and interval '10 days' preceding",
    "range between current row and interval '90 days' following",
    "range between interval '100 days' preceding and interval '100 days' following",
    "range between interval '30 days' preceding and current row",
    "range between interval '364 days' preceding and interval '62 days' preceding",
)

_LONG_FRAME = "range between interval '60 days' preceding and interval '9 days' following"

_BESIDE = (
    "rows between 1 preceding and current row",
    "rows between 1 preceding and 1 following",
    "rows between current row and 1 following",
    "rows between 3 preceding and current row",
    "rows between 5 preceding and 2 preceding",
    "rows between 2 preceding and 4 following",
)


def random_row(rng: random.Random, days: int = 0, span: int = 6 * 60) -> Row:
    """A row in the hours around a change of clocks, each maybe on another day; the same moments come often."""
    minutes = rng.randrange(0, span, 3)
    at = START + timedelta(days=days * minutes // 60, minutes=minutes, seconds=rng.choice((0, 0, 59)))
    return (
        rng.choice(("a", "b", None)),
        None if rng.random() < 0.06 else at.isoformat(sep=" "),
        rng.choice((None, -2, -1, 0, 1, 2, 3)),
        rng.choice((None, "-1.50", "0.00", "2.25")),
        rng.choice((None, -0.5, 0.25, 1.0)),
    )


def random_window(rng: random.Random) -> str:
    """The call of a sliding, tumbling or session window."""
    kind = rng.choice(("sliding", "sliding", "tumbling", "session"))
    if kind == "session":
        return f"session_window(ts, '{rng.choice(('3 minutes', '10 minutes', '1 hour'))}')"
    if kind == "tumbling":
        return f"window(ts, '{rng.choice(('5 minutes', '1 hour', '1 day'))}')"
    sizes = (
        ("10 minutes", "5 minutes"),
        ("1 hour", "20 minutes"),
        ("25 minutes", "10 minutes"),
        ("1 day", "6 hours"),
    )
    length, slide = rng.choice(sizes)
    start = rng.choice(("", "", ", '2 minutes'"))
    return f"window(ts, '{length}', '{slide}'{start})"


def random_model(rng: random.Random) -> str:
    """A query over ``r`` that groups by a window of time, has frames in a range of it, or looks at the next row."""
    kind = rng.random()
    if kind > 0.85:
        return random_running(rng)
    if kind < 0.5:
        return random_framed(rng) if kind < 0.2 else _mixed(rng) if kind < 0.3 else random_sequence(rng)
    window = random_window(rng)
    name = window.partition("(")[0]
    keys = rng.choice(([], ["k"], ["k"], ["x % 2"]))
    pool = rng.choice((_ADDING, _MERGING, _CALLS))
    calls = rng.sample(pool, rng.randint(1, 3))
    shown = [*(f"{key} as g" for key in keys), f"{name}.start as b"]
    shown += [f"{name}.end as e"] if rng.random() < 0.5 else []
    shown += [f"{call} as c{i}" for i, call in enumerate(calls)]
    where = rng.choice(("", "", " where x > -1"))
    having = rng.choice(("", "", " having count(*) > 1", " having sum(x) > 0"))
    source = rng.choice(("r", "r", "(select * from r where x is not null) as q"))
    if rng.random() < 0.15 and not name.startswith("session"):
        source, where = "r join d using (k)", where
    return f"select {', '.join(shown)} from {source}{where} group by {', '.join([*keys, window])}{having}"


def random_extremes(rng: random.Random) -> str:
    """MIN and MAX over frames of weeks and months, at times beside functions that look at rows."""
    by, order = rng.choice(("partition by k ", "partition by k ", "")), rng.choice(("ts", "ts", "ts desc"))
    frames = rng.sample(_WEEKS, rng.choice((1, 1, 2)))
    listed = ("max(x)", "min(x)", "max(y)", "min(y)", "min(k)")
    calls = [
        f"{call} over ({by}order by {order} {rng.choice(frames)})"
        for call in rng.sample(listed, rng.randint(1, 3))
    ]
    if rng.random() < 0.4:
        calls.append(f"{rng.choice(('lag(x)', 'lead(y)', 'lag(x, 3)'))} over ({by}order by {order}, x, y, z)")
    return f"select k, ts, x, {', '.join(f'{call} as c{n}' for n, call in enumerate(calls))} from r"


def random_framed(rng: random.Random) -> str:
    """Functions over frames of RANGE, maybe below an aggregate."""
    frame = rng.choice((*_FRAMES, _LONG_FRAME))
    calls = rng.sample(("sum(x)", "count(*)", "max(x)", "min(y)", "avg(x)"), rng.randint(1, 2))
    by = rng.choice(("", "partition by k "))
    order = rng.choice(("ts", "ts", "ts desc"))
    over = f"over ({by}order by {order} {frame})"
    listed = ", ".join(f"{call} {over} as c{i}" for i, call in enumerate(calls))
    query = f"select k, ts, x, {listed} from r"
    if rng.random() < 0.3:
        return f"select k, count(*) as n, max(c0) as m from ({query}) as q group by k"
    return query


def _mixed(rng: random.Random) -> str:
    """Some functions look at rows, others as far as a time."""
    by = rng.choice(("", "partition by k ", "partition by k "))
    order = rng.choice(("ts", "ts", "ts desc", "ts nulls last"))
    looks = ("lag(x)", "lead(y)", "lag(x, 3)")
    of_rows = [f"{call} over ({by}order by {order}, x, y, z)" for call in looks]
    of_rows += [f"sum(x) over ({by}order by {order}, x, y, z {rng.choice(_BESIDE)})"]
    frame = rng.choice((*_FRAMES, _LONG_FRAME))
    of_time = [
        f"{call} over ({by}order by {order} {frame})" for call in ("sum(x)", "count(*)", "max(y)", "min(x)")
    ]
    calls = [*rng.sample(of_rows, rng.randint(1, 2)), *rng.sample(of_time, rng.randint(1, 2))]
    rng.shuffle(calls)
    listed = ", ".join(f"{call} as c{i}" for i, call in enumerate(calls))
    return f"select k, ts, x, y, z, {listed} from r"


def random_sequence(rng: random.Random) -> str:
    """Functions that look at rows before and after, maybe below a filter."""
    by = rng.choice(("", "partition by k ", "partition by k "))
    order = rng.choice(("ts", "ts desc", "ts nulls last", "ts desc nulls first"))
    over = f"{by}order by {order}, x, y, z"
    beside = rng.choice(_BESIDE)
    calls = [f"{call} over ({over})" for call in ("lag(x)", "lead(x)", "lag(x, 1, -7)")]
    calls += [f"{call} over ({over})" for call in ("lag(x, 2)", "lead(y, 3)", "lag(z, 4, 0.5D)")]
    calls += [
        f"{call} over ({over} {beside})" for call in ("sum(x)", "first_value(y)", "last_value(x)", "count(*)")
    ]
    listed = ", ".join(f"{call} as c{i}" for i, call in enumerate(rng.sample(calls, rng.randint(1, 2))))
    query = f"select k, ts, x, y, z, {listed} from r"
    return f"select k, ts, x from ({query}) as q where x > c0" if rng.random() < 0.4 else query


def random_sessions(seed: int) -> dict[str, Any]:
    """Sessions of many lengths, through changes that join, split, extend and remove them; the end is an empty table."""
    rng = random.Random(seed)
    gap, unit = rng.choice(
        (("3 minutes", 1), ("1 hour", 17), ("90 seconds", 1), ("30 hours", 700), ("1 day", 400))
    )
    many = rng.choice((12, 40))

    def row() -> Row:
        at = START + timedelta(minutes=unit * rng.randrange(many), seconds=rng.choice((0, 0, 30)))
        number = rng.choice((None, -1, 0, 2))
        key = rng.choice(("a", "b", None))
        time = None if rng.random() < 0.04 else at.isoformat(sep=" ")
        return (key, time, number, rng.choice((None, "-1.50", "2.25")), rng.choice((None, -0.5, 0.25)))

    def model() -> str:
        keys = rng.choice(([], ["k"], ["k"], ["k", "x % 2"]))
        calls = rng.sample(rng.choice((_ADDING, _CALLS)), rng.randint(1, 3))
        window = f"session_window(ts, '{gap}')"
        shown = [*(f"{key} as g{i}" for i, key in enumerate(keys)), "session_window.start as b"]
        shown += rng.choice(([], ["session_window.end as e"], ["session_window as e"]))
        if rng.random() < 0.2:
            calls += [rng.choice(("max(session_window.end)", "min(session_window.start)"))]
        shown += [f"{call} as c{i}" for i, call in enumerate(calls)]
        source = rng.choice(("r", "r", "(select k, ts, x, y, z from r join d using (k)) as q"))
        where = rng.choice(("", " where x > -1", " where ts > timestamp '2024-03-30 22:05:00'"))
        having = rng.choice(
            (
                "",
                " having count(*) > 1",
                " having min(session_window.start) > timestamp '2024-03-30 23:00:00'",
            )
        )
        query = (
            f"select {', '.join(shown)} from {source}{where} group by {', '.join([*keys, window])}{having}"
        )
        if rng.random() < 0.3:
            return f"select b, count(*) as n, max(c0) as m from ({query}) as q group by b"
        return query

    rows: list[Row] = [row() for _ in range(rng.choice((0, many // 2, many)))]
    initial, steps = list(rows), []
    for _ in range(6):
        gone = rng.sample(rows, min(len(rows), rng.choice((0, 1, 1, 3))))
        come = [row() for _ in range(rng.choice((0, 1, 1, 4)))]
        come += [(*old[:2], rng.choice((None, 0, 3)), *old[3:]) for old in gone if rng.random() < 0.3]
        come += [rng.choice(rows)] if rows and rng.random() < 0.3 else []
        for old in gone:
            rows.remove(old)
        rows += come
        delta = {"r": {"insert": [list(r) for r in come], "delete": [list(r) for r in gone]}}
        if rng.random() < 0.2:
            delta["d"] = {"insert": [[rng.choice(("a", "b")), "3"]], "delete": []}
        steps.append({"delta": delta})
    steps.append({"delta": {"r": {"insert": [], "delete": [list(r) for r in rows]}}})
    return {
        "id": f"sessions-{seed}",
        "tables": {"r": COLUMNS, "d": [["k", "string"], ["g", "string"]]},
        "initial": {"r": [list(r) for r in initial], "d": [["a", "1"], ["b", "2"]]},
        "models": [{"name": name, "sql": model()} for name in ("v", "w")],
        "steps": steps,
    }


def random_running(rng: random.Random) -> str:
    """Functions over all rows up to the own one, by time, in its order at most times."""
    by = rng.choice(("partition by k ", "partition by k ", "partition by k, x ", ""))
    order = rng.choice(("ts", "ts", "ts", "ts nulls last", "ts desc"))
    up = "unbounded preceding and current row"
    calls = []
    aggregates = ("sum(x)", "sum(y)", "count(*)", "count(x)", "min(x)", "max(y)", "min(k)")
    others = (
        "avg(x)",
        "avg(y)",
        "sum(x * 2 + 1)",
        "sum(case when x > 2 then x end)",
        "count(x + y)",
        "max(x + 1)",
    )
    for call in (*aggregates, *others):
        frame = rng.choice(
            ("", f" range between {up}", f", x, y, z rows between {up}", " range unbounded preceding")
        )
        calls.append(f"{call} over ({by}order by {order}{frame})")
    calls.append(f"row_number() over ({by}order by {order}, x, y, z)")
    ranks = ("rank()", "dense_rank()", "dense_rank()")
    calls += [
        f"{call} over ({by}order by {order}{then})" for call, then in zip(ranks, ("", "", ", x"), strict=True)
    ]
    window = f"over ({by}order by {order})"
    calls.append(f"sum(x) {window} - x * 2 + count(*) {window}")
    if rng.random() < 0.3:
        # Windows that are ordered in several ways need not agree on which of equal rows is the last one.
        calls = [
            f"{call} over ({by}order by {order}, x, y{rng.choice(('', f' rows between {up}'))})"
            for call in ("first_value(x)", "first(y) ignore nulls", "last(x, true)", "last_value(y)")
        ]
    listed = ", ".join(f"{call} as c{i}" for i, call in enumerate(rng.sample(calls, rng.randint(1, 3))))
    query = f"select k, ts, x, y, z, {listed} from r"
    kind = rng.random()
    if kind < 0.2 and not calls[0].startswith("first"):
        return f"{query} qualify row_number() over ({by}order by {order}, x, y, z) <= {rng.randint(1, 3)}"
    if kind < 0.4:
        return f"select k, count(*) as n, max(c0) as m from ({query}) as q group by k"
    return query


def random_scenario(
    seed: int,
    model: Callable[[random.Random], str] = random_model,
    new_row: Callable[[random.Random], Row] | None = None,
) -> dict[str, Any]:
    """Two models through a stream of changes whose end is an empty table."""
    rng = random.Random(seed)
    new_row = new_row or partial(random_row, days=rng.choice((0, 0, 1)))
    rows = [new_row(rng) for _ in range(rng.choice((0, 8, 20)))]
    initial = list(rows)
    pairs = [("a", "1"), ("b", "2")]
    steps: list[dict[str, Any]] = []
    for _ in range(4):
        gone = rng.sample(rows, min(len(rows), rng.choice((0, 1, 2, 6))))
        come = [new_row(rng) for _ in range(rng.choice((0, 1, 3, 8)))]
        come += [(*row[:2], rng.choice((None, 0, 3)), *row[3:]) for row in gone if rng.random() < 0.4]
        come += [rng.choice(rows)] if rows and rng.random() < 0.3 else []
        for row in gone:
            rows.remove(row)
        rows += come
        delta = {"r": {"insert": [list(r) for r in come], "delete": [list(r) for r in gone]}}
        if rng.random() < 0.3:
            delta["d"] = {"insert": [[rng.choice(("a", "b")), "3"]], "delete": []}
        steps.append({"delta": delta})
    steps.append({"delta": {"r": {"insert": [], "delete": [list(r) for r in rows]}}})
    return {
        "id": f"windows-{seed}",
        "tables": {"r": COLUMNS, "d": [["k", "string"], ["g", "string"]]},
        "initial": {"r": [list(r) for r in initial], "d": [list(p) for p in pairs]},
        "models": [{"name": name, "sql": model(rng)} for name in ("v", "w")],
        "steps": steps,
    }


def random_mixed(seed: int) -> dict[str, Any]:
    """Models whose functions look at rows and reach a time, over rows that lie near each other, or months apart."""
    return random_scenario(seed, _mixed, partial(random_row, days=random.Random(seed).choice((0, 1, 30))))


def random_days(seed: int) -> dict[str, Any]:
    """The same of rows with dates, and of functions over those beside a row or before it."""

    def row(rng: random.Random) -> Row:
        key, at, *rest = random_row(rng, days=1 + seed % 2)
        return (key, None if at is None else at[:10], *rest)

    def model(rng: random.Random) -> str:
        return rng.choice((random_sequence, random_running))(rng)

    return _with_times("date", random_scenario(seed, model, row), f"days-{seed}")


def random_local(seed: int) -> dict[str, Any]:
    """Models over times without a zone."""
    made = random_sessions(seed) if seed % 3 == 0 else random_scenario(seed)
    return _with_times("timestamp_ntz", made, f"local-{seed}")


def _with_times(type_: str, scenario: dict[str, Any], name: str) -> dict[str, Any]:
    """The scenario with times of another type."""
    columns = [[c, type_ if t == "timestamp" else t] for c, t in COLUMNS]
    return {**scenario, "id": name, "tables": {**scenario["tables"], "r": columns}}
