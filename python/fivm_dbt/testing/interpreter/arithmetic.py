"""Operators on numbers calculate as Spark does, and give the types that it gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import compile_expression, converted, reads, uses
from fivm_dbt.testing.interpreter.intervals import with_times
from fivm_dbt.testing.interpreter.scope import Context, Expression, strict
from fivm_dbt.testing.interpreter.types import (
    BIGINT,
    BITS,
    DAYTIME,
    DOUBLE,
    NULL,
    STRING,
    YEARMONTH,
    Type,
    adjusted,
    as_decimal,
    decimal,
)
from fivm_dbt.testing.interpreter.values import EXACT, Value, rounded, single, wrapped

_RESULT: dict[type[exp.Expr], Callable[[int, int, int, int], Type]] = {
    exp.Add: lambda p1, s1, p2, s2: adjusted(max(p1 - s1, p2 - s2) + max(s1, s2) + 1, max(s1, s2)),
    exp.Mul: lambda p1, s1, p2, s2: adjusted(p1 + p2 + 1, s1 + s2),
    exp.Div: lambda p1, s1, p2, s2: adjusted(p1 - s1 + s2 + max(6, s1 + p2 + 1), max(6, s1 + p2 + 1)),
    exp.Mod: lambda p1, s1, p2, s2: adjusted(min(p1 - s1, p2 - s2) + max(s1, s2), max(s1, s2)),
}
_RESULT[exp.Sub] = _RESULT[exp.Add]


def _exactly(kind: type[exp.Expr], left: Decimal, right: Decimal) -> Decimal | None:
    if kind is exp.Add:
        return EXACT.add(left, right)
    if kind is exp.Sub:
        return EXACT.subtract(left, right)
    if kind is exp.Mul:
        return EXACT.multiply(left, right)
    if right == 0:
        return None
    return EXACT.divide(left, right) if kind is exp.Div else EXACT.remainder(left, right)


def _in_doubles(kind: type[exp.Expr], left: float, right: float) -> float | None:
    if kind is exp.Add:
        return left + right
    if kind is exp.Sub:
        return left - right
    if kind is exp.Mul:
        return left * right
    if right == 0:
        return None
    if kind is exp.Div:
        return left / right
    return math.fmod(left, right) if math.isfinite(left) else math.nan


def _in_integers(kind: type[exp.Expr], left: int, right: int) -> int | None:
    if kind is exp.Add:
        return left + right
    if kind is exp.Sub:
        return left - right
    if kind is exp.Mul:
        return left * right
    return None if right == 0 else _remainder(left, right)


def _remainder(left: int, right: int) -> int:
    """The remainder with the sign of the left side, as Java has it."""
    return int(math.copysign(1, left)) * (abs(left) % abs(right))


def _digits(expression: Expression) -> Type:
    """The decimal type as which a number takes part: an integer that is written down has the digits that it has."""
    node = expression.literal
    if node is not None and expression.type.is_integral:
        return decimal(len(node.name), 0)
    return as_decimal(expression.type)


@reads(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod)
def arithmetic(node: exp.Expr, context: Context) -> Expression:
    left, right = compile_expression(node.this, context), compile_expression(node.expression, context)
    return calculated(type(node), left, right, node)


uses(exp.Div, "this", "expression", "typed", "safe")


def calculated(kind: type[exp.Expr], left: Expression, right: Expression, node: exp.Expr) -> Expression:
    """The result of an operator on two operands."""
    names = {left.type.name, right.type.name}
    if names & {"date", "timestamp", "timestamp_ntz", "daytime", "yearmonth"}:
        return with_times(kind, left, right, node)
    if "boolean" in names or not names <= {*BITS, "decimal", "float", "double", "string", "null"}:
        raise NotUnderstood(f"{kind.__name__} of {left.type} and {right.type}", node)
    if STRING in (left.type, right.type):
        left, right = (converted(e, DOUBLE) if e.type == STRING else e for e in (left, right))
    if NULL in (left.type, right.type):
        other = right.type if left.type == NULL else left.type
        other = DOUBLE if other == NULL else other
        left, right = (converted(e, other) if e.type == NULL else e for e in (left, right))
    if left.type.is_floating or right.type.is_floating:
        both = {left.type.name, right.type.name}
        if "float" in both and both <= {"float", *BITS} and kind is not exp.Div:
            a, b = converted(left, Type("float")), converted(right, Type("float"))
            return strict(Type("float"), lambda x, y: _maybe_single(_in_doubles(kind, x, y)), a, b)
        return _doubles(kind, left, right)
    if left.type.is_decimal or right.type.is_decimal:
        types = _digits(left), _digits(right)
        result = _RESULT[kind](*types[0].args, *types[1].args)
        operands = converted(left, types[0]), converted(right, types[1])
        return strict(result, lambda x, y: _rounded_or_none(_exactly(kind, x, y), result), *operands)
    if kind is exp.Div:
        return _doubles(kind, left, right)
    wide = max(left.type, right.type, key=lambda t: BITS[t.name])
    return strict(wide, lambda x, y: _wrapped_or_none(_in_integers(kind, x, y), wide), left, right)


def _doubles(kind: type[exp.Expr], left: Expression, right: Expression) -> Expression:
    a, b = converted(left, DOUBLE), converted(right, DOUBLE)
    return strict(DOUBLE, lambda x, y: _in_doubles(kind, x, y), a, b)


def _maybe_single(value: float | None) -> float | None:
    return None if value is None else single(value)


def _rounded_or_none(value: Decimal | None, type_: Type) -> Decimal | None:
    return None if value is None else rounded(value, type_)


def _wrapped_or_none(value: int | None, type_: Type) -> int | None:
    return None if value is None else wrapped(value, type_)


@reads(exp.IntDiv)
def whole_quotient(node: exp.Expr, context: Context) -> Expression:
    left, right = compile_expression(node.this, context), compile_expression(node.expression, context)
    if not all(e.type.is_integral or e.type.is_decimal for e in (left, right)):
        raise NotUnderstood(f"div of {left.type} and {right.type}", node)

    def divide(x: Value, y: Value) -> int | None:
        if y == 0:
            return None
        quotient = (
            abs(Decimal(x)) // abs(Decimal(y))
            if not isinstance(x, int) or not isinstance(y, int)
            else abs(x) // abs(y)
        )
        return wrapped(int(quotient) * (1 if (x < 0) == (y < 0) else -1), BIGINT)

    return strict(BIGINT, divide, left, right)


@reads(exp.Neg)
def negative(node: exp.Expr, context: Context) -> Expression:
    operand = compile_expression(node.this, context)
    type_ = operand.type
    literal = operand.literal if isinstance(node.this, exp.Literal) else None
    if type_ == STRING:
        operand, type_ = converted(operand, DOUBLE), DOUBLE
    if type_.is_integral:
        found = strict(type_, lambda x: wrapped(-x, type_), operand)
    elif type_.is_numeric or type_ in (DAYTIME, YEARMONTH, NULL):
        found = strict(type_, lambda x: -x, operand)
    else:
        raise NotUnderstood(f"- of {type_}", node)
    return Expression(found.type, found.of, literal)


_BITS: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "__and__",
    exp.BitwiseOr: "__or__",
    exp.BitwiseXor: "__xor__",
}


@reads(*_BITS)
def bits(node: exp.Expr, context: Context) -> Expression:
    operands = [compile_expression(n, context) for n in (node.this, node.expression)]
    if not all(o.type.is_integral for o in operands):
        raise NotUnderstood("bits of other numbers than integers", node)
    wide = max((o.type for o in operands), key=lambda t: BITS[t.name])
    name = _BITS[type(node)]
    return strict(wide, lambda a, b: getattr(a, name)(b), *operands)
