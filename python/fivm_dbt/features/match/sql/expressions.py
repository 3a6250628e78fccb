"""DEFINE and MEASURES have expressions over registers and the columns of a row.

What looks at several rows becomes a register: FIRST and LAST of a variable's rows, COUNT, SUM, MIN, MAX and AVG over
them. A column by itself is that of the last row of its variable, or of the last row of all. PREV and NEXT are other
columns of the same row. The rest of an expression is one of Spark's, over those.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, BOOLEAN, DOUBLE, INT, STRING
from fivm_dbt.errors import FivmError
from fivm_dbt.features.match.ir.match import FOUND, NUMBER, POSITION, ROW, TESTED, Kind, Register, Shift
from fivm_dbt.functions.lookup import type_of_call
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.node import Field, Item
from fivm_dbt.ir.scalar import Scalar, as_type, column_ast
from fivm_dbt.naming import storable, unique_name
from fivm_dbt.rings.quotient import averages_exactly, decimal_average
from fivm_dbt.sql.expressions import check_row_level, qualify, unparenthesized
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.parse import span_of, unsupported
from fivm_dbt.sql.scope import Scope, Source
from fivm_dbt.sql.typing import Fields, Typer, known_type
from fivm_dbt.suggest import did_you_mean

_AGGREGATES = frozenset("count sum min max avg".split())
_NAVIGATIONS = frozenset("prev next first last".split())


@dataclass
class Rows:
    """The columns that a row of the input has for the recognizer, as they are asked for."""

    outputs: tuple[tuple[str, Field], ...]
    columns: dict[str, Item] = field(default_factory=dict)
    shifts: dict[Shift, None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = {POSITION}
        for name, _ in self.outputs:
            self.names[name.lower()] = unique_name(storable(name), taken)
            taken.add(self.names[name.lower()])

    @property
    def scope(self) -> Scope:
        """A row's columns by the names that they have in the query."""
        columns = tuple((name, Field(ROW, self.names[name.lower()], f.type)) for name, f in self.outputs)
        return Scope((Source("the input", columns),), columns)

    @property
    def types(self) -> Fields:
        own = {(ROW, self.names[name.lower()]): f.type for name, f in self.outputs}
        shifted = {(ROW, s.name): own[(ROW, s.column)] for s in self.shifts}
        return {**own, **shifted, (ROW, POSITION): INT}

    def use(self, row_column: str) -> None:
        """Note that a column is needed."""
        for name, f in self.outputs:
            if self.names[name.lower()] == row_column:
                self.columns.setdefault(row_column, Item(row_column, f.scalar, f.type))

    def shifted(self, row_column: str, offset: int) -> str:
        """The column that has the value of another one ``offset`` rows further."""
        where = f"{'next' if offset > 0 else 'prev'}_{abs(offset)}"
        taken = {*self.names.values(), POSITION}
        shift = Shift(unique_name(f"{row_column}_{where}", taken), row_column, offset)
        self.shifts[shift] = None
        return shift.name


@dataclass
class Registers:
    """The registers that some expressions need, equal ones once. They are read as columns of ``relation``."""

    found: dict[tuple[object, ...], Register] = field(default_factory=dict)

    def add(
        self,
        kind: Kind,
        variable: str | None,
        value: Scalar | None,
        type_: SparkType,
        counter: str | None = None,
        name: str | None = None,
    ) -> Register:
        key = (kind, variable, value, type_)
        if key not in self.found:
            wanted = name or f"{kind}_{storable(variable) if variable is not None else 'row'}"
            taken = {r.name for r in self.found.values()}
            type_ = STRING if type_.is_string else type_
            self.found[key] = Register(
                unique_name(wanted, taken), kind, variable=variable, value=value, type=type_, counter=counter
            )
        return self.found[key]

    @property
    def all(self) -> tuple[Register, ...]:
        return tuple(self.found.values())

    def types(self, relation: str) -> Fields:
        return {(relation, r.name): r.type for r in self.all}


