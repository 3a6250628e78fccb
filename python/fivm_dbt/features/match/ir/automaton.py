"""A pattern becomes an automaton: a state for each place where a variable stands, without empty moves.

Thompson's construction with the empty moves closed over at once (Glushkov's positions). A matcher that backtracks tries
one more iteration before it leaves a loop, and alternatives from left to right; the moves of a state are listed in that
order of preference, as in a Pike VM (R. Cox, "Regular Expression Matching: the Virtual Machine Approach").
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, product

from fivm_dbt.features.match.ir.syntax import Alternation, Anchored, Pattern, Repetition, Sequence, Variable

ACCEPT = 0
"""Among the moves of a state: the rows so far are a match."""

MAX_STATES = 256
"""More states than anybody writes: bounds are unrolled, so that ``(A{100}){100}`` would be ten thousand."""


class TooManyStates(Exception):
    """The pattern unrolls to more than MAX_STATES states."""


@dataclass(frozen=True)
class Automaton:
    """``symbols[i - 1]`` is the variable of state i. A thread that waits in a state takes the next row if that row is
    one for the variable, and then waits in each of ``follow[i - 1]``; those before ACCEPT are preferred to a match
    that ends here. ``first`` is where it begins.
    """

    first: tuple[int, ...]
    symbols: tuple[str, ...]
    follow: tuple[tuple[int, ...], ...]
    at_start: bool = False
    at_end: bool = False

    @property
    def is_nullable(self) -> bool:
        """Whether no row at all is a match."""
        return ACCEPT in self.first

    @property
    def shortest(self) -> int:
        """How many rows a match has at least.

        >>> from fivm_dbt.features.match.ir.syntax import parse_pattern
        >>> [automaton(parse_pattern(text)).shortest for text in ("A", "A{3,} B?", "A (B C | D) E+", "A | B C")]
        [1, 3, 3, 1]
        """
        reached, rows = set(self.first), 0
        while ACCEPT not in reached:
            reached, rows = {state for i in reached for state in self.follow[i - 1]}, rows + 1
        return rows

    @property
    def is_loop(self) -> bool:
        """Whether a match is as many rows of one variable as there are, if these are enough.

        >>> from fivm_dbt.features.match.ir.syntax import parse_pattern
        >>> [automaton(parse_pattern(text)).is_loop for text in ("A+", "A{3,}", "A A+", "A{2,3}", "A B+", "^A+")]
        [True, True, True, False, False, False]
        """
        states = range(1, len(self.symbols) + 1)
        chain = (*((state,) for state in states[1:]), (len(self.symbols), ACCEPT))
        is_anchored = self.at_start or self.at_end
        return (
            not is_anchored and len(set(self.symbols)) == 1 and (self.first, *self.follow) == ((1,), *chain)
        )

    def states_of(self, variable: str) -> tuple[int, ...]:
        return tuple(i for i, symbol in enumerate(self.symbols, start=1) if symbol == variable)

    @property
    def may_meet(self) -> bool:
        """Whether two threads of one start can come to wait in the same state.

        >>> from fivm_dbt.features.match.ir.syntax import parse_pattern
        >>> [automaton(parse_pattern(text)).may_meet for text in ("A B+ C", "A B | A C", "A (B | C)+", "A* B? A")]
        [False, False, True, True]
        """
        waiting = [pair for moves in (self.first, *self.follow) for pair in combinations(moves, 2)]
        seen: set[tuple[int, int]] = set()
        while waiting:
            one, other = pair = waiting.pop()
            if ACCEPT in pair or pair in seen:
                continue
            seen.add(pair)
            moves, others = self.follow[one - 1], self.follow[other - 1]
            if (set(moves) & set(others)) - {ACCEPT}:
                return True
            waiting += product(moves, others)
        return False


def automaton(anchored: Anchored) -> Automaton:
    """The automaton of a pattern. Raises TooManyStates.

    >>> from fivm_dbt.features.match.ir.syntax import parse_pattern
    >>> automaton(parse_pattern("A (B | C)*"))  # doctest: +NORMALIZE_WHITESPACE
    Automaton(first=(1,), symbols=('A', 'B', 'C'), follow=((2, 3, 0), (2, 3, 0), (2, 3, 0)), at_start=False,
              at_end=False)
    """
    compiler = _Compiler(is_cut=not anchored.at_end)
    first, follow = compiler.closed(anchored.pattern)
    number = _in_order(first, follow)
    moves = {
        number[state]: tuple(number[s] for s in follow[state - 1]) for state in number if state != ACCEPT
    }
    symbols = {number[state]: compiler.symbols[state - 1] for state in number if state != ACCEPT}
    return Automaton(
        tuple(number[state] for state in first),
        tuple(symbols[i] for i in sorted(symbols)),
        tuple(moves[i] for i in sorted(moves)),
        anchored.at_start,
        anchored.at_end,
    )


def _in_order(first: tuple[int, ...], follow: tuple[tuple[int, ...], ...]) -> dict[int, int]:
    """Numbers for the states that can be reached, in the order in which they are."""
    number = {ACCEPT: ACCEPT}
    waiting = list(first)
    for state in waiting:
        if state not in number:
            number[state] = len(number)
            waiting += follow[state - 1]
    return number


@dataclass
class _Instruction:
    """Takes a row in ``state``, or splits into ``out`` in order of preference. Neither: accepts."""

    state: int | None = None
    out: tuple[int, ...] = ()


class _Compiler:
    """Instructions are compiled from the end of the pattern: each part knows what comes behind it."""

    def __init__(self, *, is_cut: bool) -> None:
        self.symbols: list[str] = []
        self.program: list[_Instruction] = [_Instruction()]
        self.is_cut = is_cut

    def closed(self, pattern: Pattern) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...]]:
        entry = self._part(pattern, 0)
        taking = {i.state: i for i in self.program if i.state is not None}
        follow = tuple(self._reached(taking[state].out[0]) for state in range(1, len(self.symbols) + 1))
        return self._reached(entry), follow

    def _part(self, pattern: Pattern, behind: int) -> int:
        """Where ``pattern`` begins, if ``behind`` is what comes after it."""
        if isinstance(pattern, Variable):
            self.symbols.append(pattern.name)
            if len(self.symbols) > MAX_STATES:
                raise TooManyStates
            return self._add(_Instruction(len(self.symbols), (behind,)))
        if isinstance(pattern, Sequence):
            for part in reversed(pattern.parts):
                behind = self._part(part, behind)
            return behind
        if isinstance(pattern, Alternation):
            return self._add(_Instruction(out=tuple(self._part(part, behind) for part in pattern.parts)))
        return self._repeated(pattern, behind)

    def _repeated(self, pattern: Repetition, behind: int) -> int:
        """``X{n,m}`` is ``X … X (X (X …)?)?`` and ``X{n,}`` is ``X … X X+``, or ``X*``."""
        unrolled = pattern.least
        if pattern.most is None:
            loop = _Instruction()
            entry = self._add(loop)
            body = self._part(pattern.part, entry)
            loop.out = (body, behind)
            behind = entry if pattern.least == 0 else body
            unrolled = max(pattern.least - 1, 0)
        else:
            after = behind
            for _ in range(pattern.most - pattern.least):
                behind = self._add(_Instruction(out=(self._part(pattern.part, behind), after)))
        for _ in range(unrolled):
            behind = self._part(pattern.part, behind)
        return behind

    def _add(self, instruction: _Instruction) -> int:
        self.program.append(instruction)
        return len(self.program) - 1

    def _reached(self, entry: int) -> tuple[int, ...]:
        """The states that an instruction leads to without a row, the most preferred first.

        An instruction is followed once: a second time would be an iteration without a row, or less preferred. What is
        less preferred than a match at once is never needed, unless such a match may be turned down ($).
        """
        found: list[int] = []
        seen: set[int] = set()
        waiting = [entry]
        while waiting:
            number = waiting.pop()
            if number in seen:
                continue
            seen.add(number)
            instruction = self.program[number]
            if instruction.state is not None:
                found.append(instruction.state)
            elif instruction.out:
                waiting.extend(reversed(instruction.out))
            else:
                found.append(ACCEPT)
                if self.is_cut:
                    break
        return tuple(found)
