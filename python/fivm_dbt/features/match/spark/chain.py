"""A pattern reported part by part while it holds has a fold of one thread per key.

::

    fold = struct(part, thread, found)       the part of the last row, and the state that it led to

A row takes the thread on: it stays in a state with a plus sign if the row is one for it, else it moves to the next one,
else it begins again with the first, if it may. A key without a row in the part before has no thread. What is found is a
match for each row that leads to the last state. (ViewDF, section 5.1.)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.features.match.ir.automaton import ACCEPT
from fivm_dbt.features.match.ir.match import ROW, ROW_PART, Recognizer
from fivm_dbt.features.match.ir.types import fold_type, found_type
from fivm_dbt.features.match.spark.fold_sql import (
    array,
    call,
    cast,
    concat,
    element,
    field,
    function,
    if_else,
    let,
    none_of,
    number,
    struct,
)
from fivm_dbt.features.match.spark.settling import FOLD
from fivm_dbt.features.match.spark.threads import Threads
from fivm_dbt.ir.scalar import raise_error
from fivm_dbt.naming import PREFIX

_TAKEN = f"{PREFIX}taken"
_TWICE = "MATCH_RECOGNIZE: ONE ROW PER PART, but a key has several rows in one part"


@dataclass(frozen=True)
class Chain:
    """The expressions for what holds in the parts of an array of rows."""

    recognizer: Recognizer

    @cached_property
    def threads(self) -> Threads:
        return Threads(self.recognizer)

    def nothing(self) -> dict[str, exp.Expr]:
        """The state before any row."""
        return {"part": exp.Null(), "thread": exp.Null()}

    def resumed(self, state: exp.Expr) -> exp.Expr:
        """The fold that has found nothing yet, in a state."""
        return struct(
            part=exp.Dot(this=state, expression=exp.to_identifier("part")),
            thread=exp.Dot(this=state.copy(), expression=exp.to_identifier("thread")),
            found=cast(exp.Array(), found_type(self.recognizer)),
        )

    def kept(self, fold: exp.Expr, rows: exp.Expr, *, is_numbered: bool) -> dict[str, exp.Expr]:
        """The state behind a part."""
        del rows, is_numbered
        return {
            name: exp.Dot(this=fold.copy(), expression=exp.to_identifier(name)) for name in ("part", "thread")
        }

    def matches(self, rows: exp.Expr) -> exp.Expr:
        """An array of struct(number, match) in all rows of a key."""
        zero = cast(struct(**self.nothing(), found=exp.Array()), fold_type(self.recognizer))
        found = field(FOLD, "found")
        return call("AGGREGATE", rows, zero, self.step(), function(found, FOLD))

    def given_up(self) -> exp.Expr:
        """Nothing is open: what holds has been reported."""
        return none_of(field(FOLD, "found"))

    def step(self) -> exp.Lambda:
        """The fold after a row, as a function of both."""
        automaton = self.recognizer.automaton
        follow = tuple(tuple(s for s in moves if s != ACCEPT) for moves in automaton.follow)
        last = [n for n, moves in enumerate(automaton.follow, start=1) if ACCEPT in moves]
        part = field(ROW, ROW_PART)
        following = exp.Add(this=field(FOLD, "part"), expression=number(1))
        goes_on = call("COALESCE", exp.EQ(this=following, expression=part), exp.false())
        thread = array(field(FOLD, "thread"))
        before = if_else(
            exp.and_(
                goes_on,
                exp.Not(this=exp.Is(this=field(FOLD, "thread", "state"), expression=exp.Null())),
            ),
            thread,
            none_of(thread.copy()),
        )
        tried = concat(self.threads.waiting(before, follow), self.threads.first())
        taken = element(self.threads.took(tried), 1)
        holds = exp.In(this=field(_TAKEN, "state"), expressions=[number(s) for s in last])
        match = struct(number=cast(number(0), BIGINT), match=field(_TAKEN))
        found = field(FOLD, "found")
        is_second = exp.EQ(this=field(FOLD, "part"), expression=part.copy())
        once = exp.Case(
            ifs=[exp.If(this=is_second, true=raise_error(_TWICE, BIGINT.text))], default=part.copy()
        )
        after = struct(
            part=once,
            thread=field(_TAKEN),
            found=if_else(holds, concat(found, array(match)), found.copy()),
        )
        return function(let(_TAKEN, taken, after), FOLD, ROW)
