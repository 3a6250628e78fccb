"""The journal: one append-only table per schema with a row for each finished refresh of each model, for monitoring.

What a model covers its head says; only of a model without one, which an older version has left, the journal tells what
there was: a refresh was *started* with its versions, then *finished*.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Literal, Protocol

from sqlglot import exp

from fivm_dbt.naming import journal_table
from fivm_dbt.refresh.engine import Engine, MissingRelation
from fivm_dbt.spark.pieces import table
from fivm_dbt.spark.state import table_properties

if TYPE_CHECKING:
    from fivm_dbt.refresh.invocation import Invocation

Event = Literal["started", "finished"]
_CREATING = threading.Lock()
_NUMBERS = itertools.count(1)
_PATIENCE = (0.25, 0.5, 1.0, 2.0, 4.0)
"""Seconds between looks at whether another process has finished creating the journal."""
_AT_IT = re.compile(
    "NON_EMPTY_LOCATION|ALREADY_EXISTS|CONCURRENT|Concurrent|METADATA_CHANGED|PROTOCOL_CHANGED"
)
_NEWEST = 50
"""Entries of a model that are read: those of its last refreshes, all their attempts."""
_COMPACT_EVERY = 100
"""After so many refreshes of a model its entries, a small file each, are put together."""
_COLUMNS = ("model", "refresh", "attempt", "event", "plan_hash", "detail", "recorded_at")


def now() -> str:
    """The moment an entry is recorded, UTC."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


@dataclass(frozen=True)
class Entry:
    """A journal row. ``detail`` holds versions, layout and figures as JSON."""

    model: str
    refresh: int
    attempt: int
    event: Event
    plan_hash: str
    detail: dict[str, Any]
    recorded_at: str = field(default_factory=now)


class Creating(Protocol):
    """What creating a table needs of an engine."""

    def exists(self, relation: str) -> bool:
        """Whether a table or view of this name exists."""

    def run(self, sql: str) -> None:
        """Run a statement."""


class Journal(Protocol):
    """Where entries are kept."""

    @property
    def name(self) -> str:
        """Tells it from other journals, whose models may have the same names."""

    def beside(self, relation: str) -> Journal:
        """The journal that has the entries of another model."""

    def entries(self, model: str) -> Sequence[Entry]:
        """The newest entries of a model, newest refresh first; at least those of its last two refreshes."""

    def last_known(self, model: str) -> Entry | None:
        """The entry of a model's last finished refresh that is known without asking: there may be a newer one."""

    def last_build(self, model: str) -> Entry | None:
        """The entry that finished the newest build, which holds the signature of the state."""

    def append(self, entry: Entry) -> None:
        """Append an entry."""

    def note(self, entry: Entry) -> None:
        """Write down for monitoring what has been committed; it may be written later, and nothing depends on it."""


class MemoryJournal:
    """A journal in memory, for replay on DuckDB: the same protocol without a table."""

    def __init__(self) -> None:
        self.name = f"in memory, {next(_NUMBERS)}"
        self._entries: list[Entry] = []
        self._guard = threading.Lock()

    def beside(self, relation: str) -> Journal:
        return self

    def entries(self, model: str) -> Sequence[Entry]:
        mine = [e for e in self._entries if e.model == model]
        newest = max((e.refresh for e in mine), default=0)
        return sorted((e for e in mine if e.refresh >= newest - 1), key=_newest_first)

    def last_known(self, model: str) -> Entry | None:
        """None: it is as fast to ask."""
        return None

    def last_build(self, model: str) -> Entry | None:
        return next(
            (e for e in reversed(self._entries) if e.model == model and "signature" in e.detail), None
        )

    def append(self, entry: Entry) -> None:
        with self._guard:
            self._entries.append(entry)

    def note(self, entry: Entry) -> None:
        self.append(entry)


