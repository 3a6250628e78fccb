"""Arithmetic, comparisons and logic."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import (
    boolean_of,
    compile_expression,
    constant,
    converted,
    reads,
    unified,
    uses,
)
from fivm_dbt.testing.interpreter.scope import Context, Env, Expression
from fivm_dbt.testing.interpreter.types import (
    BIGINT,
    BITS,
    BOOLEAN,
    DATE,
    DAYTIME,
    DOUBLE,
    NULL,
    STRING,
    TIMESTAMP,
    YEARMONTH,
    Type,
    adjusted,
    as_decimal,
    compared,
    decimal,
)
from fivm_dbt.testing.interpreter.values import (
    EXACT,
    Value,
    as_timestamp,
    compare,
    equal,
    months_added,
    rounded,
    single,
    wrapped,
)


def strict(type_: Type, function: Callable[..., Value], *arguments: Expression) -> Expression:
    """A function that is NULL where one of its arguments is."""
    evaluate = [a.of for a in arguments]

    def of(env: Env) -> Value:
        values = []
        for argument in evaluate:
            value = argument(env)
            if value is None:
                return None
            values.append(value)
        return function(*values)

    return Expression(type_, of)


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
        return _with_times(kind, left, right, node)
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


def _with_times(kind: type[exp.Expr], left: Expression, right: Expression, node: exp.Expr) -> Expression:
    """Days, times and intervals, added and subtracted."""
    sign = -1 if kind is exp.Sub else 1
    a, b = left.type, right.type
    if kind is exp.Add and (b.is_time and not a.is_time):
        return _with_times(kind, right, left, node)
    if kind in (exp.Add, exp.Sub) and a.is_time:
        if b.is_integral and a == DATE:
            return strict(DATE, lambda d, n: d + timedelta(days=sign * n), left, right)
        if b == YEARMONTH:
            return strict(a, lambda d, n: months_added(d, sign * n), left, right)
        if b == DAYTIME:
            whole = a == DATE and _is_of_days(node)
            result = DATE if whole else (TIMESTAMP if a == DATE else a)
            add = (lambda d, n: d + sign * n) if whole else (lambda d, n: as_timestamp(d) + sign * n)
            return strict(result, add, left, right)
        if kind is exp.Sub and b.is_time and "string" not in (a.name, b.name):
            return strict(DAYTIME, lambda x, y: as_timestamp(x) - as_timestamp(y), left, right)
    if kind in (exp.Add, exp.Sub) and a == b and a in (DAYTIME, YEARMONTH):
        return strict(a, lambda x, y: x + sign * y, left, right)
    if kind is exp.Mul and b in (DAYTIME, YEARMONTH) and a.is_integral:
        left, right, a, b = right, left, b, a
    if kind is exp.Mul and a in (DAYTIME, YEARMONTH) and b.is_integral:
        return strict(a, lambda x, y: x * y, left, right)
    raise NotUnderstood(f"{kind.__name__} of {a} and {b}", node)


def _is_of_days(node: exp.Expr) -> bool:
    """Whether the interval beside a date is one of whole days, so that the result is a date."""
    intervals = list(node.find_all(exp.Interval))
    if not intervals:
        raise NotUnderstood("a date and an interval that is not written down", node)
    return all(
        i.args.get("unit") is not None and i.args["unit"].name.upper().rstrip("S") in ("DAY", "WEEK")
        for i in intervals
    )


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


@reads(exp.Is)
def is_(node: exp.Expr, context: Context) -> Expression:
    wanted = node.expression
    if isinstance(wanted, exp.Null):
        of = compile_expression(node.this, context).of
        return Expression(BOOLEAN, lambda env: of(env) is None)
    if isinstance(wanted, exp.Boolean):
        of, value = boolean_of(node.this, context).of, bool(wanted.this)
        return Expression(BOOLEAN, lambda env: of(env) is value)
    raise NotUnderstood("IS", node)


@reads(exp.And, exp.Or)
def logic(node: exp.Expr, context: Context) -> Expression:
    left, right = boolean_of(node.this, context).of, boolean_of(node.expression, context).of
    return _logic(isinstance(node, exp.Or), left, right)


def _logic(decides: bool, left: Callable[[Env], Value], right: Callable[[Env], Value]) -> Expression:
    """OR where True ``decides``, AND where False does."""

    def of(env: Env) -> bool | None:
        a = left(env)
        if a is decides:
            return decides
        b = right(env)
        if b is decides:
            return decides
        return None if a is None or b is None else not decides

    return Expression(BOOLEAN, of)


@reads(exp.Not)
def not_(node: exp.Expr, context: Context) -> Expression:
    """Spark brings NOT down to the operands of AND and OR: NOT IN of a query is not the opposite of IN."""
    operand = node.this.unnest()
    if isinstance(operand, exp.Not):
        return boolean_of(operand.this, context)
    if isinstance(operand, (exp.And, exp.Or)):
        left, right = (not_(exp.Not(this=n), context).of for n in (operand.this, operand.expression))
        return _logic(isinstance(operand, exp.And), left, right)
    if isinstance(operand, exp.In) and operand.args.get("query") is not None:
        from fivm_dbt.testing.interpreter.subqueries import not_in

        return not_in(operand, context)
    return strict(BOOLEAN, lambda x: not x, boolean_of(operand, context))


@reads(exp.Between)
def between(node: exp.Expr, context: Context) -> Expression:
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
    high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
    return _logic(False, compile_expression(low, context).of, compile_expression(high, context).of)


uses(exp.Between, "this", "low", "high")


@reads(exp.In)
def in_(node: exp.Expr, context: Context) -> Expression:
    if node.args.get("query") is not None:
        from fivm_dbt.testing.interpreter.subqueries import in_query

        return in_query(node, context)
    items = [compile_expression(n, context) for n in (node.this, *node.expressions)]
    _, (value, *listed) = unified(items, node)

    def of(env: Env) -> bool | None:
        wanted = value.of(env)
        if wanted is None:
            return None
        found = [item.of(env) for item in listed]
        if any(v is not None and equal(v, wanted) for v in found):
            return True
        return None if None in found else False

    return Expression(BOOLEAN, of)


uses(exp.In, "this", "expressions", "query")


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


@reads(exp.DPipe)
def concatenation(node: exp.Expr, context: Context) -> Expression:
    operands = [converted(compile_expression(n, context), STRING) for n in (node.this, node.expression)]
    return strict(STRING, lambda a, b: a + b, *operands)


uses(exp.DPipe, "this", "expression", "safe")

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


_SECONDS: dict[str, Decimal | int] = {"DAY": 86400, "HOUR": 3600, "MINUTE": 60, "SECOND": 1, "WEEK": 604800}
_SECONDS |= {"MILLISECOND": Decimal("0.001"), "MICROSECOND": Decimal("0.000001")}


@reads(exp.Interval)
def interval(node: exp.Expr, context: Context) -> Expression:
    unit, text = node.args.get("unit"), node.this
    if unit is None or not isinstance(text, (exp.Literal, exp.Neg)):
        raise NotUnderstood("an interval that is not one number with a unit", node)
    written = f"-{text.this.name}" if isinstance(text, exp.Neg) else text.name
    if isinstance(unit, exp.IntervalSpan):
        return _span(written, unit.this.name.upper(), unit.expression.name.upper(), node)
    name = unit.name.upper().rstrip("S")
    try:
        number = Decimal(written.strip())
    except ArithmeticError:
        raise NotUnderstood("an interval that is not one number with a unit", node) from None
    if name in ("YEAR", "QUARTER", "MONTH"):
        return constant(int(number) * {"YEAR": 12, "QUARTER": 3, "MONTH": 1}[name], YEARMONTH)
    if name not in _SECONDS:
        raise NotUnderstood(f"INTERVAL {name}", node)
    return constant(timedelta(microseconds=int(number * Decimal(_SECONDS[name]) * 10**6)), DAYTIME)


uses(exp.Interval, "this", "unit")


def _span(text: str, start: str, end: str, node: exp.Expr) -> Expression:
    sign = -1 if text.strip().startswith("-") else 1
    numbers = re.findall(r"\d+(?:\.\d+)?", text)
    if (start, end) == ("YEAR", "MONTH") and len(numbers) == 2:
        return constant(sign * (int(numbers[0]) * 12 + int(numbers[1])), YEARMONTH)
    units = ["DAY", "HOUR", "MINUTE", "SECOND"]
    if start not in units or end not in units:
        raise NotUnderstood(f"INTERVAL {start} TO {end}", node)
    wanted = units[units.index(start) : units.index(end) + 1]
    if len(wanted) != len(numbers):
        raise NotUnderstood(f"INTERVAL {start} TO {end}", node)
    seconds = sum(Decimal(n) * _SECONDS[u] for n, u in zip(numbers, wanted, strict=True))
    return constant(timedelta(microseconds=int(sign * seconds * 10**6)), DAYTIME)


@reads(exp.Tuple)
def tuple_(node: exp.Expr, context: Context) -> Expression:
    items = [compile_expression(n, context) for n in node.expressions]
    type_ = Type("struct", tuple((f"col{i}", e.type) for i, e in enumerate(items, start=1)))
    return Expression(type_, lambda env: tuple(e.of(env) for e in items))


@reads(exp.Bracket)
def element(node: exp.Expr, context: Context) -> Expression:
    base, place = compile_expression(node.this, context), compile_expression(node.expressions[0], context)
    if base.type.name == "array" and place.type.is_integral:
        return strict(base.type.args[0], lambda a, i: a[i] if 0 <= i < len(a) else None, base, place)
    if base.type.name == "map":
        return strict(base.type.args[1], lambda m, k: m.get(k), base, converted(place, base.type.args[0]))
    raise NotUnderstood(f"element of {base.type}", node)


uses(exp.Bracket, "this", "expressions", "offset", "safe", "returns_list_for_maps")
