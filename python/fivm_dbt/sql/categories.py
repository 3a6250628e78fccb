"""Categorical variables of a covariance become groups: no category is encoded as a column (Definition 9).

``fivm_covariance(x, fivm_categorical(k), fivm_categorical(l)) as m ... group by g`` is the same as::

    select a.g, struct(a.m.count, ..., c.cells) as m
    from (select g, fivm_covariance(x, fivm_present(k), fivm_present(l)) as m ... group by g) a
    left join (select g, sort_array(collect_list(cell)) as cells
               from (select g, explode(case when <k alone> then array(<its count, its sum of x>) ... end) as cell
                     from (select g, k, l, count(*), fivm_covariance(x, fivm_degree(1)) ...
                           group by grouping sets ((g, k), (g, l), (g, k, l))))
               group by g) c on a.g <=> c.g

It is what is maintained and recomputed. The sums by category add up. The list of a group that has changed is made
anew of them. A category whose count is zero has no group, and so no cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

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
_KEY, _CATEGORY, _CELL, _TOTALS = "fivm_key", "fivm_category", "cell", "totals"
_SUMS = exp.Dot(this=exp.column(_TOTALS), expression=identifier("sums"))
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
        blocks = [
            exp.If(this=self._is_block(block), true=exp.Array(expressions=list(self._cells_of(block))))
            for block in self._blocks
        ]
        exploded = exp.Explode(this=exp.Case(ifs=blocks))
        each = exp.select(*self._key_names, exp.alias_(exploded, _CELL))
        rows = each.from_(self._by_block().subquery("by_category"))
        collected = exp.Anonymous(this="COLLECT_LIST", expressions=[exp.column(_CELL)])
        listed = exp.Anonymous(this="SORT_ARRAY", expressions=[collected])
        query = exp.select(*self._key_names, exp.alias_(listed, "cells")).from_(rows.subquery("cells_of_all"))
        return query.group_by(*self._key_names) if self._key_names else query

    @property
    def _blocks(self) -> list[tuple[int, ...]]:
        """What is counted together: each categorical variable, and each pair."""
        numbers = range(len(self.covariance.categories))
        return [*((number,) for number in numbers), *combinations(numbers, 2)]

    def _is_block(self, block: tuple[int, ...]) -> exp.Expr:
        """Whether a group is by these categories alone: no category is NULL but where it is not grouped by."""
        conditions = []
        for number in range(len(self.covariance.categories)):
            is_null = exp.Is(this=exp.column(f"{_CATEGORY}_{number + 1}"), expression=exp.Null())
            conditions.append(exp.Not(this=is_null) if number in block else is_null)
        return exp.and_(*conditions)

    def _cells_of(self, block: tuple[int, ...]) -> Iterator[exp.Expr]:
        """Of a pair its count. Of one its count, as of a pair with itself, and the sum of each continuous variable."""
        names = [name for name, _ in self.covariance.categories]
        first, last = block[0], block[-1]
        yield self._cell(
            first, exp.Literal.string(names[last]), exp.column(f"{_CATEGORY}_{last + 1}"), exp.column("n")
        )
        if len(block) == 1:
            for number, variable in enumerate(self.covariance.names, start=1):
                none = exp.Literal.string("")
                total = exp.Anonymous(
                    this="ELEMENT_AT", expressions=[_SUMS.copy(), exp.Literal.number(number)]
                )
                yield self._cell(first, exp.Literal.string(variable), none, total)

    def _cell(self, category: int, other: exp.Expr, other_category: exp.Expr, value: exp.Expr) -> exp.Expr:
        values = (
            exp.Literal.string(self.covariance.categories[category][0]),
            exp.column(f"{_CATEGORY}_{category + 1}"),
            other,
            other_category,
            as_type(value, self._value_type.text),
        )
        return _struct(dict(zip(_FIELDS, values, strict=True)))

    def _by_block(self) -> exp.Select:
        """Counts and sums by the keys and the categories of each block, over one pass."""
        categories = [exp.column(f"{_CATEGORY}_{n + 1}") for n in range(len(self.covariance.categories))]
        sets = [exp.Tuple(expressions=[*self._key_names, *(categories[n] for n in b)]) for b in self._blocks]
        sums = [self._sums().as_(_TOTALS)] if self._number else []
        counted = (
            exp.Count(this=exp.Star()) if self.covariance.weight is None else exp.Sum(this=exp.column("w"))
        )
        query = exp.select(*self._key_names, *categories, counted.as_("n"), *sums)
        grouped = exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)])
        query.set("group", grouped)
        return query.from_(self._rows().subquery("rows_that_count"))

    def _sums(self) -> exp.Expr:
        """The sum of each continuous variable, as those of a covariance that has no products."""
        variables = (exp.column(f"s_{n}").as_(f"s_{n}") for n in range(1, self._number + 1))
        degree = exp.Anonymous(this=DEGREE, expressions=[exp.Literal.number(1)])
        return exp.Anonymous(this=COVARIANCE, expressions=[*variables, degree])

    def _rows(self) -> exp.Select:
        """The rows that count: keys, categories as strings, what is added up, and the weight."""
        shown = dict(zip((k.name for k in self._key_names), (k.copy() for k in self.found.keys), strict=True))
        for number, (_, category) in enumerate(self.covariance.categories, start=1):
            shown[f"{_CATEGORY}_{number}"] = as_type(category.copy(), "string")
        weight = self.covariance.weight
        weights = [] if weight is None else [(weight, self.found.types[-1])]
        for number, variable in enumerate(self.covariance.variables):
            shown[f"s_{number + 1}"] = product([(variable, self.found.types[number]), *weights])
        if weights:
            shown["w"] = product(weights)
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
