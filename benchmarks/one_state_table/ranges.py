"""The encoding of partition values: sorts, is one to one, and ranges of it prune files."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.one_state_table.bench import Bench, Finding, error_of
from benchmarks.one_state_table.encoding import encoded
from benchmarks.one_state_table.state import literal

VALUES = {
    "BOOLEAN": ("false", "true"),
    "TINYINT": ("-128Y", "-2Y", "-1Y", "0Y", "1Y", "10Y", "127Y"),
    "BIGINT": (
        "cast(-9223372036854775808 as bigint)",
        "cast(-9223372036854775807 as bigint)",
        *(f"{n}L" for n in (-1000, -999, -10, -9, -1, 0, 1, 9, 10, 99, 100, 9223372036854775807)),
    ),
    "DECIMAL(10,2)": tuple(
        f"cast('{n}' as decimal(10,2))"
        for n in ("-99999999.99", "-10.00", "-9.99", "-0.01", "0", "0.01", "9.99", "10", "99999999.99")
    ),
    "DECIMAL(38,18)": tuple(
        f"cast('{n}' as decimal(38,18))"
        for n in (
            "-12345678901234567890.1",
            "-1",
            "-1e-7",
            "-1e-18",
            "0",
            "1e-18",
            "1e-7",
            "1",
            "12345678901234567890.1",
        )
    ),
    "DECIMAL(38,0)": ("-" + "9" * 38 + "BD", "-1BD", "0BD", "1BD", "9" * 38 + "BD"),
    "DECIMAL(3,3)": tuple(
        f"cast('{n}' as decimal(3,3))" for n in ("-0.999", "-0.001", "0", "0.001", "0.999")
    ),
    "DATE": (
        "date_add(date'0001-01-01', -1000000)",
        "date_add(date'0001-01-01', -800)",
        "date_add(date'0001-01-01', -366)",
        *(
            f"date'{d}'"
            for d in ("0001-01-01", "1899-12-31", "1900-01-01", "1969-12-31", "1970-01-01", "2024-02-29")
        ),
        "date'9999-12-31'",
        "date_add(date'9999-12-31', 1)",
        "date_add(date'9999-12-31', 40000000)",
    ),
    "TIMESTAMP": (
        "timestamp_micros(-70000000000000000L)",
        "timestamp_micros(-62167219200000001L)",
        "timestamp_micros(-62135596800000000L)",
        "timestamp_micros(-2208988800000001L)",
        "timestamp_micros(-2208988800000000L)",
        "timestamp_micros(-1L)",
        "timestamp_micros(0L)",
        "timestamp_micros(1L)",
        "timestamp_micros(100000L)",
        "timestamp_micros(1000000L)",
        # One local time twice, in zones whose clocks go back.
        "timestamp_micros(1729991400000000L)",
        "timestamp_micros(1729995000000000L)",
        "timestamp_micros(253402300799999999L)",
        "timestamp_micros(253402300800000000L)",
    ),
    "TIMESTAMP_NTZ": tuple(
        f"timestamp_ntz'{t}'"
        for t in (
            "0001-01-01 00:00:00",
            "1899-12-31 23:59:59.999999",
            "1900-01-01 00:00:00",
            "2024-10-27 02:30:00",
            "2024-10-27 02:30:00.000001",
            "2024-10-27 02:30:00.1",
            "2024-10-27 02:30:00.45",
            "2024-10-27 02:30:00.5",
            "9999-12-31 23:59:59.999999",
        )
    ),
    "STRING": tuple(
        literal(s)
        for s in (
            *("", "\n", " ", " a", '"', "%", "%20", "'", "-", ".", "..", "/", "0", "A", "\\"),
            *(
                "__HIVE_DEFAULT_PARTITION__",
                "a",
                "a\tb",
                "a ",
                "a/b",
                "a=b",
                "n",
                "null",
                "tail",
                "v",
                "vn",
                "{}",
            ),
            *("ä", "ﬀ", "\U0001f600"),
        )
    ),
}
"""In ascending order: literals of Spark."""

ZONES = ("UTC", "America/New_York", "Asia/Kathmandu", "Europe/Berlin")


def encoding(bench: Bench) -> Iterator[Finding]:
    """All values, written in one table per type: texts ascend as the values do; each range reads its files alone."""
    for type_, literals in VALUES.items():
        yield from _of_type(bench, type_, ("NULL", *literals))
    yield from _long_text(bench)


def _of_type(bench: Bench, type_: str, literals: tuple[str, ...]) -> Iterator[Finding]:
    session, table = bench.session, bench.state("encoding").name
    rows = " UNION ALL ".join(f"SELECT {n} AS n, cast({x} AS {type_}) AS x" for n, x in enumerate(literals))
    texts = set()
    for zone in ZONES:
        session.conf.set("spark.sql.session.timeZone", zone)
        found = session.sql(f"SELECT n, {encoded('x', type_)} AS p FROM ({rows}) ORDER BY n").collect()
        texts.add(tuple(row.p for row in found))
    session.conf.set("spark.sql.session.timeZone", "UTC")
    (first, *others) = texts
    sorts = list(first) == sorted(first, key=str.encode) and len(set(first)) == len(first)
    yield Finding(
        sorts and not others, f"{type_}: {len(first)} values in {len(ZONES)} zones, such as {first[1]!r}"
    )
    session.sql(
        f"CREATE TABLE {table} USING DELTA PARTITIONED BY (view, p) AS "
        f"SELECT n, x, 'root' AS view, {encoded('x', type_)} AS p FROM ({rows})"
    )
    wrong = []
    for low in range(len(literals)):
        high = min(low + 2, len(literals) - 1)
        expected = list(range(low, high + 1))
        for bounds in (
            (literal(first[low]), literal(first[high])),
            tuple(encoded(f"cast({literals[n]} AS {type_})", type_) for n in (low, high)),
        ):
            read = session.sql(
                f"SELECT n FROM {table} WHERE view = 'root' AND p BETWEEN {bounds[0]} AND {bounds[1]}"
            )
            numbers, files = sorted(r.n for r in read.collect()), len(read.inputFiles())
            if numbers != expected or files != len(expected):
                wrong.append((low, numbers, files))
    same = session.sql(f"SELECT n FROM {table} WHERE p <> {encoded('x', type_)} OR p IS NULL").collect()
    yield Finding(
        not wrong and not same,
        f"{type_}: ranges as literals and as constant expressions {wrong or 'pruned'}",
    )


def _long_text(bench: Bench) -> Iterator[Finding]:
    """A partition is a folder: its name has at most 255 bytes, with three for each byte that is escaped."""
    for length in (200, 300, 5000):
        for random in (False, True):
            table = bench.state("long").name
            properties = f"TBLPROPERTIES ('delta.randomizeFilePrefixes' = '{str(random).lower()}')"
            error = error_of(
                bench.session,
                f"CREATE TABLE {table} USING DELTA PARTITIONED BY (p) {properties} AS SELECT 1 AS n, "
                f"concat('v', repeat('a', {length})) AS p",
            )
            expected = length < 255 or random
            text = (
                f"text of {length} characters, delta.randomizeFilePrefixes = {random}: {error or 'written'}"
            )
            yield Finding((error is None) == expected, text)
