"""Sums of products of payloads are exact in Spark SQL: a product with too many digits is an error."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, product_digits
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.scalar import Scalar, as_type, grouped, never_null

OVERFLOW = "FIVM402 a product of decimal sums has more than 38 digits"
_COUNT_DIGITS, _EXACT_SCALE = 10, 6


def sum_of_products(
    products: tuple[Product, ...], multiplicity: Scalar, ring: str, column: SparkType
) -> Scalar:
    """``multiplicity × Σ products`` of one row, of the type of the state's column."""
    terms = [_product(p, multiplicity, ring, column) for p in products]
    if not terms:
        return Scalar(as_type(exp.Literal.number(0), column.text))
    total = terms[0]
    for term in terms[1:]:
        total = exp.Add(this=total, expression=term)
    return Scalar(total)


def _product(product: Product, multiplicity: Scalar, ring: str, column: SparkType) -> exp.Expr:
    factors = [(scalar.ast(), type_) for scalar, type_ in product.factors]
    sign = multiplicity.as_number
    number = product.coefficient * (sign if sign is not None else 1)
    if sign is None:
        factors.append((multiplicity.ast(), BIGINT))
    if abs(number) != 1 or not factors:
        factors.append((exp.Literal.number(abs(number)), BIGINT))
    value = _decimals(factors, column) if ring == "decimals" else _in_type(factors, column)
    return exp.Neg(this=exp.paren(value)) if number < 0 else value


def _in_type(factors: list[tuple[exp.Expr, SparkType]], column: SparkType) -> exp.Expr:
    """Bigints wrap around under × as they do under +; doubles round."""
    cast = [grouped(value) if type_ == column else as_type(value, column.text) for value, type_ in factors]
    value = cast[0]
    for factor in cast[1:]:
        value = exp.Mul(this=value, expression=factor)
    return value


def _decimals(factors: list[tuple[exp.Expr, SparkType]], column: SparkType) -> exp.Expr:
    """Decimals first, then counts. The type of each partial product keeps every digit after the point."""
    ordered = sorted(factors, key=lambda f: not f[1].is_decimal)
    value, type_ = ordered[0]
    if not type_.is_decimal:
        type_ = SparkType.decimal(type_.precision, 0)
        value = as_type(value, type_.text)
    for factor, factor_type in ordered[1:]:
        if not factor_type.is_decimal:
            factor_type = SparkType.decimal(factor_type.precision, 0)
            factor = as_type(factor, factor_type.text)
        value, type_ = _multiplied(value, type_, factor, factor_type)
    cast = as_type(value, column.text)
    if len(factors) == 1:
        return cast
    return never_null(cast, OVERFLOW, column.text)


def _multiplied(
    left: exp.Expr, left_type: SparkType, right: exp.Expr, right_type: SparkType
) -> tuple[exp.Expr, SparkType]:
    """Spark cuts the scale of a product that may need more than 38 digits, but never below six."""
    precision, scale = product_digits(left_type, right_type)
    if precision > 38 and scale > _EXACT_SCALE:
        # Room is made in front of the point, where what does not fit gives NULL and with it the alarm.
        narrow = min(right_type.precision, max(_COUNT_DIGITS, right_type.scale + _COUNT_DIGITS))
        right_type = SparkType.decimal(narrow, right_type.scale)
        left_type = SparkType.decimal(min(left_type.precision, 37 - narrow), left_type.scale)
        left = as_type(left, left_type.text)
        right = as_type(right, right_type.text)
        precision, scale = product_digits(left_type, right_type)
    return exp.Mul(this=grouped(left), expression=grouped(right)), SparkType.decimal(precision, scale)
