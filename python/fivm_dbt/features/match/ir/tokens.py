"""MATCH_RECOGNIZE in FROM belongs to the relation before it; sqlglot gives it to the whole SELECT."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import Token, TokenType

from fivm_dbt.ir.clauses import Clause

_OPENING = {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}
_BEFORE_RELATION = {TokenType.FROM, TokenType.JOIN, TokenType.COMMA, TokenType.LATERAL}


@dataclass(frozen=True)
class MatchTokens:
    """The tokens of one MATCH_RECOGNIZE by their numbers: the first of its relation, the keyword, both brackets."""

    relation: int
    keyword: int
    closing: int


def match_tokens(tokens: Sequence[Token]) -> Iterator[MatchTokens]:
    """Each MATCH_RECOGNIZE (...) that stands behind a relation and is closed, in the order of the text."""
    for number, token in enumerate(tokens):
        if token.token_type is not TokenType.MATCH_RECOGNIZE:
            continue
        relation, closing = _begin(tokens, number), _end(tokens, number)
        if relation is not None and closing is not None:
            yield MatchTokens(relation, number, closing)


def in_brackets(tokens: list[Token]) -> list[Token]:
    """The tokens of ``(SELECT * FROM r MATCH_RECOGNIZE (...)) AS m`` for ``r MATCH_RECOGNIZE (...) AS m``.

    It means the same, and then joins may follow, and a relation that is joined may have a pattern of its own.

    >>> from fivm_dbt.ir.dialect import SparkText
    >>> text = "select * from a join b match_recognize (x) as m on true"
    >>> print(*(t.text for t in in_brackets(SparkText().tokenize(text))))
    select * from a join ( SELECT * FROM b match_recognize ( x ) ) as m on true
    """
    before: dict[int, int] = {}
    behind: set[int] = set()
    for found in match_tokens(tokens):
        before[found.relation] = before.get(found.relation, 0) + 1
        behind.add(found.closing)
    result = []
    for number, token in enumerate(tokens):
        if is_per_part(tokens, number - 3):
            # What fivm adds to the clause; sql/parse.py notes where it stood.
            result.append(_put_in(TokenType.VAR, "MATCH", token))
            continue
        if _is_skipped_to(tokens, number):
            # SQL's short form of TO LAST, which sqlglot does not know.
            result.append(_put_in(TokenType.VAR, "LAST", token))
        for _ in range(before.get(number, 0)):
            result += [_put_in(kind, text, token) for kind, text in _HEAD]
        result.append(token)
        if number in behind:
            result.append(_put_in(TokenType.R_PAREN, ")", token))
    return result


def is_per_part(tokens: Sequence[Token], number: int) -> bool:
    """Whether ONE ROW PER PART begins with a token."""
    words = ("ONE", "ROW", "PER", "PART")
    if number < 0 or [t.text.upper() for t in tokens[number : number + 4]] != list(words):
        return False
    return tokens[number + 3].token_type is not TokenType.STRING


def _is_skipped_to(tokens: Sequence[Token], number: int) -> bool:
    """Whether a token is the variable of AFTER MATCH SKIP TO, with neither FIRST nor LAST before it."""
    words = ["AFTER", "MATCH", "SKIP", "TO"]
    if number < 4 or [t.text.upper() for t in tokens[number - 4 : number]] != words:
        return False
    token = tokens[number]
    return token.token_type is TokenType.IDENTIFIER or token.text.upper() not in ("FIRST", "LAST", "NEXT")


_HEAD = (
    (TokenType.L_PAREN, "("),
    (TokenType.SELECT, "SELECT"),
    (TokenType.STAR, "*"),
    (TokenType.FROM, "FROM"),
)


def _put_in(kind: TokenType, text: str, where: Token) -> Token:
    return Token(kind, text, where.line, where.col, start=where.start, end=where.end)


def _begin(tokens: Sequence[Token], keyword: int) -> int | None:
    """Where the relation before the keyword begins: behind FROM, JOIN, a comma, or an opening bracket."""
    depth = 0
    for number in range(keyword - 1, -1, -1):
        depth -= _OPENING.get(tokens[number].token_type, 0)
        if depth < 0 or (depth == 0 and tokens[number].token_type in _BEFORE_RELATION):
            return number + 1 if number + 1 < keyword else None
    return None


def _end(tokens: Sequence[Token], keyword: int) -> int | None:
    """The bracket that closes the clause; None where there is none."""
    depth = 0
    for number in range(keyword + 1, len(tokens)):
        depth += _OPENING.get(tokens[number].token_type, 0)
        if depth <= 0:
            return number if number > keyword + 1 else None
    return None


class MatchTokensClause(Clause):
    """MATCH_RECOGNIZE (...) behind a relation."""

    word = "match_recognize"

    def stands_in(self, tokens: Sequence[Token]) -> bool:
        return any(token.token_type is TokenType.MATCH_RECOGNIZE for token in tokens)

    def as_read(self, tokens: list[Token]) -> list[Token]:
        return in_brackets(tokens) if self.stands_in(tokens) else tokens

    def spans(self, tokens: Sequence[Token]) -> Iterator[range]:
        return (range(found.keyword, found.closing + 1) for found in match_tokens(tokens))