class SqlJournal:
    """The journal as a Delta table, created with the first entry.

    With an ``invocation`` it reads ahead for all models of that, and what is noted waits there to be written.
    """

    def __init__(self, engine: Engine, name: str, invocation: Invocation | None = None) -> None:
        self._engine = engine
        self._exists = False
        self._ahead = self._invocation = invocation
        self.name = name

    def beside(self, relation: str) -> Journal:
        name = journal_table(relation)
        other = SqlJournal(self._engine, name)
        if name == self.name:
            other._invocation = self._invocation
        return other

    def entries(self, model: str) -> Sequence[Entry]:
        known = self._ahead.take(model, self._newest) if self._ahead is not None else None
        return self._newest([model]) if known is None else known

    def last_known(self, model: str) -> Entry | None:
        return self._invocation.last_known(model) if self._invocation is not None else None

    def _newest(self, models: Collection[str]) -> list[Entry]:
        """The newest entries of each model, a bounded number of them, newest first."""
        order = ", ".join(f"{column} DESC" for column in _COLUMNS[1:4])
        position: exp.Expr = exp.maybe_parse(
            f"ROW_NUMBER() OVER (PARTITION BY model ORDER BY {order})", dialect="spark"
        )
        ranked = self._select(models).select(exp.alias_(position, "position"))
        query = exp.select(*_COLUMNS).from_(ranked.subquery("ranked")).where(f"position <= {_NEWEST}")
        return sorted(self._read(query), key=_newest_first)

    def last_build(self, model: str) -> Entry | None:
        has_signature = exp.Like(this=exp.column("detail"), expression=exp.Literal.string('%"signature"%'))
        query = self._select([model]).where(has_signature).order_by("refresh DESC", "attempt DESC").limit(1)
        return next(iter(self._read(query)), None)

    def append(self, entry: Entry) -> None:
        self.write([entry])
        self._is_finished(entry)

    def note(self, entry: Entry) -> None:
        if self._invocation is None:
            self.append(entry)
        else:
            self._invocation.note(entry)
            self._is_finished(entry)

    def _is_finished(self, entry: Entry) -> None:
        if self._invocation is not None and entry.event == "finished":
            self._invocation.finished(entry)

    def write(self, entries: Sequence[Entry]) -> None:
        """Append entries in one commit; now and then have those of a model put together."""
        self.create()
        values = exp.Values(expressions=[exp.Tuple(expressions=_literals(entry)) for entry in entries])
        columns = exp.Schema(this=table(self.name), expressions=[exp.to_identifier(c) for c in _COLUMNS])
        self._engine.run(exp.Insert(this=columns, expression=values).sql(dialect="spark"))
        due = {entry.model for entry in entries if entry.refresh % _COMPACT_EVERY == 0}
        if due:
            self._compact(due)

    def _compact(self, models: Collection[str]) -> None:
        """Make reading a long journal cheap again; its rows stay as they are."""
        optimize = exp.Command(
            this="OPTIMIZE",
            expression=f"{table(self.name).sql(dialect='spark')} WHERE {_model_in(models).sql(dialect='spark')}",
        )
        self._engine.run(optimize.sql(dialect="spark"))

    def _select(self, models: Collection[str]) -> exp.Select:
        return exp.select(*_COLUMNS).from_(table(self.name)).where(_model_in(models))

    def _read(self, query: exp.Select) -> list[Entry]:
        try:
            rows = self._engine.query(query.sql(dialect="spark"))
        except MissingRelation:
            return []
        self._exists = True
        return [_entry(row) for row in rows]

    def create(self) -> None:
        """Several models of a first run come here at once, threads of one process or of two."""
        if not self._exists:
            create_once(self._engine, self.name, self._definition())
        self._exists = True

    def _definition(self) -> exp.Create:
        types = ("STRING", "BIGINT", "INT", "STRING", "STRING", "STRING", "STRING")
        columns = [
            exp.ColumnDef(this=exp.to_identifier(c), kind=exp.DataType.build(t, dialect="spark"))
            for c, t in zip(_COLUMNS, types, strict=True)
        ]
        # Delta writes a checkpoint every ten commits by default, which takes longer than ten entries.
        interval = table_properties({"delta.checkpointInterval": "100"})
        properties = [
            exp.FileFormatProperty(this=exp.Identifier(this="DELTA")),
            exp.PartitionedByProperty(this=exp.Tuple(expressions=[exp.to_identifier("model")])),
            *interval,
        ]
        return exp.Create(
            this=exp.Schema(this=table(self.name), expressions=columns),
            kind="TABLE",
            exists=True,
            properties=exp.Properties(expressions=properties),
        )


def create_once(engine: Creating, name: str, definition: exp.Create) -> None:
    """Create a table that all models of a schema share, unless it is there: others may be about to do the same."""
    with _CREATING:
        for patience in (*_PATIENCE, None):
            if engine.exists(name):
                return
            try:
                engine.run(definition.sql(dialect="spark"))
                return
            except Exception as error:
                if patience is None or not _AT_IT.search(str(error)):
                    raise
                # Another process is creating it: it will be there in a moment.
                time.sleep(patience)


def _model_in(models: Collection[str]) -> exp.Expr:
    return exp.In(this=exp.column("model"), expressions=[exp.Literal.string(name) for name in sorted(models)])


def _literals(entry: Entry) -> list[exp.Expr]:
    numbers = {"refresh": entry.refresh, "attempt": entry.attempt}
    texts = {
        "model": entry.model,
        "event": entry.event,
        "plan_hash": entry.plan_hash,
        "detail": json.dumps(entry.detail, sort_keys=True),
        "recorded_at": entry.recorded_at,
    }
    return [
        exp.Literal.number(numbers[c]) if c in numbers else exp.Literal.string(texts[c]) for c in _COLUMNS
    ]


def _entry(row: Sequence[object]) -> Entry:
    model, refresh, attempt, event, plan_hash, detail, recorded_at = row
    kind: Event = "finished" if event == "finished" else "started"
    return Entry(
        str(model),
        int(str(refresh)),
        int(str(attempt)),
        kind,
        str(plan_hash),
        json.loads(str(detail)),
        str(recorded_at),
    )


def _newest_first(entry: Entry) -> tuple[int, int, int]:
    return (-entry.refresh, -entry.attempt, 0 if entry.event == "finished" else 1)
