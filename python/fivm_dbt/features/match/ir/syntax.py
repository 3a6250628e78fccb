"""The row patterns of MATCH_RECOGNIZE are read from text to tree (SQL:2016, row pattern recognition)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """One row that the variable's condition takes."""

    name: str


@dataclass(frozen=True)
class Sequence:
    """One part after the other."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Alternation:
    """One of the parts; those further left are preferred."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Repetition:
    """At least ``least`` and at most ``most`` times (None: any number); more are preferred to fewer."""

    part: Pattern
    least: int
    most: int | None


Pattern = Variable | Sequence | Alternation | Repetition


@dataclass(frozen=True)
class Anchored:
    """A pattern that has to begin at the first row of the partition, or to end at its last."""

    pattern: Pattern
    at_start: bool = False
    at_end: bool = False


class PatternError(Exception):
    """What cannot be read, where in the text it stands, and whether it is SQL that is not maintained."""

    def __init__(self, what: str, start: int, end: int, remedy: str, *, is_refused: bool = False) -> None:
        super().__init__(what)
        self.what, self.start, self.end = what, start, end
        self.remedy, self.is_refused = remedy, is_refused


_TOKEN = re.compile(r"\s+|/\*.*?\*/|(`[^`]*`|\w+|\{-|-\}|.)", re.DOTALL)
_QUANTIFIERS = {"*": (0, None), "+": (1, None), "?": (0, 1)}


@dataclass(frozen=True)
class _Token:
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def parse_pattern(text: str) -> Anchored:
    """The tree of a pattern. Raises PatternError, with positions in ``text``.

    >>> parse_pattern("A (B | C)+").pattern  # doctest: +NORMALIZE_WHITESPACE
    Sequence(parts=(Variable(name='A'), Repetition(part=Alternation(parts=(Variable(name='B'), Variable(name='C'))),
             least=1, most=None)))
    """
    return _Parser(text).whole()


def variables(pattern: Pattern) -> tuple[str, ...]:
    """The variables of a pattern in the order in which they first occur.

    >>> variables(parse_pattern("A (B A)* C").pattern)
    ('A', 'B', 'C')
    """
    return tuple(dict.fromkeys(_names(pattern)))


def _names(pattern: Pattern) -> Iterator[str]:
    if isinstance(pattern, Variable):
        yield pattern.name
    elif isinstance(pattern, Repetition):
        yield from _names(pattern.part)
    else:
        for part in pattern.parts:
            yield from _names(part)


def written(pattern: Pattern) -> str:
    """The pattern as text, with the brackets that it needs.

    >>> written(parse_pattern("(A(B|C ){2,})?  ").pattern)
    '(A (B | C){2,})?'
    """
    if isinstance(pattern, Variable):
        return pattern.name
    if isinstance(pattern, Sequence):
        return " ".join(
            f"({written(p)})" if isinstance(p, Alternation) else written(p) for p in pattern.parts
        )
    if isinstance(pattern, Alternation):
        return " | ".join(written(p) for p in pattern.parts)
    inner = written(pattern.part)
    return f"{inner if isinstance(pattern.part, Variable) else f'({inner})'}{quantifier(pattern)}"


