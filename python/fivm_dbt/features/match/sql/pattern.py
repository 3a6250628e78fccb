"""The text of PATTERN becomes an automaton, with positions in the query for what is wrong with it."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.errors import FivmError, Span
from fivm_dbt.features.match.ir.automaton import MAX_STATES, Automaton, TooManyStates, automaton
from fivm_dbt.features.match.ir.match import Register, Skip
from fivm_dbt.features.match.ir.regular import NotRegular, Regular, regular
from fivm_dbt.features.match.ir.syntax import (
    PatternError,
    Repetition,
    Sequence,
    Variable,
    parse_pattern,
    variables,
    written,
)
from fivm_dbt.ir.places import notes
from fivm_dbt.ir.scalar import Scalar


@dataclass(frozen=True)
class WrittenPattern:
    """The pattern of a clause."""

    node: exp.MatchRecognize

    @property
    def is_per_part(self) -> bool:
        """Whether ONE ROW PER PART is asked for."""
        return bool(notes(self.node).get("per_part"))

    @property
    def text(self) -> str:
        """The pattern as it is shown."""
        found = parse_pattern(self._text)
        return f"{'^ ' * found.at_start}{written(found.pattern)}{' $' * found.at_end}"

    @property
    def variables(self) -> tuple[str, ...]:
        """All that stand in the pattern. The automaton lacks those behind an alternative that always does."""
        return variables(parse_pattern(self._text).pattern)

    @property
    def _text(self) -> str:
        return str(self.node.args["pattern"].name)

    def automaton(self) -> Automaton:
        """Raises FIVM101 for what is no pattern, FIVM105 for what is not maintained."""
        try:
            found = automaton(parse_pattern(self._text))
        except PatternError as error:
            code = "FIVM105" if error.is_refused else "FIVM101"
            raise FivmError(
                code, error.what, span=self._within(error.start, error.end), remedy=error.remedy
            ) from None
        except TooManyStates:
            what = f"the pattern has more than {MAX_STATES} places for rows, once its bounds are written out"
            raise self._refused(what, "make the bounds smaller, or use + and count in a condition") from None
        if found.is_nullable:
            what = "the pattern matches no row at all: there would be a match before each row"
            raise self._refused(what, "let it take one row at least, as A+ instead of A*")
        return found

    def regular(
        self, conditions: tuple[tuple[str, Scalar], ...], tested: tuple[Register, ...], skip: Skip
    ) -> Regular | str:
        """The regular expression, or why there is none: what DEFINE asks of a row has to follow from its partition
        alone, not from the match."""
        if self.is_per_part:
            return "ONE ROW PER PART goes from state to state"
        if tested:
            return "DEFINE looks at the match so far"
        if any(condition.may_raise for _, condition in conditions):
            return "DEFINE has a condition that may stop the statement"
        if skip.mode in ("to first", "to last"):
            return f"AFTER MATCH SKIP {skip.mode.upper()} {skip.written}"
        try:
            is_overlapping = skip.mode != "past last row"
            names = tuple(name for name, _ in conditions)
            return regular(parse_pattern(self._text), names, at_each_row=is_overlapping)
        except NotRegular as why:
            return str(why)

    def check_chain(self) -> None:
        """FIVM105 for a pattern that is no chain of variables, each with a plus sign or without."""
        found = parse_pattern(self._text)
        parts = found.pattern.parts if isinstance(found.pattern, Sequence) else (found.pattern,)
        plain = (p.part if isinstance(p, Repetition) and (p.least, p.most) == (1, None) else p for p in parts)
        if found.at_start or found.at_end or not all(isinstance(p, Variable) for p in plain):
            what = "ONE ROW PER PART is for variables in a row, each with + or without"
            raise self._refused(what, "write such a pattern, or leave ONE ROW PER PART out")

    def _refused(self, what: str, remedy: str) -> FivmError:
        return FivmError("FIVM105", what, span=self._within(0, len(self._text)), remedy=remedy)

    def _within(self, start: int, end: int) -> Span | None:
        begin = notes(self.node).get("pattern")
        return Span(begin + start, begin + max(end, start + 1)) if begin is not None else None
