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
    """A relation of the FROM clause: the name the user calls it by, and its visible columns with their fields.

    ``qualifier`` is the schema by which a table without an alias may be called too.
    """

    name: str
    columns: tuple[tuple[str, Field], ...]
    qualifier: tuple[str, ...] = ()

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

        ``a.b.c`` is column c of relation b of schema a; else field c of column b of relation a; else field b.c of
        column a. Raises FIVM102 for a qualified name that does not exist, FIVM104 where several relations have it.
        """
        parts = [column.args[key].name for key in ("catalog", "db", "table", "this") if column.args.get(key)]
        if len(parts) == 1:
            return self._unqualified(parts[0], column)
        for used in range(len(parts) - 1, 0, -1):
            found = self._column_of(parts[:used], parts[used])
            if found is not None:
                return _fields_of(found, parts[used + 1 :])
        owner = self._unqualified(parts[0], column)
        if owner is not None and _is_struct(owner, self.types):
            return _fields_of(owner, parts[1:])
        raise self.unknown(column)

    def _column_of(self, relation: list[str], name: str) -> exp.Column | None:
        """Column ``name`` of the source called ``relation``, None where there is no such source or column."""
        *qualifier, last = (part.lower() for part in relation)
        for source in self.sources:
            called = source.name.lower() == last
            if called and (not qualifier or tuple(qualifier) == source.qualifier[-len(qualifier) :]):
                found = source.find(name)
                return column_ast(*found.id) if found is not None else None
        return None

    def _unqualified(self, name: str, column: exp.Column) -> exp.Column | None:
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

    def _source(self, table: str, node: exp.Expr) -> Source:
        for source in self.sources:
            if source.name.lower() == table.lower():
                return source
        names = ", ".join(s.name for s in self.sources)
        raise FivmError(
            "FIVM103", f"{table}.*: there is {names}", span=span_of(node), remedy="correct the name"
        )


def _is_struct(column: exp.Column, types: Mapping[ColumnId, SparkType]) -> bool:
    return types[(column.table, column.name)].text.startswith("struct<")


def _fields_of(column: exp.Expr, names: list[str]) -> exp.Expr:
    """``column.name.name...``: a field of a struct, of a struct in it, and so on."""
    for name in names:
        column = exp.Dot(this=column, expression=exp.to_identifier(name))
    return column
