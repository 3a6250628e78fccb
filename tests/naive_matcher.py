"""MATCH_RECOGNIZE by plain backtracking over a list of rows: what the automaton is compared with.

It follows the words of SQL:2016 and shares nothing with the planner: patterns and expressions are trees of their own,
which print themselves as SQL, a matcher tries everything in the order of preference, and every function over rows looks
the rows of its variable up anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

RowOf = dict[str, Any]


class Endless(Exception):
    """AFTER MATCH SKIP leads to the first row of the match, or to no row."""


# Patterns


@dataclass(frozen=True)
class Var:
    name: str

    def sql(self) -> str:
        return self.name


@dataclass(frozen=True)
class Seq:
    parts: tuple[Any, ...]

    def sql(self) -> str:
        return " ".join(f"({p.sql()})" if isinstance(p, (Alt, Seq)) else p.sql() for p in self.parts)


@dataclass(frozen=True)
class Alt:
    parts: tuple[Any, ...]

    def sql(self) -> str:
        return " | ".join(p.sql() for p in self.parts)


@dataclass(frozen=True)
class Rep:
    part: Any
    least: int
    most: int | None
    sign: str

    def sql(self) -> str:
        inner = self.part.sql()
        return f"{inner if isinstance(self.part, Var) else f'({inner})'}{self.sign}"


def names_of(pattern: Any) -> set[str]:
    if isinstance(pattern, Var):
        return {pattern.name}
    parts = [pattern.part] if isinstance(pattern, Rep) else pattern.parts
    return set().union(*(names_of(p) for p in parts))


def may_be_empty(pattern: Any) -> bool:
    if isinstance(pattern, Var):
        return False
    if isinstance(pattern, Rep):
        return pattern.least == 0 or may_be_empty(pattern.part)
    return (any if isinstance(pattern, Alt) else all)(may_be_empty(p) for p in pattern.parts)


# Expressions


@dataclass(frozen=True)
class Context:
    """A match as far as it is known: rows from ``start`` on have these labels; ``number`` is that of the match."""

    rows: list[RowOf]
    start: int
    labels: tuple[str, ...]
    number: int = 0

    def of(self, variable: str | None) -> list[int]:
        """Where the rows of a variable are, or of all."""
        return [self.start + i for i, label in enumerate(self.labels) if variable in (None, label)]

    def at(self, position: int | None, column: str) -> Any:
        if position is None or not 0 <= position < len(self.rows):
            return None
        return self.rows[position][column]


def _named(variable: str | None, column: str) -> str:
    return f"{variable}.{column}" if variable else column


@dataclass(frozen=True)
class Nav:
    """FIRST or LAST of a variable's column, and PREV (negative) or NEXT of that; LAST may be left unsaid."""

    variable: str | None
    column: str
    is_first: bool = False
    offset: int = 0
    is_plain: bool = True

    def sql(self) -> str:
        name = _named(self.variable, self.column)
        inner = f"FIRST({name})" if self.is_first else name if self.is_plain else f"LAST({name})"
        if not self.offset:
            return inner
        count = "" if abs(self.offset) == 1 else f", {abs(self.offset)}"
        return f"{'NEXT' if self.offset > 0 else 'PREV'}({inner}{count})"

    def value(self, of: Context) -> Any:
        positions = of.of(self.variable)
        if not positions:
            return None
        return of.at((positions[0] if self.is_first else positions[-1]) + self.offset, self.column)


@dataclass(frozen=True)
class Agg:
    function: str
    variable: str | None
    column: str | None

    def sql(self) -> str:
        if self.column is None:
            return f"{self.function}({self.variable}.*)" if self.variable else f"{self.function}(*)"
        return f"{self.function}({_named(self.variable, self.column)})"

    def value(self, of: Context) -> Any:
        positions = of.of(self.variable)
        if self.column is None:
            return len(positions)
        values = [v for p in positions if (v := of.rows[p][self.column]) is not None]
        if self.function == "count":
            return len(values)
        if not values:
            return None
        if self.function == "avg":
            return sum(values) / len(values)
        return {"sum": sum, "min": min, "max": max}[self.function](values)


@dataclass(frozen=True)
class Const:
    number: int

    def sql(self) -> str:
        return str(self.number)

    def value(self, of: Context) -> Any:
        return self.number


@dataclass(frozen=True)
class Plus:
    left: Any
    right: Any

    def sql(self) -> str:
        return f"({self.left.sql()} + {self.right.sql()})"

    def value(self, of: Context) -> Any:
        left, right = self.left.value(of), self.right.value(of)
        return None if left is None or right is None else left + right


@dataclass(frozen=True)
class Classifier:
    def sql(self) -> str:
        return "CLASSIFIER()"

    def value(self, of: Context) -> Any:
        return of.labels[-1]


@dataclass(frozen=True)
class MatchNumber:
    def sql(self) -> str:
        return "MATCH_NUMBER()"

    def value(self, of: Context) -> Any:
        return of.number


@dataclass(frozen=True)
class Compare:
    sign: str
    left: Any
    right: Any

    def sql(self) -> str:
        return f"{self.left.sql()} {self.sign} {self.right.sql()}"

    def value(self, of: Context) -> Any:
        left, right = self.left.value(of), self.right.value(of)
        if left is None or right is None:
            return None
        return {
            "<": left < right,
            ">": left > right,
            "=": left == right,
            "<>": left != right,
            ">=": left >= right,
        }[self.sign]


