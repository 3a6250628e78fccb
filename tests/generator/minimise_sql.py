"""One query gives smaller ones: without a join, a predicate, a select item, an order item, a subquery."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from fivm_dbt.ir.dialect import SparkText

_CLAUSES = ("where", "having", "qualify", "distinct", "laterals", "windows", "limit", "offset", "order")


def smaller_queries(sql: str) -> Iterator[str]:
    """Candidates, those that remove most first. Not all of them are valid: whoever tries one will see.

    >>> list(smaller_queries("select a, b from r where a > 0"))
    ['SELECT a, b FROM r', 'SELECT b FROM r WHERE a > 0', 'SELECT a FROM r WHERE a > 0']
    """
    try:
        query = sqlglot.parse_one(sql, dialect=SparkText)
    except SqlglotError:
        return
    seen = {query.sql(dialect="spark")}
    for rule in _RULES:
        for number in range(len(list(rule(query)))):
            candidate = query.copy()
            replacement = list(rule(candidate))[number]()
            text = (replacement or candidate).sql(dialect="spark")
            if text not in seen:
                seen.add(text)
                yield text


Change = Callable[[], exp.Expr | None]
"""Changes the tree that it was made for; returns a tree that takes the place of the whole, or None."""


def _inner_query(query: exp.Expr) -> Iterator[Change]:
    """The whole becomes one of its subqueries."""
    for node in query.find_all(exp.Query):
        if node is not query and isinstance(node, (exp.Select, exp.SetOperation)):
            yield partial(_with_ctes, query, node)


def _with_ctes(query: exp.Expr, node: exp.Expr) -> exp.Expr:
    """``node`` by itself; a CTE that it may read goes with it."""
    ctes = query.args.get("with_")
    result = node.copy()
    if ctes is not None and result.args.get("with_") is None:
        kept = [c.copy() for c in ctes.expressions if c.this is not node and not _is_below(node, c)]
        names = {t.name for t in result.find_all(exp.Table)}
        needed = [c for c in kept if c.alias in names]
        if needed:
            result.set("with_", exp.With(expressions=needed))
    return result


def _is_below(node: exp.Expr, ancestor: exp.Expr) -> bool:
    return any(parent is ancestor for parent in _parents(node))


def _parents(node: exp.Expr) -> Iterator[exp.Expr]:
    parent = node.parent
    while parent is not None:
        yield parent
        parent = parent.parent


def _one_branch(query: exp.Expr) -> Iterator[Change]:
    """A set operation becomes one of its branches."""
    for node in query.find_all(exp.SetOperation):
        for branch in (node.left, node.right):
            yield partial(_replaced, query, node, branch)


def _subquery_by_table(query: exp.Expr) -> Iterator[Change]:
    """A subquery in FROM becomes the first table that it reads."""
    for node in query.find_all(exp.Subquery):
        table = node.find(exp.Table)
        if table is not None and isinstance(node.parent, (exp.From, exp.Join)):
            plain = exp.Table(this=table.this.copy(), alias=node.args.get("alias"))
            yield partial(_replaced, query, node, plain)


def _number_for_subquery(query: exp.Expr) -> Iterator[Change]:
    """A subquery in an expression becomes a number."""
    for node in query.find_all(exp.Subquery):
        if not isinstance(node.parent, (exp.From, exp.Join, exp.Lateral, exp.SetOperation, exp.In)):
            yield partial(_replaced, query, node, exp.Literal.number(1))


def _without_cte(query: exp.Expr) -> Iterator[Change]:
    for node in query.find_all(exp.With):
        for cte in node.expressions:
            yield partial(_dropped, node, "expressions", cte)


def _without_join(query: exp.Expr) -> Iterator[Change]:
    for node in query.find_all(exp.Select):
        for join in node.args.get("joins") or []:
            yield partial(_dropped, node, "joins", join)


def _plain_join(query: exp.Expr) -> Iterator[Change]:
    """An outer join becomes an inner one."""
    for join in query.find_all(exp.Join):
        if join.args.get("side"):
            yield partial(_unset, join, "side", "kind")


def _without_clause(query: exp.Expr) -> Iterator[Change]:
    for node in query.find_all(exp.Select, exp.SetOperation):
        for clause in _CLAUSES:
            if node.args.get(clause) and not (clause == "distinct" and isinstance(node, exp.SetOperation)):
                yield partial(_unset, node, clause)


def _without_item(query: exp.Expr) -> Iterator[Change]:
    """One select item, group key, order item, or member of a grouping set less."""
    for node in query.find_all(exp.Select, exp.Group, exp.Order, exp.Rollup, exp.Cube, exp.GroupingSets):
        if len(node.expressions) > 1:
            for item in node.expressions:
                yield partial(_dropped, node, "expressions", item)
        elif isinstance(node, exp.Group) and node.expressions:
            yield partial(_removed, node)


def _one_operand(query: exp.Expr) -> Iterator[Change]:
    """A connective, NOT, CASE, FILTER, COALESCE or sum becomes one of its operands."""
    for node in query.find_all(
        exp.Connector, exp.Not, exp.Paren, exp.Case, exp.Filter, exp.Coalesce, exp.Add
    ):
        if isinstance(node, exp.Case):
            parts = [branch.args["true"] for branch in node.args["ifs"]] + [node.args.get("default")]
        elif isinstance(node, exp.Binary):
            parts = [node.left, node.right]
        else:
            parts = [node.this]
        for part in parts:
            if part is not None:
                yield partial(_replaced, query, node, part)


def _window_parts(query: exp.Expr) -> Iterator[Change]:
    """A window without its frame, or without its partition."""
    for node in query.find_all(exp.Window):
        for part in ("spec", "partition_by"):
            if node.args.get(part):
                yield partial(_unset, node, part)


_RULES = (
    _inner_query,
    _one_branch,
    _subquery_by_table,
    _number_for_subquery,
    _without_cte,
    _without_join,
    _without_clause,
    _without_item,
    _one_operand,
    _window_parts,
    _plain_join,
)


def _replaced(query: exp.Expr, node: exp.Expr, part: exp.Expr) -> exp.Expr | None:
    part = part.copy()
    if node is query:
        return part.unnest() if isinstance(part, exp.Subquery) else part
    node.replace(part)
    return None


def _dropped(node: exp.Expr, key: str, item: exp.Expr) -> None:
    node.set(key, [other for other in node.args[key] if other is not item] or None)
    if isinstance(node, exp.With) and not node.expressions:
        _removed(node)


def _removed(node: exp.Expr) -> None:
    if node.parent is not None and node.arg_key is not None:
        node.parent.set(node.arg_key, None)


def _unset(node: exp.Expr, *keys: str) -> None:
    for key in keys:
        node.set(key, None)
