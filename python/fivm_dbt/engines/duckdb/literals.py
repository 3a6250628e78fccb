"""Some literals of a statement change at every refresh: version numbers, and touched partitions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import sqlglot

from fivm_dbt.engines.duckdb.functions import duckdb_text
from fivm_dbt.naming import PARTITION
from fivm_dbt.spark.formats import FORMAT

MARK = 770000000000
_QUOTED = r"'(?:[^'\\]|\\.)*'"
_LITERALS = re.compile(
    rf"{_QUOTED}"
    rf"|{FORMAT.reads}"
    rf"|(?P<column>\b{PARTITION}`?\s+IN\s*)"
    rf"\((?P<list>(?:{_QUOTED}|[^()']|\((?:{_QUOTED}|[^()'])*\))*)\)",
    re.IGNORECASE,
)
_LIST = "fivm list "
CHANGES = "fivm changes "


@dataclass(frozen=True)
class Cut:
    """A statement without the literals that change from refresh to refresh."""

    template: str
    numbers: tuple[int, ...]
    lists: tuple[str, ...]

    def fill(self, text: str) -> str:
        """A filled-in DuckDB statement with its lists of partitions put back."""
        for index, literals in enumerate(self.lists):
            text = text.replace(f'"{_LIST}{index}"', _duckdb_list(literals))
        return text


def cut_literals(sql: str) -> Cut:
    """The statement with version numbers and partition lists replaced by markers, and what they were.

    >>> cut_literals("select * from r version as of 12")
    Cut(template='select * from r version as of 770000000000', numbers=(12,), lists=())
    >>> cut_literals("select * from table_changes('r', 3, 4)").template
    'select * from `fivm changes r 0 1`'
    >>> cut_literals("t.__fivm_partition IN (CAST('2024-01-01' AS DATE), DATE '2024-02-01')").template
    't.__fivm_partition IN (`fivm list 0`)'
    """
    numbers: list[int] = []
    lists: list[str] = []

    def cut(match: re.Match[str]) -> str:
        index = len(numbers)
        if match["column"]:
            lists.append(match["list"])
            return f"{match['column']}(`{_LIST}{len(lists) - 1}`)"
        if match["version"] is None and match["table"] is None:
            return match[0]  # a string, whatever it looks like
        if match["pin"]:
            numbers.append(int(match["version"]))
            return f"{match['pin']}{MARK + index}"
        numbers.append(int(match["first"]))
        numbers.append(int(match["last"]) if match["last"] else -1)
        table = match["table"].replace("`", "")
        return f"`{CHANGES}{table} {index} {index + 1}`"

    return Cut(_LITERALS.sub(cut, sql), tuple(numbers), tuple(lists))


@lru_cache(maxsize=4096)
def _duckdb_list(literals: str) -> str:
    return ", ".join(
        duckdb_text(e) for e in sqlglot.parse_one(f"x IN ({literals})", dialect="spark").expressions
    )
