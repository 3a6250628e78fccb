"""What Spark answers to questions about small tables of odd values, as it was recorded.

``odd_values/questions.txt`` has the questions: below ``[table]`` expressions over the rows of a table, or aggregates
over all of them below ``[table all]``, below ``[queries]`` whole queries. ``odd_values/answers.jsonl`` has Spark's
answers to them, which ``FIVM_UPDATE=1 pytest -m spark tests/test_odd_values.py`` writes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

HERE = Path(__file__).parent / "odd_values"

TABLES = {
    "texts": (
        "id int, s string, u string",
        [
            (1, "", "a"),
            (2, " 12 ", "12"),
            (3, "1.5", "1"),
            (4, "-7", "b"),
            (5, "1e3", "e"),
            (6, "inf", "Infinity"),
            (7, "99999999999", "9"),
            (8, "abc,b,,c", ","),
            (9, "\t false \n", "false"),
            (10, "yes", "Y"),
            (11, "2024-02-29", "2024"),
            (12, "2024-2-9", "-"),
            (13, "2024-01-31 10:11:12.5", " "),
            (14, "Äpfel_100%", "_"),
            (15, None, "x"),
            (16, "x", None),
            (17, "+5", "5"),
            (18, "128", "0128"),
            (19, "NaN", "nan"),
            (20, "2024", "02"),
            (21, "aAbB", "AABB"),
        ],
    ),
    "ints": (
        "id int, b tinyint, i int, l bigint, k int",
        [
            (1, 1, 7, 3, 2),
            (2, -1, -7, 3, -2),
            (3, 127, 2147483647, 9223372036854775807, 1),
            (4, -128, -2147483648, -9223372036854775808, -1),
            (5, 0, 0, 0, 0),
            (6, None, None, None, None),
            (7, 5, 25, -25, 3),
            (8, 12, 12345, 1234567890123, 10),
        ],
    ),
    "decimals": (
        "id int, d decimal(10,2), e decimal(18,6), w decimal(38,10), z decimal(5,0)",
        [
            (1, "2.50", "1.000001", "1.0000000001", "3"),
            (2, "-2.50", "-0.500000", "-12345678901234567890.5", "-3"),
            (3, "0.00", "0.000000", "0", "0"),
            (4, "99999999.99", "999999999999.999999", "9999999999999999999999999999.9999999999", "99999"),
            (5, None, None, None, None),
            (6, "3.50", "2.500000", "2.5000000000", "2"),
            (7, "1.25", "0.333333", "0.3333333333", "7"),
        ],
    ),
    "doubles": (
        "id int, g int, f float, x double, y double",
        [
            (1, 1, 1.5, 1.5, 2.0),
            (2, 1, float("nan"), float("nan"), 1.0),
            (3, 1, 0.0, 0.0, -0.0),
            (4, 2, -0.0, -0.0, 0.0),
            (5, 2, float("inf"), float("inf"), 3.0),
            (6, 2, float("-inf"), float("-inf"), 4.0),
            (7, 3, None, None, 1.0),
            (8, 3, 2.5, 2.5, None),
            (9, 4, 0.1, 1e20, 1e-7),
            (10, 4, -2.5, -2.5, 123456789.125),
            (11, 5, float("nan"), float("nan"), float("nan")),
        ],
    ),
    "times": (
        "id int, d date, e date, t timestamp, n int",
        [
            (1, "2024-01-31", "2024-02-29", "2024-01-31T10:11:12.345678", 1),
            (2, "2024-02-29", "2023-02-28", "2024-02-29T23:59:59", -1),
            (3, "2023-12-31", "2024-01-01", "2024-01-01T00:00:00", 12),
            (4, "1969-12-31", "1970-01-01", "1969-12-31T23:59:59.500000", 13),
            (5, None, "2024-05-05", None, 2),
            (6, "2024-03-31", None, "2024-03-31T12:30:00", None),
            (7, "2024-07-01", "2024-06-30", "2024-07-01T01:02:03", 0),
            (8, "2021-01-03", "2021-01-04", "2021-01-03T08:00:00", 40),
        ],
    ),
    "truths": (
        "id int, p boolean, q boolean",
        [(1, True, True), (2, True, False), (3, True, None), (4, False, None), (5, None, None), (6, False, False)],
    ),
}  # fmt: skip
"""Columns and rows of each table."""


@dataclass(frozen=True)
class Question:
    """A query, and its expression where it has just one; ``answer`` is what Spark gave."""

    section: str
    text: str

    @property
    def sql(self) -> str:
        if self.section == "queries":
            return self.text
        table, _, all_ = self.section.partition(" ")
        return (
            f"select {self.text} as v from {table}" if all_ else f"select id, {self.text} as v from {table}"
        )

    @property
    def id(self) -> str:
        return f"{self.section}: {self.text}"


def questions() -> list[Question]:
    """All questions, in the order of the file."""
    found, section = [], ""
    for line in (HERE / "questions.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif line and not line.startswith("#"):
            found.append(Question(section, line))
    return found


def answers() -> dict[str, dict[str, object]]:
    """Spark's answers by the id of their questions: ``types`` and ``rows``, or ``error``."""
    lines = (HERE / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    return {line["question"]: line for line in map(json.loads, lines)}


def table_sql(name: str) -> str:
    """The table as a query of Spark's own literals, so that nothing is converted on the way."""
    columns, rows = TABLES[name]
    types = [column.split(" ", 1)[1] for column in re.split(r", (?=[a-z]+ )", columns)]
    names = [column.split(" ", 1)[0] for column in re.split(r", (?=[a-z]+ )", columns)]
    shown = ",\n".join(
        f"({', '.join(_literal(v, t) for v, t in zip(row, types, strict=True))})" for row in rows
    )
    return f"select * from values {shown} as t({', '.join(names)})"


def _literal(value: object, type_: str) -> str:
    if value is None:
        return f"cast(null as {type_})"
    if isinstance(value, str):
        value = (
            value.replace("\t", "\\t").replace("\n", "\\n").replace("T", " ")
            if type_ != "string"
            else (value.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n"))
        )
    if isinstance(value, float):
        value = str(value).replace("inf", "Infinity").replace("nan", "NaN")
    return f"cast('{value}' as {type_})" if not isinstance(value, bool) else str(value).lower()


def encoded(value: object) -> object:
    """A value as JSON has it, the same for both engines; -0.0 is 0.0, which it is equal to."""
    if isinstance(value, bool) or value is None or isinstance(value, (int, str)):
        return value
    if isinstance(value, float):
        return value + 0.0 if math.isfinite(value) else str(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, datetime):
        return value.isoformat(sep=" ")
    if isinstance(value, (date, timedelta)):
        return str(value)
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).hex()
    if isinstance(value, dict):
        return {"map": sorted(([encoded(k), encoded(v)] for k, v in value.items()), key=repr)}
    if isinstance(value, (tuple, list)):
        return [encoded(v) for v in value]
    raise TypeError(f"no code for {value!r}")


def same(spark: object, duck: object, type_: str) -> bool:
    """Whether two encoded values are equal, as values of Spark's type; doubles may differ in the last digits."""
    if spark is None or duck is None:
        return spark is duck
    if type_.startswith("decimal"):
        scale = int(re.findall(r"\d+", type_)[1])
        found = Decimal(str(duck)) if not isinstance(duck, str) or duck[-1].isdigit() else None
        if found is None or isinstance(duck, bool):
            return False
        if isinstance(duck, float):
            return math.isclose(float(str(spark)), duck, rel_tol=1e-9, abs_tol=0.51 * 10.0**-scale)
        return found == Decimal(str(spark))
    if isinstance(spark, bool) or isinstance(duck, bool):
        return spark is duck
    if isinstance(spark, float) and isinstance(duck, str) and re.fullmatch(r"-?[\d.]+", duck):
        duck = float(duck)
    if isinstance(spark, float) and isinstance(duck, (int, float)):
        return math.isclose(spark, duck, rel_tol=1e-7 if type_ == "float" else 1e-9, abs_tol=1e-12)
    if type_ == "bigint" and isinstance(duck, str):
        return str(spark) == duck
    if type_ == "date" and isinstance(duck, str):
        return str(spark) == duck.removesuffix(" 00:00:00")
    if isinstance(spark, list) and isinstance(duck, dict):  # a struct
        duck = [value for _, value in duck["map"]]
    if isinstance(spark, list) and isinstance(duck, list):
        inner = type_[len("array<") : -1] if type_.startswith("array<") else ""
        return len(spark) == len(duck) and all(same(a, b, inner) for a, b in zip(spark, duck, strict=True))
    if isinstance(spark, dict) and isinstance(duck, dict):
        return same(spark["map"], duck["map"], "")
    return spark == duck and isinstance(spark, str) == isinstance(duck, str)


def sorted_rows(rows: Sequence[Sequence[object]]) -> list[list[object]]:
    return sorted(([encoded(v) for v in row] for row in rows), key=lambda r: [repr(v) for v in r])


def written(found: Iterator[dict[str, object]]) -> str:
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in found)
