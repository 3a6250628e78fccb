"""Each aggregate call of a SELECT becomes a field of its groups: added up in a ring, or recomputed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, DOUBLE
from fivm_dbt.ir.aggregate import AggregateCall
from fivm_dbt.ir.scalar import Scalar, as_type
from fivm_dbt.naming import unique_name
from fivm_dbt.rings.doubles import is_finite_part
from fivm_dbt.sql.aggregates import Call, adds_exactly, check_deterministic, is_repeatable, read_call
from fivm_dbt.sql.expressions import unparenthesized
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.group_keys import Projections
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
    found: dict[tuple[str, Scalar | None], AggregateCall] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def call(self, node: exp.Expr) -> AggregateCall:
        """The aggregate call of ``node``, the same object for the same call."""
        call = read_call(node)
        if any(is_aggregate(p) for p in call.function_node.walk() if p is not call.function_node):
            raise unsupported(node, "an aggregate inside an aggregate", "aggregate in a subquery first")
        if not call.is_linear:
            return self._general(node, call)
        scalar = Scalar(unparenthesized(call.argument)) if call.argument is not None else None
        argument_type = self._type(scalar) if scalar is not None else None
        if not adds_exactly(call.function, argument_type, node):
            if self.approximate and scalar is not None and _is_double(argument_type):
                return self._sum_of_doubles(node, call, scalar)
            return self._general(node, call)
        identity = (call.function, scalar)
        if identity not in self.found:
            result = result_type(call.function, argument_type, node)
            name = self._call_name(node, call.function, scalar)
            self.found[identity] = AggregateCall(name, call.function, scalar, argument_type, result)
        return self.found[identity]

    def type_of(self, node: exp.Expr) -> SparkType | None:
        return self._type(Scalar(unparenthesized(node)))

    def name(self, wanted: str) -> str:
        """A name for a field of the groups, which none has yet."""
        name = unique_name(_plain(wanted), self.names)
        self.names.add(name.lower())
        return name

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
            self.found[identity] = AggregateCall(
                self._call_name(node, call.function, None),
                call.function,
                argument=None,
                argument_type=None,
                is_repeatable=is_repeatable(call, self.type_of),
                type=known_type(type_, node),
                written=written,
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


def result_type(function: str, argument: SparkType | None, node: exp.Expr) -> SparkType:
    """Spark's result type of COUNT, SUM, AVG over exact numbers; FIVM109 where unknown."""
    if function == "count":
        return BIGINT
    if argument is None:
        what = f"the type of {node.sql('spark')} is not known"
        raise unsupported(node, what, "CAST the argument", code="FIVM109")
    if argument.is_decimal:
        p, s = argument.precision, argument.scale
        return SparkType.decimal(p + 10, s) if function == "sum" else SparkType.decimal(p + 4, s + 4)
    return BIGINT if function == "sum" else DOUBLE


def _plain(name: str) -> str:
    """A name that is fit for a Delta column."""
    cleaned = "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_").lower()
    return cleaned[:60] or "value"
