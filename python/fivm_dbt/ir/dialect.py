"""Spark SQL text is read by this dialect; sqlglot's own ``spark`` dialect writes it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import DialectType
from sqlglot.dialects.spark import Spark

from fivm_dbt.ir.clauses import clauses_in
from fivm_dbt.ir.places import share_notes

_AS_WRITTEN = frozenset(
    "COLLATE DATE_FORMAT FROM_UNIXTIME LISTAGG LOG10 MAX_BY MIN_BY PARSE_JSON PERCENTILE_CONT PERCENTILE_DISC "
    "STRING_AGG TO_CHAR TO_DATE TO_TIMESTAMP TO_UNIX_TIMESTAMP TO_VARCHAR UNIX_DATE UNIX_TIMESTAMP".split()
)
"""Functions whose calls sqlglot would write as others, or with other arguments, which mean something else in Spark."""

_MARK = "FIVM_AS_WRITTEN_"


class SparkText(Spark):
    """Spark SQL, and MATCH_RECOGNIZE in FROM, so that what was read is written with the same meaning.

    Spark 4 reads a doubled quote inside a string as one quote; sqlglot's dialect reads two strings side by side.

    >>> import sqlglot
    >>> sqlglot.parse_one("select 'it''s', log10(x), to_date(s, 'yyyy-MM-dd')", dialect=SparkText).sql("spark")
    "SELECT 'it\\\\'s', LOG10(x), TO_DATE(s, 'yyyy-MM-dd')"
    """

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **Spark.Tokenizer.KEYWORDS,
            "MATCH_RECOGNIZE": TokenType.MATCH_RECOGNIZE,
        }

    def tokenize(self, sql: str, dialect: DialectType = None) -> list[Token]:
        """The tokens; functions that are to stay as they are get names that the parser does not know."""
        tokens = super().tokenize(sql, dialect)
        for token, after in pairwise(tokens):
            is_name = token.token_type in (TokenType.VAR, TokenType.COLLATE)
            is_call = is_name and after.token_type is TokenType.L_PAREN
            if is_call and token.text.upper() in _AS_WRITTEN:
                token.text = f"{_MARK}{token.text.upper()}"
            if token.token_type is TokenType.WINDOW and not _is_name(after):
                # The function of time, or its column: the clause has a name after it.
                token.token_type = TokenType.VAR
        if tokens and tokens[-1].token_type is TokenType.WINDOW:
            tokens[-1].token_type = TokenType.VAR
        return tokens

    def parse(self, sql: str, **opts: Any) -> list[exp.Expr | None]:
        """The trees, with those functions under their own names again."""
        tokens = self.tokenize(sql)
        for clause in clauses_in(sql):
            tokens = clause.as_read(tokens)
        return _finished(self.parser(**opts).parse(tokens, sql))

    def parse_into(self, expression_type: Any, sql: str, **opts: Any) -> list[exp.Expr | None]:
        return _finished(super().parse_into(expression_type, sql, **opts))


SPARK, SPARK_TEXT = Spark(), SparkText()
"""Both dialects at hand: to look one up by its name costs a third of what it costs to write a column."""


def _is_name(token: Token) -> bool:
    return token.token_type in (TokenType.VAR, TokenType.IDENTIFIER) and token.text.upper() != "END"


def _finished(trees: list[exp.Expr | None]) -> list[exp.Expr | None]:
    """The trees, with functions under their own names again, and notes that copies share."""
    for node in (n for tree in trees if tree is not None for n in tree.walk()):
        share_notes(node)
        if isinstance(node, exp.Anonymous) and str(node.this).startswith(_MARK):
            node.set("this", str(node.this).removeprefix(_MARK))
    return trees


def as_sqlglot_reads(node: exp.Expr) -> exp.Expr:
    """A call that was left as it is, as sqlglot understands it, which other dialects need."""
    name = node.name.upper()
    build = Spark.Parser.FUNCTIONS.get(name) if name in _AS_WRITTEN else None
    if build is None:
        return node
    arguments = [e.copy() for e in node.expressions]
    known: exp.Expr
    try:
        known = build(arguments)
    except TypeError:  # as sqlglot finds out which take one: compiled functions have no signature
        known = build(arguments, dialect=Spark())
    return known
