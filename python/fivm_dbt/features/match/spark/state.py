"""Behind a time part the fold is kept without what it has found, counted from the next row on."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.features.match.ir.match import POSITION, ROW, RUNNING, Recognizer
from fivm_dbt.features.match.spark.fold_sql import (
    call,
    cast,
    element,
    field,
    if_else,
    number,
    struct,
    transform,
)
from fivm_dbt.features.match.spark.settling import START
from fivm_dbt.features.match.spark.threads import THREAD
from fivm_dbt.ir.scalar import Scalar, identifier


@dataclass(frozen=True)
class KeptState:
    """The fields of the state: ``next``, ``count``, ``starts``.

    Positions are moved before the first row of the next part, so that equal states are equal whatever has been before.
    """

    recognizer: Recognizer

    def kept(self, fold: exp.Expr, rows: exp.Expr, *, is_numbered: bool) -> dict[str, exp.Expr]:
        """Behind ``rows`` rows."""
        starts = _dot(fold, "starts")
        threads = transform(field(START, "threads"), THREAD, self._thread(field(THREAD), rows))
        has_match = exp.Not(this=exp.Is(this=field(START, "best", "held", POSITION), expression=exp.Null()))
        best = exp.Case(ifs=[exp.If(this=has_match, true=self._thread(field(START, "best"), rows))])
        start = struct(start=_less(field(START, "start"), rows), best=best, threads=threads)
        count = _dot(fold, "count") if is_numbered else cast(number(0), BIGINT)
        following = cast(self._next(_dot(fold, "next"), starts, rows), INT)
        return {"next": following, "count": count, "starts": transform(starts.copy(), START, start)}

    def _next(self, following: exp.Expr, starts: exp.Expr, rows: exp.Expr) -> exp.Expr:
        """Where the next match may begin: not before what is undecided, and else with the next row."""
        first = _less(_dot(element(starts, 1), "start"), rows)
        if self.recognizer.automaton.at_start:
            # Never 1 again once there was a row, which is where a partition begins.
            is_before = exp.EQ(this=rows.copy(), expression=number(0))
            return if_else(is_before, following, call("COALESCE", first, number(0)))
        return call("GREATEST", _less(following, rows), call("COALESCE", first, number(1)))

    def _thread(self, thread: exp.Expr, rows: exp.Expr) -> exp.Expr:
        parts = {"state": _dot(thread, "state")}
        if self.recognizer.tested:
            parts["tested"] = _dot(thread, "tested")
        parts["held"] = self._held(_dot(thread, "held"), rows)
        if self.recognizer.all_rows:
            parts["path"] = transform(_dot(thread, "path"), RUNNING, self._held(field(RUNNING), rows))
        return struct(**parts)

    def _held(self, registers: exp.Expr, rows: exp.Expr) -> exp.Struct:
        values = {}
        for r in self.recognizer.held:
            value = _dot(registers, r.name)
            is_position = r.value == Scalar.column(ROW, POSITION) and r.kind in ("first", "last")
            values[r.name] = _less(value, rows) if is_position else value
        return struct(**values)


def _dot(value: exp.Expr, *path: str) -> exp.Expr:
    for name in path:
        value = exp.Dot(this=value.copy(), expression=identifier(name))
    return value


def _less(value: exp.Expr, rows: exp.Expr) -> exp.Expr:
    return exp.Sub(this=value, expression=rows.copy())
