"""Names mean something where an expression stands, and rows give them values.

A context is one place of a query in which columns have a meaning; the one around it is its parent. An environment is
the row that a context has while an expression is evaluated, with those around it: a correlated subquery is evaluated
once for each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.types import Type
from fivm_dbt.testing.interpreter.values import Row, Value

if TYPE_CHECKING:
    from fivm_dbt.testing.interpreter.groups import Groups
    from fivm_dbt.testing.interpreter.windows import Windows


class Env:
    """A row, what was computed for it, and the rows around it."""

    __slots__ = ("aggregates", "grouping", "parent", "row", "windows")

    def __init__(self, row: Row, parent: Env | None) -> None:
        self.row = row
        self.parent = parent
        self.aggregates: Row = ()
        self.grouping: tuple[int, ...] = ()
        self.windows: list[Value] = []


@dataclass(frozen=True)
class Expression:
    """An expression that has been read: its type, its value in an environment, and the literal that it is, if any."""

    type: Type
    of: Callable[[Env], Value]
    literal: exp.Expr | None = None


@dataclass(frozen=True)
class Column:
    """A column of what is in FROM. ``qualifiers`` are the names before its own; hidden ones need them."""

    name: str
    type: Type
    qualifiers: tuple[str, ...] = ()
    is_hidden: bool = False


@dataclass(frozen=True)
class Relation:
    """Something that has rows: its columns, and its rows in the environment around it."""

    columns: tuple[Column, ...]
    rows: Callable[[Env | None], list[Row]]


@dataclass(frozen=True)
class Found:
    """A column that a name means, and the fields of it that follow."""

    index: int
    fields: tuple[str, ...]


@dataclass
class Context:
    """Where an expression stands."""

    columns: tuple[Column, ...]
    parent: Context | None = None
    relations: dict[str, Any] = field(default_factory=dict)
    """Tables, and CTEs that are in scope, by name."""
    aliases: dict[str, exp.Expr] = field(default_factory=dict)
    """Items of the SELECT that later ones may use."""
    groups: Groups | None = None
    windows: Windows | None = None
    named_windows: dict[str, exp.Expr] = field(default_factory=dict)
    is_lambda: bool = False

    def find(self, parts: list[str], node: exp.Expr) -> Found | None:
        """The column here that a dotted name means: as many qualifiers as fit, the rest are fields of a struct."""
        for split in range(len(parts), 0, -1):
            qualifiers, name = tuple(p.lower() for p in parts[: split - 1]), parts[split - 1].lower()
            found = [
                i
                for i, c in enumerate(self.columns)
                if c.name.lower() == name
                and (not c.is_hidden or qualifiers)
                and _ends(c.qualifiers, qualifiers)
            ]
            if len(found) > 1:
                raise NotUnderstood(f"ambiguous column {'.'.join(parts)}", node)
            if found and (
                split == len(parts) or self.columns[found[0]].type.name in ("struct", "map", "array")
            ):
                return Found(found[0], tuple(parts[split:]))
        return None


def _ends(whole: tuple[str, ...], end: tuple[str, ...]) -> bool:
    return not end or tuple(q.lower() for q in whole[-len(end) :]) == end


def at_depth(expression: Expression, depth: int) -> Expression:
    """An expression of a context so many levels further out."""
    if depth == 0:
        return expression
    of = expression.of

    def evaluate(env: Env) -> Value:
        outer: Env | None = env
        for _ in range(depth):
            assert outer is not None
            outer = outer.parent
        assert outer is not None
        return of(outer)

    return Expression(expression.type, evaluate)


def strict(type_: Type, function: Callable[..., Value], *arguments: Expression) -> Expression:
    """A function that is NULL where one of its arguments is."""
    evaluate = [a.of for a in arguments]

    def of(env: Env) -> Value:
        values = []
        for argument in evaluate:
            value = argument(env)
            if value is None:
                return None
            values.append(value)
        return function(*values)

    return Expression(type_, of)


def column_at(index: int, type_: Type) -> Expression:
    return Expression(type_, lambda env: env.row[index])


def field_of(base: Expression, name: str, node: exp.Expr) -> Expression:
    """``base.name``: a field of a struct, of each struct of an array, or the value of a map."""
    of = base.of
    if base.type.name == "struct":
        found = [i for i, (n, _) in enumerate(base.type.args) if n.lower() == name.lower()]
        if len(found) != 1:
            raise NotUnderstood(f"field {name} of {base.type}", node)
        index = found[0]

        def get(env: Env) -> Value:
            value = of(env)
            return None if value is None else value[index]

        return Expression(base.type.args[index][1], get)
    if base.type.name == "map":
        return Expression(base.type.args[1], lambda env: None if (m := of(env)) is None else m.get(name))
    raise NotUnderstood(f"field {name} of {base.type}", node)
