"""The conditions of a pattern tell which rows no match has: its separators."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.features.match.ir.match import Recognizer, conditions_of_row
from fivm_dbt.features.match.ir.regular import Regular
from fivm_dbt.ir.scalar import Scalar


def separator(recognizer: Recognizer, columns: frozenset[str]) -> Scalar | None:
    """1 for a row, over ROW, that no match has, else 0. None where the conditions do not tell.

    A variable takes a row only if all holds that its condition asks of the row's own ``columns``. What it asks beside
    that, of other rows, is left out: then some rows are no separators that might be. A variable without such a
    condition may take any row.

    >>> from fivm_dbt.features.match.ir.automaton import automaton
    >>> from fivm_dbt.features.match.ir.match import ROW, Skip
    >>> from fivm_dbt.features.match.ir.syntax import parse_pattern
    >>> late = ("late", Scalar.parse(f"{ROW}.delay > 15"))
    >>> one, skip, way = parse_pattern("late+"), Skip("past last row"), Regular(("late",), "1+", (), None)
    >>> found = Recognizer("late+", automaton(one), (late,), (), (), skip, False, regular=way)
    >>> separator(found, frozenset({"delay"})).sql
    'CASE WHEN __fivm_row.delay > 15 THEN 0 ELSE 1 END'
    """
    automaton = recognizer.automaton
    # Anchors look at other rows than those of a match. The automaton would test rows that it has not come to.
    is_regular = isinstance(recognizer.regular, Regular)
    if not is_regular or recognizer.per_part or automaton.at_start or automaton.at_end:
        return None
    conditions = dict(recognizer.conditions)
    asked = [_of_row(conditions.get(v), columns) for v in dict.fromkeys(automaton.symbols)]
    known = [condition for condition in asked if condition is not None]
    if len(known) < len(asked):
        return None
    taken = exp.or_(*(c.ast() for c in known), copy=False)
    one, zero = exp.Literal.number(1), exp.Literal.number(0)
    return Scalar(exp.Case(ifs=[exp.If(this=taken, true=zero)], default=one))


def _of_row(condition: Scalar | None, columns: frozenset[str]) -> Scalar | None:
    """What a condition asks of a row's own columns; None if nothing."""
    own = () if condition is None else conditions_of_row(condition, columns)
    return Scalar(exp.and_(*(p.ast() for p in own), copy=False)) if own else None
