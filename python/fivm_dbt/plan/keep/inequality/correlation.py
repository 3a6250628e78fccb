"""An inequality may correlate an aggregate: ``γ_c(D ⋈_{x θ c} R)`` with D the domain of the correlation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.comparison import Comparison, Operator
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Join
from fivm_dbt.ir.rename import with_meaning
from fivm_dbt.ir.scalar import ColumnId, Scalar


@dataclass(frozen=True)
class Correlation:
    """``aggregate`` over the join of a ``domain`` with the ``factors`` of R, by ``value operator outer`` and ``equal``.

    ``own`` are conditions on R alone, ``beside`` those on the domain alone.
    """

    aggregate: Aggregate
    domain: Node
    factors: tuple[Node, ...]
    own: tuple[Scalar, ...]
    beside: tuple[Scalar, ...]
    equal: tuple[Scalar, ...]
    comparison: Scalar
    value: Scalar
    operator: Operator
    outer: Scalar

    @property
    def types(self) -> dict[ColumnId, SparkType]:
        return {f.id: f.type for node in (self.domain, *self.factors) for f in node.fields}

    def over(
        self, domain: Node, factors: tuple[Node, ...], meaning: Mapping[ColumnId, Scalar]
    ) -> Correlation:
        """The same over other relations, with ``meaning`` in place of columns that these call otherwise."""
        aggregate = replace(
            self.aggregate,
            input=Join((domain, *factors), ()),
            keys=with_meaning(self.aggregate.keys, meaning),
            calls=with_meaning(self.aggregate.calls, meaning),
        )
        return replace(
            self,
            aggregate=aggregate,
            domain=domain,
            factors=factors,
            own=with_meaning(self.own, meaning),
            beside=with_meaning(self.beside, meaning),
            equal=with_meaning(self.equal, meaning),
            comparison=with_meaning(self.comparison, meaning),
            value=with_meaning(self.value, meaning),
            outer=with_meaning(self.outer, meaning),
        )


def correlation_of(node: Aggregate) -> Correlation | None:
    """``node`` as an aggregate correlated by one inequality; None for any other."""
    if not node.adds_up or node.factored is not None or not node.keys or not isinstance(node.input, Join):
        return None
    domain = next((f for f in node.input.factors if _is_domain(f, node)), None)
    if domain is None:
        return None
    factors = tuple(f for f in node.input.factors if f is not domain)
    ours, theirs = frozenset(c for f in factors for c in f.ids), domain.ids
    arguments = (c.argument for c in node.calls if c.argument is not None)
    if not factors or any(not argument.columns <= ours for argument in arguments):
        return None
    own, beside, equal, compared = [], [], [], []
    for predicate in node.input.predicates:
        if not predicate.columns or not predicate.columns <= ours | theirs:
            return None
        if predicate.columns <= ours:
            own.append(predicate)
        elif predicate.columns <= theirs:
            beside.append(predicate)
        elif _is_equality(predicate, ours, theirs):
            equal.append(predicate)
        else:
            compared.append(predicate)
    sides = _sides(compared[0], ours, theirs) if len(compared) == 1 else None
    if sides is None:
        return None
    return Correlation(node, domain, factors, tuple(own), tuple(beside), tuple(equal), compared[0], *sides)


def _is_domain(factor: Node, node: Aggregate) -> bool:
    """Whether a factor of an aggregate's input has each of its groups once, and no row for anything else."""
    is_set = isinstance(factor, Aggregate) and not factor.calls and bool(factor.keys)
    return is_set and all(k.value.is_column and k.value.columns <= factor.ids for k in node.keys)


def _is_equality(predicate: Scalar, ours: frozenset[ColumnId], theirs: frozenset[ColumnId]) -> bool:
    found = Comparison.of(predicate)
    if found is None or not found.is_equality:
        return False
    return _is_between(found, ours, theirs) or _is_between(found.turned, ours, theirs)


def _sides(
    predicate: Scalar, ours: frozenset[ColumnId], theirs: frozenset[ColumnId]
) -> tuple[Scalar, Operator, Scalar] | None:
    """A comparison as ``value of R, operator, value of the domain``."""
    found = Comparison.of(predicate)
    if found is None or not found.is_inequality:
        return None
    way = next((c for c in (found, found.turned) if _is_between(c, ours, theirs)), None)
    return (way.left, way.operator, way.right) if way is not None else None


def _is_between(found: Comparison, ours: frozenset[ColumnId], theirs: frozenset[ColumnId]) -> bool:
    """Whether the left side is of R and the right one of the domain."""
    left, right = found.left.columns, found.right.columns
    return bool(left and right) and left <= ours and right <= theirs


def common_type(one: SparkType, other: SparkType) -> SparkType | None:
    """A type that both are compared in, as Spark compares them: exactly."""
    if one.is_integral and other.is_integral:
        return BIGINT
    if (one.is_decimal or one.is_integral) and (other.is_decimal or other.is_integral):
        scale = max(one.scale, other.scale)
        digits = max(t.precision - t.scale for t in (one, other))
        return SparkType.decimal(digits + scale, scale) if digits + scale <= 38 else None
    return one if one == other and not is_nested(one) else None


def is_nested(type_: SparkType) -> bool:
    return type_.text.startswith(("array", "struct", "map"))
