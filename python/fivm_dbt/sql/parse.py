"""Text becomes an AST, and each node knows where in the text it stands."""

from __future__ import annotations

import re
from itertools import pairwise

import sqlglot
from sqlglot import Token, exp
from sqlglot.errors import ParseError, TokenError

from fivm_dbt.errors import FivmError, Span
from fivm_dbt.functions.learning import COVARIANCE
from fivm_dbt.ir.clauses import clauses_in
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.places import note, notes
from fivm_dbt.rings.declared import DECLARED
from fivm_dbt.sql.clause_reader import readers
from fivm_dbt.sql.depth import within_the_stack


def parse(sql: str) -> exp.Query:
    """The one query in ``sql``. Raises FIVM101 with the position where the parser stopped.

    >>> parse("select 1 as a").sql("spark")
    'SELECT 1 AS a'
    """
    found = [reader for reader in readers() if reader.is_named_in(sql)]
    for reader in found:
        reader.check(sql)
    try:
        with within_the_stack(sql):
            parsed = sqlglot.parse(sql, dialect=SparkText)
    except (ParseError, TokenError) as error:
        message, span = _explain(error, sql)
        raise FivmError("FIVM101", message, sql=sql, span=span, remedy="correct the SQL") from None
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        # sqlglot's own mistakes over text that is no SQL: it takes a query for a value, or reads beyond the end.
        raise FivmError(
            "FIVM101", "the parser cannot make sense of it", sql=sql, remedy="correct the SQL"
        ) from None
    # A comment behind the last semicolon is a statement to sqlglot.
    statements = [
        _with_selected_values(s) for s in parsed if s is not None and not isinstance(s, exp.Semicolon)
    ]
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        what = (
            "nothing"
            if not statements
            else f"{len(statements)} statements, the first a {_kind(statements[0])}"
        )
        raise FivmError(
            "FIVM101", f"expected one query, found {what}", sql=sql, remedy="write a single SELECT"
        )
    _join_in_select(statements[0])
    _place_clocks(statements[0], sql)
    for reader in found:
        reader.place(statements[0], sql)
    return statements[0]


def _with_selected_values(statement: exp.Expr) -> exp.Expr:
    """The statement with ``SELECT * FROM VALUES ...`` where VALUES is a query of its own: alone, or in an expression.

    >>> print(_with_selected_values(sqlglot.parse_one("select exists (values (1))", dialect="spark")).sql("spark"))
    SELECT EXISTS(SELECT * FROM VALUES (1))
    """
    for rows in list(statement.find_all(exp.Values)):
        above = rows.parent
        while isinstance(above, (exp.Subquery, exp.Paren)):
            above = above.parent
        if isinstance(above, (exp.From, exp.Join, exp.SetOperation, exp.CTE)):
            continue
        if isinstance(above, exp.In):
            raise unsupported(
                rows, "VALUES after IN is not Spark SQL", "list the values alone, or SELECT * FROM VALUES"
            )
        if any(rows.args.get(key) for key in ("order", "limit", "offset")):
            what = "ORDER BY and LIMIT behind VALUES are not maintained"
            raise unsupported(rows, what, "SELECT * FROM VALUES (...) AS t ORDER BY ...")
        query = exp.select(exp.Star())
        if rows is statement:
            return query.from_(rows)
        rows.replace(query)
        query.set("from_", exp.From(this=rows))
    return statement


def _join_in_select(query: exp.Query) -> None:
    """Put the joins of a query that begins with FROM where those of others are.

    >>> print(parse("from r join s on r.k = s.k select r.k").sql("spark"))
    SELECT r.k FROM r JOIN s ON r.k = s.k
    """
    for clause in query.find_all(exp.From):
        select, table = clause.parent, clause.this
        if isinstance(select, exp.Select) and isinstance(table, exp.Table) and table.args.get("joins"):
            select.set("joins", [*table.args["joins"], *(select.args.get("joins") or [])])
            table.set("joins", None)


def is_beyond_spark(sql: str) -> bool:
    """Whether a clause or a function stands in a text that Spark does not know, so that it cannot run it.

    >>> is_beyond_spark("select * from r match_recognize (order by t pattern (a))")
    True
    >>> is_beyond_spark("select 'match_recognize'")
    False
    """
    if any(clause.stands_in(tokens_of(sql)) for clause in clauses_in(sql)):
        return True
    own = [name for name in (COVARIANCE, *DECLARED) if name in sql.lower()]
    calls = pairwise(tokens_of(sql)) if own else ()
    return any(name.text.lower() in own and behind.text == "(" for name, behind in calls)


def tokens_of(sql: str) -> list[Token]:
    """The tokens of a text; none of one that cannot be read, about which the parser says more."""
    try:
        return SparkText().tokenize(sql)
    except TokenError:
        return []


def _place_clocks(query: exp.Query, sql: str) -> None:
    """Note where CURRENT_DATE and CURRENT_TIMESTAMP stand without parentheses, which the parser does not.

    Where the text has more or fewer of them than the tree nothing is noted.
    """
    named = {notes(i).get("start") for i in query.find_all(exp.Identifier)}
    tokens = SparkText().tokenize(sql)
    for kind, word in ((exp.CurrentDate, "CURRENT_DATE"), (exp.CurrentTimestamp, "CURRENT_TIMESTAMP")):
        nodes = [n for n in query.find_all(kind, bfs=False) if "start" not in notes(n)]
        found = [
            token
            for token, after in zip(tokens, [*tokens[1:], None], strict=True)
            if token.text.upper() == word
            and token.start not in named
            and (after is None or after.text != "(")
        ]
        if len(found) == len(nodes):
            for node, token in zip(nodes, found, strict=True):
                note(node, start=token.start, end=token.end, bare=True)


def span_of(node: exp.Expr) -> Span | None:
    """From the first to the last token below ``node`` whose position is known."""
    positions = [notes(n) for n in node.walk() if notes(n).get("start") is not None]
    if not positions:
        return None
    return Span(min(p["start"] for p in positions), max(p["end"] for p in positions) + 1)


def unsupported(node: exp.Expr, what: str, remedy: str, *, code: str = "FIVM105") -> FivmError:
    """A refusal that points at ``node``."""
    return FivmError(code, what, remedy=remedy, span=span_of(node))


def _kind(statement: exp.Expr) -> str:
    return statement.key.upper()


def _explain(error: ParseError | TokenError, sql: str) -> tuple[str, Span | None]:
    details = error.errors[0] if isinstance(error, ParseError) and error.errors else None
    if details and details.get("line"):
        line_start = sum(len(line) + 1 for line in sql.split("\n")[: int(details["line"]) - 1])
        word = details.get("highlight") or ""
        end = line_start + int(details["col"])
        start = max(line_start, end - len(word))
        return str(details["description"]).rstrip("."), Span(start, max(start + 1, end))
    # The message quotes its surroundings with terminal codes; the first sentence says what is wrong.
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error)).split("\n")[0]
    return plain, None
