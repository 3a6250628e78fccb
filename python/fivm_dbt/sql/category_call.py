"""A covariance with categorical variables, taken apart: what is grouped, and the cells of its result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.functions.learning import CATEGORICAL, PRESENT
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.places import notes
from fivm_dbt.ir.scalar import as_type, identifier
from fivm_dbt.rings.covariances import cell_type
from fivm_dbt.sql.aggregates import AROUND_AGGREGATES
from fivm_dbt.sql.covariances import read_covariance
from fivm_dbt.sql.parse import unsupported

KEY, CATEGORY, CELL, CELLS, TOTALS = "fivm_key", "fivm_category", "cell", "cells", "totals"
MOMENT_FIELDS = ("count", "variables", "sums", "products")
PAIR_FIELDS = ("variable", "category", "other", "other_category")
_FIELDS = (*PAIR_FIELDS, "value")
_SUMS = exp.Dot(this=exp.column(TOTALS), expression=identifier("sums"))
_OTHER_CLAUSES = ("distinct", "qualify", "windows", "limit", "offset", "with_")


@dataclass(frozen=True)
class Categorical:
    """A call with categorical variables: its place, the keys of its SELECT, and the types of what it multiplies."""

    place: int
    keys: tuple[exp.Expr, ...]
    is_global: bool
    types: tuple[SparkType, ...]


def cells_type(value: SparkType) -> str:
    """The type of the list of cells, whose values are of a type."""
    named = [*(f"{name}:string" for name in PAIR_FIELDS), f"value:{value}"]
    return f"array<struct<{','.join(named)}>>"


def struct(fields: dict[str, exp.Expr]) -> exp.Expr:
    """A struct by the names of its fields."""
    named = (exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in fields.items())
    return exp.Struct(expressions=list(named))


class CategoryCall:
    """One SELECT with one such call."""

    def __init__(self, call: exp.Expr, select: exp.Select, found: Categorical) -> None:
        self.call, self.node, self.found = call, select, found
        self.covariance = read_covariance(call)
        self.outer = call
        self.conditions: list[exp.Expr] = []
        while isinstance(self.outer.parent, AROUND_AGGREGATES):
            self.outer = self.outer.parent
            self.conditions.append(self.outer.expression.this)
        item = self.outer.parent
        if not isinstance(item, exp.Alias) or item.parent is not select:
            remedy = "give it a column of its own, and use that in a query around it"
            raise unsupported(call, "a covariance with categories inside of an expression", remedy)
        self.name = item.alias
        for shown in select.expressions:
            if shown.is_star or not isinstance(shown, (exp.Alias, exp.Column)):
                what = "a column without a name beside a covariance with categories"
                raise unsupported(shown, what, "write AS and a name")
        for clause in _OTHER_CLAUSES:
            if select.args.get(clause) and not (clause == "with_" and select.parent is None):
                what = f"{clause.strip('_').upper()} beside a covariance with categories"
                raise unsupported(call, what, "write it in a query around this one")

    def _with_categories_present(self) -> exp.Select:
        """The SELECT with the continuous part alone: rows count of which all categories are known."""
        query = self.node.copy()
        query.set("with_", None)
        query.set("order", None)
        start = notes(self.call)["start"]
        call = next(c for c in query.find_all(exp.Anonymous) if notes(c).get("start") == start)
        arguments = [
            exp.Anonymous(this=PRESENT, expressions=[a.expressions[0].this.copy()])
            if function_name(a) == CATEGORICAL
            else a
            for a in call.expressions
        ]
        call.set("expressions", arguments)
        return query

    def _sums_by(self, number: int) -> Iterator[exp.Expr]:
        """The sum of each continuous variable by a category."""
        name = exp.Literal.string(self.covariance.categories[number][0])
        for place, variable in enumerate(self.covariance.names, start=1):
            total = exp.Anonymous(this="ELEMENT_AT", expressions=[_SUMS.copy(), exp.Literal.number(place)])
            none = exp.Literal.string("")
            cell = (name.copy(), self._category_columns[number], exp.Literal.string(variable), none)
            yield self._cell(*cell, total)

    @property
    def _categories_as_text(self) -> list[exp.Expr]:
        return [as_type(category.copy(), "string") for _, category in self.covariance.categories]

    @property
    def _keys_shown(self) -> list[exp.Expr]:
        """The keys of the SELECT under names of their own."""
        return [exp.alias_(k.copy(), n.name) for k, n in zip(self.found.keys, self._key_names, strict=True)]

    @property
    def _category_columns(self) -> list[exp.Column]:
        return [exp.column(f"{CATEGORY}_{n + 1}") for n in range(len(self.covariance.categories))]

    def _cell(
        self, name: exp.Expr, category: exp.Expr, other: exp.Expr, other_category: exp.Expr, value: exp.Expr
    ) -> exp.Expr:
        values = (name, category, other, other_category, as_type(value, self._value_type.text))
        return struct(dict(zip(_FIELDS, values, strict=True)))

    @property
    def _number(self) -> int:
        return len(self.covariance.variables)

    @property
    def _key_names(self) -> list[exp.Expr]:
        return [exp.column(f"{KEY}_{n}") for n in range(1, len(self.found.keys) + 1)]

    @property
    def _value_type(self) -> SparkType:
        m = len(self.covariance.variables)
        weight = self.found.types[m] if self.covariance.weight is not None else None
        return cell_type(self.found.types[:m], weight)

    def _with_names(self, query: exp.Select) -> exp.Select:
        """A query under the WITH of the SELECT."""
        with_ = self.node.args.get("with_")
        if with_ is not None:
            query.set("with_", with_.copy())
        return query
