"""A row pattern becomes a regular expression over symbols, where each row can be tested by itself.

The symbol of a row says which variables' conditions it meets. The rows of a partition in their order are then a string,
and a matcher that prefers what is further left, and more iterations to fewer, finds what SQL:2016 prefers. Java's is
such a matcher, and it is compiled code. It backtracks, and it recurses in loops over groups: so what it may be given is
bounded here.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, prod

from fivm_dbt.features.match.ir.syntax import (
    Alternation,
    Anchored,
    Pattern,
    Repetition,
    Sequence,
    Variable,
    quantifier,
    variables,
)

SYMBOLS = "".join(map(chr, (*range(48, 58), *range(65, 91), *range(97, 123), *range(256, 450))))
"""A letter for each set of variables: none means anything in a regular expression, or ends a line."""

MAX_VARIABLES = 8
"""With conditions: a bit each, and 256 letters."""

_STEPS = 10**8
"""So many steps take Java about a second, as long as the automaton takes for the rows that need them at worst."""
_SHOWN = 10**7
"""Letters in the matches of all starts of a partition, which are in memory at once."""
_WAYS = 1_000
_LOOPS = 3
_NESTED = 500
"""Rows in a loop over a group: each iteration takes some of the thread's stack."""


class NotRegular(Exception):
    """Why a pattern is left to the automaton."""


@dataclass(frozen=True)
class Regular:
    """``text`` finds one match. Bit i of a symbol says that the row meets the condition of ``tested[i]``.

    ``captured`` has an expression for each variable where these stand in a row, once each: over a match, its first
    group is what stands before the rows of the variable, its second one these rows. ``longest`` is how many rows a
    partition may have; longer ones are left to the automaton.
    """

    tested: tuple[str, ...]
    text: str
    captured: tuple[tuple[str, str], ...]
    longest: int | None

    @property
    def described(self) -> str:
        """The way in words."""
        bound = f", keys of more than {self.longest} rows by the automaton" if self.longest else ""
        over = f" over ({', '.join(self.tested)})" if self.tested else ""
        return f"by the regular expression {self.text}{over}{bound}"


def regular(anchored: Anchored, tested: tuple[str, ...], *, at_each_row: bool) -> Regular:
    """The regular expression of a pattern whose variables ``tested`` have conditions.

    ``at_each_row``: its matches at all rows are asked for, those within other matches too. Raises NotRegular.

    >>> from fivm_dbt.features.match.ir.syntax import parse_pattern
    >>> regular(parse_pattern("low up{2,} (down | low)"), ("low", "up", "down"), at_each_row=False).text
    '[1357][2367]{2,}[134567]'
    """
    used = tuple(name for name in variables(anchored.pattern) if name in tested)
    if len(used) > MAX_VARIABLES:
        raise NotRegular(f"DEFINE has more than {MAX_VARIABLES} variables")
    if _has_empty_body(anchored.pattern):
        raise NotRegular("a loop whose body may take no row")
    letters = _Letters(used)
    begin, end = "^" * anchored.at_start, "$" * anchored.at_end
    is_open = bool(begin or end) and isinstance(anchored.pattern, Alternation)
    inner = (letters.grouped if is_open else letters.written)(anchored.pattern)
    text = f"{begin}{inner}{end}"
    return Regular(used, text, _captured(letters, anchored.pattern), _longest(anchored, at_each_row))


def _captured(letters: _Letters, pattern: Pattern) -> tuple[tuple[str, str], ...]:
    parts = pattern.parts if isinstance(pattern, Sequence) else (pattern,)
    names = [v.name for p in parts if isinstance(v := p.part if isinstance(p, Repetition) else p, Variable)]
    if len(names) < len(parts) or len(set(names)) < len(names):
        return ()
    texts = [letters.written(p) for p in parts]
    return tuple(
        (name, f"^({''.join(texts[:n])})({texts[n]}){''.join(texts[n + 1 :])}$")
        for n, name in enumerate(names)
    )


@dataclass(frozen=True)
class _Letters:
    """Writes patterns over the symbols of so many variables."""

    tested: tuple[str, ...]

    def written(self, pattern: Pattern) -> str:
        taken = self._taken(pattern)
        if taken is not None:
            return self._class(taken)
        if isinstance(pattern, Repetition):
            return f"{self.grouped(pattern.part)}{quantifier(pattern)}"
        if isinstance(pattern, Sequence):
            return "".join(
                self.grouped(p) if isinstance(p, Alternation) else self.written(p) for p in pattern.parts
            )
        assert isinstance(pattern, Alternation)
        return "|".join(self.written(p) for p in pattern.parts)

    def grouped(self, pattern: Pattern) -> str:
        is_class = self._taken(pattern) is not None
        return self.written(pattern) if is_class else f"(?:{self.written(pattern)})"

    def _taken(self, pattern: Pattern) -> frozenset[int] | None:
        """The symbols that a pattern of one row takes; None for any other."""
        if isinstance(pattern, Variable):
            every = range(2 ** len(self.tested))
            if pattern.name not in self.tested:
                return frozenset(every)
            bit = self.tested.index(pattern.name)
            return frozenset(n for n in every if n >> bit & 1)
        if not isinstance(pattern, Alternation):
            return None
        parts = [self._taken(p) for p in pattern.parts]
        known = [p for p in parts if p is not None]
        return frozenset().union(*known) if len(known) == len(parts) else None

    def _class(self, taken: frozenset[int]) -> str:
        if len(taken) == 2 ** len(self.tested):
            return "."
        letters = "".join(SYMBOLS[n] for n in sorted(taken))
        return letters if len(letters) == 1 else f"[{letters}]"


