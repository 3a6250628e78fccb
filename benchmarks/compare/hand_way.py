"""Sums by hand on Spark: one table, a partition for each part, and one commit for each refresh."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from benchmarks.compare.by_hand import CHANGED, ByHand, Part, feed
from benchmarks.compare.cases import Compared, Model
from benchmarks.compare.way import Ran, Way
from fivm_dbt.engines.spark.engine import SparkEngine
from fivm_dbt.engines.spark.own_session import own_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_PART = "part"


class Hand(Way):
    """The hand-written optimum."""

    name = "by_hand"

    def __init__(self, session: SparkSession, compared: Compared, by_hand: ByHand) -> None:
        super().__init__(own_session(session), compared)
        self.by_hand = by_hand
        self.engine = SparkEngine.of_session(self.session)
        self.model = compared.models[-1]
        self.table = f"{self.relation(self.model)}_parts"
        self.versions: dict[str, int] = {}

    @property
    def kept(self) -> tuple[Model, ...]:
        return (self.model,)

    @property
    def names(self) -> dict[str, str]:
        parts = {part.name: f"{self.table}_{part.name}" for part in self.by_hand.parts}
        return super().names | parts | {CHANGED: CHANGED}

    def run(self) -> Ran:
        return self.keep(self.model)

    def keep(self, model: Model) -> Ran:
        now = {table: self._version(table) for table in self.by_hand.inputs}
        before, self.versions = self.versions, now
        if not before:
            self._build()
            return Ran("built")
        changed = [table for table in now if now[table] != before[table]]
        if not changed:
            return Ran("no change")
        self._append({table: feed(self.names[table], before[table], now[table]) for table in changed})
        return Ran("appended")

    def _version(self, table: str) -> int:
        return self.engine.commits(self.names[table], None)[0].version

    def _query(self, sql: str) -> DataFrame:
        return self.session.sql(Model(self.model.name, sql).over(self.names))

    def _build(self) -> None:
        for part in self.by_hand.parts:
            rows = self._query(part.rows).selectExpr(f"'{part.name}' AS {_PART}", "*")
            columns = ", ".join(rows.columns)
            write = rows.write.format("delta").option("mergeSchema", "true")
            write.mode("append").partitionBy(_PART).saveAsTable(self.table)
            own = f"SELECT {columns} FROM {self.table} WHERE {_PART} = '{part.name}'"
            self.session.sql(f"CREATE VIEW {self.names[part.name]} AS {own}")
        shown = Model(self.model.name, self.by_hand.shown).over(self.names)
        self.session.sql(f"CREATE VIEW {self.relation(self.model)} AS {shown}")

    def _append(self, feeds: dict[str, str]) -> None:
        """The deltas of all parts, in one file of each."""
        found: dict[str, DataFrame] = {}
        for number, part in enumerate(self.by_hand.parts):
            later = self.by_hand.parts[number + 1 :]
            for source in part.deltas:
                rows = found.get(source)
                if source in feeds:
                    rows = self.session.sql(f"SELECT * FROM {feeds[source]}")
                if rows is not None:
                    delta = self._delta(part, source, rows)
                    found[part.name] = found[part.name].union(delta) if part.name in found else delta
            if part.name in found and any(part.name in other.deltas for other in later):
                found[part.name] = found[part.name].localCheckpoint()
        rows = reduce(lambda one, other: one.union(other), (self._row(name, d) for name, d in found.items()))
        rows.coalesce(1).write.insertInto(self.table)

    def _delta(self, part: Part, source: str, rows: DataFrame) -> DataFrame:
        rows.createOrReplaceTempView(CHANGED)
        return self._query(part.deltas[source])

    def _row(self, part: str, delta: DataFrame) -> DataFrame:
        """A delta as rows of the table, with NULL in the columns of other parts."""
        texts = [
            f"cast({name if name in delta.columns else 'NULL'} AS {type_}) AS {name}"
            for name, type_ in self.session.table(self.table).dtypes
            if name != _PART
        ]
        by_name = delta.selectExpr(f"'{part}' AS {_PART}", *texts)
        return by_name.select(self.session.table(self.table).columns)
