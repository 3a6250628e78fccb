"""``fivm_covariance(x, log(y) AS z, fivm_weight(w))`` is read, and written out as SQL that Spark knows.

The planner keeps the call as it is and maintains it in a ring (:mod:`fivm_dbt.rings.covariances`). The recompute runs
the sums of this module, which are written without that ring:
``COALESCE(SUM(CASE WHEN x IS NOT NULL AND z IS NOT NULL THEN w * x * z END), 0)`` and the like.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.functions.learning import CATEGORICAL, COVARIANCE, DEGREE, PRESENT, WEIGHT
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.scalar import Scalar, as_type, grouped
from fivm_dbt.rings.covariances import MOST, moments, monomials
from fivm_dbt.rings.doubles import finite_part
from fivm_dbt.rings.integers import presence
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.typing import known_type

_LARGEST = "1E100"
"""Of doubles beyond it, of NaN and of the infinities, no product could be taken away again."""
_MOST_DIGITS = 38
_MARKERS = (CATEGORICAL, WEIGHT, PRESENT, DEGREE)


@dataclass(frozen=True)
class Covariance:
    """A call taken apart: the continuous variables under their names, and the weight of a row where it has one.

    ``categories`` are the categorical variables under theirs, and ``present`` what must not be NULL besides.
    """

    call: exp.Expr
    variables: tuple[exp.Expr, ...]
    names: tuple[str, ...]
    weight: exp.Expr | None
    categories: tuple[tuple[str, exp.Expr], ...] = ()
    present: tuple[exp.Expr, ...] = ()
    degree: int = 2
    """Of the highest monomials: 1 of sums, 2 of products of two variables."""

    @property
    def factors(self) -> tuple[exp.Expr, ...]:
        """What is multiplied: the continuous variables, then the weight."""
        return self.variables if self.weight is None else (*self.variables, self.weight)

    @property
    def arguments(self) -> tuple[exp.Expr, ...]:
        """What the ring takes: the factors, then indicators, which are weights to it."""
        return (*self.factors, *(presence(Scalar(value)).ast() for value in self.present))


def is_covariance(node: exp.Expr) -> bool:
    return function_name(node) == COVARIANCE


def names_variables(node: exp.Expr) -> bool:
    """Whether the arguments of a call may have names."""
    return function_name(node) in (COVARIANCE, CATEGORICAL)


def with_named_variables(query: exp.Query) -> exp.Query:
    """``query``, which is changed: each variable of a covariance gets the name that its result shows.

    That is its alias, or the name of its column. FIVM105 for one that has neither, and FIVM112 for a name that is
    there twice.

    >>> from fivm_dbt.sql.parse import parse
    >>> print(with_named_variables(parse("select fivm_covariance(r.X, log(y) as z) as m from r")).sql("spark"))
    SELECT FIVM_COVARIANCE(r.X AS x, LN(y) AS z) AS m FROM r
    """
    for node in query.find_all(exp.Anonymous):
        name = function_name(node)
        is_inside = node.parent is not None and is_covariance(node.parent)
        if name in _MARKERS and not is_inside:
            raise unsupported(node, f"{name} outside of {COVARIANCE}", f"write it inside of {COVARIANCE}")
        if name in _MARKERS and len(node.expressions) != 1:
            raise unsupported(node, f"{name} takes one value", f"write {name}(x)")
        if name == COVARIANCE:
            _name_variables(node)
    return query


def _name_variables(call: exp.Anonymous) -> None:
    outer = call.parent if isinstance(call.parent, exp.Filter) else call
    if outer is not None and isinstance(outer.parent, exp.Select):
        raise unsupported(call, f"{COVARIANCE} without a name", "write AS and a name", code="FIVM112")
    if any(isinstance(a, exp.Distinct) for a in call.expressions):
        remedy = "read the rows with SELECT DISTINCT in FROM"
        raise unsupported(call, f"{COVARIANCE} of distinct rows", remedy)
    inner = next((n for a in call.expressions for n in a.walk() if is_aggregate(n)), None)
    if inner is not None:
        raise unsupported(inner, "an aggregate inside an aggregate", "aggregate in a subquery first")
    taken: set[str] = set()
    for argument in list(call.expressions):
        if function_name(argument) in (WEIGHT, PRESENT, DEGREE):
            continue
        if function_name(argument) == CATEGORICAL:
            if not argument.expressions:
                raise unsupported(
                    argument, f"{CATEGORICAL} of nothing", "write the variable between the brackets"
                )
            argument = argument.expressions[0]
        value = argument.unalias()
        name = (argument.alias or (value.name if isinstance(value, (exp.Column, exp.Dot)) else "")).lower()
        if not name:
            what = f"{value.sql('spark')} has no name to be shown under"
            raise unsupported(argument, what, f"write AS and a name behind it, inside of {COVARIANCE}")
        if name in taken:
            what = f"{COVARIANCE} has two variables called {name}"
            raise unsupported(argument, what, "write AS and another name behind one", code="FIVM112")
        taken.add(name)
        argument.replace(exp.alias_(value.copy(), name, quoted=not name.isidentifier()))


def read_covariance(call: exp.Expr) -> Covariance:
    """The call of a query that :func:`with_named_variables` has seen. FIVM105 where its arguments make no sense."""
    weights = _marked(call, WEIGHT)
    categories = tuple((a.alias, a.this.copy()) for a in _marked(call, CATEGORICAL))
    present = tuple(a.copy() for a in _marked(call, PRESENT))
    variables = [a for a in call.expressions if isinstance(a, exp.Alias)]
    if not variables and not categories and not present:
        raise unsupported(call, f"{COVARIANCE} without a variable", "name at least one column in it")
    if len(weights) > 1:
        raise unsupported(weights[1], "a second weight", "multiply the weights")
    degree = _degree(call)
    if categories and degree != 2:
        remedy = f"leave {DEGREE} out, or compute the two in two columns"
        raise unsupported(call, f"{DEGREE} beside {CATEGORICAL}", remedy)
    return Covariance(
        call,
        tuple(a.this.copy() for a in variables),
        tuple(a.alias for a in variables),
        weight=weights[0].copy() if weights else None,
        categories=categories,
        present=present,
        degree=degree,
    )


def _degree(call: exp.Expr) -> int:
    """The degree of the highest monomials that a call asks for."""
    found = [a for a in call.expressions if function_name(a) == DEGREE]
    if len(found) > 1:
        raise unsupported(found[1], f"a second {DEGREE}", "name the highest degree alone")
    degree = Scalar(found[0].expressions[0]).as_number if found else 2
    if degree is None or not 1 <= degree <= MOST:
        raise unsupported(
            found[0], f"{found[0].sql('spark')} is no degree", f"write a number from 1 to {MOST}"
        )
    return degree


def _marked(call: exp.Expr, name: str) -> list[exp.Expr]:
    """What stands in the arguments of some name."""
    return [a.expressions[0] for a in call.expressions if function_name(a) == name]


def checked_types(found: Covariance, types: Sequence[SparkType | None]) -> tuple[SparkType, ...]:
    """The types of the arguments. FIVM109 where one is not known, FIVM105 for what no moments can be computed of."""
    known = []
    for value, found_type in zip(found.arguments, types, strict=True):
        type_ = known_type(found_type, value)
        if not type_.is_numeric:
            what = f"{value.sql('spark')} is a {type_}, and a continuous variable is a number"
            raise unsupported(value, what, "CAST it to a number, or leave it out")
        known.append(type_)
    _check_digits(found, known)
    return tuple(known)


def _check_digits(found: Covariance, types: Sequence[SparkType]) -> None:
    """Spark would round a product of decimals that needs more than 38 digits."""
    if any(t.is_floating for t in types) or not any(t.is_decimal for t in types):
        return
    if not found.variables:
        return
    types = types[: len(found.factors)]
    variables = types[: len(found.variables)]
    widest = max(variables, key=_digits)
    powers = found.degree * (_digits(widest) + 1) - 1
    digits = powers + sum(_digits(t) + 1 for t in types[len(found.variables) :])
    if digits > _MOST_DIGITS:
        value = found.variables[variables.index(widest)]
        power = {1: "sum", 2: "square"}.get(found.degree, f"power {found.degree}")
        what = f"the {power} of {value.sql('spark')}, of type {widest}, needs {digits} digits with its weight"
        raise unsupported(value, what, f"CAST it to fewer digits; there are {_MOST_DIGITS}")


def _digits(type_: SparkType) -> int:
    """The digits of a factor beside decimals. A bigint has 19: that a type has room for 20 would be one too many."""
    return min(type_.precision, 19) if type_.is_integral else type_.precision


def written_out(
    found: Covariance,
    types: Sequence[SparkType],
    conditions: Sequence[exp.Expr] = (),
    *,
    as_finite: bool = False,
) -> exp.Expr:
    """The call as SQL that Spark knows; rows count that fulfil the conditions of its FILTER.

    No sum is of an infinity or NaN. With ``as_finite`` this is written to be seen: nothing has to count those then.
    """
    return _written_out(found, types, counts(found, types, conditions), as_finite=as_finite)


def text_of(found: Covariance, types: Sequence[SparkType], conditions: Sequence[exp.Expr] = ()) -> str:
    """The same as a text. That of the condition is written once, though it stands in each of the sums."""
    condition = counts(found, types, conditions).sql(dialect="spark", comments=False)
    return _written_out(found, types, exp.Var(this=condition)).sql(dialect="spark", comments=False)


def counts(found: Covariance, types: Sequence[SparkType], conditions: Sequence[exp.Expr]) -> exp.Expr:
    """Whether a row counts: every variable is known."""
    factors = zip(found.factors, types, strict=False)
    known = [_present(value, type_) for value, type_ in factors]
    others = (*found.present, *(value for _, value in found.categories))
    known += [exp.Not(this=exp.Is(this=grouped(value.copy()), expression=exp.Null())) for value in others]
    return exp.and_(*(c.copy() for c in conditions), *known)


def _written_out(
    found: Covariance, types: Sequence[SparkType], condition: exp.Expr, *, as_finite: bool = False
) -> exp.Expr:
    values = list(zip(found.factors, types, strict=False))
    weight = values[len(found.variables) :]

    def total(*factors: tuple[exp.Expr, SparkType]) -> exp.Expr:
        counted = product([*factors, *weight]) if factors or weight else exp.Literal.number(1)
        case = exp.Case(ifs=[exp.If(this=condition.copy(), true=counted)])
        own = [t for _, t in (*factors, *weight)]
        has_doubles, zero = any(t.is_floating for t in own), exp.Literal.number(0)
        if any(t.is_decimal for t in own) and not has_doubles:
            # NULL for a sum of more than 38 digits is no zero.
            case.set("default", zero.copy())
            nothing = exp.EQ(this=exp.Count(this=exp.Star()), expression=zero.copy())
            return exp.Case(ifs=[exp.If(this=nothing, true=zero)], default=exp.Sum(this=case))
        added = finite_part(case) if as_finite and has_doubles else case
        return exp.Coalesce(this=exp.Sum(this=added), expressions=[zero])

    every = monomials(len(found.variables), found.degree)
    totals = [Scalar(total(*(values[i] for i in monomial))) for monomial in every]
    return moments(found.names, types, totals, found.degree)


def _present(value: exp.Expr, type_: SparkType) -> exp.Expr:
    if type_.is_floating:
        size = exp.Abs(this=as_type(value.copy(), "double"))
        return exp.LT(this=size, expression=as_type(exp.Literal.string(_LARGEST), "double"))
    return exp.Not(this=exp.Is(this=grouped(value.copy()), expression=exp.Null()))


def product(factors: Sequence[tuple[exp.Expr, SparkType]]) -> exp.Expr:
    """The product without a loss: in bigints, in decimals with room for every digit, or in doubles."""
    is_double = any(t.is_floating for _, t in factors)
    is_decimal = any(t.is_decimal for _, t in factors)

    def cast(value: exp.Expr, type_: SparkType) -> exp.Expr:
        if is_double:
            return as_type(value.copy(), "double")
        if not is_decimal:
            return as_type(value.copy(), "bigint")
        return as_type(value.copy(), f"decimal({_digits(type_)},{type_.scale})")

    first, *others = (cast(*factor) for factor in factors)
    for other in others:
        first = exp.Mul(this=first, expression=other)
    return first
