"""AFTER MATCH SKIP chooses matches: the starts of a fold are taken in their order.

The first start is chosen as soon as it has no thread left that could better its match. Those within a chosen match are
dropped, and with SKIP PAST LAST ROW also those that can only have a match where the first has one that covers them.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.features.match.ir.automaton import ACCEPT
from fivm_dbt.features.match.ir.match import POSITION, Recognizer
from fivm_dbt.features.match.spark.fold_sql import (
    array,
    call,
    cast,
    concat,
    element,
    field,
    function,
    has_none,
    if_else,
    none_of,
    number,
    size,
    struct,
    transform,
)
from fivm_dbt.features.match.spark.threads import OTHER, THREAD
from fivm_dbt.ir.scalar import identifier, raise_error
from fivm_dbt.naming import PREFIX

FOLD, START, FIRST, AHEAD = (f"{PREFIX}{name}" for name in ("fold", "start", "first", "ahead"))


@dataclass(frozen=True)
class Settling:
    """Expressions over the starts of a fold."""

    recognizer: Recognizer

    def given_up(self) -> exp.Expr:
        """The starts at the end of the partition, without the threads that waited for another row."""
        threads, best = field(START, "threads"), field(START, "best")
        if self.recognizer.automaton.at_end:
            accepts = exp.EQ(this=field(THREAD, "state"), expression=number(ACCEPT))
            best = element(call("FILTER", threads, function(accepts, THREAD)), 1)
        last = struct(start=field(START, "start"), best=best, threads=none_of(threads.copy()))
        return transform(field(FOLD, "starts"), START, last)

    def settled(self, starts: exp.Expr) -> exp.Expr:
        """The fold with ``starts``: those that cannot be matches dropped, decided ones chosen unless an earlier one is
        undecided."""
        so_far = struct(
            next=field(FOLD, "next"),
            count=field(FOLD, "count"),
            found=field(FOLD, "found"),
            starts=none_of(field(FOLD, "starts")),
        )
        is_decided = exp.EQ(this=size(field(START, "threads")), expression=number(0))
        has_no_match = exp.Is(this=field(START, "best", "held", POSITION), expression=exp.Null())
        is_covered: exp.Expr = exp.LT(this=field(START, "start"), expression=field(OTHER, "next"))
        dropped = exp.or_(is_covered, self._follows_first(), exp.and_(is_decided.copy(), has_no_match))
        is_first = exp.EQ(this=size(field(OTHER, "starts")), expression=number(0))
        ordinal = exp.Add(this=field(OTHER, "count"), expression=number(1))
        found = struct(number=cast(ordinal, BIGINT), match=field(START, "best"))
        chosen = struct(
            next=self._next(),
            count=cast(ordinal.copy(), BIGINT),
            found=concat(field(OTHER, "found"), array(found)),
            starts=field(OTHER, "starts"),
        )
        kept = struct(
            next=field(OTHER, "next"),
            count=field(OTHER, "count"),
            found=field(OTHER, "found"),
            starts=concat(field(OTHER, "starts"), array(exp.column(identifier(START)))),
        )
        branches = [
            exp.If(this=dropped, true=exp.column(identifier(OTHER))),
            exp.If(this=exp.and_(is_decided, is_first), true=chosen),
        ]
        settle = exp.Case(ifs=branches, default=kept)
        return call("AGGREGATE", starts, so_far, function(settle, OTHER, START))

    def _follows_first(self) -> exp.Expr | None:
        """Whether the first undecided start has, or will have, a match that covers this one, wherever this one has one.

        Its match can only grow. And where it waits in every state in which this one waits, a row with which this one
        accepts is one with which the first accepts: so starts do not pile up while a pattern like ``A+ B`` waits for B.
        """
        if self.recognizer.skip.mode != "past last row":
            return None
        end: exp.Expr = field(FIRST, "best", "held", POSITION)
        within = exp.LTE(this=field(START, "start"), expression=call("COALESCE", end, number(0)))
        same: exp.Expr = exp.EQ(this=field(THREAD, "state"), expression=field(AHEAD, "state"))
        if self.recognizer.tested:
            alike = exp.NullSafeEQ(this=field(THREAD, "tested"), expression=field(AHEAD, "tested"))
            same = exp.and_(same, alike)
        is_ahead = has_none(field(FIRST, "threads"), THREAD, same)
        has_no_other = has_none(field(START, "threads"), AHEAD, is_ahead)
        has_no_match = exp.Is(this=field(START, "best", "held", POSITION), expression=exp.Null())
        follows = exp.or_(within, exp.and_(has_no_match, has_no_other))
        firsts = call("SLICE", field(OTHER, "starts"), number(1), number(1))
        return call("COALESCE", element(transform(firsts, FIRST, follows), 1), exp.false())

    def _next(self) -> exp.Expr:
        """Where the next match may begin behind a chosen one."""
        skip = self.recognizer.skip
        start = field(START, "start")
        if skip.mode == "to next row":
            return exp.Add(this=start, expression=number(1))
        if skip.target is None:
            return exp.Add(this=field(START, "best", "held", POSITION), expression=number(1))
        target = field(START, "best", "held", skip.target)
        message = (
            f"MATCH_RECOGNIZE: AFTER MATCH SKIP {skip.mode.upper()} {skip.written} "
            "leads to no row behind the first one of a match"
        )
        is_behind = exp.GT(this=target, expression=start)
        return if_else(is_behind, target.copy(), raise_error(message, INT.text))
