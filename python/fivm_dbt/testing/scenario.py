"""A scenario has tables, models over them, and steps that change the tables.

``docs/replay.md`` describes it for users. The classes here only say what a file may hold; what fits
together is checked by :mod:`fivm_dbt.testing.check`, files are read by :mod:`fivm_dbt.testing.load`.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

RawRow = tuple[Any, ...]
RawRows = tuple[RawRow, ...]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Change(_Frozen):
    """Rows that come and go in one commit of a table. A deleted row takes one of its equal copies along."""

    insert: RawRows = ()
    delete: RawRows = ()


class Model(_Frozen):
    """A model: its name, the query, and the keys of its ``meta``.

    The text of a viewdf model is its file, with references to parts as in a project.
    """

    name: str
    sql: str
    materialized: Literal["fivm", "viewdf"] = "fivm"
    config: dict[str, Any] = Field(default_factory=dict)


class View(_Frozen):
    """A view of the database over tables, models and other views; ``columns`` are its own names of its columns."""

    name: str
    sql: str
    columns: tuple[str, ...] = ()


class TableOptions(_Frozen):
    """How a table is captured: by a change feed, promised static, dropped and re-created as dbt seeds are.

    And how it is divided by time, as a source or a model of a project says it: dbt's ``event_time``, and keys of
    ``meta``.
    """

    change_feed: bool = True
    static: bool = False
    seed: bool = False
    event_time: str | None = None
    fivm_part_length: str | int | None = None
    fivm_time_zone: str | None = None
    fivm_lateness: str | int | None = None


class ForeignKeySpec(_Frozen):
    """``columns`` of ``table`` refer to ``target_columns`` of ``target``."""

    table: str
    columns: tuple[str, ...]
    target: str
    target_columns: tuple[str, ...]


class Step(_Frozen):
    """What happens to the tables before the next refresh, and what the models then show.

    ``recreate`` drops a table and creates it with the rows given, ``replace`` is CREATE OR REPLACE TABLE,
    ``delta`` one commit per table, in this order. ``expected_error`` is the code with which the refresh of a
    model must fail.
    """

    delta: dict[str, Change] = Field(default_factory=dict)
    replace: dict[str, RawRows] = Field(default_factory=dict)
    recreate: dict[str, RawRows] = Field(default_factory=dict)
    expected: dict[str, RawRows] | None = None
    expected_error: str | None = None
    now: str | None = None


class Scenario(_Frozen):
    """One scenario. ``sql`` and ``view`` are a short form of a single model without config.

    ``expected_error`` is the code with which one of the models must be refused. ``now`` is the time of models that
    read the clock, in UTC, from that step on; without it they read the real one. ``only_on`` names the engine whose
    meaning no other one shares, so that there is nothing to be compared elsewhere.
    """

    id: str
    only_on: Literal["spark"] | None = None
    tables: dict[str, tuple[tuple[str, str], ...]]
    initial: dict[str, RawRows] = Field(default_factory=dict)
    tables_options: dict[str, TableOptions] = Field(default_factory=dict)
    keys: dict[str, tuple[tuple[str, ...], ...]] = Field(default_factory=dict)
    foreign_keys: tuple[ForeignKeySpec, ...] = ()
    partition_by: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    now: str | None = None
    views: tuple[View, ...] = ()
    models: tuple[Model, ...] = ()
    steps: tuple[Step, ...] = ()
    initial_expected: dict[str, RawRows] | None = None
    expected_error: str | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, data: Any) -> Any:
        """``sql`` + ``view`` for ``models``; one key as a flat list; one partition column as a string."""
        if not isinstance(data, dict):
            return data
        data = dict(data)
        if "sql" in data or "view" in data:
            if "models" in data:
                raise ValueError("give either models, or sql and view")
            model = {"name": data.pop("view", None), "sql": data.pop("sql", None)}
            data["models"] = [model]
        if isinstance(data.get("keys"), dict):
            data["keys"] = {t: _nested(keys) for t, keys in data["keys"].items()}
        if isinstance(data.get("partition_by"), dict):
            columns = data["partition_by"].items()
            data["partition_by"] = {t: [c] if isinstance(c, str) else c for t, c in columns}
        return data


def _nested(keys: Any) -> Any:
    is_flat = isinstance(keys, (list, tuple)) and all(isinstance(k, str) for k in keys)
    return [keys] if keys and is_flat else keys
