"""The reader of SQL text drops some words before there is a tree, and the tree cannot write them back.

sqlglot skips words that it knows and has no place for (ASYMMETRIC), and takes other systems' spellings for Spark's
(``x AT TIME ZONE z``, ``k ISNULL``, ``CAST(x AS text)``). The tree is written as Spark SQL, and what of the text is
not in it, neither itself nor by the word that stands for it, is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.errors import SqlglotError

from fivm_dbt.errors import FivmError, Span
from fivm_dbt.ir.clauses import clauses_in
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.sql.clause_reader import without_clauses

_SAME = {
    "<=>": "DISTINCT",
    "==": "=",
    "!=": "<>",
    "!": "NOT",
    "MINUS": "EXCEPT",
    "SETMINUS": "EXCEPT",
    "SOME": "ANY",
    "REGEXP": "RLIKE",
    "UNKNOWN": "NULL",
    "DISTRIBUTE BY": "PARTITION BY",
    "SORT BY": "ORDER BY",
    "QUALIFY": "HAVING",
    "TRUE": "NULLS",
    "TIME": "TIMESTAMP",
    "VARCHAR": "STRING",
    "CHAR": "STRING",
    "CHARACTER": "STRING",
    "NUMERIC": "DECIMAL",
    "DEC": "DECIMAL",
    "INTEGER": "INT",
    "LONG": "BIGINT",
    "BYTE": "TINYINT",
    "SHORT": "SMALLINT",
    "REAL": "FLOAT",
    "TIMESTAMP_LTZ": "TIMESTAMP",
}
"""Words of Spark SQL, and the word by which each is written back; ``first_value(x, true)`` by IGNORE NULLS."""

_SILENT = frozenset("( ) , ; :: |> AS ASC ALL CURRENT_DATE CURRENT_TIMESTAMP CURRENT_USER".split())
"""What says nothing that is not in the tree by its shape."""

_OF_CALLS = frozenset("FROM FOR IN BOTH LEADING TRAILING PLACING".split())
"""Words between the arguments of SUBSTRING, TRIM, POSITION and OVERLAY, which are written back by position."""

_KEYWORD_CALLS = ("SUBSTRING", "SUBSTR", "TRIM", "POSITION", "OVERLAY")

_SET_WORDS = ("UNION", "EXCEPT", "INTERSECT", "MINUS", "SETMINUS")

_PIPES = frozenset(
    "SELECT EXTEND AGGREGATE WHERE ORDER LIMIT AS PIVOT UNPIVOT TABLESAMPLE JOIN UNION EXCEPT INTERSECT".split()
)
"""The words behind ``|>`` that Spark has and sqlglot reads."""

_BEFORE_BRACKET = (
    TokenType.IN,
    TokenType.ANY,
    TokenType.ALL,
    TokenType.EXISTS,
    TokenType.SOME,
    TokenType.FILTER,
)


def check_written_back(query: exp.Query, sql: str) -> None:
    """Raises FIVM105 for a word of ``sql`` that is not in the query as Spark SQL.

    >>> from fivm_dbt.sql.parse import parse
    >>> text = "select a from r where b between asymmetric 1 and 2"
    >>> check_written_back(parse(text), text)
    Traceback (most recent call last):
    ...
    fivm_dbt.errors.FivmError: FIVM105 construct not supported incrementally: ASYMMETRIC is not read here
    line 1, column 33
        select a from r where b between asymmetric 1 and 2
                                        ^^^^^^^^^^
    what to do: leave it out, or write it as Spark SQL does
    more about it: fivm error FIVM105
    """
    tokens = _outside_of_clauses(SparkText().tokenize(sql), sql)
    _check_neighbours(tokens, sql)
    words = _words(tokens)
    missing = Counter(word for word, _ in words)
    written = Counter(word for word, _ in _words(SparkText().tokenize(_readable(query, sql))))
    extra = written - missing
    missing -= written
    if not missing:
        return
    for word in list(missing):
        other = _SAME.get(word)
        if other is not None and extra[other]:
            found = min(missing[word], extra[other])
            missing[word] -= found
            extra[other] -= found
    _settle(missing, query, tokens)
    missing = +missing
    if not missing:
        return
    # Of a word that stands there several times the last one is shown: what is dropped follows what is not.
    last = {word: token for word, token in words if missing[word]}
    dropped = {token.start for token in last.values()}
    places = [number for number, token in enumerate(tokens) if token.start in dropped]
    run = [tokens[n] for i, n in enumerate(places) if n - places[0] == i]
    what = f"{' '.join(t.text.upper() for t in run)} is not read here"
    span = Span(run[0].start, run[-1].end + 1)
    raise FivmError("FIVM105", what, sql=sql, span=span, remedy="leave it out, or write it as Spark SQL does")


def _settle(missing: Counter[str], query: exp.Query, tokens: list[Token]) -> None:
    """Words that are dropped rightly, where others are dropped with them."""
    missing["WITH"] -= max(0, len(list(query.find_all(exp.With))) - 1)
    if missing["NULLS"] == missing["FIRST"] + missing["LAST"]:  # as Spark orders without being told
        missing["NULLS"] = missing["FIRST"] = missing["LAST"] = 0
    for sign in ("<", ">"):  # SHIFTLEFT and SHIFTRIGHT
        missing[sign] -= missing[sign] // 2 * 2
    calls = {before.text.upper() for before, token in pairwise(tokens) if token.text == "("}
    if calls & set(_KEYWORD_CALLS) and missing["FOR"] <= missing["FROM"]:
        for word in _OF_CALLS:
            missing[word] = 0


def _spark(query: exp.Query) -> str:
    """A query as Spark SQL without what is rewritten as a whole: QUALIFY is a HAVING, and patterns are left out."""
    query = query.copy()
    for select in list(query.find_all(exp.Select)):
        without_clauses(select)
        qualify = select.args.get("qualify")
        if qualify is not None:
            having = select.args.get("having")
            both = qualify.this if having is None else exp.and_(having.this, qualify.this)
            select.set("qualify", None)
            select.set("having", exp.Having(this=both))
    return query.sql(dialect="spark", comments=False)


def _readable(query: exp.Query, sql: str) -> str:
    """The query as Spark SQL, which has to be read again: expressions are, while they are lowered."""
    text = _spark(query)
    try:
        sqlglot.parse_one(text, dialect=SparkText)
    except SqlglotError as error:
        what = f"Spark would be given other SQL: {_first_line(error)}"
        raise FivmError("FIVM105", what, sql=sql, remedy="write it in another way") from None
    return text


def _first_line(error: SqlglotError) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split("\n")[0]


def _outside_of_clauses(tokens: list[Token], sql: str) -> list[Token]:
    inside = {number for clause in clauses_in(sql) for span in clause.spans(tokens) for number in span}
    return [token for number, token in enumerate(tokens) if number not in inside]


def _words(tokens: list[Token]) -> list[tuple[str, Token]]:
    """What a text says besides names of functions, numbers and brackets."""
    result: list[tuple[str, Token]] = []
    for number, token in enumerate(tokens):
        before = tokens[number - 1] if number else None
        after = tokens[number + 1] if number + 1 < len(tokens) else None
        if token.token_type is TokenType.STRING:
            # INTERVAL '1 day' is INTERVAL '1' DAY, named_struct('a', x) is STRUCT(x AS a)
            result += [(part.lstrip("-").upper(), token) for part in token.text.split()]
        elif not _says_nothing(before, token, after):
            result.append((token.text.upper(), token))
    return [(word, token) for word, token in result if not word[:1].isdigit()]


def _says_nothing(before: Token | None, token: Token, after: Token | None) -> bool:
    if token.token_type is TokenType.NUMBER or token.text.upper() in _SILENT:
        return True
    if before is not None and before.text == "::" and before.start == token.start:
        return True  # the L of 1L
    if before is not None and before.text == "|>":
        return True
    if token.text == "." and after is not None and after.token_type is TokenType.NUMBER:
        return True
    if token.text == "+" and (before is None or before.text.upper() in _BEFORE_SIGN):
        return True
    if token.token_type is TokenType.DISTINCT and before is not None and before.text.upper() in _SET_WORDS:
        return True
    if token.text == "-" and after is not None and after.token_type is TokenType.NUMBER:
        return True  # INTERVAL -1 DAY is INTERVAL '-1' DAY
    return after is not None and after.token_type is TokenType.L_PAREN and _is_function(token)


_BEFORE_SIGN = frozenset(
    "( , + - * / % = < > <= >= <> != SELECT WHERE AND OR NOT THEN ELSE WHEN BETWEEN BY ON".split()
)


def _is_function(token: Token) -> bool:
    """Whether a word before a bracket is the name of a function, of which others speak."""
    parser = SparkText.Parser
    kind = token.token_type
    return kind in parser.FUNC_TOKENS and kind not in parser.TYPE_TOKENS and kind not in _BEFORE_BRACKET


_BEHIND_LIST = {
    TokenType.R_PAREN, TokenType.COMMA, TokenType.FROM, TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING,
    TokenType.ORDER_BY, TokenType.LIMIT, TokenType.UNION, TokenType.SEMICOLON,
}  # fmt: skip
_BEFORE_LIST = {
    TokenType.SELECT,
    TokenType.DISTINCT,
    TokenType.L_PAREN,
    TokenType.GROUP_BY,
    TokenType.ORDER_BY,
}


def _check_neighbours(tokens: list[Token], sql: str) -> None:
    """What only its neighbours show: alias strings, marks of outer joins, steps of pipes."""
    for number, (token, after) in enumerate(pairwise(tokens)):
        behind = tokens[number + 2] if number + 2 < len(tokens) else None
        if token.token_type is TokenType.ALIAS and after.token_type is TokenType.STRING:
            raise _refusal(after, sql, "an alias in quotes is not Spark SQL", "write it in backquotes")
        if token.token_type is TokenType.COMMA and after.token_type in _BEHIND_LIST:
            raise _refusal(token, sql, "a comma with nothing behind it is not Spark SQL", "leave it out")
        if after.token_type is TokenType.COMMA and token.token_type in _BEFORE_LIST:
            raise _refusal(after, sql, "a comma with nothing before it is not Spark SQL", "leave it out")
        if token.text == "(" and after.text == "+" and behind is not None and behind.text == ")":
            raise _refusal(
                after, sql, "(+) for an outer join is not Spark SQL", "use LEFT JOIN or RIGHT JOIN"
            )
        if token.text == "|>" and after.text.upper().split(" ")[0] not in _PIPES:
            raise _refusal(after, sql, f"|> {after.text.upper()} is not read", "use SELECT")
        is_filter = token.text == ")" and after.token_type is TokenType.FILTER and behind is not None
        if is_filter and number + 3 < len(tokens) and tokens[number + 3].token_type is not TokenType.WHERE:
            raise _refusal(after, sql, "FILTER without WHERE is not Spark SQL", "write FILTER (WHERE ...)")
        if (
            token.text == "*"
            and after.text.upper() == "EXCLUDE"
            and behind is not None
            and behind.text == "("
        ):
            raise _refusal(after, sql, "* EXCLUDE is not Spark SQL", "write * EXCEPT (...)")
        if after.token_type is TokenType.HEX_STRING and sql[after.start : after.start + 2].lower() == "0x":
            raise _refusal(after, sql, "a number in hexadecimal is not Spark SQL", "write X'...' or a number")


def _refusal(token: Token, sql: str, what: str, remedy: str) -> FivmError:
    return FivmError("FIVM105", what, sql=sql, span=Span(token.start, token.end + 1), remedy=remedy)
