"""How Spark SQL text is read. It is written with sqlglot's own ``spark`` dialect."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import Token, TokenType

_AS_WRITTEN = frozenset(
    "DATE_FORMAT FROM_UNIXTIME LOG10 PARSE_JSON PERCENTILE_CONT PERCENTILE_DISC TO_CHAR TO_DATE TO_TIMESTAMP "
    "TO_UNIX_TIMESTAMP TO_VARCHAR UNIX_DATE UNIX_TIMESTAMP".split()
)
"""Functions whose calls sqlglot would write as others, or with other formats, which are others in Spark."""

_MARK = "FIVM_AS_WRITTEN_"


class SparkText(Spark):
    """Spark SQL so that what was read is written with the same meaning.

    Spark 4 reads a doubled quote inside a string as one quote; sqlglot's dialect reads two strings side by side.

    >>> import sqlglot
    >>> sqlglot.parse_one("select 'it''s', log10(x), to_date(s, 'yyyy-MM-dd')", dialect=SparkText).sql("spark")
    "SELECT 'it\\\\'s', LOG10(x), TO_DATE(s, 'yyyy-MM-dd')"
    """

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']

    def tokenize(self, sql: str, **opts: Any) -> list[Token]:
        """The tokens; functions that are to stay as they are get names that the parser does not know."""
        tokens = super().tokenize(sql, **opts)
        for token, after in pairwise(tokens):
            is_call = token.token_type is TokenType.VAR and after.token_type is TokenType.L_PAREN
            if is_call and token.text.upper() in _AS_WRITTEN:
                token.text = f"{_MARK}{token.text.upper()}"
        return tokens

    def parse(self, sql: str, **opts: Any) -> list[exp.Expr | None]:
        """The trees, with those functions under their own names again."""
        return [tree and tree.transform(_as_written, copy=False) for tree in super().parse(sql, **opts)]


def _as_written(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and str(node.this).startswith(_MARK):
        node.set("this", str(node.this).removeprefix(_MARK))
    return node


def as_sqlglot_reads(node: exp.Expr) -> exp.Expr:
    """A call that was left as it is, as sqlglot understands it, which other dialects need."""
    name = node.name.upper()
    build = Spark.Parser.FUNCTIONS.get(name) if name in _AS_WRITTEN else None
    return node if build is None else build([e.copy() for e in node.expressions])
