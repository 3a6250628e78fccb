"""``fivm_float: approximate`` spells variances, covariances and regressions out over COUNT and SUM.

They are the entries of the covariance ring (F-IVM, section 8.1). With n rows, sums Sx, Sy and products Qxx, Qxy:
``n·Σ(x − x̄)(y − ȳ) = n·Qxy − Sx·Sy``, from which each function follows.

The difference loses digits where the mean is large against the deviation: of about 16 digits of doubles
2·log10(mean/deviation) go. So integers and short decimals are added and subtracted as decimals, without any loss. Of
doubles a difference below 10^−13 of its operands is rounding and counts as zero, as it is of equal values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.dialect import SparkText
from fivm_dbt.ir.scalar import as_type
from fivm_dbt.rings.doubles import finite_part, infinity, nan
from fivm_dbt.sql.aggregates import AROUND_AGGREGATES

_VARIANCES = {
    "var_pop": "m / (n * n)",
    "var_samp": "m / (n * (n - 1))",
    "stddev_pop": "SQRT(m) / n",
    "stddev_samp": "SQRT(m / (n * (n - 1)))",
}
_SYNONYMS = {
    "variance": "var_samp", "variance_pop": "var_pop", "std": "stddev_samp", "stddev": "stddev_samp",
}  # fmt: skip
_OF_PAIRS = {
    "covar_pop": (0, "ab", "CASE WHEN n > 0 THEN c / (n * n) END"),
    "covar_samp": (1, "ab", "CASE WHEN n > 1 THEN c / (n * (n - 1)) END"),
    "corr": (1, "ab", "CASE WHEN n > 1 AND ma <> 0 AND mb <> 0 THEN c / (SQRT(ma) * SQRT(mb)) END"),
    "regr_sxx": (0, "b", "CASE WHEN n > 0 THEN mb / n END"),
    "regr_syy": (0, "a", "CASE WHEN n > 0 THEN ma / n END"),
    "regr_sxy": (0, "ab", "CASE WHEN n > 0 THEN c / n END"),
    "regr_slope": (1, "ab", "CASE WHEN n > 1 AND mb <> 0 THEN c / mb END"),
    "regr_intercept": (1, "ab", "CASE WHEN n > 1 AND mb <> 0 THEN sa / n - c / mb * sb / n END"),
}
"""Over a and b, in REGR the dependent and the independent variable; ``ma``, ``mb`` and ``c`` are n times the centred
sums of squares and of products. Before the formula: how many rows are too few for a value, and which of the two make
it NaN where they are not finite."""

_NOISE = "1E-13"
_DIGITS = 14
"""Squares of 28 digits leave ten for the number of rows."""

TypeOf = Callable[[exp.Expr], SparkType | None]


@dataclass(frozen=True)
class _Value:
    """An argument as it is added up, NULL where a row does not count: as a double, or without loss as a decimal.

    ``too_large`` holds for integers whose squares leave no room for a sum: where there are any, doubles are used.
    """

    double: exp.Expr
    exact: exp.Expr | None = None
    digits: tuple[int, int] = (0, 0)
    too_large: exp.Expr | None = None
    may_be_infinite: bool = False


def spelled_out(node: exp.Expr, type_of: TypeOf) -> exp.Expr | None:
    """A call of such a function as an expression over COUNT and SUM; None for any other, which stays as it is."""
    inner, conditions = node, []
    while isinstance(inner, AROUND_AGGREGATES):
        if not isinstance(inner, exp.Filter):
            return None
        conditions.append(inner.expression.this)
        inner = inner.this
    written = function_name(inner) or ""
    name = _SYNONYMS.get(written, written)
    arguments = _arguments(inner)
    if any(isinstance(a, exp.Distinct) for a in arguments):
        return None
    if name in _VARIANCES and len(arguments) == 1:
        return _variance(_VARIANCES[name], arguments[0], conditions, name.endswith("samp"), type_of)
    if len(arguments) != 2:
        return None
    if name in ("regr_count", "regr_avgx", "regr_avgy"):
        shown = arguments[0] if name == "regr_avgy" else arguments[1]
        value = _where([*conditions, *_present(arguments)], shown)
        return exp.Count(this=value) if name == "regr_count" else exp.Avg(this=value)
    return _of_pair(_OF_PAIRS[name], arguments, conditions, type_of) if name in _OF_PAIRS else None


def _variance(
    formula: str, argument: exp.Expr, conditions: list[exp.Expr], is_sample: bool, type_of: TypeOf
) -> exp.Expr | None:
    value = _value(_where(conditions, argument), type_of(argument))
    if value is None:
        return None
    parts = {"n": _double(_shown_sums(value, value)["n"]), "m": _centred(value, value)}
    least = 1 if is_sample else 0
    return _checked(_filled(f"CASE WHEN n > {least} THEN {formula} END", parts), least, [value])


def _of_pair(
    rule: tuple[int, str, str], arguments: list[exp.Expr], conditions: list[exp.Expr], type_of: TypeOf
) -> exp.Expr | None:
    least, finite, formula = rule
    here = [*conditions, *_present(arguments)]
    values = [_value(_where(here, a), type_of(a)) for a in arguments]
    a, b = values
    if a is None or b is None:
        return None
    sums = _shown_sums(a, b)
    parts = {
        "n": _double(sums["n"]),
        "sa": _double(sums["s"]),
        "sb": _double(sums["t"]),
        "ma": _centred(a, a),
        "mb": _centred(b, b),
        "c": _centred(a, b),
    }
    checked = [value for name, value in (("a", a), ("b", b)) if name in finite]
    return _checked(_filled(formula, parts), least, checked)


def _checked(result: exp.Expr, least: int, values: list[_Value]) -> exp.Expr:
    """The result as a double, NaN where a value is NaN or infinite, or has a square that is."""
    finite: list[exp.Expr] = []
    for value in values:
        if value.may_be_infinite:
            square = exp.Mul(this=value.double.copy(), expression=value.double.copy())
            finite.append(exp.LT(this=exp.Abs(this=square), expression=infinity()))
    if finite:
        others = exp.If(this=exp.Not(this=exp.paren(exp.and_(*finite))), true=exp.Literal.number(1))
        parts: dict[str, exp.Expr] = {
            "z": exp.Count(this=exp.Case(ifs=[others])),
            "t": exp.Count(this=values[0].double.copy()),
        }
        parts |= {"r": result, "x": nan()}
        result = _filled(f"CASE WHEN z > 0 AND t > {least} THEN x ELSE r END", parts)
    return as_type(result, "double")


def _centred(a: _Value, b: _Value) -> exp.Expr:
    """``n·Q − S·S``; of squares never below zero, and zero for a single row. Over finite values."""
    exact = _exact_sums(a, b)
    doubles = {key: _double(part) for key, part in _shown_sums(a, b).items()}
    difference = _filled("n * q - s * t", doubles)
    if a == b:
        noise = f"CASE WHEN n = 1 THEN s * 0 WHEN d <= n * q * {_NOISE} AND n * q < i THEN 0E0 ELSE d END"
        difference = _filled(noise, {**doubles, "d": difference, "i": infinity()})
    if not exact:
        return difference
    exact["n"] = as_type(exact["n"], "decimal(19,0)")
    # A product that needs more than 38 digits is NULL.
    without_loss = _double(_filled("n * q - s * t", exact))
    limits = [v.too_large for v in dict.fromkeys((a, b)) if v.too_large is not None]
    if limits:
        others = exp.Count(this=exp.Case(ifs=[exp.If(this=exp.or_(*limits), true=exp.Literal.number(1))]))
        none = exp.EQ(this=others, expression=exp.Literal.number(0))
        without_loss = exp.Case(ifs=[exp.If(this=none, true=without_loss)])
    return exp.Coalesce(this=without_loss, expressions=[difference])


def _shown_sums(a: _Value, b: _Value) -> dict[str, exp.Expr]:
    """The sums that are kept in any case."""
    is_always_exact = a.too_large is None and b.too_large is None
    return (_exact_sums(a, b) if is_always_exact else {}) or _double_sums(a, b)


def _double_sums(a: _Value, b: _Value) -> dict[str, exp.Expr]:
    """n, Sx, Sy and Qxy."""
    product = exp.Mul(this=a.double.copy(), expression=b.double.copy())
    return _sums(*(finite_part(part) for part in (a.double, b.double, product)))


def _exact_sums(a: _Value, b: _Value) -> dict[str, exp.Expr]:
    """The same of decimals, none where one of the two is a double."""
    if a.exact is None or b.exact is None:
        return {}
    precision, scale = a.digits[0] + b.digits[0], a.digits[1] + b.digits[1]
    wide = as_type(a.exact.copy(), f"decimal({precision},{a.digits[1]})")
    product = exp.Mul(this=wide, expression=exp.paren(b.exact.copy()))
    return _sums(a.exact, b.exact, as_type(product, f"decimal({precision},{scale})"))


def _sums(a: exp.Expr, b: exp.Expr, product: exp.Expr) -> dict[str, exp.Expr]:
    return {
        "n": exp.Count(this=a.copy()),
        "s": exp.Sum(this=a.copy()),
        "t": exp.Sum(this=b.copy()),
        "q": exp.Sum(this=product),
    }


def _value(argument: exp.Expr, type_: SparkType | None) -> _Value | None:
    if type_ is None or not (type_.is_numeric or type_.is_string):
        return None
    double = _double(argument)
    if type_.text == "bigint":
        size = exp.Abs(this=as_type(argument.copy(), "decimal(20,0)"))
        limit = exp.Literal.number("1" + "0" * _DIGITS)
        short = exp.If(
            this=exp.LT(this=size.copy(), expression=limit.copy()),
            true=as_type(argument.copy(), f"decimal({_DIGITS},0)"),
        )
        too_large = exp.GTE(this=size, expression=limit)
        return _Value(double, exp.Case(ifs=[short]), (_DIGITS, 0), too_large)
    if type_.is_integral:
        return _Value(double, as_type(argument.copy(), "decimal(10,0)"), (10, 0))
    # Six digits after the point are what a product of decimals keeps.
    if type_.is_decimal and type_.precision <= _DIGITS and type_.scale <= 3:
        exact = as_type(argument.copy(), type_.text)
        return _Value(double, exact, (type_.precision, type_.scale))
    return _Value(double, may_be_infinite=not type_.is_decimal)


def _arguments(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Anonymous):
        return list(node.expressions)
    return [a for a in (node.this, node.args.get("expression")) if isinstance(a, exp.Expr)]


def _present(arguments: list[exp.Expr]) -> list[exp.Expr]:
    return [exp.Not(this=exp.Is(this=exp.paren(a.copy()), expression=exp.Null())) for a in arguments]


def _where(conditions: list[exp.Expr], value: exp.Expr) -> exp.Expr:
    if not conditions:
        return value.copy()
    condition = exp.and_(*(c.copy() for c in conditions))
    return exp.Case(ifs=[exp.If(this=condition, true=value.copy())])


def _double(value: exp.Expr) -> exp.Expr:
    return as_type(value.copy(), "double")


def _filled(formula: str, parts: dict[str, exp.Expr]) -> exp.Expr:
    """A formula over the names in ``parts``, with what they stand for."""

    def fill(node: exp.Expr) -> exp.Expr:
        is_name = isinstance(node, exp.Column) and not node.table and node.name in parts
        return exp.paren(parts[node.name].copy()) if is_name else node

    parsed: exp.Expr = sqlglot.parse_one(formula, dialect=SparkText)
    return parsed.transform(fill)
