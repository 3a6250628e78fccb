"""Categorical variables of a covariance become groups: no category is encoded as a column (Definition 9).

``fivm_covariance(x, fivm_categorical(k)) as m ... group by g`` is the same as::

    select a.g, struct(a.m.count, ..., c.cells) as m
    from (select g, fivm_covariance(x, fivm_present(k)) as m ... group by g) a
    left join (select g, sort_array(collect_list(cell)) as cells
               from (select g, explode(array(<count and sums of a category>)) as cell
                     from (select g, k, count(*), sum(x) ... group by g, k)
                     union all <counts of pairs of categories> ...)
               group by g) c on a.g <=> c.g

It is what is maintained and recomputed. The sums by category add up. The list of a group that has changed is made
anew of them. A category whose count is zero has no group, and so no cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.functions.learning import CATEGORICAL, PRESENT
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.places import notes
from fivm_dbt.ir.scalar import as_type, column_ast, identifier
from fivm_dbt.rings.covariances import cell_type, moments_type
from fivm_dbt.sql.aggregates import AROUND_AGGREGATES
from fivm_dbt.sql.covariances import (
    Covariance,
    counts,
    is_covariance,
    product,
    read_covariance,
    with_named_variables,
)
from fivm_dbt.sql.named_arguments import with_arguments_in_order
from fivm_dbt.sql.parse import parse, unsupported

_MOMENTS, _CELLS = "a", "c"
_KEY, _CELL = "fivm_key", "cell"
_FIELDS = ("variable", "category", "other", "other_category", "value")
_OTHER_CLAUSES = ("distinct", "qualify", "windows", "limit", "offset", "with_")


@dataclass(frozen=True)
class Categorical:
    """A call with categorical variables: its place, the keys of its SELECT, and the types of what it multiplies."""

    place: int
    keys: tuple[exp.Expr, ...]
    is_global: bool
    types: tuple[SparkType, ...]


def type_with_cells(found: Covariance, types: Sequence[SparkType]) -> SparkType:
    """The type of a covariance with categorical variables."""
    m = len(found.variables)
    weight = types[m] if found.weight is not None else None
    plain, value = moments_type(types[:m], weight), cell_type(types[:m], weight)
    return SparkType.of(f"{plain.text[:-1]},cells:{_cells_type(value)}>")


def _cells_type(value: SparkType) -> str:
    named = [*(f"{name}:string" for name in _FIELDS[:-1]), f"{_FIELDS[-1]}:{value}"]
    return f"array<struct<{','.join(named)}>>"


def spelled_by_groups(sql: str, found: Categorical) -> str:
    """The text with the call as a join of groups. FIVM105 where its SELECT does more than group."""
    query = with_named_variables(with_arguments_in_order(parse(sql)))
    call = next(
        c for c in query.find_all(exp.Anonymous) if is_covariance(c) and notes(c).get("start") == found.place
    )
    select = call.find_ancestor(exp.Select)
    assert select is not None, "a call stands in a SELECT"
    written = _Written(call, select, found)
    new = written.select()
    if select is query:
        return new.sql(dialect="spark")
    select.replace(new)
    return query.sql(dialect="spark")


class _Written:
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
        for clause in _OTHER_CLAUSES:
            if select.args.get(clause) and not (clause == "with_" and select.parent is None):
                what = f"{clause.strip('_').upper()} beside a covariance with categories"
                raise unsupported(call, what, "write it in a query around this one")

    def select(self) -> exp.Select:
        items = [self._item(item) for item in self.node.expressions]
        query = exp.select(*items).from_(self._moments().subquery(_MOMENTS))
        cells = self._cells().subquery(_CELLS)
        if self.found.is_global:
            query = query.join(cells, join_type="cross")
        else:
            names = [f"{_KEY}_{n}" for n in range(1, len(self.found.keys) + 1)]
            same = [
                exp.NullSafeEQ(this=column_ast(_MOMENTS, n), expression=column_ast(_CELLS, n)) for n in names
            ]
            query = query.join(cells, on=exp.and_(*same), join_type="left")
        with_ = self.node.args.get("with_")
        if with_ is not None:
            query.set("with_", with_.copy())
        return query

    def _item(self, item: exp.Expr) -> exp.Expr:
        name = item.alias_or_name
        if not name or item.is_star:
            remedy = "write AS and a name"
            raise unsupported(item, "a column without a name beside a covariance with categories", remedy)
        if name != self.name:
            return column_ast(_MOMENTS, name)
        fields = {
            f: exp.Dot(this=column_ast(_MOMENTS, name), expression=identifier(f)) for f in _MOMENT_FIELDS
        }
        cells: exp.Expr = column_ast(_CELLS, "cells")
        if not self.found.is_global:
            none = as_type(exp.Array(expressions=[]), _cells_type(self._value_type))
            cells = exp.Coalesce(this=cells, expressions=[none])
        return exp.alias_(_struct({**fields, "cells": cells}), name, quoted=not name.isidentifier())

    def _moments(self) -> exp.Select:
        """The SELECT with the continuous part alone, and its keys; rows count of which all categories are known."""
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
        keys = [exp.alias_(k.copy(), f"{_KEY}_{n}") for n, k in enumerate(self.found.keys, start=1)]
        return query.select(*keys, copy=False)

    def _cells(self) -> exp.Select:
        """All cells of a group, in order."""
        singles = [self._of_one(*category) for category in self.covariance.categories]
        pairs = [self._of_two(*pair) for pair in combinations(self.covariance.categories, 2)]
        every = [*singles, *pairs]
        rows = exp.union(*every, distinct=False) if len(every) > 1 else every[0]
        collected = exp.Anonymous(this="COLLECT_LIST", expressions=[exp.column(_CELL)])
        listed = exp.Anonymous(this="SORT_ARRAY", expressions=[collected])
        query = exp.select(*self._key_names, exp.alias_(listed, "cells")).from_(rows.subquery("cells_of_all"))
        return query.group_by(*self._key_names) if self._key_names else query

    def _of_one(self, name: str, category: exp.Expr) -> exp.Select:
        """Per category its count, which is that of the pair with itself, and the sum of each continuous variable."""
        sums = {"n": self._total()}
        cells = [self._cell(name, exp.Literal.string(name), exp.column("category"), "n")]
        for number, variable in enumerate(self.covariance.variables):
            sums[f"s_{number + 1}"] = self._total((variable, self.found.types[number]))
            other = exp.Literal.string(self.covariance.names[number])
            cells.append(self._cell(name, other, exp.Literal.string(""), f"s_{number + 1}"))
        grouped = self._grouped({"category": category}, sums)
        exploded = exp.Explode(this=exp.Array(expressions=cells))
        return exp.select(*self._key_names, exp.alias_(exploded, _CELL)).from_(
            grouped.subquery("by_category")
        )

    def _of_two(self, one: tuple[str, exp.Expr], other: tuple[str, exp.Expr]) -> exp.Select:
        """Per pair of categories its count."""
        keys = {"category": one[1], "other_category": other[1]}
        grouped = self._grouped(keys, {"n": self._total()})
        cell = self._cell(one[0], exp.Literal.string(other[0]), exp.column("other_category"), "n")
        return exp.select(*self._key_names, exp.alias_(cell, _CELL)).from_(grouped.subquery("by_pair"))

    def _cell(self, name: str, other: exp.Expr, other_category: exp.Expr, value: str) -> exp.Expr:
        values = (
            exp.Literal.string(name),
            exp.column("category"),
            other,
            other_category,
            as_type(exp.column(value), self._value_type.text),
        )
        return _struct(dict(zip(_FIELDS, values, strict=True)))

    def _grouped(self, categories: dict[str, exp.Expr], sums: dict[str, exp.Expr]) -> exp.Select:
        """Sums over the rows that count, by the keys and some categories."""
        by = [
            *(k.copy() for k in self.found.keys),
            *(as_type(c.copy(), "string") for c in categories.values()),
        ]
        names = [*(f"{_KEY}_{n}" for n in range(1, len(self.found.keys) + 1)), *categories]
        shown = [exp.alias_(value.copy(), name) for value, name in zip(by, names, strict=True)]
        query = exp.select(*shown, *(exp.alias_(value, name) for name, value in sums.items()))
        for clause in ("from_", "joins", "laterals", "where"):
            part = self.node.args.get(clause)
            query.set(clause, [p.copy() for p in part] if isinstance(part, list) else part and part.copy())
        return query.where(counts(self.covariance, self.found.types, self.conditions)).group_by(*by)

    def _total(self, *factors: tuple[exp.Expr, SparkType]) -> exp.Expr:
        weight = self.covariance.weight
        every = [*factors, *([(weight, self.found.types[-1])] if weight is not None else [])]
        return exp.Sum(this=product(every)) if every else exp.Count(this=exp.Star())

    @property
    def _key_names(self) -> list[exp.Expr]:
        return [exp.column(f"{_KEY}_{n}") for n in range(1, len(self.found.keys) + 1)]

    @property
    def _value_type(self) -> SparkType:
        m = len(self.covariance.variables)
        weight = self.found.types[m] if self.covariance.weight is not None else None
        return cell_type(self.found.types[:m], weight)


_MOMENT_FIELDS = ("count", "variables", "sums", "products")


def _struct(fields: dict[str, exp.Expr]) -> exp.Expr:
    named = (exp.PropertyEQ(this=exp.to_identifier(name), expression=value) for name, value in fields.items())
    return exp.Struct(expressions=list(named))
