"""The clauses of a SELECT, and of rows behind one, stand in Spark's order; sqlglot takes any order."""

from __future__ import annotations

from enum import Enum

from sqlglot import Token, TokenType

from fivm_dbt.errors import FivmError, Span
from fivm_dbt.ir.dialect import SparkText

_ORDER = {
    TokenType.WHERE: 1,
    TokenType.GROUP_BY: 2,
    TokenType.HAVING: 3,
    TokenType.QUALIFY: 4,
    TokenType.ORDER_BY: 5,
    TokenType.CLUSTER_BY: 5,
    TokenType.DISTRIBUTE_BY: 5,
    TokenType.SORT_BY: 6,
    TokenType.LIMIT: 7,
    TokenType.OFFSET: 8,
}

_OF_FROM = {TokenType.JOIN, TokenType.LATERAL}

_SET = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}

_BEGINS = {TokenType.SELECT, TokenType.PIPE_GT, *_SET}

_OF_ROWS = {TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.QUALIFY}


class _Stage(Enum):
    """What of a query has been read: Spark lets it begin with FROM."""

    NOTHING = "nothing"
    FROM = "FROM"
    SELECT = "SELECT"


def check_clause_order(sql: str) -> None:
    """Raises FIVM105 for the first clause that stands behind one that it has to stand before.

    >>> check_clause_order("select a from r where a > 1 order by a limit 1 offset 2")
    >>> check_clause_order("select a from r order by a limit 1, 2")
    Traceback (most recent call last):
    ...
    fivm_dbt.errors.FivmError: FIVM105 construct not supported incrementally: LIMIT with two numbers is not Spark SQL
    line 1, column 35
        select a from r order by a limit 1, 2
                                          ^
    what to do: write LIMIT ... OFFSET ...
    more about it: fivm error FIVM105
    """
    reached: list[Token | None] = [None]
    stages = [_Stage.NOTHING]
    before: Token | None = None
    for token in SparkText().tokenize(sql):
        kind = token.token_type
        last = reached[-1]
        if kind is TokenType.L_PAREN:
            reached.append(None)
            stages.append(_Stage.NOTHING)
        elif kind is TokenType.R_PAREN and len(reached) > 1:
            reached.pop()
            stages.pop()
        elif kind in _BEGINS:
            reached[-1] = None
            if kind not in _SET:
                stages[-1] = _Stage.SELECT
            elif before is None or before.token_type is not TokenType.STAR:  # * EXCEPT (a) is a list
                stages[-1] = _Stage.NOTHING
        elif kind is TokenType.FROM and stages[-1] is _Stage.NOTHING:
            stages[-1] = _Stage.FROM
        elif kind is TokenType.COMMA and last is not None and last.token_type is TokenType.LIMIT:
            what = "LIMIT with two numbers is not Spark SQL"
            raise _refusal(token, sql, what, "write LIMIT ... OFFSET ...")
        elif kind in _OF_FROM and last is not None:
            what = f"{token.text.upper()} behind {last.text.upper()} is not Spark SQL"
            raise _refusal(token, sql, what, f"put it before {last.text.upper()}")
        elif kind in _ORDER and not _is_name(before, token):
            if kind in _OF_ROWS and stages[-1] is _Stage.FROM:
                what = f"{token.text.upper()} behind FROM without SELECT is not Spark SQL"
                raise _refusal(token, sql, what, "write SELECT before FROM, or before this clause")
            if last is not None and _ORDER[last.token_type] >= _ORDER[kind]:
                what = f"{token.text.upper()} behind {last.text.upper()} is not Spark SQL"
                raise _refusal(token, sql, what, f"put it before {last.text.upper()}")
            reached[-1] = token
        before = token


def _is_name(before: Token | None, token: Token) -> bool:
    """Whether a word that may begin a clause is a column here: the value of LIMIT and OFFSET follows at once."""
    if token.token_type not in (TokenType.LIMIT, TokenType.OFFSET, TokenType.QUALIFY):
        return False
    return before is None or before.text in ("(", ",", ".") or before.token_type in _BEFORE_NAME


_BEFORE_NAME = {
    TokenType.SELECT, TokenType.ALIAS, TokenType.WHERE, TokenType.GROUP_BY, TokenType.ORDER_BY, TokenType.HAVING,
    TokenType.ON, TokenType.AND, TokenType.OR, TokenType.NOT, TokenType.EQ, TokenType.LT, TokenType.GT,
    TokenType.PLUS, TokenType.DASH, TokenType.SLASH,
}  # fmt: skip


def _refusal(token: Token, sql: str, what: str, remedy: str) -> FivmError:
    return FivmError("FIVM105", what, sql=sql, span=Span(token.start, token.end + 1), remedy=remedy)
