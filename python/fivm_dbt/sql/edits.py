"""Edits of a query's text say what is put in where; everything else stays letter by letter."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from fivm_dbt.errors import FivmError, Span
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.places import notes
from fivm_dbt.naming import quote
from fivm_dbt.sql.parse import span_of


@dataclass(frozen=True)
class Edit:
    """``length`` characters from ``position`` on are replaced by ``text``."""

    position: int
    length: int
    text: str


def edited(sql: str, edits: Iterable[Edit]) -> str:
    """``sql`` with the edits, which do not overlap; of several at one place the first comes first.

    >>> edited("select a from r", [Edit(7, 1, "b"), Edit(15, 0, " x"), Edit(15, 0, " y")])
    'select b from r x y'
    """
    parts, done = [], 0
    for edit in sorted(edits, key=lambda e: e.position):
        parts += [sql[done : edit.position], edit.text]
        done = edit.position + edit.length
    return "".join([*parts, sql[done:]])


def one_after_the_other(sql: str, first: tuple[Edit, ...], then: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Edits of ``sql`` that come to the same as some, and then others of the text that these have made.

    >>> one_after_the_other("f(a), g(b)", (Edit(0, 1, "max"),), (Edit(8, 1, "min"),))
    (Edit(position=0, length=7, text='max(a), min'),)
    """
    if not first or not then:
        return first or then
    text = edited(edited(sql, first), then)
    before = _alike(sql, text)
    after = _alike(sql[before:][::-1], text[before:][::-1])
    return (Edit(before, len(sql) - before - after, text[before : len(text) - after]),)


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))


def named(sql: str, edits: Iterable[Edit], names: Iterable[str]) -> tuple[Edit, ...]:
    """The edits, and those that give the columns of the query the names that they had before.

    >>> print(edited("select max(a) from r;", named("select max(a) from r;", [], ["max(a)"])))
    SELECT * FROM (
    select max(a) from r
    ) AS completed(`max(a)`);
    """
    tokens = [t for t in Text(sql).tokens if t.token_type != TokenType.SEMICOLON]
    columns = ", ".join(quote(name) for name in names)
    # The text may end with a comment.
    around = (
        Edit(tokens[0].start, 0, "SELECT * FROM (\n"),
        Edit(tokens[-1].end + 1, 0, f"\n) AS completed({columns})"),
    )
    return tuple(sorted((around[0], *edits, around[1]), key=lambda e: e.position))


def without_comments(sql: str) -> str:
    """The text without what has no meaning: comments, and how it is broken into lines.

    >>> without_comments("-- daily\\nselect a,  'two  spaces' /* c */ from `my  table`\\n group\\n by a")
    "select a , 'two  spaces' from `my  table` group by a"
    """
    written = (sql[token.start : token.end + 1] for token in SparkText().tokenize(sql))
    # Of words in quotes, what is between them has a meaning.
    return " ".join(text if text[-1:] in "'\"`" else " ".join(text.split()) for text in written)


