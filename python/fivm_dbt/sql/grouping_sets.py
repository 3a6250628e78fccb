"""ROLLUP, CUBE and GROUPING SETS become one aggregate over rows that are repeated for each set.

Row r of R becomes (r, 0), (r, 1), ..., one for each grouping set; the group key is the number of the set, and each
grouping expression where it belongs to that set, NULL where it does not. Repeating rows is linear, so the totals of all
levels are maintained like any other aggregate, in one pass, and a NULL of the data is never taken for a total.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import chain, combinations, product

from sqlglot import exp

from fivm_dbt.catalog.types import INT
from fivm_dbt.ir.node import Node
from fivm_dbt.ir.nodes import Explode
from fivm_dbt.ir.scalar import Scalar, as_type
from fivm_dbt.sql.expressions import unparenthesized

SET_NUMBER = "set_number"

Sets = list[tuple[exp.Expr, ...]]


@dataclass(frozen=True)
class GroupingSets:
    """Grouping expressions in their order, and for each set which of them are in it."""

    expressions: tuple[exp.Expr, ...]
    sets: tuple[frozenset[int], ...]

    def merged(self, values: Sequence[Scalar]) -> tuple[GroupingSets, list[int]]:
        """The sets over the expressions with different ``values``, and the positions of these.

        ``CUBE(r.k, k)`` spells one column twice: a set that has either has it, and GROUPING_ID has one bit for it.
        """
        firsts = [i for i, value in enumerate(values) if values.index(value) == i]
        new = [firsts.index(values.index(value)) for value in values]
        expressions = tuple(self.expressions[i] for i in firsts)
        return GroupingSets(expressions, tuple(frozenset(new[i] for i in s) for s in self.sets)), firsts

    def number(self, alias: str) -> Scalar:
        """The number of the set that a row stands for."""
        return Scalar.column(alias, SET_NUMBER)

    def where_grouped(self, position: int, value: exp.Expr, number: exp.Expr) -> exp.Expr:
        """``value`` in the sets that group by the expression at ``position``, NULL in the others."""
        there = [i for i, members in enumerate(self.sets) if position in members]
        if len(there) == len(self.sets):
            return value
        if not there:
            return exp.Case(ifs=[exp.If(this=exp.Boolean(this=False), true=value)])
        among = exp.In(this=number.copy(), expressions=[exp.Literal.number(i) for i in there])
        return exp.Case(ifs=[exp.If(this=among, true=value)])

    def grouping(self, positions: list[int], number: exp.Expr, type_: str) -> exp.Expr:
        """GROUPING and GROUPING_ID: a bit per expression, the first the highest, set where it is not grouped by."""

        def bits(members: frozenset[int]) -> int:
            return reduce(lambda seen, p: 2 * seen + (p not in members), positions, 0)

        branches = [
            exp.If(
                this=exp.EQ(this=number.copy(), expression=exp.Literal.number(i)),
                true=exp.Literal.number(bits(members)),
            )
            for i, members in enumerate(self.sets)
        ]
        return as_type(exp.Case(ifs=branches), type_)


def read_grouping_sets(group: exp.Group) -> GroupingSets | None:
    """The grouping sets of a GROUP BY, None of a plain one."""
    explicit = group.args.get("grouping_sets")
    with_ = (group.args.get("rollup") or []) + (group.args.get("cube") or [])
    items = [unparenthesized(e) for e in group.expressions]
    if explicit:
        sets = list(chain.from_iterable(_sets_of(g) for g in explicit))
    elif with_:
        whole: Sets = [(item,) for item in items]
        sets = _rollup(whole) if isinstance(with_[0], exp.Rollup) else _cube(whole)
    elif any(isinstance(item, (exp.Rollup, exp.Cube, exp.GroupingSets)) for item in items):
        sets = [tuple(chain.from_iterable(choice)) for choice in product(*(_sets_of(i) for i in items))]
    else:
        return None
    given = items if explicit or with_ else []
    expressions: list[exp.Expr] = []
    for expression in chain(given, *sets, *(_all_of(i) for i in items)):
        if expression not in expressions:
            expressions.append(expression)
    if not given:
        expressions = _in_written_order(items)
    numbered = tuple(frozenset(expressions.index(e) for e in members) for members in sets)
    return GroupingSets(tuple(expressions), numbered)


def _in_written_order(items: list[exp.Expr]) -> list[exp.Expr]:
    found: list[exp.Expr] = []
    for item in items:
        for expression in _all_of(item):
            if expression not in found:
                found.append(expression)
    return found


def _all_of(item: exp.Expr) -> list[exp.Expr]:
    if isinstance(item, (exp.Rollup, exp.Cube, exp.GroupingSets)):
        return [e for part in item.expressions for e in _all_of(unparenthesized(part))]
    if isinstance(item, exp.Tuple):
        return [unparenthesized(e) for e in item.expressions]
    return [item]


def _sets_of(item: exp.Expr) -> Sets:
    parts = [_members(e) for e in item.expressions] if not isinstance(item, exp.Tuple) else []
    if isinstance(item, exp.Rollup):
        return _rollup(parts)
    if isinstance(item, exp.Cube):
        return _cube(parts)
    if isinstance(item, exp.GroupingSets):
        nested = (exp.Rollup, exp.Cube, exp.GroupingSets)
        inner = [unparenthesized(e) for e in item.expressions]
        return [s for e in inner for s in (_sets_of(e) if isinstance(e, nested) else [_members(e)])]
    return [_members(item)]


def _members(part: exp.Expr) -> tuple[exp.Expr, ...]:
    return tuple(_all_of(unparenthesized(part)))


def _rollup(parts: Sets) -> Sets:
    return [tuple(chain.from_iterable(parts[:n])) for n in range(len(parts), -1, -1)]


def _cube(parts: Sets) -> Sets:
    sizes = range(len(parts), -1, -1)
    return [tuple(chain.from_iterable(choice)) for n in sizes for choice in combinations(parts, n)]


def repeat_for_sets(relation: Node, alias: str, sets: GroupingSets) -> Explode:
    """Each row once for every set."""
    numbers = ", ".join(str(i) for i in range(len(sets.sets)))
    return Explode(relation, alias, Scalar.parse(f"EXPLODE(ARRAY({numbers}))"), ((SET_NUMBER, INT),))
