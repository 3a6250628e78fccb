"""Parts of a correlated subquery's FROM clause may be computed for each value of its domain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Field
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.sql.domains import Domain, equal_columns
from fivm_dbt.sql.expressions import to_scalar
from fivm_dbt.sql.lowered import Ctes, Lowered
from fivm_dbt.sql.part import Part
from fivm_dbt.sql.scope import Scope
from fivm_dbt.sql.subqueries import Around

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering

_Result = TypeVar("_Result")


@dataclass(frozen=True)
class BoundParts:
    """What may be named in a FROM clause besides its own relations: CTEs, and the query around the subquery whose
    clause it is, of which ``domain`` has the columns; None where it is correlated with nothing."""

    lowering: Lowering
    ctes: Ctes
    domain: Domain | None

    def bound(self, part: Part) -> Part:
        """The part for every value of the domain, with what was deferred decided."""
        if self.domain is None:
            return part
        if not part.carried:
            every = self.domain.again(self.lowering.alias)
            assert every.node is not None
            part = replace(part, factors=(*part.factors, every.node), carried=every.outer.fields)
        scope = part.scope_in(self.domain.outer)
        decided = tuple(to_scalar(p, scope) for p in part.deferred)
        return replace(part, predicates=(*part.predicates, *decided), deferred=())

    def scope(self, part: Part) -> Scope:
        return part.scope_in(self.domain.outer if self.domain is not None else None)

    def per_value(self, part: Part, read: Callable[[Part], _Result]) -> _Result:
        """What ``read`` gives for a part; where it names columns of the query around, for the part that has them."""
        try:
            return read(part)
        except FivmError as error:
            if error.code.number != "FIVM102" or self.domain is None or part.carried:
                raise
        return read(self.bound(part))

    def around(self, part: Part) -> Around:
        """The part as what stands around a subquery."""
        return Around(self.lowering, part.node, self.scope(part), self.ctes)

    def looks_out(self, condition: exp.Expr, part: Part) -> bool:
        """Whether a condition over a part names columns of the query around the subquery."""
        try:
            to_scalar(condition, part.scope)
        except FivmError as error:
            if error.code.number != "FIVM102":
                raise
            return True
        return False

    def query(
        self, node: exp.Expr, ctes: Ctes, name: str, *, may_look_out: bool = True
    ) -> tuple[Lowered, tuple[Field, ...]]:
        """A query in FROM; where it names columns of the query around, for each of their values, with these columns."""
        try:
            return self.lowering.query(node, ctes, name), ()
        except FivmError as error:
            if error.code.number != "FIVM102" or self.domain is None or not may_look_out:
                raise
        lowered = self.lowering.query(node, ctes, name, self.domain.again(self.lowering.alias))
        return lowered, lowered.node.fields[len(lowered.names) :]


def of_one_value(left: Part, right: Part) -> tuple[Scalar, ...]:
    """That both parts are of the same value of the domain, where both depend on it."""
    if not left.carried or not right.carried:
        return ()
    return equal_columns(tuple(f.scalar for f in left.carried), right.carried)