@dataclass(frozen=True)
class Logic:
    """AND or OR with unknown values."""

    word: str
    left: Any
    right: Any

    def sql(self) -> str:
        return f"({self.left.sql()} {self.word} {self.right.sql()})"

    def value(self, of: Context) -> Any:
        values = (self.left.value(of), self.right.value(of))
        decisive = self.word == "or"
        if decisive in values:
            return decisive
        return None if None in values else not decisive


@dataclass(frozen=True)
class IsNull:
    inner: Any

    def sql(self) -> str:
        return f"{self.inner.sql()} IS NULL"

    def value(self, of: Context) -> Any:
        return self.inner.value(of) is None


# The clause


@dataclass(frozen=True)
class Measure:
    name: str
    value: Any
    mode: str = ""

    def sql(self) -> str:
        return f"{self.mode} {self.value.sql()} AS {self.name}".strip()


@dataclass(frozen=True)
class Clause:
    """A MATCH_RECOGNIZE over rows k, t, ...: partitioned by k and ordered by t."""

    pattern: Any
    define: dict[str, Any]
    measures: tuple[Measure, ...]
    skip: tuple[str, str | None] = ("past last row", None)
    all_rows: bool = False
    at_start: bool = False
    at_end: bool = False

    def sql(self) -> str:
        mode, variable = self.skip
        define = ", ".join(f"{name} AS {condition.sql()}" for name, condition in self.define.items())
        return (
            "MATCH_RECOGNIZE (PARTITION BY k ORDER BY t "
            f"MEASURES {', '.join(m.sql() for m in self.measures)} "
            f"{'ALL ROWS' if self.all_rows else 'ONE ROW'} PER MATCH "
            f"AFTER MATCH SKIP {mode.upper()}{f' {variable}' if variable else ''} "
            f"PATTERN ({'^ ' * self.at_start}{self._bracketed()}{' $' * self.at_end})"
            f"{f' DEFINE {define}' if define else ''})"
        )

    def _bracketed(self) -> str:
        text = self.pattern.sql()
        return f"({text})" if isinstance(self.pattern, Alt) else text

    def rows(self, rows: list[RowOf]) -> list[tuple[Any, ...]]:
        """The measures of each match in the ordered rows of one partition; of each row of it, with t before."""
        result: list[tuple[Any, ...]] = []
        for number, (start, labels) in enumerate(self.matches(rows), start=1):
            final = Context(rows, start, labels, number)
            if not self.all_rows:
                result.append(tuple(m.value.value(final) for m in self.measures))
                continue
            for length in range(1, len(labels) + 1):
                running = Context(rows, start, labels[:length], number)
                shown = [m.value.value(final if m.mode == "FINAL" else running) for m in self.measures]
                result.append((rows[start + length - 1]["t"], *shown))
        return result

    def matches(self, rows: list[RowOf]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """First row and labels of each match, in their order."""
        start = 0
        while start < len(rows):
            labels = self._best(rows, start)
            if labels is None:
                start += 1
                continue
            yield start, labels
            start = self._behind(start, labels)

    def _best(self, rows: list[RowOf], start: int) -> tuple[str, ...] | None:
        if self.at_start and start > 0:
            return None
        for labels in self._ways(self.pattern, rows, start, ()):
            if not self.at_end or start + len(labels) == len(rows):
                return labels
        return None

    def _behind(self, start: int, labels: tuple[str, ...]) -> int:
        mode, variable = self.skip
        if mode == "past last row":
            return start + len(labels)
        if mode == "to next row":
            return start + 1
        places = [start + i for i, label in enumerate(labels) if label == variable]
        if not places or (target := places[0] if mode == "to first" else places[-1]) == start:
            raise Endless
        return target

    def _ways(
        self, pattern: Any, rows: list[RowOf], start: int, labels: tuple[str, ...]
    ) -> Iterator[tuple[str, ...]]:
        """All ways to go on from these labels with the pattern, the preferred first."""
        if isinstance(pattern, Var):
            longer = (*labels, pattern.name)
            if start + len(longer) > len(rows):
                return
            condition = self.define.get(pattern.name)
            if condition is None or condition.value(Context(rows, start, longer)) is True:
                yield longer
        elif isinstance(pattern, Seq):
            yield from self._in_sequence(pattern.parts, rows, start, labels)
        elif isinstance(pattern, Alt):
            for part in pattern.parts:
                yield from self._ways(part, rows, start, labels)
        else:
            yield from self._repeated(pattern, rows, start, labels, 0)

    def _in_sequence(
        self, parts: tuple[Any, ...], rows: list[RowOf], start: int, labels: tuple[str, ...]
    ) -> Iterator[tuple[str, ...]]:
        if not parts:
            yield labels
            return
        for way in self._ways(parts[0], rows, start, labels):
            yield from self._in_sequence(parts[1:], rows, start, way)

    def _repeated(
        self, pattern: Rep, rows: list[RowOf], start: int, labels: tuple[str, ...], done: int
    ) -> Iterator[tuple[str, ...]]:
        """Once more if possible, and then the way without. An iteration that is not asked for takes a row."""
        if pattern.most is None or done < pattern.most:
            for way in self._ways(pattern.part, rows, start, labels):
                if len(way) > len(labels) or done < pattern.least:
                    yield from self._repeated(pattern, rows, start, way, done + 1)
        if done >= pattern.least:
            yield labels
