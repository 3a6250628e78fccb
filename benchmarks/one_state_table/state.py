"""The table, and the statements that go from the head's number n to n + 1: templates that a refresh can use."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = {"key_bigint_1": "BIGINT", "key_bigint_2": "BIGINT", "key_string_1": "STRING", "key_date_1": "DATE"}
"""Keys of all views, pooled by type: ``root`` has a date and a string, ``one`` a bigint, ``two`` two and a string."""

PAYLOADS = {"__fivm_count": "BIGINT", "sum_decimal_1": "DECIMAL(38,2)"}

HEAD = {
    "__fivm_of": "STRING",  # in the tail: whose row this is, or 'coverage'
    "__fivm_to": "STRING",  # in the tail: the partition of its data
    "__fivm_number": "BIGINT",
    "__fivm_commit": "STRING",  # of the head: an id that no other commit has
    "__fivm_coverage": "STRING",
}
PLACE = ("__fivm_view", "__fivm_partition")
VIEWS = ("root", "one", "two")

PROPERTIES = {
    "delta.enableChangeDataFeed": "true",
    "delta.isolationLevel": "Serializable",
    "delta.dataSkippingStatsColumns": ",".join(KEYS),
    # Else a partition is a folder, whose name has 255 bytes at most.
    "delta.randomizeFilePrefixes": "true",
}

IN_TAIL = "__fivm_view = 'tail'"
FRESH = "_metadata.file_path IS NOT NULL"
"""True of every row. A read with it is not answered from a cache that somebody has made of the table."""

NEWEST = (
    "max(struct(__fivm_number, __fivm_commit)) "
    f"FROM {{state}} WHERE {IN_TAIL} AND __fivm_of = 'coverage' AND {FRESH}"
)


@dataclass(frozen=True)
class Row:
    """A row of a view's data or delta, in its partition."""

    view: str
    partition: str
    count: int = 1
    total: str = "1.00"
    keys: tuple[object, ...] = ()
    """Values in the order of ``KEYS``; those left out are NULL."""


@dataclass(frozen=True)
class Query:
    """A delta that is computed in the statement; columns as in the table, and the places that it touches."""

    sql: str
    places: tuple[tuple[str, str], ...]


Delta = Sequence[Row] | Query


@dataclass(frozen=True)
class Head:
    """What a commit is compared with: its number tells the order, its id that it is this very one.

    A number alone comes again after RESTORE, and a statement that was prepared before would fit.
    """

    number: int
    commit: str