class Text:
    """A query's text with its tokens, so that strings, comments and quoted names are never mistaken for clauses."""

    def __init__(self, sql: str) -> None:
        self.sql = sql

    @cached_property
    def tokens(self) -> list[Token]:
        return SparkText().tokenize(self.sql)

    @cached_property
    def _at(self) -> dict[int, int]:
        return {token.start: number for number, token in enumerate(self.tokens)}

    def call(self, node: exp.Expr) -> tuple[int, int, int] | None:
        """The tokens of a function's name, of its opening and of its closing bracket; None where it is not found.

        The parser gives some functions no position: the name then stands before the bracket around the first operand.
        """
        name = self._at.get(notes(node)["start"]) if "start" in notes(node) else self._name_before(node)
        if name is None or not self._is(name + 1, "("):
            return None
        return name, name + 1, self.closing(name + 1)

    def _name_before(self, node: exp.Expr) -> int | None:
        span = span_of(node)
        number = self._at.get(span.start) if span is not None else None
        depth = 0
        while number is not None and number > 0:
            number -= 1
            depth += {")": 1, "(": -1}.get(self.tokens[number].text, 0)
            if depth < 0:
                return number - 1
        return None

    def closing(self, opening: int) -> int:
        """The token of the bracket that closes the one at ``opening``; FIVM101 where none does.

        The parser overlooks some, as that of ``percentile(x``.
        """
        depth = 0
        for number in range(opening, len(self.tokens)):
            depth += self._depth(number)
            if depth == 0:
                return number
        span = Span(self.tokens[opening].start, self.tokens[opening].end + 1)
        raise FivmError("FIVM101", "this bracket is not closed", sql=self.sql, span=span, remedy="close it")

    def _depth(self, number: int) -> int:
        return {
            TokenType.L_PAREN: 1,
            TokenType.L_BRACKET: 1,
            TokenType.L_BRACE: 1,
            TokenType.R_PAREN: -1,
            TokenType.R_BRACKET: -1,
            TokenType.R_BRACE: -1,
        }.get(self.tokens[number].token_type, 0)

    def _is(self, number: int, *words: str) -> bool:
        """Whether there is a token that is one of these words, and not a quoted name or a string."""
        if not 0 <= number < len(self.tokens):
            return False
        token = self.tokens[number]
        quoted = token.token_type in (TokenType.IDENTIFIER, TokenType.STRING)
        return not quoted and token.text.upper() in words

    def stands_at(self, name: exp.Identifier) -> int | None:
        """The token of an identifier; None of one that the parser has put in."""
        number = self._at.get(notes(name).get("start", -1))
        return number if number is not None and self.tokens[number].text == name.name else None

    def token_at(self, position: int) -> int | None:
        """The token that begins at a position of the text."""
        return self._at.get(position)

    def opening_before(self, alias: exp.Identifier) -> int | None:
        """The opening bracket of the subquery that an alias stands behind."""
        number = self.stands_at(alias)
        number = number - 1 if number is not None else None
        if number is not None and self._is(number, "AS"):
            number -= 1
        if number is None or not self._is(number, ")"):
            return None
        depth = 0
        while number >= 0:
            depth += self._depth(number)
            if depth == 0:
                return number
            number -= 1
        return None

    def arguments(self, opening: int, closing: int) -> list[tuple[int, int]]:
        """The first and last token of each argument between brackets."""
        if closing == opening + 1:
            return []
        starts, depth = [opening + 1], 0
        for number in range(opening + 1, closing):
            depth += self._depth(number)
            if depth == 0 and self.tokens[number].token_type == TokenType.COMMA:
                starts.append(number + 1)
        return list(zip(starts, [*(s - 2 for s in starts[1:]), closing - 1], strict=True))

    def behind(self, closing: int, word: str) -> int | None:
        """The token ``word`` that belongs to the call that ends at ``closing``: FILTER, WITHIN or OVER."""
        number = closing + 1
        while self._is(
            number, "FILTER", "WITHIN", "WITHIN GROUP", "GROUP", "IGNORE", "RESPECT", "NULLS", "OVER", "("
        ):
            if self._is(number, word):
                return number
            if self._is(number, "OVER"):
                return None
            number = self.closing(number) + 1 if self._is(number, "(") else number + 1
        return None

    def end_of_call(self, closing: int) -> int:
        """The last token of what belongs to the call that ends at ``closing``."""
        end = closing
        over = self.behind(closing, "OVER")
        if over is not None:
            return self.closing(over + 1) if self._is(over + 1, "(") else over + 1
        condition, group = self.behind(closing, "FILTER"), self.within_group(closing)
        for opening in (None if condition is None else condition + 1, group):
            end = end if opening is None else max(end, self.closing(opening))
        return end

    def end_of_nulls(self, closing: int) -> int:
        """The last token of IGNORE NULLS or RESPECT NULLS behind the call that ends at ``closing``, else that."""
        words = self.tokens[closing + 1 : closing + 3]
        if words and words[0].text.upper() in ("IGNORE NULLS", "RESPECT NULLS"):
            return closing + 1
        is_pair = self._is(closing + 1, "IGNORE", "RESPECT") and self._is(closing + 2, "NULLS")
        return closing + 2 if is_pair else closing

    def within_group(self, closing: int) -> int | None:
        """The opening bracket of the WITHIN GROUP that belongs to the call that ends at ``closing``."""
        found = self.behind(closing, "GROUP") or self.behind(closing, "WITHIN GROUP")
        return None if found is None else found + 1

    def end_of_window_order(self, opening: int, *, framed: bool) -> int:
        """The last token before the frame of a window in brackets, or before its closing bracket."""
        end, depth = self.closing(opening), 0
        frame = end
        for number in range(opening + 1, end):
            depth += self._depth(number)
            if framed and depth == 0 and self._is(number, "ROWS", "RANGE"):
                frame = number
        return frame - 1

    def window_order(self, opening: int, *, framed: bool) -> list[str]:
        """The items of the ORDER BY of a window in brackets, without their directions."""
        last, depth, first = self.end_of_window_order(opening, framed=framed), 0, None
        for number in range(opening + 1, last + 1):
            depth += self._depth(number)
            if depth == 0 and self._is(number, "ORDER BY", "SORT BY"):
                first = number + 1
        if first is None:
            return []
        items = []
        for start, end in self.arguments(first - 1, last + 1):
            while self._is(end, "ASC", "DESC", "NULLS", "FIRST", "LAST"):
                end -= 1
            items.append(self.slice(start, end))
        return items

    def end_of_order(self, order: exp.Expr) -> int | None:
        """The last token of the ORDER BY of a query; None where it is not found."""
        span = span_of(order)
        number = self._at.get(span.start) if span is not None else None
        while number is not None and self.tokens[number].token_type != TokenType.ORDER_BY:
            number = number - 1 if number else None
        if number is None:
            return None
        depth = 0
        while number + 1 < len(self.tokens):
            depth += self._depth(number + 1)
            ends = self._is(number + 1, "LIMIT", "OFFSET", "|>", ";")
            if depth < 0 or (depth == 0 and ends):
                break
            number += 1
        return number

    def slice(self, first: int, last: int) -> str:
        """The text from one token to another."""
        return self.sql[self.start(first) : self.end(last)]

    def start(self, number: int) -> int:
        return int(self.tokens[number].start)

    def end(self, number: int) -> int:
        """Where a token ends: the position behind it."""
        return int(self.tokens[number].end) + 1
