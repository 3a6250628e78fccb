"""Comparisons bring two values to one type, and LIKE matches a string with a pattern."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import compile_expression, converted, reads, uses
from fivm_dbt.testing.interpreter.scope import Context, Env, Expression, strict
from fivm_dbt.testing.interpreter.types import BOOLEAN, NULL, STRING, compared
from fivm_dbt.testing.interpreter.values import Value, compare, equal

_TESTS: dict[type[exp.Expr], Callable[[Value, Value], bool]] = {
    exp.EQ: equal,
    exp.NEQ: lambda a, b: not equal(a, b),
    exp.LT: lambda a, b: compare(a, b) < 0,
    exp.LTE: lambda a, b: compare(a, b) <= 0,
    exp.GT: lambda a, b: compare(a, b) > 0,
    exp.GTE: lambda a, b: compare(a, b) >= 0,
}


def comparable(left: Expression, right: Expression, node: exp.Expr) -> tuple[Expression, Expression]:
    """Both operands of a comparison as one type."""
    type_ = compared(left.type, right.type)
    if type_ is None or "map" in type_.name:
        raise NotUnderstood(f"comparison of {left.type} and {right.type}", node)
    return converted(left, type_), converted(right, type_)


@reads(*_TESTS)
def comparison(node: exp.Expr, context: Context) -> Expression:
    """Spark takes ``x = false`` for NOT x, which is not the same where x is IN of a query."""
    if isinstance(node, (exp.EQ, exp.NEQ)) and isinstance(node.expression, exp.Boolean):
        tested = node.this.unnest()
        if isinstance(tested, exp.In) and tested.args.get("query") is not None:
            is_in = bool(node.expression.this) is isinstance(node, exp.EQ)
            return compile_expression(tested if is_in else exp.Not(this=tested.copy()), context)
    left, right = compile_expression(node.this, context), compile_expression(node.expression, context)
    return strict(BOOLEAN, _TESTS[type(node)], *comparable(left, right, node))


@reads(exp.NullSafeEQ)
def null_safe(node: exp.Expr, context: Context) -> Expression:
    one, other = (compile_expression(n, context) for n in (node.this, node.expression))
    pair = comparable(one, other, node)
    left, right = pair[0].of, pair[1].of

    def of(env: Env) -> bool:
        a, b = left(env), right(env)
        return a is b if a is None or b is None else equal(a, b)

    return Expression(BOOLEAN, of)


@reads(exp.Like, exp.ILike, exp.RegexpLike)
def like(node: exp.Expr, context: Context) -> Expression:
    found = _like(node, context)
    return strict(BOOLEAN, lambda x: not x, found) if node.args.get("negate") else found


for _class in (exp.Like, exp.ILike):
    uses(_class, "this", "expression", "negate")


def _like(node: exp.Expr, context: Context) -> Expression:
    operands = [compile_expression(n, context) for n in (node.this, node.expression)]
    if any(o.type not in (STRING, NULL) for o in operands):
        raise NotUnderstood(f"LIKE of {operands[0].type}", node)
    if isinstance(node, exp.RegexpLike):
        return strict(BOOLEAN, lambda s, p: re.search(p, s) is not None, *operands)
    flags = re.DOTALL | (re.IGNORECASE if isinstance(node, exp.ILike) else 0)
    return strict(BOOLEAN, lambda s, p: re.fullmatch(_pattern(p), s, flags) is not None, *operands)


def _pattern(text: str) -> str:
    """A LIKE pattern as a regular expression."""
    parts, escaped = [], False
    for character in text:
        if escaped or character not in "\\%_":
            parts.append(re.escape(character))
            escaped = False
        elif character == "\\":
            escaped = True
        else:
            parts.append(".*" if character == "%" else ".")
    return "".join(parts)
