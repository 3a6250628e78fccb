"""Each aggregate call of a SELECT becomes a field of its groups: added up in a ring, or recomputed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import DOUBLE
from fivm_dbt.functions.function import Arguments
from fivm_dbt.functions.lookup import aggregate_of
from fivm_dbt.ir.aggregate import AggregateCall
from fivm_dbt.ir.scalar import Scalar, as_type
from fivm_dbt.naming import unique_name
from fivm_dbt.rings.covariances import moments_type, of_degree
from fivm_dbt.rings.doubles import is_finite_part
from fivm_dbt.sql.aggregates import Call, adds_exactly, check_deterministic, is_repeatable, read_call
from fivm_dbt.sql.categories import type_with_cells
from fivm_dbt.sql.covariances import checked_types, is_covariance, read_covariance, written_out
from fivm_dbt.sql.expressions import unparenthesized
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.group_keys import Projections
from fivm_dbt.sql.moments import spelled_out
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.scope import Scope
from fivm_dbt.sql.typing import known_type

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering


@dataclass
class AggregateCalls:
    """The calls that were found in a SELECT, and the names of the fields of its groups."""

    lowering: Lowering
    scope: Scope
    projections: Projections
    approximate: bool
    found: dict[tuple[str | Scalar, ...], AggregateCall] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def call(self, node: exp.Expr) -> AggregateCall:
        """The aggregate call of ``node``, the same object for the same call."""
        call = read_call(node)
        if any(is_aggregate(p) for p in call.function_node.walk() if p is not call.function_node):
            raise unsupported(node, "an aggregate inside an aggregate", "aggregate in a subquery first")
        if is_covariance(call.function_node):
            return self._covariance(node, call)
        if call.ring is None:
            return self._general(node, call)
        values = [Scalar(unparenthesized(argument)) for argument in call.arguments]
        types = self.lowering.typer.types(values, self.scope.types) if values else []
        if not adds_exactly(call, types, node):
            if self.approximate and call.ring.adds_doubles and all(map(_is_double, types)):
                return self._sum_of_doubles(node, call, values[0])
            return self._general(node, call)
        identity: tuple[str | Scalar, ...] = (call.function, *values)
        if identity not in self.found:
            name = self._call_name(node, call.function, values[0] if values else None)
            result = _result_type(call, types, node)
            arguments = tuple(zip(values, types, strict=True))
            made = AggregateCall.over(name, call.function, arguments, result)
            self.found[identity] = replace(made, is_repeatable=is_repeatable(call, lambda _: types[0]))
        return self.found[identity]

    def spelled_out(self, node: exp.Expr) -> exp.Expr | None:
        """A call as an expression over COUNT and SUM, where sums of doubles are added up; None where it stays."""
        call = read_call(node)
        if not is_covariance(call.function_node):
            return spelled_out(node, self.type_of)
        found = read_covariance(call.function_node)
        types = [self.type_of(argument) for argument in found.arguments]
        if found.categories or not any(t is not None and t.is_floating for t in types):
            return None
        return written_out(found, checked_types(found, types), call.conditions, as_finite=True)

    def type_of(self, node: exp.Expr) -> SparkType | None:
        return self._type(Scalar(unparenthesized(node)))

    def name(self, wanted: str) -> str:
        """A name for a field of the groups, which none has yet."""
        name = unique_name(_plain(wanted), self.names)
        self.names.add(name.lower())
        return name

    def _covariance(self, node: exp.Expr, call: Call) -> AggregateCall:
        """Moments of exact numbers are added up; those of doubles are summed anew, as SQL that Spark knows."""
        found = read_covariance(call.function_node)
        given = [Scalar(unparenthesized(argument)) for argument in found.arguments]
        types = checked_types(found, self.lowering.typer.types(given, self.scope.types))
        values = [Scalar(unparenthesized(argument)) for argument in call.arguments]
        function = of_degree(found.degree)
        identity: tuple[str | Scalar, ...] = (function, *found.names, *values)
        if identity in self.found:
            return self.found[identity]
        if found.categories:
            # It is lowered once more, without them.
            nothing = Scalar(exp.Null())
            name = self._call_name(node, call.function, None)
            type_ = type_with_cells(found, types)
            self.found[identity] = AggregateCall(name, call.function, None, None, type_, written=nothing)
            return self.found[identity]
        weight = types[len(found.names)] if found.weight is not None else None
        result = moments_type(types[: len(found.names)], weight, found.degree)
        made = AggregateCall.over(
            self._call_name(node, call.function, None),
            function,
            tuple(zip(values, types, strict=True)),
            result,
        )
        made = replace(made, names=found.names)
        if not adds_exactly(call, types, node):
            written = Scalar(written_out(found, types, call.conditions))
            made = replace(made, argument=None, argument_type=None, written=written, is_repeatable=False)
        self.found[identity] = made
        return made

    def _sum_of_doubles(self, node: exp.Expr, call: Call, argument: Scalar) -> AggregateCall:
        """SUM or AVG by addition: never the same bits twice, so that nothing below other operators may count on it."""
        scalar = argument if is_finite_part(argument) else Scalar(as_type(argument.ast(), "double"))
        identity = (call.function, scalar)
        if identity not in self.found:
            name = self._call_name(node, call.function, argument)
            made = AggregateCall(name, call.function, scalar, DOUBLE, DOUBLE, is_repeatable=False)
            self.found[identity] = made
        return self.found[identity]

    def _general(self, node: exp.Expr, call: Call) -> AggregateCall:
        """An aggregate that is recomputed per group, as it is written."""
        if not self.lowering.completions.makes_exact(call.function_node):
            check_deterministic(node, call)
        written = Scalar(node.copy())
        identity = ("", written)
        if identity not in self.found:
            type_ = self.lowering.typer.aggregate_type(written, call.function_node, self.scope.types)
            self.found[identity] = AggregateCall.as_written(
                self._call_name(node, call.function, None),
                call.function,
                written,
                known_type(type_, node),
                is_repeatable=is_repeatable(call, self.type_of),
            )
        return self.found[identity]

    def _type(self, scalar: Scalar) -> SparkType | None:
        return self.lowering.typer.types([scalar], self.scope.types)[0]

    def _call_name(self, node: exp.Expr, function: str, scalar: Scalar | None) -> str:
        label = next((n for n, v in self.projections if v == node), None)
        suffix = _plain(scalar.sql.split(".")[-1]) if scalar is not None and scalar.is_column else ""
        return self.name(label or (f"{function}_{suffix}" if suffix else function))


def _is_double(type_: SparkType | None) -> bool:
    """Whether Spark adds values of this type as doubles."""
    return type_ is not None and (type_.is_floating or type_.is_string)


def _result_type(call: Call, types: Sequence[SparkType | None], node: exp.Expr) -> SparkType:
    """Spark's type of the result; FIVM109 where it is unknown."""
    function, place = aggregate_of(call.function_node), call.arguments.index
    given = Arguments(call.function_node, call.arguments, lambda argument: types[place(argument)])
    type_ = function.type_over(given) if function is not None else None
    if type_ is None:
        what = f"the type of {node.sql('spark')} is not known"
        raise unsupported(node, what, "CAST the argument", code="FIVM109")
    return type_


def _plain(name: str) -> str:
    """A name that is fit for a Delta column."""
    cleaned = "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_").lower()
    return cleaned[:60] or "value"
