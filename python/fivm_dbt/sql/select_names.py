"""A SELECT names columns of its FROM clause, whose keys and types are looked up here."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Field, Key, Node
from fivm_dbt.ir.scalar import ColumnId, Scalar
from fivm_dbt.sql.aggregates import depends_on_order
from fivm_dbt.sql.edits import Text
from fivm_dbt.sql.expressions import qualify, unparenthesized
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.group_keys import Projections, is_aggregated
from fivm_dbt.sql.named_windows import definition_of
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.scope import Scope

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering


@dataclass(frozen=True)
class SelectNames:
    """One SELECT of the text, over the relation of its FROM and WHERE."""

    text: Text
    lowering: Lowering
    node: exp.Select
    scope: Scope
    relation: Node
    projections: Projections

    @cached_property
    def columns(self) -> list[tuple[str, str, Field]]:
        """What can be named: with a relation in FROM, then without."""
        of_sources = [(s.name, *column) for s in self.scope.sources for column in s.columns]
        return [*of_sources, *(("", *column) for column in self.scope.outputs)]

    @cached_property
    def keys(self) -> list[Key]:
        """What is known to tell its rows apart, and can be named."""
        visible = {field.id for *_, field in self.columns}
        return [key for key in self.relation.unique_keys(self.lowering.catalog) if key <= visible]

    @cached_property
    def is_grouped(self) -> bool:
        qualify_ = self.node.args.get("qualify")
        conditions = [("", qualify_.this)] if qualify_ is not None else []
        return is_aggregated(self.node, [*self.projections, *conditions])

    def definition(self, window: exp.Window) -> exp.Window:
        return definition_of(window, self.node.args.get("windows") or [])

    def meant(self, column: exp.Column) -> list[ColumnId]:
        """The columns of FROM that a reference may mean; none of another query."""
        try:
            meaning = self.scope.resolve(column)
        except FivmError:
            return []
        return [(c.table, c.name) for c in meaning.find_all(exp.Column)] if meaning is not None else []

    def column(self, value: exp.Expr) -> ColumnId | None:
        """The column that an item of an order is, maybe by an alias of the select list."""
        inner = self._without_alias(value)
        if not isinstance(inner, exp.Column) or not (found := self.meant(inner)):
            return None
        # A field of a struct does not tell what the whole is.
        return found[0] if isinstance(self.scope.resolve(inner), exp.Column) else None

    def scalar(self, value: exp.Expr) -> Scalar:
        """An item of an order over the columns of FROM, maybe by an alias of the select list."""
        inner = self._without_alias(value)
        try:
            return Scalar(unparenthesized(qualify(inner, self.scope)))
        except FivmError:
            return Scalar(inner.copy())

    def _without_alias(self, value: exp.Expr) -> exp.Expr:
        inner = unparenthesized(value)
        if isinstance(inner, exp.Column) and not inner.table and not self.meant(inner):
            return unparenthesized(self._aliases.get(inner.name.lower(), inner))
        return inner

    @cached_property
    def _aliases(self) -> dict[str, exp.Expr]:
        return {name.lower(): value for name, value in reversed(self.projections)}

    def check_ordered(self, call: exp.Expr, value: exp.Expr, how: str) -> None:
        """FIVM106 where the values cannot be ordered, so that no tie between them can be broken."""
        type_ = self.type(value)
        if type_ is not None and not (type_.is_groupable or type_.text == "void"):
            remedy = "extract what can be ordered, as in max_by(x.a, struct(y, x.a))"
            raise depends_on_order(call, remedy, f"is over {type_}, which {how} cannot order, so it")

    def type(self, value: exp.Expr) -> SparkType | None:
        """The type of a value over the rows; None where it is not known here, or there is none."""
        if self.is_grouped and any(is_aggregate(p) for p in value.walk()):
            return None
        try:
            scalar = Scalar(unparenthesized(qualify(value, self.scope)))
        except FivmError:
            return None  # lowering says why
        if scalar.ast().find(exp.Query) is not None:
            return None
        return self.lowering.typer.types([scalar], self.scope.types)[0]


def not_found(node: exp.Expr) -> FivmError:
    what = f"{node.sql('spark')} may depend on ties, and its text cannot be completed here"
    return unsupported(node, what, "order by columns that tell all rows apart", code="FIVM106")