@dataclass(frozen=True)
class State:
    """The state of one model. ``gate`` is SQL that holds a writer up between its reads and its commit."""

    session: SparkSession
    name: str
    properties: dict[str, str] = field(default_factory=lambda: dict(PROPERTIES))
    gate: str = ""
    newest: str = NEWEST
    merge_sees: str = ">="
    """Which heads a MERGE compares, beside its own number: with '=' it does not see newer ones."""
    has_commit_ids: bool = True

    def of(self, session: SparkSession, gate: str = "") -> State:
        return replace(self, session=session, gate=gate)

    # What is written

    def create(self, rows: Delta) -> str:
        """The first build: fails where a table stands."""
        return f"CREATE TABLE {self.name} {self._layout()} AS {self._data(rows)} UNION ALL {self._head('1')}"

    def append(self, rows: Delta, head: Head) -> str:
        """All deltas and the head as one file of the tail."""
        return (
            f"INSERT INTO {self.name} BY NAME SELECT /*+ COALESCE(1) */ * FROM ("
            f"{self.tail(rows)} UNION ALL {self._next(head)})"
        )

    def replace(self, rows: Delta, head: Head) -> str:
        """Touched partitions with their tail and delta, grouped again; all other rows of the tail are written back."""
        touched = _touched(rows)
        where = f"{IN_TAIL} OR {touched}"
        return f"INSERT INTO {self.name} BY NAME REPLACE WHERE {where} {self._folded(touched, rows, head)}"

    def fold(self, head: Head) -> str:
        """The whole tail into its partitions, which are looked up first."""
        places = self.session.sql(
            f"SELECT DISTINCT __fivm_of, __fivm_to FROM {self.name} WHERE {IN_TAIL} AND __fivm_of <> 'coverage'"
        ).collect()
        touched = literals((p[0], p[1]) for p in places)
        where = f"{IN_TAIL} OR {touched}"
        return (
            f"INSERT INTO {self.name} BY NAME REPLACE WHERE {where} {self._folded(touched, (), head, 'fold')}"
        )

    def merge(self, rows: Delta, head: Head) -> str:
        """One MERGE for all views, over a tail without data.

        The head's row in the source matches all heads from n on. That at n becomes that at n + 1; a newer one, or none
        at all, is an error. Older ones may stay.
        """
        columns = [*KEYS, *PAYLOADS, *HEAD, *PLACE]
        same = " AND ".join(
            [
                *(f"target.{c} = delta.{c}" for c in PLACE),
                *(f"target.{c} <=> delta.{c}" for c in (*KEYS, "__fivm_of")),
            ]
        )
        sees = f"(target.__fivm_number IS NULL OR target.__fivm_number {self.merge_sees} {head.number})"
        sums = ", ".join(f"{p} = target.{p} + delta.{p}" for p in PAYLOADS)
        values = ", ".join(f"delta.{c}" for c in columns)
        heads = ", ".join(f"{c} = delta.{c}" for c in ("__fivm_number", "__fivm_commit", "__fivm_coverage"))
        expected = f"target.__fivm_number = {head.number} AND target.__fivm_commit = '{_text(head.commit)}'"
        is_head, moved = "delta.__fivm_of = 'coverage'", f"raise_error('fivm: the head is not {head.number}')"
        following = self._head(str(head.number + 1), "merge")
        return f"""MERGE INTO {self.name} AS target USING ({self._data(rows)} UNION ALL {following}) AS delta
            ON (target.{IN_TAIL} OR {_touched(rows, "target.")}) AND {same} AND {sees}
            WHEN MATCHED AND {is_head} AND {expected} THEN UPDATE SET {heads}
            WHEN MATCHED AND {is_head} THEN UPDATE SET __fivm_coverage = {moved}
            WHEN MATCHED AND target.__fivm_count + delta.__fivm_count = 0 THEN DELETE
            WHEN MATCHED THEN UPDATE SET {sums}
            WHEN NOT MATCHED AND {is_head} THEN INSERT (__fivm_coverage) VALUES ({moved})
            WHEN NOT MATCHED THEN INSERT ({", ".join(columns)}) VALUES ({values})"""

    def rebuild(self, rows: Delta, head: Head) -> str:
        """Everything anew, in place of the table whose head is known; the numbers go on."""
        following = self._head(self._asserted(head), "rebuild")
        return f"CREATE OR REPLACE TABLE {self.name} {self._layout()} AS {self._data(rows)} UNION ALL {following}"

    # What is read

    def head(self) -> Head:
        number, commit = self.session.sql(f"SELECT {NEWEST.format(state=self.name)}").collect()[0][0]
        return Head(number, commit)

    def shown(self, view: str, at: str = "") -> str:
        """A view's rows as a reader sees them, the tail summed in."""
        keys, sums = ", ".join(KEYS), ", ".join(f"sum({p}) AS {p}" for p in PAYLOADS)
        return (
            f"SELECT {keys}, {sums} FROM {self.name} {at} WHERE __fivm_view = '{view}' "
            f"OR {IN_TAIL} AND __fivm_of = '{view}' GROUP BY {keys} HAVING sum(__fivm_count) <> 0"
        )

    def rows(self, at: str = "") -> list[str]:
        """All views as a reader sees them, as a sorted bag."""
        return sorted(str((v, *r)) for v in VIEWS for r in self.session.sql(self.shown(v, at)).collect())

    def version(self) -> int:
        found: int = self.session.sql(f"DESCRIBE HISTORY {self.name} LIMIT 1").collect()[0].version
        return found

    # Parts of statements

    def _layout(self) -> str:
        properties = ", ".join(f"'{k}' = '{v}'" for k, v in self.properties.items())
        return f"USING DELTA PARTITIONED BY ({', '.join(PLACE)}) TBLPROPERTIES ({properties})"

    def _asserted(self, head: Head) -> str:
        """n + 1 where the head is n; a value, so that no optimiser can do without it."""
        known = f"struct({head.number}L, '{_text(head.commit)}')"
        moved = f"raise_error('fivm: the head is not {head.number}')"
        return f"if((SELECT {self.newest.format(state=self.name)}) = {known}, {head.number + 1}, {moved})"

    def _next(self, head: Head, kind: str = "refresh") -> str:
        return self._head(self._asserted(head), kind)

    def _head(self, number: str, kind: str = "build") -> str:
        nothing = ", ".join(f"CAST(NULL AS {t}) AS {c}" for c, t in {**KEYS, **PAYLOADS}.items())
        commit = str(uuid.uuid4()) if self.has_commit_ids else "one build"
        return (
            f"SELECT {nothing}, 'coverage' AS __fivm_of, CAST(NULL AS STRING) AS __fivm_to, "
            f"CAST({number} AS BIGINT) AS __fivm_number, '{commit}' AS __fivm_commit, "
            f"'{json.dumps({'kind': kind})}' AS __fivm_coverage, 'tail' AS __fivm_view, '-' AS __fivm_partition"
        )

    def _data(self, rows: Delta) -> str:
        return self._held(_values(rows))

    def tail(self, rows: Delta) -> str:
        """The rows of a delta as they lie in the tail."""
        columns = ", ".join((*KEYS, *PAYLOADS))
        tail = (
            f"SELECT {columns}, __fivm_view AS __fivm_of, __fivm_partition AS __fivm_to, __fivm_number, __fivm_commit, "
            f"__fivm_coverage, 'tail' AS __fivm_view, '-' AS __fivm_partition FROM ({_values(rows)})"
        )
        return self._held(tail)

    def _held(self, sql: str) -> str:
        """The rows, once the gate has been passed."""
        return f"SELECT * FROM ({sql}) WHERE {self.gate} = 'open'" if self.gate else sql

    def _folded(self, touched: str, rows: Delta, head: Head, kind: str = "refresh") -> str:
        of = touched.replace("__fivm_view", "__fivm_of").replace("__fivm_partition", "__fivm_to")
        added = ", ".join((*KEYS, *PAYLOADS))
        sums = ", ".join(f"sum({p}) AS {p}" for p in PAYLOADS)
        group = ", ".join((*KEYS, *PLACE))
        nothing = ", ".join(f"CAST(NULL AS {t}) AS {c}" for c, t in HEAD.items())
        own = f"SELECT {added}, __fivm_view, __fivm_partition FROM {self.name} WHERE {touched} AND {FRESH}"
        tail = f"SELECT {added}, __fivm_of, __fivm_to FROM {self.name} WHERE {IN_TAIL} AND ({of}) AND {FRESH}"
        delta = f"SELECT {added}, {', '.join(PLACE)} FROM ({self._data(rows)})" if rows else ""
        parts = " UNION ALL ".join(p for p in (own, tail, delta) if p)
        back = (
            f"SELECT {', '.join((*KEYS, *PAYLOADS, *HEAD, *PLACE))} FROM {self.name} "
            f"WHERE {IN_TAIL} AND __fivm_of <> 'coverage' AND NOT ({of}) AND {FRESH}"
        )
        grouped = (
            f"SELECT {', '.join(KEYS)}, {sums}, {nothing}, {', '.join(PLACE)} FROM ({parts}) "
            f"GROUP BY {group} HAVING sum(__fivm_count) <> 0"
        )
        held = f"SELECT * FROM ({self._next(head, kind)})"
        return f"{grouped} UNION ALL {back} UNION ALL {held if rows or not self.gate else self._held(held)}"


