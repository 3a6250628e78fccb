"""Names in a FROM clause mean columns, as Spark resolves them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.node import Field
from fivm_dbt.ir.scalar import ColumnId, column_ast
from fivm_dbt.naming import CLOCK
from fivm_dbt.sql.outer_scope import NeedsDomain, Outer
from fivm_dbt.sql.parse import span_of
from fivm_dbt.suggest import did_you_mean, near_name

OF_OUTER = "fivm outer "
"""Stands before the relation of a column that is resolved already and put into a subquery, where names mean other
things: see :func:`resolved_outside`."""


def resolved_outside(value: exp.Expr) -> exp.Expr:
    """A qualified expression as it can stand in a subquery of the query in which it was qualified."""
    result = value.copy()
    for column in list(result.find_all(exp.Column)):
        if column.table == CLOCK:
            continue
        new = exp.column(column.name, table=exp.to_identifier(OF_OUTER + column.table, quoted=True))
        if column is result:
            return new
        column.replace(new)
    return result


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
    outer: Outer | None = None

    def resolve_outward(self, column: exp.Column) -> exp.Expr | None:
        """What a reference in a subquery means here, or further out; None where it means nothing."""
        try:
            found = self.resolve(column)
        except FivmError as error:
            if error.code.number not in ("FIVM102",):
                raise
            found = None
        if found is None and self.outer is not None:
            if self.outer.domain is None and self.outer.resolve(column) is not None:
                raise NeedsDomain
            found = self.outer.reference(column)
        return found

    @property
    def types(self) -> dict[ColumnId, SparkType]:
        of_sources = {f.id: f.type for source in self.sources for _, f in source.columns}
        known = of_sources | {f.id: f.type for _, f in self.outputs}
        if self.outer is None:
            return known
        if self.outer.domain is None:
            return {**self.outer.types, **known}
        fields = self.outer.fields
        inside = {
            c: f.type
            for f in fields
            if f.name in self.outer.inside
            for c in self.outer.inside[f.name].columns
        }
        return inside | {f.id: f.type for f in fields} | known

    def star(self, table: str | None, node: exp.Expr) -> list[tuple[str, exp.Expr]]:
        """The columns of ``*`` or ``table.*`` in Spark's order, as the user could have written them.

        Of a table these are first those that ``*`` does not have, because a USING column of another one stands there.
        """
        columns = self.outputs if table is None else self._of_table(self._source(table, node))
        return [(name, self._written(name, field)) for name, field in columns]

    def _of_table(self, source: Source) -> tuple[tuple[str, Field], ...]:
        places = {field.id: place for place, (_, field) in enumerate(self.outputs)}
        return tuple(sorted(source.columns, key=lambda column: places.get(column[1].id, -1)))

    def _written(self, output: str, wanted: Field) -> exp.Expr:
        for source in self.sources:
            for name, found in source.columns:
                if found.id == wanted.id:
                    return column_ast(source.name, name)
        # A USING column of a FULL JOIN is of neither side, and the only one of its name.
        return column_ast("", output)

    def resolve(self, column: exp.Column) -> exp.Expr | None:
        """The qualified form of a reference; None where the name is no column here (maybe a select alias).

        ``a.b.c`` is column c of relation b of schema a; else field c of column b of relation a; else field b.c of
        column a. Raises FIVM102 for a qualified name that does not exist, FIVM104 where several relations have it.
        """
        if self.outer is not None and column.table and column.table == self.outer.domain:
            return self.outer.column(column.name)
        if column.table.startswith(OF_OUTER):
            meant = (column.table.removeprefix(OF_OUTER), column.name)
            return column_ast(*meant) if meant in self.types else None
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
            remedy=self._meant(column) or "correct the name",
        )

    def _meant(self, column: exp.Column) -> str:
        """The column that was meant by one that is not there, as a question; empty where none is like it."""
        of_relation = [s for s in self.sources if s.name.lower() == column.table.lower()]
        if column.table and not of_relation:
            owners = [s.name for s in self.sources if s.find(column.name)]
            owner = owners[0] if len(owners) == 1 else near_name(column.table, owners)
            return f"did you mean {owner}.{column.name}?" if owner else ""
        return did_you_mean(
            column.name, [name for source in of_relation or self.sources for name, _ in source.columns]
        )

    def _source(self, table: str, node: exp.Expr) -> Source:
        for source in self.sources:
            if source.name.lower() == table.lower():
                return source
        names = [s.name for s in self.sources]
        raise FivmError(
            "FIVM103",
            f"{table}.*: there is {', '.join(names)}",
            span=span_of(node),
            remedy=did_you_mean(table, names) or "correct the name",
        )


@dataclass(frozen=True)
class GroupScope(Scope):
    """What can be named above GROUP BY: ``groups`` gives the field of a grouping expression, and raises for a column
    that is none."""

    groups: Callable[[exp.Column], exp.Expr | None] = lambda column: None
    group_types: Mapping[ColumnId, SparkType] = field(default_factory=dict)

    def resolve(self, column: exp.Column) -> exp.Expr | None:
        meant = (column.table.removeprefix(OF_OUTER), column.name)
        if column.table.startswith(OF_OUTER) and meant in self.group_types:
            return column_ast(*meant)
        own = self._column_of([column.table], column.name) if column.table else None
        return own if own is not None else self.groups(column)

    @property
    def types(self) -> dict[ColumnId, SparkType]:
        return {**super().types, **self.group_types}


def _is_struct(column: exp.Column, types: Mapping[ColumnId, SparkType]) -> bool:
    return types[(column.table, column.name)].text.startswith("struct<")


def _fields_of(column: exp.Expr, names: list[str]) -> exp.Expr:
    """``column.name.name...``: a field of a struct, of a struct in it, and so on."""
    for name in names:
        column = exp.Dot(this=column, expression=exp.to_identifier(name))
    return column