def quantifier(pattern: Repetition) -> str:
    bounds = (pattern.least, pattern.most)
    known = next((sign for sign, pair in _QUANTIFIERS.items() if pair == bounds), None)
    if known is not None:
        return known
    if pattern.least == pattern.most:
        return f"{{{pattern.least}}}"
    return f"{{{pattern.least},{'' if pattern.most is None else pattern.most}}}"


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        found = (m for m in _TOKEN.finditer(text) if m.group(1) is not None)
        self.tokens = [_Token(m.group(1), m.start(1)) for m in found]
        self.at = 0

    def whole(self) -> Anchored:
        at_start = self._take("^")
        if self._peek() in ("", "$"):
            raise self._error("the pattern is empty", "name a variable")
        pattern = self._alternation()
        at_end = self._take("$")
        if self._peek():
            raise self._error(f"{self._peek()} is not expected here", "correct the pattern")
        if self._has_open_alternatives() and (at_start or at_end):
            # The anchor belongs to one alternative, as in ^A | B.
            raise PatternError(
                "an anchor of one alternative is not maintained",
                0,
                len(self.text),
                "put the alternatives in brackets, if the anchor is meant for all",
                is_refused=True,
            )
        return Anchored(pattern, at_start, at_end)

    def _has_open_alternatives(self) -> bool:
        depth = 0
        for token in self.tokens:
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if depth == 0 and token.text == "|":
                return True
        return False

    def _alternation(self) -> Pattern:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Alternation(tuple(parts))

    def _sequence(self) -> Pattern:
        parts = []
        while self._peek() not in ("", "|", ")", "$"):
            parts.append(self._factor())
        if not parts:
            raise self._error("a variable is missing here", "correct the pattern")
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _factor(self) -> Pattern:
        part = self._primary()
        sign = self._peek()
        if sign in _QUANTIFIERS:
            self.at += 1
            least, most = _QUANTIFIERS[sign]
        elif sign == "{":
            least, most = self._bounds()
        else:
            return part
        if self._peek() == "?":
            raise self._refused("a reluctant quantifier is not maintained", "leave out the question mark")
        if self._peek() in ("*", "+", "{"):
            raise self._error("two quantifiers in a row", "put the inner one in brackets")
        return Repetition(part, least, most)

    def _bounds(self) -> tuple[int, int | None]:
        opening = self.tokens[self.at]
        self.at += 1
        least = self._number()
        if self._take("}"):
            bounds = (least, least)
        else:
            bounds = (0 if least is None else least, self._number() if self._take(",") else -1)
            if not self._take("}"):
                bounds = (None, None)
        low, high = bounds
        if low is None or (high is not None and (high < low or high == 0)):
            raise PatternError(
                "the bounds of a quantifier are {n}, {n,}, {,m} or {n,m} with 0 <= n <= m and m > 0",
                opening.start,
                max(opening.end, self.tokens[min(self.at, len(self.tokens)) - 1].end),
                "correct the bounds",
            )
        return low, high

    def _number(self) -> int | None:
        text = self._peek()
        if not text.isdecimal():
            return None
        self.at += 1
        return int(text)

    def _primary(self) -> Pattern:
        text = self._peek()
        if text == "(":
            return self._group()
        if text == "{-":
            raise self._refused(
                "an exclusion {- -} is not maintained", "leave it out and filter by CLASSIFIER()"
            )
        if text == "^":
            raise self._refused("^ is maintained at the beginning of the pattern alone", "put it in front")
        if text.upper() == "PERMUTE" and self._peek(1) == "(":
            raise self._refused("PERMUTE is not maintained", "write the orders as alternatives: (A B | B A)")
        if text.startswith("`") or text.isidentifier():
            self.at += 1
            return Variable(text.strip("`"))
        raise self._error(f"{text} is not expected here", "correct the pattern")

    def _group(self) -> Pattern:
        opening = self.tokens[self.at]
        self.at += 1
        inner = self._alternation()
        if self._peek() == "$":
            raise self._refused(
                "$ is maintained at the end of the pattern alone", "put it behind the brackets"
            )
        if not self._take(")"):
            raise PatternError("this bracket is not closed", opening.start, opening.end, "close it")
        return inner

    def _peek(self, ahead: int = 0) -> str:
        number = self.at + ahead
        return self.tokens[number].text if number < len(self.tokens) else ""

    def _take(self, text: str) -> bool:
        found = self._peek() == text
        self.at += found
        return found

    def _refused(self, what: str, remedy: str) -> PatternError:
        return self._error(what, remedy, is_refused=True)

    def _error(self, what: str, remedy: str, *, is_refused: bool = False) -> PatternError:
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            return PatternError(what, token.start, token.end, remedy, is_refused=is_refused)
        return PatternError(what, max(len(self.text) - 1, 0), len(self.text), remedy, is_refused=is_refused)
