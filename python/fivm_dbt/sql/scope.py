"""Names in a FROM clause: which column a reference means, as Spark resolves it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.nodes import Field
from fivm_dbt.ir.scalar import ColumnId, column_ast
from fivm_dbt.sql.parse import span_of


@dataclass(frozen=True)
class Source:
    """A relation of the FROM clause: the name the user calls it by, and its visible columns with their fields."""

    name: str
    columns: tuple[tuple[str, Field], ...]

    def find(self, column: str) -> Field | None:
        return next((f for name, f in self.columns if name.lower() == column.lower()), None)


@dataclass(frozen=True)
class Scope:
    """What expressions of one SELECT can name: its sources, and the columns of ``*`` in order, USING columns once.

    ``aliases`` are the select list's own names, which Spark looks up after the columns.
    """

    sources: tuple[Source, ...] = ()
    outputs: tuple[tuple[str, Field], ...] = ()
    aliases: Mapping[str, exp.Expr] = field(default_factory=dict)

    @property
    def types(self) -> dict[ColumnId, SparkType]:
        return {f.id: f.type for source in self.sources for _, f in source.columns}

    def star(self, table: str | None, node: exp.Expr) -> list[tuple[str, exp.Expr]]:
        """The columns of ``*`` or ``table.*`` in Spark's order, as the user could have written them."""
        columns = self.outputs if table is None else self._source(table, node).columns
        return [(name, self._written(field)) for name, field in columns]

    def _written(self, wanted: Field) -> exp.Expr:
        for source in self.sources:
            for name, found in source.columns:
                if found.id == wanted.id:
                    return column_ast(source.name, name)
        raise ValueError(f"{wanted.id} is not a column of any source")

    def resolve(self, column: exp.Column) -> exp.Expr | None:
        """The qualified form of a reference; None where the name is no column here (maybe a select alias).

        Raises FIVM102 for a qualified name that does not exist, FIVM104 for one that several relations have.
        """
        name, table = column.name, column.table
        if table:
            return self._qualified(column, table, name)
        found = [f for n, f in self.outputs if n.lower() == name.lower()]
        if len(found) > 1:
            owners = [s.name for s in self.sources if s.find(name)]
            raise FivmError(
                "FIVM104",
                f"{name} is a column of {', '.join(owners)}",
                span=span_of(column),
                remedy=f"write {owners[0]}.{name}",
            )
        return column_ast(*found[0].id) if found else None

    def unknown(self, column: exp.Column) -> FivmError:
        """The error for a name that is neither a column nor an alias; it lists those that exist."""
        listing = "; ".join(f"{s.name}: {', '.join(n for n, _ in s.columns)}" for s in self.sources)
        return FivmError(
            "FIVM102",
            f"column {column.sql('spark')} does not exist; there are {listing or 'none'}",
            span=span_of(column),
            remedy="correct the name",
        )

    def _qualified(self, column: exp.Column, table: str, name: str) -> exp.Expr:
        source = next((s for s in self.sources if s.name.lower() == table.lower()), None)
        if source is None:
            owner = self.resolve(exp.column(table)) if not column.args.get("db") else None
            if isinstance(owner, exp.Column) and self.types[(owner.table, owner.name)].text.startswith(
                "struct<"
            ):
                return exp.Dot(this=owner, expression=exp.to_identifier(name))
            raise self.unknown(column)
        found = source.find(name)
        if found is None:
            raise self.unknown(column)
        return column_ast(*found.id)

    def _source(self, table: str, node: exp.Expr) -> Source:
        for source in self.sources:
            if source.name.lower() == table.lower():
                return source
        names = ", ".join(s.name for s in self.sources)
        raise FivmError(
            "FIVM103", f"{table}.*: there is {names}", span=span_of(node), remedy="correct the name"
        )
