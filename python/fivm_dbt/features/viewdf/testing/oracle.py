"""Viewdf models are computed from scratch: every part by a query of its own, from the first one on.

It shares with the refresh which parts have been computed, and knows nothing of what is stored: each part is computed
from the rows of the tables, and from parts that have been computed here.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from fivm_dbt.catalog import Column
from fivm_dbt.catalog.types import TIMESTAMP
from fivm_dbt.features.viewdf.plan.model import PartPlan, PartQuery, ViewdfPlan
from fivm_dbt.features.viewdf.refresh.known import KnownParts
from fivm_dbt.ir.scalar import cast_ast, column_ast, identifier
from fivm_dbt.naming import quote, staged_name
from fivm_dbt.parts.intervals import Intervals
from fivm_dbt.parts.parted import PART_TIMESTAMP
from fivm_dbt.refresh.engine import Engine
from fivm_dbt.refresh.heads import read_state
from fivm_dbt.spark.part_time import in_parts, instant
from fivm_dbt.spark.written_out import written_out
from fivm_dbt.sql.splice import splice_inputs


class PartOracle:
    """The models of one moment, in their order. What it stages is gone when it is closed."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._staged: dict[str, dict[int, str]] = {}
        self._columns: dict[str, Sequence[Column]] = {}

    def close(self) -> None:
        for parts in reversed(self._staged.values()):
            for name in reversed(parts.values()):
                self._engine.unstage(name)
        self._staged = {}

    def rows(self, plan: ViewdfPlan) -> str:
        """The query for all rows that the model has to show; the models that it reads have been asked for before."""
        known = self._known(plan)
        self._staged[plan.relation], self._columns[plan.relation] = {}, plan.output
        for part in known.computed:
            is_first = part == known.first and plan.parts.initialize is not None
            query = plan.parts.initialize if is_first else plan.parts.update
            assert query is not None
            name = staged_name(plan.relation, f"oracle_{part}".replace("-", "minus"))
            self._engine.stage(name, self._part(plan, query, part))
            self._staged[plan.relation][part] = name
        return self._united(plan.relation, known.computed - known.dropped)

    def _known(self, plan: ViewdfPlan) -> KnownParts:
        finished = read_state(self._engine, plan.state_relation).finished
        assert finished is not None
        return KnownParts.of(finished.detail["parts"])

    def _part(self, plan: ViewdfPlan, query: PartQuery, part: int) -> str:
        texts = {name: self._whole(name) for name in plan.parts.plain}
        for read in query.reads:
            wanted = read.reference.parts(part)
            parts = Intervals.of((wanted.start, wanted.stop - 1))
            texts[read.placeholder] = self._rows_of(plan.parts, read.reference.relation, parts)
        text = splice_inputs(written_out(query.sql, query.matches), texts)
        kept = [n for n in query.names if n.lower() != PART_TIMESTAMP]
        columns = [
            exp.alias_(cast_ast(column_ast("", n), c.type), identifier(c.name))
            for n, c in zip(kept, plan.parts.columns, strict=True)
        ]
        begins = instant(plan.parts.length.start_of(part), TIMESTAMP)
        columns.append(exp.alias_(begins, PART_TIMESTAMP))
        shown = ", ".join(c.sql(dialect="spark") for c in columns)
        return f"SELECT {shown} FROM (\n{text}\n) AS part({', '.join(quote(n) for n in query.names)})"

    def _rows_of(self, parts: PartPlan, key: str, wanted: Intervals) -> str:
        item = parts.input(key)
        if item.relation in self._staged and item.length == item.own:
            there = Intervals.numbers(self._staged[item.relation])
            return f"({self._united(item.relation, wanted & there)})"
        where = in_parts(exp.column(identifier(item.column)), item.type, item.counted, wanted)
        return f"(SELECT * FROM {self._whole(item.relation)} AS whole WHERE {where.sql(dialect='spark')})"

    def _whole(self, relation: str) -> str:
        if relation not in self._staged:
            return relation
        return f"({self._united(relation, Intervals.numbers(self._staged[relation]))})"

    def _united(self, relation: str, parts: Intervals) -> str:
        names = [self._staged[relation][p] for p in parts]
        if names:
            return " UNION ALL ".join(f"SELECT * FROM {name}" for name in names)
        none = (exp.alias_(cast_ast(exp.Null(), c.type), identifier(c.name)) for c in self._columns[relation])
        return f"SELECT {', '.join(n.sql(dialect='spark') for n in none)} WHERE FALSE"
