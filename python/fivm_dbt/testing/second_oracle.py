"""The interpreter of Spark's semantics checks a model's rows against the model's text.

The recompute on an engine runs the text as that engine, or the translation for it, understands it. The interpreter
shares nothing with either: where both say the same an error has to be made twice. It is given the completed text, the
rows of the tables, and of models further up what they show.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from fivm_dbt.catalog import Catalog, Column
from fivm_dbt.errors import FivmError
from fivm_dbt.features.viewdf.plan.model import ViewdfPlan
from fivm_dbt.ir.clock import Clock
from fivm_dbt.naming import quote, split_name
from fivm_dbt.plan.model.plan import Plan, RecomputedPlan
from fivm_dbt.refresh.engine import Engine, Row
from fivm_dbt.sql.lower import lower
from fivm_dbt.sql.splice import splice_clock
from fivm_dbt.testing.compare import Difference, compare_rows
from fivm_dbt.testing.interpreter import NotUnderstood
from fivm_dbt.testing.interpreter.run import Interpreter
from fivm_dbt.testing.interpreter.types import Type, parse_type


class SecondOracle:
    """The interpreters of the models of a replay."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._read: dict[str, Interpreter | str] = {}

    def difference(self, plan: Plan, shown: Sequence[Row], clock: Clock | None) -> Difference:
        """What a model shows and its text does not mean, or the other way round. Raises NotUnderstood."""
        text = splice_clock(plan.completed_sql, clock)
        found = self._interpreter(plan, text)
        rows = found.rows(
            {
                _plain_name(i.relation.name): self._rows(i.relation.name, i.relation.columns)
                for i in plan.inputs
            }
        )
        received = [_taken(row, [t for _, t in found.columns]) for row in rows]
        return compare_rows(shown, received, [column.type for column in plan.output])

    def _interpreter(self, plan: Plan, text: str) -> Interpreter:
        known = self._read.get(text)
        if known is None:
            known = self._read[text] = self._new(plan, text)
        if isinstance(known, str):
            raise NotUnderstood(known)
        return known

    def _new(self, plan: Plan, text: str) -> Interpreter | str:
        if isinstance(plan, ViewdfPlan):
            return "a viewdf model"
        if plan.matches:
            return "MATCH_RECOGNIZE"
        if isinstance(plan, RecomputedPlan) and _may_tie(plan):
            return "no one answer"
        try:
            found = Interpreter(
                text, {_plain_name(i.relation.name): _typed(i.relation.columns) for i in plan.inputs}
            )
        except NotUnderstood as error:
            return error.construct
        return found

    def _rows(self, name: str, columns: Sequence[Column]) -> list[Row]:
        listed = ", ".join(quote(c.name) for c in columns)
        types = [parse_type(c.type.text) for c in columns]
        return [_given(row, types) for row in self._engine.query(f"SELECT {listed} FROM {name}")]


def _may_tie(plan: Plan) -> bool:
    """Whether a text that is recomputed as it stands would be completed if it were maintained: rows may tie in it."""
    try:
        return bool(lower(plan.text, Catalog.of(i.relation for i in plan.inputs)).completions)
    except FivmError:
        # What cannot be read is not completed either: the interpreter says whether it understands it.
        return False


def _plain_name(name: str) -> str:
    return ".".join(split_name(name))


def _typed(columns: Sequence[Column]) -> list[tuple[str, Type]]:
    return [(c.name, parse_type(c.type.text)) for c in columns]


def _given(row: Sequence[Any], types: Sequence[Type]) -> Row:
    """A row as the interpreter has it: decimals with their scale, lists and structs as tuples."""
    return tuple(_value(v, t) for v, t in zip(row, types, strict=True))


def _value(value: Any, type_: Type) -> Any:
    if value is None:
        return None
    if type_.is_decimal:
        return Decimal(value).quantize(Decimal(1).scaleb(-type_.args[1]))
    if type_.is_integral:
        return int(value)
    if type_.name == "date" and hasattr(value, "date"):
        return value.date()
    if type_.name == "array":
        return tuple(_value(v, type_.args[0]) for v in value)
    if type_.name == "struct":
        values = value.values() if isinstance(value, Mapping) else value
        return tuple(_value(v, t) for v, (_, t) in zip(values, type_.args, strict=True))
    if type_.name == "map":
        raise NotUnderstood("maps in tables")
    return value


def _taken(row: Row, types: Sequence[Type]) -> Row:
    """A row as an engine gives it."""
    return tuple(
        list(v) if isinstance(v, tuple) and t.name == "array" else v for v, t in zip(row, types, strict=True)
    )
