"""What dbt has for models on Spark: ``table``, and ``incremental`` with the strategies ``merge`` and ``microbatch``."""

from __future__ import annotations

from abc import abstractmethod
from datetime import date
from typing import TYPE_CHECKING

from benchmarks.compare.by_time import (
    BATCH,
    DYNAMIC,
    ByTime,
    batches,
    merge,
    newest,
    overwrites,
    partitioned,
)
from benchmarks.compare.cases import Compared, Model
from benchmarks.compare.way import Ran, Way

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Recompute(Way):
    """dbt's ``table``: all of it, each time."""

    name = "table"

    def keep(self, model: Model) -> Ran:
        self.session.sql(f"CREATE OR REPLACE TABLE {self.relation(model)} USING DELTA AS {self.sql(model)}")
        return Ran("recomputed")


class ByTimeWay(Way):
    """A way that needs the time of rows, and the tables that it has built."""

    def __init__(self, session: SparkSession, compared: Compared) -> None:
        # What dbt sets for a strategy is not to be the setting of other ways.
        super().__init__(session.newSession(), compared)
        self.built: set[str] = set()

    def keep(self, model: Model) -> Ran:
        by_time = model.by_time
        if by_time is None:
            raise ValueError(f"{model.name} has no time and no key by which it could be kept")
        day = self._newest(model, by_time) if model.name in self.built else None
        if day is not None:
            return self.again(model, by_time, day)
        self.built.add(model.name)
        self.first(model, by_time)
        return Ran("built")

    def repair(self) -> None:
        """Build all anew, as somebody does who has noticed that rows are wrong."""
        self.built.clear()
        self.run()

    def first(self, model: Model, by_time: ByTime) -> None:
        """Build it."""
        self.session.sql(f"CREATE OR REPLACE TABLE {self.relation(model)} USING DELTA AS {self.sql(model)}")

    @abstractmethod
    def again(self, model: Model, by_time: ByTime, day: date) -> Ran:
        """Bring it up to date on a day."""

    def _newest(self, model: Model, by_time: ByTime) -> date | None:
        """The day to go on from; None of what has no rows yet, which is built anew."""
        found = self.session.sql(newest(by_time, self.relation(model))).collect()[0][0]
        assert found is None or isinstance(found, date)
        return found


class Incremental(ByTimeWay):
    """The last days, merged by their keys."""

    name = "incremental"

    def again(self, model: Model, by_time: ByTime, day: date) -> Ran:
        self.session.sql(merge(self.sql(model), by_time, self.relation(model), day))
        return Ran("merged")


class Microbatch(ByTimeWay):
    """The last batches, written anew.

    The table is built by one statement, where dbt would run a batch for each month: what is built is the same.
    """

    name = "microbatch"

    def shown(self, model: Model) -> str:
        return f"SELECT * EXCEPT ({BATCH}) FROM {self.relation(model)}"

    def first(self, model: Model, by_time: ByTime) -> None:
        rows = partitioned(self.sql(model), by_time)
        table = f"CREATE OR REPLACE TABLE {self.relation(model)} USING DELTA PARTITIONED BY ({BATCH})"
        self.session.sql(f"{table} AS {rows}")

    def again(self, model: Model, by_time: ByTime, day: date) -> Ran:
        self.session.sql(DYNAMIC)
        found = batches(by_time, day)
        for batch in found:
            view = f"{model.name}__dbt_tmp"
            for text in overwrites(self.sql(model), by_time, self.relation(model), batch, view):
                self.session.sql(text)
        return Ran(f"{len(found)} batches")
