"""What of MATCH_RECOGNIZE is told by its text alone: what sqlglot drops, and where the clauses stand."""

from __future__ import annotations

from itertools import pairwise

from sqlglot import Token, TokenType, exp

from fivm_dbt.errors import FivmError, Span
from fivm_dbt.features.match.ir.tokens import is_per_part, match_tokens
from fivm_dbt.ir.places import note
from fivm_dbt.sql.parse import span_of, tokens_of


def refuse_in_matches(sql: str) -> None:
    """FIVM105 for SUBSET, of which sqlglot knows nothing, and for the offsets of FIRST and LAST, which it drops."""
    tokens = tokens_of(sql)
    for found in match_tokens(tokens):
        for before, token in pairwise(tokens[found.keyword : found.closing]):
            if token.text.upper() == "SUBSET" and before.text == ")":
                raise _in_match(sql, token, "SUBSET is not maintained", "ask for the rows of each variable")
        for number in range(found.keyword, found.closing):
            if _has_offset(tokens, number):
                what = f"an offset in {tokens[number].text.upper()} is not maintained"
                raise _in_match(sql, tokens[number], what, "leave it out, or use PREV or NEXT")


def _in_match(sql: str, token: Token, what: str, remedy: str) -> FivmError:
    return FivmError("FIVM105", what, sql=sql, span=Span(token.start, token.end + 1), remedy=remedy)


def _has_offset(tokens: list[Token], number: int) -> bool:
    """Whether a call of FIRST or LAST begins here and has a second argument."""
    if tokens[number].text.upper() not in ("FIRST", "LAST") or tokens[number + 1].text != "(":
        return False
    depth = 0
    for token in tokens[number + 1 :]:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth == 0:
            break
        if depth == 1 and token.token_type is TokenType.COMMA:
            return True
    return False


def place_matches(query: exp.Query, sql: str) -> None:
    """Note where each MATCH_RECOGNIZE stands, with the relation that it reads, and where its pattern does."""
    nodes = list(query.find_all(exp.MatchRecognize))
    if not nodes:
        return
    for node in nodes:
        for key in ("measures", "define"):
            node.set(key, node.args.get(key) or [])  # sqlglot cannot write one without
    tokens = tokens_of(sql)
    for found in match_tokens(tokens):
        first, last = tokens[found.keyword].start, tokens[found.closing].end
        for node in nodes:
            inner = span_of(node)
            if inner is None or not (first <= inner.start and inner.end <= last + 1):
                continue
            texts = (t.end + 2 for t in tokens[found.keyword : found.closing] if t.text.upper() == "PATTERN")
            note(
                node,
                start=first,
                end=last,
                relation_start=tokens[found.relation].start,
                relation_end=tokens[found.keyword - 1].end + 1,
                pattern=next(
                    (p for t in texts if (p := sql.find(node.args["pattern"].name, t - 1)) >= 0), first
                ),
            )
            nodes.remove(node)
            if _is_per_part(tokens[found.keyword : found.closing]):
                note(node, per_part=True)
            break


def _is_per_part(tokens: list[Token]) -> bool:
    """Whether ONE ROW PER PART, which is read as ONE ROW PER MATCH, stands in a clause."""
    return any(is_per_part(tokens, number) for number in range(len(tokens)))
