"""A scenario must fit together: names, types, row widths, and deleted rows that are there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence

from fivm_dbt.catalog import SparkType
from fivm_dbt.errors import CODES
from fivm_dbt.refresh.engine import Row
from fivm_dbt.testing.scenario import RawRows, Scenario, Step
from fivm_dbt.testing.values import to_rows, to_value

Types = Mapping[str, tuple[SparkType, ...]]
_Names = Mapping[str, object] | Sequence[str]


def column_types(scenario: Scenario) -> dict[str, tuple[SparkType, ...]]:
    """The types of each table's columns."""
    return {t: tuple(SparkType.of(text) for _, text in columns) for t, columns in scenario.tables.items()}


def problems(scenario: Scenario) -> list[tuple[str, str]]:
    """Everything that is wrong, as (field, what)."""
    types = column_types(scenario)
    return [*_header(scenario, types), *_contents(scenario, types), *_codes(scenario)]


def _header(scenario: Scenario, types: Types) -> Iterator[tuple[str, str]]:
    for table, columns in types.items():
        for (name, _), type_ in zip(scenario.tables[table], columns, strict=True):
            if (wrong := _unusable(type_)) is not None:
                yield f"tables.{table}.{name}", wrong
    models, views = ([m.name.lower() for m in scenario.models], [v.name.lower() for v in scenario.views])
    names = [*models, *views]
    if not scenario.models:
        yield "models", "there is no model"
    for name in sorted({n for n in names if names.count(n) > 1 or n in types}):
        yield "models" if name in models else "views", f"the name {name} is used twice"
    for field in ("initial", "tables_options", "keys", "partition_by"):
        yield from _unknown(field, getattr(scenario, field), types)
    for key_table, keys in scenario.keys.items():
        for key in keys:
            yield from _missing_columns(scenario, f"keys.{key_table}", key_table, key)
    for partition_table, partition in scenario.partition_by.items():
        yield from _missing_columns(scenario, f"partition_by.{partition_table}", partition_table, partition)
    for index, foreign in enumerate(scenario.foreign_keys):
        field = f"foreign_keys[{index}]"
        yield from _unknown(field, [foreign.table, foreign.target], types)
        yield from _missing_columns(scenario, field, foreign.table, foreign.columns)
        yield from _missing_columns(scenario, field, foreign.target, foreign.target_columns)
    yield from _unknown(
        "initial_expected", scenario.initial_expected or {}, [m.name for m in scenario.models]
    )


def _unusable(type_: SparkType) -> str | None:
    try:
        to_value(None, type_)
        to_value(object(), type_)
    except ValueError as error:
        return str(error) if "cannot be used" in str(error) else None
    return None


def _unknown(field: str, used: _Names, known: _Names) -> Iterator[tuple[str, str]]:
    for name in used:
        if name not in known:
            yield f"{field}.{name}", f"there is no {name} (expected one of {', '.join(known)})"


def _missing_columns(
    scenario: Scenario, field: str, table: str, columns: Sequence[str]
) -> Iterator[tuple[str, str]]:
    there = [name.lower() for name, _ in scenario.tables.get(table, ())]
    for column in columns:
        if table in scenario.tables and column.lower() not in there:
            yield field, f"{table} has no column {column}"


def _contents(scenario: Scenario, types: Types) -> Iterator[tuple[str, str]]:
    """Follow the tables through the steps: every row must fit, every deleted row must be there."""
    state: dict[str, Counter[Row]] = {table: Counter() for table in types}
    for table, raw in scenario.initial.items():
        rows = yield from _rows(f"initial.{table}", raw, types.get(table))
        state[table] = Counter(rows)
    models = [m.name for m in scenario.models]
    for index, step in enumerate(scenario.steps):
        field = f"steps[{index}]"
        yield from _unknown(f"{field}.expected", step.expected or {}, models)
        yield from _apply(step, field, types, state)


def _apply(step: Step, field: str, types: Types, state: dict[str, Counter[Row]]) -> Iterator[tuple[str, str]]:
    for verb, wanted in (("recreate", step.recreate), ("replace", step.replace)):
        yield from _unknown(f"{field}.{verb}", wanted, types)
        for table, raw in wanted.items():
            rows = yield from _rows(f"{field}.{verb}.{table}", raw, types.get(table))
            state[table] = Counter(rows)
    yield from _unknown(f"{field}.delta", step.delta, types)
    for table, change in step.delta.items():
        place = f"{field}.delta.{table}"
        gone = yield from _rows(f"{place}.delete", change.delete, types.get(table))
        came = yield from _rows(f"{place}.insert", change.insert, types.get(table))
        there = state.setdefault(table, Counter())
        for row, count in Counter(gone).items():
            if there[row] < count:
                yield f"{place}.delete", f"row {list(row)} is {there[row]} times in {table}, not {count}"
        there.subtract(gone)
        there.update(came)


def _rows(
    field: str, raw: RawRows, types: tuple[SparkType, ...] | None
) -> Generator[tuple[str, str], None, tuple[Row, ...]]:
    if types is None:
        return ()
    found: list[Row] = []
    for index, row in enumerate(raw):
        try:
            found += to_rows([row], types)
        except ValueError as error:
            yield f"{field}[{index}]", str(error)
    return tuple(found)


def _codes(scenario: Scenario) -> Iterator[tuple[str, str]]:
    wanted = [("expected_error", scenario.expected_error)]
    wanted += [(f"steps[{i}].expected_error", step.expected_error) for i, step in enumerate(scenario.steps)]
    for field, code in wanted:
        if code is not None and code not in CODES:
            yield field, f"there is no error code {code}"
