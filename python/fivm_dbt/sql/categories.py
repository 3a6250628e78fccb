"""Categorical variables of a covariance become groups: no category is encoded as a column (Definition 9).

``fivm_covariance(x, fivm_categorical(k), fivm_categorical(l)) as m ... group by g`` is the same as::

    select a.g, struct(a.m.count, ..., c.cells) as m
    from (select g, fivm_covariance(x, fivm_present(k), fivm_present(l)) as m ... group by g) a
    left join (select g, sort_array(collect_list(cell)) as cells
               from (select g, explode(case when k is not null then array(<its count, its sum of x>) ... end) as cell
                     from (select g, k, l, count(*), fivm_covariance(x, fivm_degree(1)) ...
                           group by grouping sets ((g, k), (g, l)))
                     union all
                     select g, <cell of the pair>
                     from (select g, pair, count(*) from (select g, explode(array(<k and l>)) as pair ...)
                           group by g, pair))
               group by g) c on a.g <=> c.g

It is what is maintained and recomputed. Counts and sums by category add up. The list of a group that has changed is
made anew of them. A category whose count is zero has no group, and so no cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.functions.learning import CATEGORICAL, COVARIANCE, DEGREE, PRESENT
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
_KEY, _CATEGORY, _PAIR, _CELL, _TOTALS = "fivm_key", "fivm_category", "fivm_pair", "cell", "totals"
_SUMS = exp.Dot(this=exp.column(_TOTALS), expression=identifier("sums"))
_PAIR_FIELDS = ("variable", "category", "other", "other_category")
_FIELDS = (*_PAIR_FIELDS, "value")
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
        every = reduce(partial(exp.union, distinct=False), self._branches())
        collected = exp.Anonymous(this="COLLECT_LIST", expressions=[exp.column(_CELL)])
        listed = exp.Anonymous(this="SORT_ARRAY", expressions=[collected])
        query = exp.select(*self._key_names, exp.alias_(listed, "cells")).from_(
            every.subquery("cells_of_all")
        )
        return query.group_by(*self._key_names) if self._key_names else query

    def _branches(self) -> Iterator[exp.Query]:
        """The cells of categories, with the sums by them, and those of pairs. Without sums all are pairs."""
        if self._number:
            yield self._cells_by_category()
        if len(self.covariance.categories) > 1 or not self._number:
            yield self._cells_by_pair()

    def _cells_by_category(self) -> exp.Select:
        """Of a category its count, as of a pair with itself, and the sum of each continuous variable."""
        categories = self._category_columns
        blocks = [
            exp.If(
                this=exp.Not(this=exp.Is(this=categories[n].copy(), expression=exp.Null())),
                true=exp.Array(expressions=list(self._cells_of(n))),
            )
            for n in range(len(categories))
        ]
        exploded = exp.Explode(this=exp.Case(ifs=blocks))
        sets = [exp.Tuple(expressions=[*self._key_names, c.copy()]) for c in categories]
        query = exp.select(*self._key_names, *categories, self._counted.as_("n"), self._sums().as_(_TOTALS))
        query.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
        totals = query.from_(self._rows(self._number).subquery("rows_that_count"))
        return exp.select(*self._key_names, exp.alias_(exploded, _CELL)).from_(totals.subquery("by_category"))

    def _cells_of(self, number: int) -> Iterator[exp.Expr]:
        name = exp.Literal.string(self.covariance.categories[number][0])
        category = self._category_columns[number]
        yield self._cell(name, category, name.copy(), category.copy(), exp.column("n"))
        for place, variable in enumerate(self.covariance.names, start=1):
            total = exp.Anonymous(this="ELEMENT_AT", expressions=[_SUMS.copy(), exp.Literal.number(place)])
            none = exp.Literal.string("")
            yield self._cell(name.copy(), category.copy(), exp.Literal.string(variable), none, total)

    def _cells_by_pair(self) -> exp.Select:
        """Of a pair of categories its count. Each row lists all pairs of its categories, which are then counted."""
        pairs = exp.alias_(exp.Explode(this=self._pairs()), _PAIR)
        rows = exp.select(*self._key_names, pairs, *(["w"] if self._weights else []))
        rows = rows.from_(self._rows(0).subquery("rows_that_count"))
        fields = {name: exp.Dot(this=exp.column(_PAIR), expression=identifier(name)) for name in _PAIR_FIELDS}
        shown = [exp.alias_(field, name) for name, field in fields.items()]
        query = exp.select(*self._key_names, *shown, self._counted.as_("n")).from_(rows.subquery("pairs"))
        query = query.group_by(*self._key_names, *(field.copy() for field in fields.values()))
        names = exp.Array(expressions=[exp.Literal.string(name) for name, _ in self.covariance.categories])
        variable, other = (
            exp.Anonymous(this="ELEMENT_AT", expressions=[names.copy(), exp.column(number)])
            for number in ("variable", "other")
        )
        cell = self._cell(
            variable, exp.column("category"), other, exp.column("other_category"), exp.column("n")
        )
        return exp.select(*self._key_names, exp.alias_(cell, _CELL)).from_(query.subquery("by_pair"))

    def _pairs(self) -> exp.Expr:
        """All pairs of the categories of a row, by the numbers of their variables, also with itself without sums.

        It is made by lambdas: the code of a long list has no room in a method of Java.
        """
        numbered = (
            _struct({"n": exp.Literal.number(n), "category": column})
            for n, column in enumerate(self._category_columns, start=1)
        )
        listed = exp.Array(expressions=list(numbered))

        def field(of: str, name: str) -> exp.Expr:
            return exp.Dot(this=identifier(of), expression=identifier(name))

        values = (field("x", "n"), field("x", "category"), field("y", "n"), field("y", "category"))
        pair = exp.Lambda(
            this=_struct(dict(zip(_PAIR_FIELDS, values, strict=True))), expressions=[identifier("y")]
        )
        start = field("x", "n")
        if self._number:
            start = exp.Add(this=start, expression=exp.Literal.number(1))
        number = exp.Literal.number(len(self.covariance.categories))
        others = exp.ArraySlice(this=listed.copy(), start=start, end=number, is_length=True)
        of_one = exp.Lambda(this=exp.Transform(this=others, expression=pair), expressions=[identifier("x")])
        return exp.Flatten(this=exp.Transform(this=listed, expression=of_one))

    @property
    def _category_columns(self) -> list[exp.Column]:
        return [exp.column(f"{_CATEGORY}_{n + 1}") for n in range(len(self.covariance.categories))]

    @property
    def _counted(self) -> exp.Expr:
        """How many rows, or the sum of their weights."""
        return exp.Sum(this=exp.column("w")) if self._weights else exp.Count(this=exp.Star())

    @property
    def _weights(self) -> list[tuple[exp.Expr, SparkType]]:
        weight = self.covariance.weight
        return [] if weight is None else [(weight, self.found.types[-1])]

    def _cell(
        self, name: exp.Expr, category: exp.Expr, other: exp.Expr, other_category: exp.Expr, value: exp.Expr
    ) -> exp.Expr:
        values = (name, category, other, other_category, as_type(value, self._value_type.text))
        return _struct(dict(zip(_FIELDS, values, strict=True)))

    def _sums(self) -> exp.Expr:
        """The sum of each continuous variable, as those of a covariance that has no products."""
        variables = (exp.column(f"s_{n}").as_(f"s_{n}") for n in range(1, self._number + 1))
        degree = exp.Anonymous(this=DEGREE, expressions=[exp.Literal.number(1)])
        return exp.Anonymous(this=COVARIANCE, expressions=[*variables, degree])

    def _rows(self, variables: int) -> exp.Select:
        """The rows that count: keys, categories as strings, what is added up of so many variables, and the weight."""
        shown = dict(zip((k.name for k in self._key_names), (k.copy() for k in self.found.keys), strict=True))
        for number, (_, category) in enumerate(self.covariance.categories, start=1):
            shown[f"{_CATEGORY}_{number}"] = as_type(category.copy(), "string")
        for number, variable in enumerate(self.covariance.variables[:variables]):
            shown[f"s_{number + 1}"] = product([(variable, self.found.types[number]), *self._weights])
        if self._weights:
            shown["w"] = product(self._weights)
        query = exp.select(*(exp.alias_(value, name) for name, value in shown.items()))
        for clause in ("from_", "joins", "laterals", "where"):
            part = self.node.args.get(clause)
            query.set(clause, [p.copy() for p in part] if isinstance(part, list) else part and part.copy())
        return query.where(counts(self.covariance, self.found.types, self.conditions))

    @property
    def _number(self) -> int:
        return len(self.covariance.variables)

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
