"""A fold runs a pattern's automaton over the ordered rows of a partition, in higher-order functions.

All starts are advanced row by row, each with its threads in order of preference, as in a Pike VM::

    thread  = struct(state, tested, held, path)      waits in a state for the next row
    start   = struct(start, best, threads)           the match so far of what begins at a row, and who may better it
    fold    = struct(next, count, found, starts)     rows before ``next`` begin no further match

One step takes a row: a new start, then each thread that may take the row becomes one for each of its moves. A thread
that accepts is the best so far of its start and cuts off those behind it. Then the starts are settled
(:class:`Settling`). At the end the threads left are given up. The fold without what it has found is all that has to be
known of the rows so far (:mod:`fivm_dbt.features.match.spark.state` keeps it).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from fivm_dbt.catalog.types import INT
from fivm_dbt.features.match.ir.automaton import ACCEPT
from fivm_dbt.features.match.ir.match import POSITION, ROW, Recognizer
from fivm_dbt.features.match.ir.types import fold_type, found_type, thread_type
from fivm_dbt.features.match.spark.chain import Chain
from fivm_dbt.features.match.spark.fold_sql import (
    array,
    call,
    cast,
    concat,
    field,
    function,
    if_else,
    number,
    struct,
    transform,
)
from fivm_dbt.features.match.spark.settling import FOLD, START, Settling
from fivm_dbt.features.match.spark.state import KeptState
from fivm_dbt.features.match.spark.threads import THREAD, Threads
from fivm_dbt.ir.scalar import identifier


def fold_of(recognizer: Recognizer) -> Fold | Chain:
    """The fold that runs a pattern."""
    return Chain(recognizer) if recognizer.per_part else Fold(recognizer)


@dataclass(frozen=True)
class Fold:
    """The expressions for the matches in an array of rows."""

    recognizer: Recognizer

    @cached_property
    def threads(self) -> Threads:
        return Threads(self.recognizer)

    @cached_property
    def settling(self) -> Settling:
        return Settling(self.recognizer)

    def nothing(self) -> dict[str, exp.Expr]:
        """The state before any row."""
        return {"next": number(1), "count": number(0), "starts": exp.Array()}

    def resumed(self, state: exp.Expr) -> exp.Expr:
        """The fold that has found nothing yet, in a state."""
        parts = {n: exp.Dot(this=state.copy(), expression=identifier(n)) for n in ("next", "count", "starts")}
        found = cast(exp.Array(), found_type(self.recognizer))
        return struct(next=parts["next"], count=parts["count"], found=found, starts=parts["starts"])

    def kept(self, fold: exp.Expr, rows: exp.Expr, *, is_numbered: bool) -> dict[str, exp.Expr]:
        """The state behind a part of ``rows`` rows."""
        return KeptState(self.recognizer).kept(fold, rows, is_numbered=is_numbered)

    def matches(self, rows: exp.Expr) -> exp.Expr:
        """An array of struct(number, match) in a whole partition, in their order."""
        parts = self.nothing()
        nothing = struct(next=parts["next"], count=parts["count"], found=exp.Array(), starts=parts["starts"])
        zero = cast(nothing, fold_type(self.recognizer))
        return call("AGGREGATE", rows, zero, self.step(), function(self.given_up(), FOLD))

    def step(self) -> exp.Lambda:
        """The fold after a row, as a function of both."""
        return function(self.settling.settled(self._taken()), FOLD, ROW)

    def given_up(self) -> exp.Expr:
        """What a fold will have found if no further row comes."""
        settled = self.settling.settled(self.settling.given_up())
        return exp.Dot(this=settled, expression=identifier("found"))

    # One row

    def _taken(self) -> exp.Expr:
        """The starts after the row: a stage for what each needs of the one before."""
        threads = field(START, "threads")
        starts = transform(
            self._with_new_start(), START, self._start(threads=self.threads.moved(threads.copy()))
        )
        if not self.recognizer.automaton.at_end:
            starts = self._cut(starts)
        if not self.recognizer.automaton.may_meet:
            return starts
        return transform(starts, START, self._start(threads=self.threads.merged(threads)))

    def _cut(self, starts: exp.Expr) -> exp.Expr:
        """A thread that accepts is the best of its start: those behind it go."""
        threads = field(START, "threads")
        states = transform(threads, THREAD, field(THREAD, "state"))
        cut = call("COALESCE", call("ARRAY_POSITION", states, number(ACCEPT)), number(0))
        with_cut = self._start()
        with_cut.append("expressions", exp.PropertyEQ(this=identifier("cut"), expression=cast(cut, INT)))
        is_cut = exp.GT(this=field(START, "cut"), expression=number(0))
        accepted = call("ELEMENT_AT", threads.copy(), field(START, "cut"))
        before = exp.Sub(this=field(START, "cut"), expression=number(1))
        left = if_else(is_cut.copy(), call("SLICE", threads.copy(), number(1), before), threads.copy())
        best = if_else(is_cut, accepted, field(START, "best"))
        return transform(transform(starts, START, with_cut), START, self._start(best=best, threads=left))

    def _start(self, **changed: exp.Expr) -> exp.Struct:
        names = ("start", "best", "threads")
        return struct(**{name: changed.get(name, field(START, name)) for name in names})

    def _with_new_start(self) -> exp.Expr:
        """The starts and one at this row, unless it is within a match."""
        best = cast(exp.Null(), thread_type(self.recognizer))
        new = struct(start=field(ROW, POSITION), best=best, threads=self.threads.first())
        may_begin: exp.Expr = exp.GTE(this=field(ROW, POSITION), expression=field(FOLD, "next"))
        if self.recognizer.automaton.at_start:
            # Each part has a row 1; what is kept of a part before it never says that the next match may begin there.
            first = (field(ROW, POSITION), field(FOLD, "next"))
            may_begin = exp.and_(*(exp.EQ(this=value, expression=number(1)) for value in first))
        starts = field(FOLD, "starts")
        return if_else(may_begin, concat(starts, array(new)), starts.copy())