def _values(rows: Delta) -> str:
    """Typed rows with all columns of the table, in its order."""
    if isinstance(rows, Query):
        return rows.sql
    types = {**KEYS, **PAYLOADS, **HEAD, **dict.fromkeys(PLACE, "STRING")}
    lines = []
    for row in rows:
        keys = [*row.keys, *[None] * (len(KEYS) - len(row.keys))]
        lines.append((*keys, row.count, row.total, *[None] * len(HEAD), row.view, row.partition))
    values = ", ".join(f"({', '.join(map(literal, line))})" for line in lines)
    names = ", ".join(f"c{n}" for n in range(len(types)))
    casts = ", ".join(f"CAST(c{n} AS {t}) AS {c}" for n, (c, t) in enumerate(types.items()))
    return f"SELECT {casts} FROM VALUES {values} AS v({names})"


def _touched(rows: Delta, of: str = "") -> str:
    places = rows.places if isinstance(rows, Query) else ((r.view, r.partition) for r in rows)
    return literals(places, of)


def literals(places: Iterable[tuple[str, str]], of: str = "") -> str:
    """Literals alone: nothing else prunes in a MERGE, and nothing else may stand in REPLACE WHERE."""
    by_view: dict[str, set[str]] = {}
    for view, partition in places:
        by_view.setdefault(view, set()).add(partition)
    conditions = [
        f"{of}__fivm_view = '{view}' AND {of}__fivm_partition IN ({', '.join(map(literal, sorted(partitions)))})"
        for view, partitions in sorted(by_view.items())
    ]
    return f"({' OR '.join(conditions)})" if conditions else "(false)"


def literal(value: object) -> str:
    if value is None:
        return "NULL"
    return str(value) if isinstance(value, int) else f"'{_text(str(value))}'"


def _text(value: str) -> str:
    """Of a string between single quotes; a backslash escapes in Spark."""
    return value.replace("\\", "\\\\").replace("'", "\\'")
