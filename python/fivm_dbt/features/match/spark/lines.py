"""A fold takes these rows of a part: with what PREV asks for, and with NEXT without those that wait.

::

    lines = tail of the state ++ rows of the part
    tail  = the last rows so far: as many as PREV asks back for, and those that wait

With NEXT a row waits until as many rows are behind it as NEXT asks for; only then the fold takes it. It takes rows as
they are numbered here, from 1 in each part, so that nothing else has to know of waiting.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog.types import INT
from fivm_dbt.features.match.ir.match import POSITION, ROW, ROW_PART
from fivm_dbt.features.match.ir.runs import Runs
from fivm_dbt.features.match.spark.fold_sql import (
    call,
    cast,
    concat,
    field,
    function,
    number,
    size,
    struct,
    transform,
)
from fivm_dbt.ir.scalar import identifier
from fivm_dbt.naming import PREFIX

LINES, _NTH = f"{PREFIX}lines", f"{PREFIX}nth"


@dataclass(frozen=True)
class Lines:
    """Expressions over the rows of a part, the tail before it, and LINES, which are both."""

    node: Runs

    def together(self, rows: exp.Expr, tail: exp.Expr) -> exp.Expr:
        """The lines of a part."""
        line = struct(**{i.name: field(ROW, i.name) for i in self.node.tail})
        return concat(tail, transform(rows, ROW, line))

    def taken(self, rows: exp.Expr, tail: exp.Expr) -> exp.Expr:
        """The rows that the fold takes."""
        if self.node.ahead:
            return self._numbered(_minus(size(tail), self._many_waiting(tail)), self.number_taken(rows, tail))
        if not self.node.shifts:
            return rows
        names = [POSITION, *([ROW_PART] if self.node.recognizer.per_part else [])]
        columns = {name: field(ROW, name) for name in (*names, *(i.name for i in self.node.columns))}
        return transform(rows, ROW, struct(**columns, **self._shifted(field(ROW, POSITION), size(tail))))

    def number_taken(self, rows: exp.Expr, tail: exp.Expr) -> exp.Expr:
        """How many rows the fold takes: those that waited and those of the part, without those that wait now."""
        if not self.node.ahead:
            return size(rows)
        arrived = exp.Add(this=self._many_waiting(tail), expression=size(rows))
        return call("GREATEST", _minus(arrived, number(self.node.ahead)), number(0))

    def last(self, lines: exp.Expr) -> exp.Expr:
        """The tail behind the part."""
        most = self.node.behind + self.node.ahead
        begin = exp.Add(this=exp.Sub(this=size(lines), expression=number(most)), expression=number(1))
        return call("SLICE", lines.copy(), call("GREATEST", begin, number(1)), number(most))

    def waiting(self) -> exp.Expr:
        """The rows that wait at the end, where LINES are the tail: there are none behind them."""
        many = self._many_waiting(field(LINES))
        return self._numbered(_minus(size(field(LINES)), many), many.copy())

    def _many_waiting(self, lines: exp.Expr) -> exp.Expr:
        return call("LEAST", size(lines.copy()), number(self.node.ahead))

    def _numbered(self, before: exp.Expr, many: exp.Expr) -> exp.Expr:
        """So many lines, from the first one behind ``before`` others, as rows."""
        place = exp.Add(this=exp.column(identifier(_NTH)), expression=number(1))
        columns = {POSITION: cast(place, INT), **{i.name: field(ROW, i.name) for i in self.node.columns}}
        row = struct(**columns, **self._shifted(place, before))
        lines = call("SLICE", field(LINES), exp.Add(this=before.copy(), expression=number(1)), many)
        return call("TRANSFORM", lines, function(row, ROW, _NTH))

    def _shifted(self, position: exp.Expr, before: exp.Expr) -> dict[str, exp.Expr]:
        """What PREV and NEXT ask for of a row; ``before`` lines stand in front of the first row."""
        columns: dict[str, exp.Expr] = {}
        for shift in self.node.shifts:
            own = exp.Add(this=position.copy(), expression=exp.paren(before.copy()))
            place = exp.Add(this=own, expression=_signed(shift.offset))
            is_there: exp.Expr = exp.GT(this=place, expression=number(0))
            if shift.offset > 0:
                is_there = exp.LTE(this=place, expression=size(field(LINES)))
            line = call("ELEMENT_AT", field(LINES), place.copy())
            there = exp.Dot(this=line, expression=identifier(shift.column))
            columns[shift.name] = exp.Case(ifs=[exp.If(this=is_there, true=there)])
        return columns


def _minus(value: exp.Expr, other: exp.Expr) -> exp.Expr:
    return exp.Sub(this=exp.paren(value), expression=exp.paren(other))


def _signed(value: int) -> exp.Expr:
    return number(value) if value >= 0 else exp.Neg(this=number(-value))
