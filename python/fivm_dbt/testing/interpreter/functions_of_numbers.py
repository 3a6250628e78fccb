"""Functions of numbers are here."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

from sqlglot import exp

from fivm_dbt.testing.interpreter.arithmetic import calculated
from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import constant_of, converted
from fivm_dbt.testing.interpreter.functions import function
from fivm_dbt.testing.interpreter.scope import Expression, strict
from fivm_dbt.testing.interpreter.types import BIGINT, DOUBLE, INT, NULL, STRING, Type, decimal
from fivm_dbt.testing.interpreter.values import EXACT, Value, wrapped


def number(argument: Expression, node: exp.Expr) -> Expression:
    """A number; a string is read as a double."""
    if argument.type in (STRING, NULL):
        return converted(argument, DOUBLE)
    if not argument.type.is_numeric:
        raise NotUnderstood(f"{node.name} of {argument.type}", node)
    return argument


@function("ABS", "NEGATIVE", "POSITIVE")
def abs_(arguments: list[Expression], node: exp.Expr) -> Expression:
    value = number(arguments[0], node)
    change: Callable[[Value], Value] = {"ABS": abs, "NEGATIVE": lambda x: -x, "POSITIVE": lambda x: x}[
        node.name
    ]
    type_ = value.type
    if type_.is_integral:
        return strict(type_, lambda x: wrapped(change(x), type_), value)
    return strict(type_, change, value)


@function("CEIL", "CEILING", "FLOOR")
def floor(arguments: list[Expression], node: exp.Expr) -> Expression:
    value = number(arguments[0], node)
    if len(arguments) > 1:
        raise NotUnderstood(f"{node.name} to a scale", node)
    mode = ROUND_FLOOR if node.name == "FLOOR" else ROUND_CEILING
    if value.type.is_decimal:
        precision, scale = value.type.args
        type_ = decimal(precision - scale + 1, 0) if scale else value.type
        return strict(type_, lambda x: x.quantize(Decimal(1), rounding=mode, context=EXACT), value)
    whole = math.floor if node.name == "FLOOR" else math.ceil

    def of(x: float) -> int:
        if not math.isfinite(x):
            return 0 if math.isnan(x) else (1 << 63) - 1 if x > 0 else -(1 << 63)
        return max(-(1 << 63), min((1 << 63) - 1, whole(x)))

    return strict(BIGINT, of, value)


@function("ROUND", "BROUND")
def round_(arguments: list[Expression], node: exp.Expr) -> Expression:
    value = number(arguments[0], node)
    scale = constant_of(arguments[1], node.expressions[1]) if len(arguments) > 1 else 0
    mode = ROUND_HALF_UP if node.name == "ROUND" else ROUND_HALF_EVEN
    unit = Decimal(1).scaleb(-scale)

    def of(x: Decimal) -> Decimal:
        return x.quantize(unit, rounding=mode, context=EXACT)

    type_ = value.type
    if type_.is_decimal:
        precision, own = type_.args
        if scale < 0:
            digits = max(precision - own + 1, -scale + 1)
            return strict(decimal(digits, 0), lambda x: Decimal(int(of(x))), value)
        kept = min(own, scale)
        result = decimal(precision - own + kept + 1, kept)
        return strict(result, lambda x: of(x) if scale <= own else x, value)
    if type_.is_floating:

        def of_double(x: float) -> float:
            return float(of(Decimal(repr(x)))) if math.isfinite(x) else x

        return strict(type_, of_double, value)
    return strict(type_, lambda x: wrapped(int(of(Decimal(x))), type_) if scale < 0 else x, value)


@function("MOD", "PMOD")
def modulo(arguments: list[Expression], node: exp.Expr) -> Expression:
    found = calculated(exp.Mod, arguments[0], arguments[1], node)
    if node.name == "MOD":
        return found
    if not found.type.is_integral:
        raise NotUnderstood(f"PMOD of {found.type}", node)
    divisor = arguments[1]
    type_ = found.type

    def of(rest: int, by: int) -> int:
        total = rest + by if rest < 0 else rest
        return int(math.fmod(total, by)) if rest < 0 else total

    return strict(type_, of, found, divisor)


@function("DIV")
def div(arguments: list[Expression], node: exp.Expr) -> Expression:
    raise NotUnderstood("DIV as a function", node)


@function("SIGN", "SIGNUM")
def sign(arguments: list[Expression], node: exp.Expr) -> Expression:
    value = converted(number(arguments[0], node), DOUBLE)
    return strict(DOUBLE, lambda x: float((x > 0) - (x < 0)) if not math.isnan(x) else x, value)


_DOUBLES: dict[str, Callable[[float], float | None]] = {
    "SQRT": lambda x: math.sqrt(x) if x >= 0 else math.nan,
    "EXP": math.exp,
    "LN": lambda x: math.log(x) if x > 0 else None,
    "LOG10": lambda x: math.log10(x) if x > 0 else None,
    "LOG2": lambda x: math.log2(x) if x > 0 else None,
    "SIN": math.sin,
    "COS": math.cos,
    "TAN": math.tan,
    "ATAN": math.atan,
    "RADIANS": math.radians,
    "DEGREES": math.degrees,
    "CBRT": lambda x: math.copysign(abs(x) ** (1 / 3), x),
}


@function(*_DOUBLES)
def of_double(arguments: list[Expression], node: exp.Expr) -> Expression:
    return strict(DOUBLE, _DOUBLES[node.name], converted(number(arguments[0], node), DOUBLE))


@function("LOG")
def log(arguments: list[Expression], node: exp.Expr) -> Expression:
    values = [converted(number(a, node), DOUBLE) for a in arguments]
    if len(values) == 1:
        return strict(DOUBLE, _DOUBLES["LN"], values[0])
    return strict(DOUBLE, lambda b, x: math.log(x) / math.log(b) if x > 0 and b > 0 else None, *values)


@function("POWER", "POW")
def power(arguments: list[Expression], node: exp.Expr) -> Expression:
    values = [converted(number(a, node), DOUBLE) for a in arguments]
    return strict(DOUBLE, lambda x, y: math.pow(x, y), *values)


@function("BIT_COUNT")
def bit_count(arguments: list[Expression], node: exp.Expr) -> Expression:
    if not arguments[0].type.is_integral:
        raise NotUnderstood(f"BIT_COUNT of {arguments[0].type}", node)
    return strict(INT, lambda x: bin(x & ((1 << 64) - 1)).count("1"), arguments[0])


@function("TRY_ADD", "TRY_SUBTRACT", "TRY_MULTIPLY", "TRY_DIVIDE", "TRY_MOD")
def tried(arguments: list[Expression], node: exp.Expr) -> Expression:
    """NULL where integers overflow."""
    kinds = {"TRY_ADD": exp.Add, "TRY_SUBTRACT": exp.Sub, "TRY_MULTIPLY": exp.Mul}
    kinds |= {"TRY_DIVIDE": exp.Div, "TRY_MOD": exp.Mod}
    kind = kinds[node.name]
    found = calculated(kind, arguments[0], arguments[1], node)
    if not found.type.is_integral or kind is exp.Mod:
        return found
    operations: dict[type, Callable[[int, int], int]] = {
        exp.Add: lambda a, b: a + b,
        exp.Sub: lambda a, b: a - b,
        exp.Mul: lambda a, b: a * b,
    }
    operation, type_ = operations[kind], found.type

    def of(a: int, b: int) -> int | None:
        exact = operation(a, b)
        return exact if wrapped(exact, type_) == exact else None

    return strict(type_, of, *arguments)


_NAMES = (
    "BIGINT",
    "INT",
    "DOUBLE",
    "FLOAT",
    "STRING",
    "DATE",
    "TIMESTAMP",
    "SMALLINT",
    "TINYINT",
    "BOOLEAN",
    "BINARY",
)


@function(*_NAMES)
def cast_by_name(arguments: list[Expression], node: exp.Expr) -> Expression:
    """``int(x)`` is a cast."""
    return converted(arguments[0], Type(node.name.lower()))
