"""A lifted value as a sum of products whose factors each belong to one relation of a join.

``SUM(a.p * (1 - b.d))`` over ``a ⋈ b`` is ``SUM(a.p) × COUNT(b) − SUM(a.p) × SUM(b.d)`` per join key, so that neither
relation has to keep rows apart that differ in ``p`` or ``d`` only. Only what is exact is split: products and sums of
decimals whose type has room for every digit, and of bigints, whose sums wrap around as their products do. What cannot
be split is one factor over several relations, computed where all of them are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import mul

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, INT, product_digits, sum_digits
from fivm_dbt.ir.factored import Product
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.rings.component import Component
from fivm_dbt.rings.integers import absences, is_presence, presence
from fivm_dbt.rings.numbers import Typed
from fivm_dbt.rings.polynomial import Polynomial, zero_for_null

ONE = Scalar.number(1)
_NOTHING = Polynomial(())


@dataclass(frozen=True)
class Join:
    """What is known of the joined columns: their types, and the relation that each belongs to.

    With ``is_whole`` no value is split: each is one factor over all its relations.
    """

    type_of: Callable[[ColumnId], SparkType]
    relation_of: Callable[[ColumnId], int]
    is_whole: bool = False
    present: dict[tuple[Typed, ...], Polynomial] = field(default_factory=dict, compare=False)
    """What indicators are as products of those of single relations: many components have the same ones."""

    def relations(self, scalar: Scalar) -> frozenset[int]:
        return frozenset(self.relation_of(column) for column in scalar.columns)

    def ordered(self, product: Product) -> Product:
        """The factors of a product by their relations."""
        return Product(product.coefficient, tuple(sorted(product.factors, key=self.sort_key)))

    def sort_key(self, factor: Typed) -> tuple[int, str]:
        return (min(self.relations(factor[0]), default=-1), factor[0].sql)


def split(component: Component, join: Join) -> tuple[Product, ...]:
    """What a row of the join contributes to ``component``, as products of factors that are never NULL."""
    if not component.numbers.is_exact:
        return Polynomial.of(component.term(ONE), component.type).products
    result = _NOTHING
    for product in component.lift.products:
        tests = tuple(f for f in product.factors if is_presence(f[0]))
        if tests not in join.present:
            join.present[tests] = _present(tests, join)
        term = Polynomial.number(product.coefficient) * join.present[tests]
        for factor in product.factors:
            if factor not in tests:
                term = term * _factor(*factor, join)
        result = result + term
    return tuple(map(join.ordered, result.with_presence_by(join.relations).products))


def _present(tests: Sequence[Typed], join: Join) -> Polynomial:
    """The product of some indicators, those of one relation as one."""
    values = [Scalar(test.ast().this.unnest()) for value, _ in tests for test in absences(value) or ()]
    every = reduce(mul, (_presence(value, join) for value in values), Polynomial.number(1))
    return every.with_presence_by(join.relations)


def _factor(value: Scalar, type_: SparkType, join: Join) -> Polynomial:
    """A factor, with zero in place of NULL, as a sum of products."""
    found = _value(value.ast(), join)
    if found is None or not _is_type(found[1], type_):
        return Polynomial.of(*zero_for_null((value, type_)))
    return found[0]


def _is_type(found: SparkType, wanted: SparkType) -> bool:
    """Whether a split value has the digits that the whole one has: its scale, and room enough."""
    if wanted.is_decimal:
        return found.is_decimal and found.scale == wanted.scale
    return found == wanted


def _presence(value: Scalar, join: Join) -> Polynomial:
    """``[value is not null]``: of what is split, the product of what its parts say."""
    found = _value(value.ast(), join)
    if found is not None:
        return found[2]
    if isinstance(value.ast(), (exp.Literal, exp.Boolean)):
        return Polynomial.number(1)
    return Polynomial.of(presence(value), INT)


_Split = tuple[Polynomial, SparkType, Polynomial]
"""A value with zero for NULL, its type, and the indicator of its not being NULL."""


def _value(node: exp.Expr, join: Join) -> _Split | None:
    """``node`` as a sum of products; None where its type is not known to be exact."""
    node = node.unnest()
    scalar = Scalar(node.copy())
    if join.is_whole:
        return None
    if len(join.relations(scalar)) <= 1:
        if is_presence(scalar):
            return Polynomial.of(scalar, INT), INT, Polynomial.number(1)
        type_ = exact_type(node, join.type_of)
        if type_ is None:
            return None
        if scalar.as_number is not None:
            return Polynomial.number(scalar.as_number), type_, Polynomial.number(1)
        is_given = isinstance(node, exp.Literal)
        here = Polynomial.number(1) if is_given else Polynomial.of(presence(scalar), INT)
        return Polynomial.of(*zero_for_null((scalar, type_))), type_, here
    if isinstance(node, exp.Neg):
        inner = _value(node.this, join)
        return None if inner is None else (-inner[0], inner[1], inner[2])
    if isinstance(node, (exp.Mul, exp.Add, exp.Sub)):
        return _arithmetic(node, join)
    if isinstance(node, exp.Cast):
        return _cast(node, join)
    if isinstance(node, exp.Case) and node.this is None:
        return _case(node, join)
    return None


def _arithmetic(node: exp.Binary, join: Join) -> _Split | None:
    left, right = _value(node.left, join), _value(node.right, join)
    if left is None or right is None:
        return None
    type_ = _result(node, left[1], right[1])
    if type_ is None:
        return None
    both = left[2] * right[2]
    if isinstance(node, exp.Mul):
        return left[0] * right[0], type_, both
    other = left[2] * right[0]
    return left[0] * right[2] + (-other if isinstance(node, exp.Sub) else other), type_, both


def _cast(node: exp.Cast, join: Join) -> _Split | None:
    """A cast that changes no value."""
    inner = _value(node.this, join)
    if inner is None:
        return None
    to = SparkType.of(node.to.sql(dialect="spark"))
    return (inner[0], to, inner[2]) if _widens(inner[1], to) else None


def _widens(old: SparkType, new: SparkType) -> bool:
    if new.is_integral and old.is_integral:
        return new.precision >= old.precision
    if not new.is_decimal or not (old.is_integral or old.is_decimal):
        return False
    return new.scale >= old.scale and new.precision - new.scale >= old.precision - old.scale


def _case(node: exp.Case, join: Join) -> _Split | None:
    """``CASE WHEN c THEN v ...`` is ``Σ [c is the first that holds] × v``, where each condition has one relation."""
    values, presences, types = [], [], []
    earlier: list[exp.Expr] = []
    branches = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
    default = node.args.get("default")
    if default is not None and not isinstance(default, exp.Null):
        branches.append((None, default))
    chosen_by = [
        join.relations(Scalar(condition.copy())) for condition, _ in branches if condition is not None
    ]
    if len(frozenset[int]().union(*chosen_by)) != 1:
        return None
    for condition, value in branches:
        found = _value(value, join)
        if found is None:
            return None
        chosen = Polynomial.of(_first_that_holds(earlier, condition), INT)
        values.append(chosen * found[0])
        presences.append(chosen * found[2])
        types.append((found[1], Scalar(value.copy()).as_number is not None))
        if condition is not None:
            earlier.append(condition)
    wide = [t for t, is_number in types if not is_number] or [types[0][0]]
    if any(t != wide[0] for t in wide) or any(not _widens(t, wide[0]) for t, is_number in types if is_number):
        return None
    return sum(values, _NOTHING), wide[0], sum(presences, _NOTHING)


def _first_that_holds(earlier: list[exp.Expr], condition: exp.Expr | None) -> Scalar:
    zero, one = exp.Literal.number(0), exp.Literal.number(1)
    ifs = [exp.If(this=other.copy(), true=zero.copy()) for other in earlier]
    if condition is not None:
        ifs.append(exp.If(this=condition.copy(), true=one))
    return Scalar(exp.Case(ifs=ifs, default=zero if condition is not None else one))


def exact_type(node: exp.Expr, type_of: Callable[[ColumnId], SparkType]) -> SparkType | None:
    """The type of an exact expression over one relation, by Spark's rules; None of any that is not known here."""
    node = node.unnest()
    if isinstance(node, exp.Column):
        type_ = type_of((node.table, node.name))
        return type_ if type_.is_integral or type_.is_decimal else None
    if isinstance(node, exp.Literal) and not node.is_string:
        if node.this.isdigit():
            return INT if int(node.this) < 2**31 else None
        digits = node.this.replace(".", "").lstrip("0")
        scale = len(node.this.partition(".")[2])
        if not node.this.replace(".", "", 1).isdigit():
            return None
        return SparkType.decimal(max(len(digits), scale, 1), scale)
    if isinstance(node, exp.Neg):
        return exact_type(node.this, type_of)
    if isinstance(node, exp.Cast):
        to = SparkType.of(node.to.sql(dialect="spark"))
        if isinstance(node, exp.TryCast):
            # As the parser calls what users write. It must not stop a statement at a row that joins nothing.
            inner = exact_type(node.this, type_of)
            return to if inner is not None and _widens(inner, to) else None
        return to if to.is_integral or to.is_decimal else None
    if isinstance(node, exp.Coalesce):
        types = {exact_type(part, type_of) for part in (node.this, *node.expressions)}
        return types.pop() if len(types) == 1 else None
    if isinstance(node, (exp.Mul, exp.Add, exp.Sub)):
        left, right = exact_type(node.left, type_of), exact_type(node.right, type_of)
        return None if left is None or right is None else _result(node, left, right)
    return None


def _result(node: exp.Binary, left: SparkType, right: SparkType) -> SparkType | None:
    """The type of ``+ − ×`` where it has room for every digit, or wraps around at 64 bits."""
    if left.is_integral and right.is_integral:
        return BIGINT if BIGINT in (left, right) else None
    digits = product_digits if isinstance(node, exp.Mul) else sum_digits
    return exact_decimal(digits, as_decimal(left, node.left), as_decimal(right, node.right))


def exact_decimal(
    digits: Callable[[SparkType, SparkType], tuple[int, int]], one: SparkType, other: SparkType
) -> SparkType | None:
    """The type of a sum or product of decimals that has room for every digit."""
    precision, scale = digits(one, other)
    return SparkType.decimal(precision, scale) if precision <= 38 else None


def as_decimal(type_: SparkType, node: exp.Expr) -> SparkType:
    """A literal has as many digits as it shows, a column those of its type."""
    number = Scalar(node.copy()).as_number
    if type_.is_decimal:
        return type_
    digits = len(str(abs(number))) if number is not None else type_.precision
    return SparkType.decimal(digits, 0)
