"""Subqueries in expressions are evaluated for each row around them, by their definition."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.testing.interpreter.comparisons import comparable
from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import compile_expression, reads, uses
from fivm_dbt.testing.interpreter.queries import compile_query
from fivm_dbt.testing.interpreter.scope import Context, Env, Expression, Relation, column_at
from fivm_dbt.testing.interpreter.types import BOOLEAN
from fivm_dbt.testing.interpreter.values import Value, equal


class MoreThanOneRow(ArithmeticError):
    """A scalar subquery with several rows, at which Spark stops."""


def _query(node: exp.Expr, context: Context) -> Relation:
    return compile_query(node, context, context.relations)


@reads(exp.Subquery, exp.Select, exp.Union, exp.Except, exp.Intersect, exp.Values)
def scalar(node: exp.Expr, context: Context) -> Expression:
    query = _query(node, context)
    if len(query.columns) != 1:
        raise NotUnderstood("a scalar subquery of several columns", node)

    def of(env: Env) -> Value:
        rows = query.rows(env)
        if len(rows) > 1:
            raise MoreThanOneRow("a scalar subquery has several rows")
        return rows[0][0] if rows else None

    return Expression(query.columns[0].type, of)


_ALL: tuple[str, ...] = (
    "this",
    "expression",
    "expressions",
    "with_",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "qualify",
)
_ALL += ("windows", "order", "limit", "offset", "distinct", "laterals", "operation_modifiers")
for _class in (exp.Subquery, exp.Select, exp.Union, exp.Except, exp.Intersect, exp.Values):
    uses(_class, *_ALL)


@reads(exp.Exists)
def exists(node: exp.Expr, context: Context) -> Expression:
    query = _query(node.this, context)
    return Expression(BOOLEAN, lambda env: bool(query.rows(env)))


def _pairs(node: exp.Expr, context: Context) -> tuple[list[tuple[Expression, Expression]], Relation]:
    """What is looked for, beside the columns in which it is looked for."""
    query = _query(node.args["query"], context)
    value = node.this.unnest()
    wanted = value.expressions if isinstance(value, exp.Tuple) else [value]
    if len(wanted) != len(query.columns):
        raise NotUnderstood("IN of another width", node)
    found = (column_at(i, c.type) for i, c in enumerate(query.columns))
    return [
        comparable(compile_expression(w, context), f, node) for w, f in zip(wanted, found, strict=True)
    ], query


def _tests(pairs: list[tuple[Expression, Expression]], query: Relation, env: Env) -> list[bool | None]:
    wanted = [w.of(env) for w, _ in pairs]
    return [_same(wanted, [f.of(Env(row, None)) for _, f in pairs]) for row in query.rows(env)]


def _same(wanted: list[Value], row: list[Value]) -> bool | None:
    tests = [None if a is None or b is None else equal(a, b) for a, b in zip(wanted, row, strict=True)]
    if False in tests:
        return False
    return None if None in tests else True


def in_query(node: exp.Expr, context: Context) -> Expression:
    """Whether there is a row that is equal. Spark has no unknown here: it asks whether such a row exists."""
    pairs, query = _pairs(node, context)
    return Expression(BOOLEAN, lambda env: True in _tests(pairs, query, env))


def not_in(node: exp.Expr, context: Context) -> Expression:
    """Whether no row is equal or may be so."""
    pairs, query = _pairs(node, context)
    return Expression(BOOLEAN, lambda env: all(test is False for test in _tests(pairs, query, env)))
