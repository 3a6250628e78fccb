"""Spark SQL text is read by sqlglot's parser, with every function under the name that it has.

sqlglot knows functions by its own classes, and what it takes a function for may be wrong: that is one of the things
which the interpreter is there to find. So the names of functions get a mark before they are parsed, under which the
parser knows none of them, and lose it afterwards.
"""

from __future__ import annotations

from typing import Any, ClassVar

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import DialectType
from sqlglot.dialects.spark import Spark

_MARK = "FIVM_FUNCTION_"

_SYNTAX = frozenset("CAST TRY_CAST EXTRACT STRUCT AND OR MATCH VALUES".split())
"""Calls with a syntax of their own, which the parser has to know."""

_WITH_FROM = frozenset("TRIM SUBSTRING SUBSTR OVERLAY POSITION".split())
"""Calls that may have words between their arguments; without these they are like any other."""

_MORE = frozenset("IF ANY SOME FILTER TRANSFORM LEFT RIGHT REPLACE COLLATE WINDOW EXISTS RANGE".split())
"""Functions that are keywords too, or that the parser knows elsewhere."""

_FUNCTIONS = (frozenset(Spark.Parser.FUNCTIONS) | frozenset(Spark.Parser.FUNCTION_PARSERS) | _MORE) - _SYNTAX


class PlainSpark(Spark):
    """Spark SQL in which a call is :class:`exp.Anonymous` with the function's name in upper case.

    >>> call = sqlglot.parse_one("nvl(a, 'it''s')", dialect=PlainSpark)
    >>> call.this, call.expressions[1].this
    ('NVL', "it's")
    """

    class Tokenizer(Spark.Tokenizer):
        # Spark 4 reads a doubled quote inside a string as one quote.
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        tokens = super().tokenize(sql, dialect)
        for number, token in enumerate(tokens):
            if _is_function(tokens, number):
                token.text = f"{_MARK}{token.text.upper()}"
                token.token_type = TokenType.VAR
            elif token.token_type is TokenType.WINDOW and not _names_a_window(tokens, number):
                token.token_type = TokenType.VAR
        return tokens

    def parse(self, sql: str, **opts: Any) -> list[exp.Expr | None]:
        trees = self.parser(**opts).parse(self.tokenize(sql), sql)
        for call in (c for tree in trees if tree is not None for c in tree.find_all(exp.Anonymous)):
            name = call.this if isinstance(call.this, str) else call.this.name
            call.set("this", name.removeprefix(_MARK).upper())
        return trees


def _is_function(tokens: list[Token], number: int) -> bool:
    """Whether a call of a function whose name is to be kept begins at a token."""
    token, name = tokens[number], tokens[number].text.upper()
    if token.token_type is TokenType.IDENTIFIER or name not in _FUNCTIONS:
        return False
    following = tokens[number + 1 : number + 3]
    if len(following) < 2 or following[0].token_type is not TokenType.L_PAREN:
        return False
    if number and tokens[number - 1].token_type in (TokenType.ALIAS, TokenType.DOT):
        return False
    if name == "FILTER" and following[1].token_type is TokenType.WHERE:
        return False
    if name in ("EXISTS", "ANY", "SOME"):
        return following[1].token_type not in (
            TokenType.SELECT,
            TokenType.WITH,
            TokenType.FROM,
            TokenType.VALUES,
            TokenType.L_PAREN,
        )
    return not (name in _WITH_FROM and _has_word_inside(tokens, number))


def _has_word_inside(tokens: list[Token], number: int) -> bool:
    depth = 0
    for token in tokens[number + 1 :]:
        depth += {TokenType.L_PAREN: 1, TokenType.R_PAREN: -1}.get(token.token_type, 0)
        if depth == 0:
            return False
        if depth == 1 and token.token_type in (TokenType.FROM, TokenType.IN):
            return True
    return False


def _names_a_window(tokens: list[Token], number: int) -> bool:
    after = tokens[number + 1] if number + 1 < len(tokens) else None
    is_name = after is not None and after.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
    return is_name and after is not None and after.text.upper() != "END"


def read(sql: str) -> exp.Expr:
    """The tree of the one query in ``sql``."""
    trees = [tree for tree in sqlglot.parse(sql, dialect=PlainSpark) if tree is not None]
    if len(trees) != 1:
        raise ValueError(f"{len(trees)} statements instead of one query")
    return trees[0]