@dataclass(frozen=True)
class Reader:
    """Reads expressions whose registers go to ``registers`` and are columns of ``relation``.

    ``tried`` is the variable of the condition that is read: its last row is the one that is tried.
    """

    rows: Rows
    variables: dict[str, str]
    typer: Typer
    registers: Registers
    relation: str
    tried: str | None = None

    def scalar(self, node: exp.Expr) -> Scalar:
        """The expression over registers and, in a condition, the row that is tried."""
        result = self._visit(node.copy())
        check_row_level(result)
        return Scalar(unparenthesized(result))

    def condition(self, node: exp.Expr) -> Scalar:
        """A condition of DEFINE. Raises FIVM105 for what is no truth value."""
        scalar = self.scalar(node)
        fields = {**self.rows.types, **self.registers.types(TESTED)}
        (type_,) = self.typer.types([scalar], fields)
        if type_ not in (None, BOOLEAN) and type_ != SparkType("void"):
            what = f"{node.sql('spark')} has type {type_}, and is no condition"
            raise unsupported(node, what, "write a comparison")
        return scalar

    def first(self, variable: str | None, value: Scalar, type_: SparkType) -> Register:
        counter = self.registers.add("count", variable, None, BIGINT)
        return self.registers.add("first", variable, value, type_, counter.name)

    def last(self, variable: str | None, value: Scalar, type_: SparkType) -> Register:
        return self.registers.add("last", variable, value, type_)

    def _visit(self, node: exp.Expr) -> exp.Expr:
        name = function_name(node)
        if isinstance(node, (exp.IgnoreNulls, exp.RespectNulls, exp.Filter, exp.WithinGroup)):
            raise unsupported(
                node, f"{node.sql('spark')} is not maintained in a pattern", "leave the clause out"
            )
        if isinstance(node, exp.Column):
            return self._navigated("last", node, 0)
        if name in ("prev", "next"):
            return self._shifted(node, 1 if name == "next" else -1)
        if name in ("first", "last"):
            return self._navigated(name, _only_argument(node), 0)
        if name in ("classifier", "match_number"):
            return self._of_match(node, name)
        if is_aggregate(node):
            return self._aggregate(node, name or "")
        if isinstance(node, exp.Query):
            return node  # refused with everything else that is not of one row
        for child in list(node.iter_expressions()):
            new = self._visit(child)
            if new is not child:
                child.replace(new)
        return node

    def _of_match(self, node: exp.Expr, name: str) -> exp.Expr:
        if node.expressions:
            raise unsupported(node, f"{name.upper()} of a variable is not maintained", "leave it out")
        if name == "classifier":
            if self.tried is not None:
                return exp.Literal.string(self.tried)
            return column_ast(
                self.relation, self.registers.add("classifier", None, None, STRING, name=name).name
            )
        if self.tried is not None:
            raise unsupported(node, "MATCH_NUMBER() in a condition is not maintained", "use it in MEASURES")
        return column_ast(FOUND, NUMBER)

    def _shifted(self, node: exp.Expr, sign: int) -> exp.Expr:
        """``PREV(x, n)`` and ``NEXT(x, n)``: x of the row that is n before, or behind, the one that x is of."""
        arguments = list(node.expressions)
        offset = Scalar(arguments[1].copy()).as_number if len(arguments) == 2 else 1
        if len(arguments) not in (1, 2) or offset is None or offset < 0:
            raise unsupported(node, f"{node.sql('spark')}: the offset is a number", "write PREV(x, 2)")
        inner = unparenthesized(arguments[0])
        kind = function_name(inner)
        if kind in ("first", "last"):
            return self._navigated(kind, _only_argument(inner), sign * offset)
        return self._navigated("last", inner, sign * offset)

    def _navigated(self, kind: str, argument: exp.Expr, offset: int) -> exp.Expr:
        variable, value, type_ = self._value(argument, offset)
        if kind == "first":
            return column_ast(self.relation, self.first(variable, value, type_).name)
        if self.tried is not None and variable in (None, self.tried):
            return value.ast() if value.is_column else exp.paren(value.ast())
        return column_ast(self.relation, self.last(variable, value, type_).name)

    def _value(self, argument: exp.Expr, offset: int = 0) -> tuple[str | None, Scalar, SparkType]:
        """A value over the columns of one row, whose rows it is asked for, and its type."""
        inside = next((p for p in argument.walk() if function_name(p) in (*_NAVIGATIONS, "classifier")), None)
        if inside is not None:
            what = f"{inside.sql('spark')} inside of another function over rows is not maintained"
            raise unsupported(inside, what, "name the columns of one row there")
        check_row_level(argument)
        plain = argument.copy()
        named = [self._variable(c) for c in plain.find_all(exp.Column)]
        if len(set(named)) > 1:
            what = f"{argument.sql('spark')} is over rows of several variables"
            raise unsupported(argument, what, "take one function for each variable")
        if isinstance(plain, exp.Column):
            plain = self._without_variable(plain)
        else:
            for column in list(plain.find_all(exp.Column)):
                column.replace(self._without_variable(column))
        scalar = Scalar(unparenthesized(qualify(plain, self.rows.scope)))
        for _, column_name in scalar.columns:
            self.rows.use(column_name)
        if offset:
            scalar = scalar.substitute(lambda c: Scalar.column(ROW, self.rows.shifted(c[1], offset)))
        (type_,) = self.typer.types([scalar], self.rows.types)
        return (named[0] if named else None), scalar, known_type(type_, argument)

    def _variable(self, column: exp.Column) -> str | None:
        """The variable whose row a column is of, None for the last row of all."""
        parts = column.parts
        if len(parts) == 1:
            return None
        variable = self.variables.get(parts[0].name.lower())
        if variable is None and parts[0].name.lower() not in self.rows.names:
            known = list(self.variables.values())
            raise FivmError(
                "FIVM102",
                f"{parts[0].name} is no variable of the pattern; there are {', '.join(known)}",
                span=span_of(column),
                remedy=did_you_mean(parts[0].name, known) or "correct the name",
            )
        return variable

    def _without_variable(self, column: exp.Column) -> exp.Column:
        if self._variable(column) is None:
            return column
        parts = [p.copy() for p in column.parts[1:]]
        names = ("this", "table", "db", "catalog")
        return exp.Column(**dict(zip(names, reversed(parts), strict=False)))

    def _aggregate(self, node: exp.Expr, name: str) -> exp.Expr:
        if name not in _AGGREGATES or isinstance(node.this, exp.Distinct) or node.expressions:
            what = f"{node.sql('spark')} is not maintained in a pattern"
            raise unsupported(node, what, "use COUNT, SUM, MIN, MAX or AVG of one value")
        argument = node.this
        if isinstance(node, exp.Count) and _is_star(argument):
            variable = self._variable_of_star(argument)
            return column_ast(self.relation, self.registers.add("count", variable, None, BIGINT).name)
        variable, value, type_ = self._value(argument)
        if name in ("count", "sum", "avg"):
            counter = self.registers.add("count", variable, value, BIGINT)
            if name == "count":
                return column_ast(self.relation, counter.name)
            return self._total(node, name, variable=variable, value=value, type_=type_, counter=counter)
        kind: Kind = "min" if name == "min" else "max"
        return column_ast(self.relation, self.registers.add(kind, variable, value, type_).name)

    def _total(
        self,
        node: exp.Expr,
        name: str,
        variable: str | None,
        value: Scalar,
        type_: SparkType,
        counter: Register,
    ) -> exp.Expr:
        """SUM, and AVG as SUM by COUNT: NULL where there is no value."""
        result = type_of_call(node, lambda _: type_)
        if result is None or not (type_.is_numeric or type_.is_string):
            raise unsupported(node, f"{name.upper()} over {type_} is not Spark SQL", "CAST it to a number")
        by_decimals = type_.is_decimal
        if name == "avg" and by_decimals and not averages_exactly(type_):
            raise unsupported(node, f"AVG over {type_} needs more than 38 digits", "CAST it to fewer digits")
        added = SparkType.decimal(type_.precision + 10, type_.scale) if by_decimals else result
        if added != type_:
            value = value.cast(added.text)
        total = self.registers.add("sum", variable, value, added, counter.name)
        if name == "sum":
            return column_ast(self.relation, total.name)
        shown, number = (Scalar.column(self.relation, r.name) for r in (total, counter))
        quotient = decimal_average(shown, number, type_, result).ast() if by_decimals else None
        if quotient is None:
            divisor = as_type(number.ast(), DOUBLE.text)
            quotient = exp.Div(this=shown.ast(), expression=divisor)
        is_there = exp.GT(this=number.ast(), expression=exp.Literal.number(0))
        return exp.Case(ifs=[exp.If(this=is_there, true=quotient)])

    def _variable_of_star(self, star: exp.Expr) -> str | None:
        return self._variable(star) if isinstance(star, exp.Column) else None


def _is_star(node: exp.Expr) -> bool:
    return isinstance(node, (exp.Star, exp.Literal)) or (
        isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
    )


def _only_argument(node: exp.Expr) -> exp.Expr:
    arguments = list(node.iter_expressions())
    if len(arguments) != 1:
        what = f"{node.sql('spark')}: an offset in FIRST or LAST is not maintained"
        raise unsupported(node, what, "leave it out, or use PREV or NEXT")
    return arguments[0]