# What the matcher may be given


def _has_empty_body(pattern: Pattern) -> bool:
    if isinstance(pattern, Variable):
        return False
    if isinstance(pattern, Repetition):
        return _is_nullable(pattern.part) or _has_empty_body(pattern.part)
    return any(_has_empty_body(p) for p in pattern.parts)


def _is_nullable(pattern: Pattern) -> bool:
    if isinstance(pattern, Variable):
        return False
    if isinstance(pattern, Repetition):
        return pattern.least == 0 or _is_nullable(pattern.part)
    return (all if isinstance(pattern, Sequence) else any)(_is_nullable(p) for p in pattern.parts)


def _is_one_row(pattern: Pattern) -> bool:
    if isinstance(pattern, Alternation):
        return all(_is_one_row(p) for p in pattern.parts)
    return isinstance(pattern, Variable)


def _length(pattern: Pattern) -> int | None:
    """How many rows it takes, where it always takes the same number and there is one way to do so."""
    if _is_one_row(pattern):
        return 1
    if isinstance(pattern, Sequence):
        lengths = [_length(p) for p in pattern.parts]
        return None if None in lengths else sum(n for n in lengths if n is not None)
    if isinstance(pattern, Repetition) and pattern.least == pattern.most:
        inner = _length(pattern.part)
        return None if inner is None else inner * pattern.least
    return None


@dataclass(frozen=True)
class _Ways:
    """At most ``number · n ** loops`` ways to take rows of a partition of n rows from one row on."""

    number: int
    loops: int = 0


def _longest(anchored: Anchored, at_each_row: bool) -> int | None:
    """How many rows a partition may have: the work is starts × ways, and what is shown of a start grows too."""
    ways = (_ways if at_each_row or anchored.at_end else _ways_at_end)(anchored.pattern)
    if ways.number > _WAYS or ways.loops > _LOOPS:
        raise NotRegular("too many ways to take the same rows")
    bounds = []
    if ways.loops:
        steps = _SHOWN if at_each_row else _STEPS
        bounds.append(floor((steps / ways.number) ** (1 / (ways.loops + 1))))
    if _has_loop_over_group(anchored.pattern):
        bounds.append(_NESTED)
    return min(bounds, default=None)


def _ways(pattern: Pattern) -> _Ways:
    """The ways that are tried where what follows fails."""
    if isinstance(pattern, Variable) or _is_one_row(pattern):
        return _Ways(1)
    if isinstance(pattern, Sequence):
        return _together([_ways(p) for p in pattern.parts])
    if isinstance(pattern, Alternation):
        parts = [_ways(p) for p in pattern.parts]
        return _Ways(sum(p.number for p in parts), max(p.loops for p in parts))
    if _length(pattern.part) is not None:
        return _Ways(1, 1) if pattern.most is None else _Ways(pattern.most - pattern.least + 1)
    inner = _ways(pattern.part)
    if pattern.most is None:
        raise NotRegular("a loop over a group that takes rows in several ways")
    number = sum(inner.number**n for n in range(pattern.least, pattern.most + 1))
    return _Ways(number, inner.loops * pattern.most)


def _ways_at_end(pattern: Pattern) -> _Ways:
    """The ways that are tried where nothing follows: the first one that is met is taken."""
    if isinstance(pattern, Repetition) and _length(pattern.part) is not None:
        return _Ways(1)
    if not isinstance(pattern, Sequence):
        return _ways(pattern)
    parts = list(pattern.parts)
    met = []
    while parts:
        met.append(_ways_at_end(parts.pop()))
        if not _is_nullable(pattern.parts[len(parts)]):
            break
    return _together([*map(_ways, parts), *met])


def _together(parts: list[_Ways]) -> _Ways:
    return _Ways(prod(p.number for p in parts), sum(p.loops for p in parts))


def _has_loop_over_group(pattern: Pattern) -> bool:
    if isinstance(pattern, Variable):
        return False
    if isinstance(pattern, Repetition):
        is_over_group = pattern.most is None and not _is_one_row(pattern.part)
        return is_over_group or _has_loop_over_group(pattern.part)
    return any(_has_loop_over_group(p) for p in pattern.parts)
