"""The catalog of parts is one table for all models of a schema: several may be about to create it."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from fivm_dbt.engines.duckdb.engine import DuckDbEngine
from fivm_dbt.refresh.catalog_table import create_once
from fivm_dbt.refresh.recorder import Recorder
from fixtures.models import plan_of, relation

CATALOG = "analytics.fivm_parts"


class _Creating(DuckDbEngine):
    """Answers CREATE TABLE with an error; after ``looks`` looks the table is there, made by another process."""

    def __init__(self, error: str, looks: int) -> None:
        super().__init__(tiny=True)
        self.error = error
        self.looks = looks

    def run(self, sql: str) -> None:
        if sql.startswith("CREATE TABLE") and self.looks > 0:
            raise RuntimeError(self.error)
        super().run(sql)

    def exists(self, relation: str) -> bool:
        self.looks -= 1
        if self.looks == 0:
            _create(self)
        return super().exists(relation)


def _create(engine: DuckDbEngine) -> None:
    plan = plan_of("select k from raw.a", [relation("raw.a", "k int")])
    create_once(plan, Recorder(engine, plan, lambda _: None))


def test_it_is_created_once() -> None:
    engine = DuckDbEngine(tiny=True)
    _create(engine)
    _create(engine)
    assert len(engine.commits(CATALOG, 0)) == 1


def test_one_that_another_process_is_creating_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fivm_dbt.refresh.catalog_table._CREATING", nullcontext())
    waited: list[float] = []
    monkeypatch.setattr("fivm_dbt.refresh.catalog_table.time.sleep", waited.append)
    busy = "[DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION] Cannot create table"
    engine = _Creating(busy, looks=3)
    _create(engine)
    assert len(waited) == 2 and len(engine.commits(CATALOG, 0)) == 1
    with pytest.raises(RuntimeError, match="NON_EMPTY_LOCATION"):
        _create(_Creating(busy, looks=99))
    waited.clear()
    with pytest.raises(RuntimeError, match="denied"):
        _create(_Creating("permission denied", looks=99))
    assert waited == []
