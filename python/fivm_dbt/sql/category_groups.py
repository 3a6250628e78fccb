"""A covariance with categorical variables as several aggregates: moments, groups by category, groups by pair.

It is written for weights, for many numbers, and beside other aggregates, which have to be left alone::

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
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, reduce

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.functions.learning import COVARIANCE, DEGREE
from fivm_dbt.ir.scalar import as_type, column_ast, identifier
from fivm_dbt.sql.category_call import (
    CELL,
    CELLS,
    MOMENT_FIELDS,
    PAIR_FIELDS,
    TOTALS,
    CategoryCall,
    cells_type,
    struct,
)
from fivm_dbt.sql.covariances import counts, product

_MOMENTS, _PAIR = "a", "fivm_pair"


class SeveralAggregates(CategoryCall):
    """The SELECT as a join of two: of moments, and of lists of cells."""

    def select(self) -> exp.Select:
        items = [self._item(item) for item in self.node.expressions]
        query = exp.select(*items).from_(self._moments().subquery(_MOMENTS))
        cells = self._cells().subquery(CELLS)
        if self.found.is_global:
            query = query.join(cells, join_type="cross")
        else:
            names = [key.name for key in self._key_names]
            same = [
                exp.NullSafeEQ(this=column_ast(_MOMENTS, n), expression=column_ast(CELLS, n)) for n in names
            ]
            query = query.join(cells, on=exp.and_(*same), join_type="left")
        return self._with_names(query)

    def _item(self, item: exp.Expr) -> exp.Expr:
        name = item.alias_or_name
        if name != self.name:
            return column_ast(_MOMENTS, name)
        fields = {
            f: exp.Dot(this=column_ast(_MOMENTS, name), expression=identifier(f)) for f in MOMENT_FIELDS
        }
        cells: exp.Expr = column_ast(CELLS, "cells")
        if not self.found.is_global:
            none = as_type(exp.Array(expressions=[]), cells_type(self._value_type))
            cells = exp.Coalesce(this=cells, expressions=[none])
        return exp.alias_(struct({**fields, "cells": cells}), name, quoted=not name.isidentifier())

    def _moments(self) -> exp.Select:
        """The SELECT with the continuous part alone, and its keys."""
        return self._with_categories_present().select(*self._keys_shown, copy=False)

    def _cells(self) -> exp.Select:
        """All cells of a group, in order."""
        every = reduce(partial(exp.union, distinct=False), self._branches())
        collected = exp.Anonymous(this="COLLECT_LIST", expressions=[exp.column(CELL)])
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
        query = exp.select(*self._key_names, *categories, self._counted.as_("n"), self._sums().as_(TOTALS))
        query.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
        totals = query.from_(self._rows(self._number).subquery("rows_that_count"))
        return exp.select(*self._key_names, exp.alias_(exploded, CELL)).from_(totals.subquery("by_category"))

    def _cells_of(self, number: int) -> Iterator[exp.Expr]:
        name = exp.Literal.string(self.covariance.categories[number][0])
        category = self._category_columns[number]
        yield self._cell(name, category, name.copy(), category.copy(), exp.column("n"))
        yield from self._sums_by(number)

    def _cells_by_pair(self) -> exp.Select:
        """Of a pair of categories its count. Each row lists all pairs of its categories, which are then counted."""
        pairs = exp.alias_(exp.Explode(this=self._pairs()), _PAIR)
        rows = exp.select(*self._key_names, pairs, *(["w"] if self._weights else []))
        rows = rows.from_(self._rows(0).subquery("rows_that_count"))
        fields = {name: exp.Dot(this=exp.column(_PAIR), expression=identifier(name)) for name in PAIR_FIELDS}
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
        return exp.select(*self._key_names, exp.alias_(cell, CELL)).from_(query.subquery("by_pair"))

    def _pairs(self) -> exp.Expr:
        """All pairs of the categories of a row, by the numbers of their variables, also with itself without sums.

        It is made by lambdas: the code of a long list has no room in a method of Java.
        """
        numbered = (
            struct({"n": exp.Literal.number(n), "category": column})
            for n, column in enumerate(self._category_columns, start=1)
        )
        listed = exp.Array(expressions=list(numbered))

        def field(of: str, name: str) -> exp.Expr:
            return exp.Dot(this=identifier(of), expression=identifier(name))

        values = (field("x", "n"), field("x", "category"), field("y", "n"), field("y", "category"))
        pair = exp.Lambda(
            this=struct(dict(zip(PAIR_FIELDS, values, strict=True))), expressions=[identifier("y")]
        )
        start = field("x", "n")
        if self._number:
            start = exp.Add(this=start, expression=exp.Literal.number(1))
        number = exp.Literal.number(len(self.covariance.categories))
        others = exp.ArraySlice(this=listed.copy(), start=start, end=number, is_length=True)
        of_one = exp.Lambda(this=exp.Transform(this=others, expression=pair), expressions=[identifier("x")])
        return exp.Flatten(this=exp.Transform(this=listed, expression=of_one))

    @property
    def _counted(self) -> exp.Expr:
        """How many rows, or the sum of their weights."""
        return exp.Sum(this=exp.column("w")) if self._weights else exp.Count(this=exp.Star())

    @property
    def _weights(self) -> list[tuple[exp.Expr, SparkType]]:
        weight = self.covariance.weight
        return [] if weight is None else [(weight, self.found.types[-1])]

    def _sums(self) -> exp.Expr:
        """The sum of each continuous variable, as those of a covariance that has no products."""
        variables = (exp.column(f"s_{n}").as_(f"s_{n}") for n in range(1, self._number + 1))
        degree = exp.Anonymous(this=DEGREE, expressions=[exp.Literal.number(1)])
        return exp.Anonymous(this=COVARIANCE, expressions=[*variables, degree])

    def _rows(self, variables: int) -> exp.Select:
        """The rows that count: keys, categories as strings, what is added up of so many variables, and the weight."""
        shown = dict(zip((k.name for k in self._key_names), (k.copy() for k in self.found.keys), strict=True))
        names = (column.name for column in self._category_columns)
        shown.update(zip(names, self._categories_as_text, strict=True))
        for number, variable in enumerate(self.covariance.variables[:variables]):
            shown[f"s_{number + 1}"] = product([(variable, self.found.types[number]), *self._weights])
        if self._weights:
            shown["w"] = product(self._weights)
        query = exp.select(*(exp.alias_(value, name) for name, value in shown.items()))
        for clause in ("from_", "joins", "laterals", "where"):
            part = self.node.args.get(clause)
            query.set(clause, [p.copy() for p in part] if isinstance(part, list) else part and part.copy())
        return query.where(counts(self.covariance, self.found.types, self.conditions))
