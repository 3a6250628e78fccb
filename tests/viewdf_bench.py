"""Viewdf models on DuckDB, and what they are compared with: every part computed from scratch, one after the other.

The oracle shares with fivm the texts of the queries, where a reference is ``{m:j-1}`` or ``{m:j-3..j}``, and knows
nothing of plans: it keeps each relation as a list of rows in a database of its own.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from typing import Any

import duckdb
import sqlglot

from fivm_dbt.catalog import Catalog, Column, Relation, Retention
from fivm_dbt.config import load_config
from fivm_dbt.features.viewdf.plan.model import PartPlan, ViewdfPlan
from fivm_dbt.features.viewdf.plan.planner import plan_viewdf
from fivm_dbt.naming import parts_of, state_of
from fivm_dbt.parts.length import Length
from fivm_dbt.parts.parted import PART_TIMESTAMP, TimeParts
from fivm_dbt.plan.model.inputs import Reader
from fivm_dbt.plan.model.plan import Plan
from fivm_dbt.plan.planner import plan_model
from fivm_dbt.plan.request import ModelRequest
from fivm_dbt.refresh.executor import refresh
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.refresh.report import Report
from fivm_dbt.refresh.run import TimeRange
from fivm_dbt.testing.workbench import DuckDbWorkbench, TableSpec

Row = tuple[Any, ...]
_PLANS: dict[str, Plan] = {}
REFERENCE = re.compile(r"\{(\w+)(?::([^}]*))?\}")


def at(text: str) -> datetime:
    """An instant from ``10:04`` of the first of January 2015, or from a date and time, in UTC."""
    if len(text) <= 8:
        text = f"2015-01-01T{text}"
    return datetime.fromisoformat(text)


@dataclass
class Table:
    """A source: its columns, and how it is divided by time if it is."""

    name: str
    columns: Sequence[tuple[str, str]]
    rows: list[Row] = field(default_factory=list)
    parts: TimeParts | None = None
    retention: timedelta | None = None

    @property
    def relation(self) -> Relation:
        if self.retention is None:
            return Relation(self.name, self.spec.columns)
        assert self.parts is not None and self.parts.length is not None
        kept = Retention(self.parts.column, self.parts.length, self.retention)
        return Relation(self.name, self.spec.columns, retention=kept)

    @property
    def spec(self) -> TableSpec:
        return TableSpec(self.name, tuple(Column.of(n, t) for n, t in self.columns))


@dataclass
class Model:
    """A viewdf model: UPDATE and INITIALIZE with references in braces, and its ``meta``."""

    name: str
    update: str
    initialize: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)

    def compiled(self) -> str:
        """What dbt makes of the file."""
        lines = []
        if self.initialize is not None:
            lines = [f"--fivm:initialize {line}" for line in _compiled(self.initialize).splitlines()]
        return "\n".join([*lines, _compiled(self.update)])


def _compiled(text: str) -> str:
    def reference(found: re.Match[str]) -> str:
        name, numbers = found.group(1), found.group(2)
        if numbers is None:
            return name
        kind = "fivm_span" if numbers.startswith("span ") else "fivm_part"
        ends = numbers.removeprefix("span ").split("..")
        shown = ", ".join(f"'{e}'" for e in ends)
        return f"(select /*+ {kind}({shown}) */ * from {name})"

    return REFERENCE.sub(reference, text)


def _read_by(model: Model) -> set[str]:
    """The relations that a model reads, by parts or as a whole."""
    return {found.group(1) for found in REFERENCE.finditer(f"{model.update} {model.initialize or ''}")}


class Bench:
    """Some sources and models in their order, on DuckDB."""

    def __init__(self, tables: Sequence[Table], models: Sequence[Model], zone: str = "UTC") -> None:
        self.bench = DuckDbWorkbench(tiny=True)
        self.tables = {t.name: t for t in tables}
        self.models = {m.name: m for m in models}
        self.zone = zone
        self.plans: dict[str, Plan] = {}
        self.seen: dict[str, set[int]] = {t.name: set() for t in tables}
        """The parts of each source that have had rows when a model looked."""
        self.computed: dict[str, set[int]] = {}
        """The parts of each model at the last look at them."""
        for table in tables:
            self.bench.create(table.spec, table.rows)
        for model in models:
            self.plans[model.name] = self.plan(model)

    def close(self) -> None:
        self.bench.close()

    def plan(self, model: Model) -> Plan:
        relations = [t.relation for t in self.tables.values()]
        parts = {t.name: t.parts for t in self.tables.values() if t.parts is not None}
        for name, plan in self.plans.items():
            assert isinstance(plan, ViewdfPlan)
            relations.append(Relation(name, plan.output, kind="fivm", presentation=plan.presentation))
            parts[name] = TimeParts(PART_TIMESTAMP, plan.parts.length, None, is_computed=True)
        request = ModelRequest(
            model.name,
            model.compiled(),
            Catalog.of(relations),
            load_config(model.meta, model=model.name),
            session=(("timezone", self.zone),),
            readers=tuple(
                Reader.of(n) for n, m in self.models.items() if n != model.name and model.name in _read_by(m)
            ),
        )
        # Tests that are about refreshes plan the same models again and again.
        key = repr((request, sorted(parts.items())))
        if key not in _PLANS:
            _PLANS[key] = plan_viewdf(request, parts, None, self.bench.columns_of)
        return _PLANS[key]

    def parts_of(self, name: str) -> PartPlan:
        plan = self.plans[name]
        assert isinstance(plan, ViewdfPlan)
        return plan.parts

    def add_fivm(self, name: str, sql: str, meta: Mapping[str, Any]) -> None:
        """A model that is maintained, over the sources."""
        relations = [t.relation for t in self.tables.values()]
        for other, plan in self.plans.items():
            if isinstance(plan, ViewdfPlan):
                kept = plan.parts.retention
                retention = Retention(PART_TIMESTAMP, plan.parts.length, kept) if kept is not None else None
                shown = plan.presentation
                relations.append(
                    Relation(other, plan.output, kind="fivm", presentation=shown, retention=retention)
                )
                if kept is not None and re.search(rf"\b{other}\b", sql):
                    parts = replace(plan.parts, readers=(*plan.parts.readers, Reader.of(name)))
                    self.plans[other] = replace(plan, parts=parts)
        config = load_config(meta, model=name)
        session = (("timezone", self.zone),)
        self.plans[name] = plan_model(ModelRequest(name, sql, Catalog.of(relations), config, session))

    def run_fivm(self, name: str) -> Report:
        return refresh(self.plans[name], self.bench.engine)

    def change(self, name: str, insert: Sequence[Row] = (), delete: Sequence[Row] = ()) -> None:
        """One commit of a source; a deleted row takes one of its equal copies along."""
        table = self.tables[name]
        for row in delete:
            table.rows.remove(row)
        table.rows += insert
        self.bench.change(table.spec, list(insert), list(delete))

    def run(
        self,
        *names: str,
        within: TimeRange = (None, None),
        full_refresh: bool = False,
        progress: Callable[[str], None] = lambda text: None,
    ) -> dict[str, Report]:
        """Refresh models, all unless some are named."""
        found = {}
        for table in self.tables.values():
            self.seen[table.name] |= self._parts_of(table)
        for name in names or self.models:
            found[name] = refresh(
                self.plans[name],
                self.bench.engine,
                within=within,
                full_refresh=full_refresh,
                progress=progress,
            )
        return found

    def _parts_of(self, table: Table) -> set[int]:
        """The parts that have rows now, of their own length or a second each where none is declared."""
        if table.parts is None:
            return set()
        length = table.parts.length or Length.of(1)
        at = next(i for i, (n, _) in enumerate(table.columns) if n == table.parts.column)
        moments = (row[at] for row in table.rows if row[at] is not None)
        return {length.part_of(_instant(m)) for m in moments}

    def rows(self, name: str, columns: str = "*") -> Counter[Row]:
        return Counter(tuple(r) for r in self.bench.engine.query(f"select {columns} from {name}"))

    def known(self, name: str) -> dict[str, Any]:
        """What the head says of the parts of a model."""
        finished = read_state(self.bench.engine, state_of(name)).finished
        assert finished is not None
        found: dict[str, Any] = finished.detail["parts"]
        return found

    def catalog(self, model: str, columns: str = "relation, part, status, row_count") -> set[Row]:
        return {
            tuple(r)
            for r in self.bench.engine.query(
                f"select {columns} from {parts_of(model)} where model = '{model}'"
            )
        }

    def last_updated(self, model: str) -> dict[int, Any]:
        """When each part of a model has last changed, as the catalog has it."""
        rows = self.catalog(model, "relation, part, last_updated")
        return {part: moment for relation, part, moment in rows if relation == model}

    def check(self) -> None:
        """Every model is the bag of rows that all its computed parts have, computed from scratch."""
        oracle = Oracle(self)
        for name in self.models:
            expected, found = oracle.rows[name], self.rows(name)
            assert found - expected == Counter(), f"{name} has too many rows"
            assert expected - found == Counter(), f"{name} misses rows"

    def check_catalog(self) -> None:
        """The catalog has every computed part of every model once, with its rows, and each part of an input once."""
        for name in self.models:
            rows = self.bench.engine.query(
                f"select relation, part, status, row_count from {parts_of(name)} where model = '{name}'"
            )
            assert len({(relation, part) for relation, part, *_ in rows}) == len(rows), "a part twice"
            own = {part: count for relation, part, _, count in rows if relation == name}
            plan = self.parts_of(name)
            stored = Counter(
                plan.length.part_of(_instant(at)) for (at,) in self.rows(name, PART_TIMESTAMP).elements()
            )
            assert own == {part: stored[part] for part in _numbers(self.known(name)["computed"])}, name

    def check_computed(self) -> None:
        """Every part is computed of which all that is read is there, and no other one."""
        for name, model in self.models.items():
            known = self.known(name)
            if known["first"] is None:
                assert known["computed"] == "none"
                continue
            # What was computed before an older first part came stays, also where parts in between are missing.
            computed = set(self.computed.get(name, ()))
            last = max((max(self._there(n), default=known["first"]) for n in self._sources(model)), default=0)
            # A part reads some parts back, and so may be ready some parts after the last one that it reads.
            many = 10 + 4 * max(0, last - known["first"])
            for part in range(known["first"], known["first"] + min(many, 5_000)):
                text = model.initialize if part == known["first"] and model.initialize else model.update
                if self._is_ready(name, text, part, known["first"], computed):
                    computed.add(part)
            assert computed == set(_numbers(known["computed"])), name
            self.computed[name] = computed

    def _sources(self, model: Model) -> set[str]:
        names = {f.group(1) for f in REFERENCE.finditer(model.update) if f.group(2) is not None}
        return names - {model.name}

    def _there(self, name: str) -> set[int]:
        if name in self.models:
            return set(_numbers(self.known(name)["computed"]))
        parts, seen = self.tables[name].parts, self.seen[name]
        assert parts is not None and parts.length is not None
        if parts.lateness is None or not seen:
            return seen
        end = parts.length.start_of(max(seen)) - parts.lateness
        given_up = {p for p in range(min(seen), max(seen)) if parts.length.end_of(p) <= end}
        return seen | given_up

    def _is_ready(self, name: str, text: str, part: int, first: int, computed: set[int]) -> bool:
        own = self.parts_of(name)
        for found in REFERENCE.finditer(text):
            source, numbers = found.group(1), found.group(2)
            if numbers is None:
                continue
            ends = [_value(e, part) for e in numbers.removeprefix("span ").split("..")]
            needed = set(range(ends[0], ends[-1] + 1))
            if source == name:
                if any(p not in computed for p in needed if p >= first):
                    return False
                continue
            if numbers.startswith("span "):
                low, high = own.length.start_of(ends[0]), own.length.end_of(ends[-1])
                fine = self._length_of(source)
                needed = set(range(fine.part_of(low), fine.part_of(high)))
            if not needed <= self._there(source):
                return False
        return True

    def _length_of(self, name: str) -> Length:
        if name in self.plans:
            return self.parts_of(name).length
        declared = self.tables[name].parts
        assert declared is not None and declared.length is not None
        return declared.length


class Interrupted(Exception):
    """What :func:`stopping` raises in place of a write."""


@contextmanager
def stopping(bench: Bench, write: int) -> Iterator[None]:
    """The engine stops before its write of this number, if there are as many, and says so with Interrupted."""
    engine: Any = bench.bench.engine
    run, written = engine.run, 0

    def counted(sql: str) -> None:
        nonlocal written
        written += 1
        if written == write:
            raise Interrupted
        run(sql)

    engine.run = counted
    try:
        yield
    finally:
        engine.run = run


_numbered = itertools.count(1)


@functools.cache
def _database() -> duckdb.DuckDBPyConnection:
    """One DuckDB for all oracles, each with a database in it: starting one takes as long as twenty of their queries."""
    connection = duckdb.connect()
    connection.execute("set threads = 1")
    return connection


@functools.cache
def _for_duckdb(sql: str) -> str:
    return sqlglot.transpile(sql, read="spark", write="duckdb")[0]


class Oracle:
    """All computed parts of all models from scratch."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._db = _database().cursor()
        own = f"oracle_{next(_numbered)}"
        self._db.execute(f"attach ':memory:' as {own}")
        self._db.execute(f"use {own}")
        self._db.execute("set timezone = 'UTC'")
        self.rows: dict[str, Counter[Row]] = {}
        for table in bench.tables.values():
            self._load(table.name, table.columns, table.rows)
        for name, model in bench.models.items():
            self._compute(name, model)
        self._db.execute("use memory")
        self._db.execute(f"detach {own}")
        self._db.close()

    def _load(self, name: str, columns: Sequence[tuple[str, str]], rows: Sequence[Row]) -> None:
        types = {"string": "varchar", "timestamp_ntz": "timestamp"}
        shown = ", ".join(f'"{n}" {types.get(t, t)}' for n, t in columns)
        self._db.execute(f"create table {name} ({shown})")
        self._add(name, rows)

    def _add(self, name: str, rows: Sequence[Row]) -> None:
        if rows:
            marks = ", ".join(f"({', '.join('?' for _ in row)})" for row in rows)
            plain = [_naive(value) for row in rows for value in row]
            self._db.execute(f"insert into {name} values {marks}", plain)

    def _compute(self, name: str, model: Model) -> None:
        plan, known = self._bench.plans[name], self._bench.known(name)
        parts = self._bench.parts_of(name)
        columns = [(c.name, c.type.text) for c in plan.output]
        self._load(name, columns, [])
        first = known["first"]
        for part in _numbers(known["computed"]):
            text = model.update
            if part == first and model.initialize is not None:
                text = model.initialize
            start = parts.length.start_of(part)
            shown = ", ".join(f'"{n}"' for n, _ in columns[:-1])
            query = _for_duckdb(self._at(text, name, part))
            rows = self._db.execute(f"select {shown} from ({query})").fetchall()
            self._add(name, [(*r, _naive(start)) for r in rows])
        self.rows[name] = Counter(tuple(r) for r in self._db.execute(f"select * from {name}").fetchall())

    def _at(self, text: str, model: str, part: int) -> str:
        """The query for one part: each reference a query over a range of time."""

        def reference(found: re.Match[str]) -> str:
            name, numbers = found.group(1), found.group(2)
            if numbers is None:
                return name
            is_span = numbers.startswith("span ")
            ends = [_value(e, part) for e in numbers.removeprefix("span ").split("..")]
            column, length = self._divided(name, model, is_span)
            low = _naive(length.start_of(ends[0]))
            high = _naive(length.end_of(ends[-1]))
            # Dates as the midnights with which they begin.
            return (
                f"(select * from {name} where cast({column} as timestamp) >= '{low}' and {column} < '{high}')"
            )

        return REFERENCE.sub(reference, text)

    def _divided(self, name: str, model: str, is_span: bool) -> tuple[str, Length]:
        own = self._bench.parts_of(model)
        if name in self._bench.plans:
            return PART_TIMESTAMP, own.length if is_span else self._bench.parts_of(name).length
        declared = self._bench.tables[name].parts
        assert declared is not None
        return declared.column, own.length if is_span or declared.length is None else declared.length


def _value(text: str, part: int) -> int:
    return int(eval(text.replace("/", "//"), {"__builtins__": {}}, {"i": part, "j": part}))


def _numbers(text: str) -> list[int]:
    if text == "none":
        return []
    found: list[int] = []
    for piece in text.split(", "):
        ends = piece.split("..")
        found += range(int(ends[0]), int(ends[-1]) + 1)
    return found


def _instant(value: Any) -> datetime:
    if not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day)
    return value if value.tzinfo is not None else value.replace(tzinfo=timezone.utc)


def _naive(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(timezone.utc).replace(tzinfo=None)
    return value


def minutes(text: str, many: int) -> datetime:
    return at(text) + timedelta(minutes=many)


__all__ = ["Bench", "Model", "Oracle", "Table", "at", "minutes", "replace"]
