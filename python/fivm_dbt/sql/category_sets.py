"""A covariance with categorical variables as one aggregate: moments by the keys, by category and by pair of categories.

It is written where its numbers are few. ``fivm_covariance(x, fivm_categorical(k), fivm_categorical(l)) as m`` with
``group by g`` is the same as::

    select g, struct(coalesce(totals.count, 0), ..., cells) as m
    from (select g, max(own) as totals, sort_array(collect_list(cell)) as cells
          from (select g, case when set = 3 then totals end as own,
                       explode_outer(case when k is not null and l is not null then array(<its count>) ... end) as cell
                from (select g, k, l, grouping_id() as set,
                             fivm_covariance(x, fivm_present(k), fivm_present(l)) as totals
                      ... group by grouping sets ((g), (g, k), (g, l), (g, k, l))))
          group by g)
"""

from __future__ import annotations

from itertools import combinations

from sqlglot import exp

from fivm_dbt.ir.scalar import identifier
from fivm_dbt.rings.covariances import monomials, zero_moments
from fivm_dbt.sql.category_call import CELL, CELLS, TOTALS, CategoryCall, struct

_SET, _OWN = "fivm_set", "own"
_FEW = 512
"""So many numbers the groups by all blocks of categories may have."""


class OneAggregate(CategoryCall):
    """The SELECT over one GROUP BY of grouping sets."""

    @property
    def _blocks(self) -> list[tuple[int, ...]]:
        """What categories are grouped by together: none, each, and each pair."""
        numbers = range(len(self.covariance.categories))
        return [(), *((number,) for number in numbers), *combinations(numbers, 2)]

    @property
    def is_few(self) -> bool:
        """Whether one aggregate has moments, categories and pairs: where these are few, and nothing else is grouped."""
        if self.covariance.weight is not None or self.node.args.get("having") is not None:
            return False
        others = [item.unalias() for item in self.node.expressions if item.alias_or_name != self.name]
        are_keys = all(item in self.found.keys for item in others)
        categories = {*self._categories_as_text}
        # A set has each expression once, so that a category that is NULL is not in the set.
        are_others = len(categories) == len(self.covariance.categories) and categories.isdisjoint(
            self.found.keys
        )
        are_others = are_others and all(c not in self.found.keys for _, c in self.covariance.categories)
        numbers = len(self._blocks) * len(monomials(self._number, 2))
        return are_keys and are_others and numbers <= _FEW

    def select(self) -> exp.Select:
        """All of it from one GROUP BY of grouping sets. The moments of a group are in one row, the greatest of one."""
        every = exp.Literal.number(2 ** len(self.covariance.categories) - 1)
        is_own = exp.EQ(this=exp.column(_SET), expression=every)
        own = exp.Case(ifs=[exp.If(this=is_own, true=exp.column(TOTALS))])
        cells = exp.Anonymous(this="EXPLODE_OUTER", expressions=[self._cells_of_block()])
        rows = exp.select(*self._key_names, exp.alias_(own, _OWN), exp.alias_(cells, CELL))
        rows = rows.from_(self._by_block().subquery("by_block"))
        listed = exp.Anonymous(this="COLLECT_LIST", expressions=[exp.column(CELL)])
        ordered = exp.Anonymous(this="SORT_ARRAY", expressions=[listed])
        of_all = exp.alias_(exp.Max(this=exp.column(_OWN)), TOTALS)
        query = exp.select(*self._key_names, of_all, exp.alias_(ordered, CELLS))
        query = query.from_(rows.subquery("cells_of_all"))
        if self._key_names:
            query = query.group_by(*self._key_names)
        shown = exp.select(*(self._shown(item) for item in self.node.expressions))
        return self._with_names(shown.from_(query.subquery("a")))

    def _by_block(self) -> exp.Select:
        """The moments of each block: of the keys, with a category, and with a pair of them."""
        query = self._with_categories_present()
        call = next(i.unalias() for i in query.expressions if i.alias_or_name == self.name)
        keys, categories = self.found.keys, self._categories_as_text
        sets = [
            exp.Tuple(expressions=[k.copy() for k in (*keys, *(categories[n] for n in block))])
            for block in self._blocks
        ]
        shown = (exp.alias_(c, n.name) for c, n in zip(categories, self._category_columns, strict=True))
        of_set = exp.alias_(exp.Anonymous(this="GROUPING_ID"), _SET)
        query.set("expressions", [*self._keys_shown, *shown, of_set, exp.alias_(call, TOTALS)])
        query.set("group", exp.Group(grouping_sets=[exp.GroupingSets(expressions=sets)]))
        return query

    def _cells_of_block(self) -> exp.Expr:
        """The cells of a group of a block; NULL of one without a row that counts."""
        counted = exp.Dot(this=exp.column(TOTALS), expression=identifier("count"))
        blocks = [exp.If(this=exp.EQ(this=counted, expression=exp.Literal.number(0)), true=exp.Null())]
        for block in reversed(self._blocks[1:]):
            known = [
                exp.Not(this=exp.Is(this=self._category_columns[n], expression=exp.Null())) for n in block
            ]
            first, last = block[0], block[-1]
            name = exp.Literal.string(self.covariance.categories[first][0])
            other = exp.Literal.string(self.covariance.categories[last][0])
            pair = (name, self._category_columns[first], other, self._category_columns[last])
            cells = [self._cell(*pair, counted.copy())]
            if len(block) == 1:
                cells += self._sums_by(first)
            blocks.append(exp.If(this=exp.and_(*known), true=exp.Array(expressions=cells)))
        return exp.Case(ifs=blocks)

    def _shown(self, item: exp.Expr) -> exp.Expr:
        """An item of the SELECT over the groups: a key, or the struct. Over no rows Spark has no set: zeros."""
        name = item.alias_or_name
        if name != self.name:
            place = self.found.keys.index(item.unalias())
            return exp.alias_(self._key_names[place], name, quoted=not name.isidentifier())
        fields: dict[str, exp.Expr] = {}
        for field in zero_moments(self.covariance.names, self.found.types).expressions:
            known = exp.Dot(this=exp.column(TOTALS), expression=identifier(field.name))
            fields[field.name] = exp.Coalesce(this=known, expressions=[field.expression])
        shown = struct({**fields, "cells": exp.column(CELLS)})
        return exp.alias_(shown, name, quoted=not name.isidentifier())
