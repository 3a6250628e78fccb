"""SELECT is evaluated clause after clause, in the order in which they mean something."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.testing.interpreter.aggregates import has_aggregate
from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import boolean_of, compile_expression
from fivm_dbt.testing.interpreter.from_clause import compile_from
from fivm_dbt.testing.interpreter.generators import Generator, generator_of
from fivm_dbt.testing.interpreter.groups import Groups, sets_of
from fivm_dbt.testing.interpreter.queries import (
    SELECTS,
    Relations,
    as_is,
    cut_of,
    distinct,
    order_directions,
    order_term,
)
from fivm_dbt.testing.interpreter.scope import Column, Context, Env, Expression, Relation, column_at
from fivm_dbt.testing.interpreter.time_windows import with_time_windows
from fivm_dbt.testing.interpreter.values import Row, sorted_rows
from fivm_dbt.testing.interpreter.windows import Windows

_CLAUSES = frozenset(
    "with_ expressions from_ joins laterals where group having windows qualify distinct order limit offset kind "
    "operation_modifiers hint sort cluster distribute".split()
)
"""What a SELECT may have. Hints and the distribution of rows over tasks mean nothing for a bag."""


@dataclass(frozen=True)
class Item:
    """What a SELECT shows: its name, and the expression, or the place of a column that a star stands for."""

    name: str
    node: exp.Expr | None = None
    index: int = -1


def compile_select(node: exp.Select, outer: Context | None, relations: Relations) -> Relation:
    """The relation that a SELECT is."""
    for clause, value in node.args.items():
        if value and clause not in _CLAUSES:
            raise NotUnderstood(f"SELECT with {clause}", node)
    if node.args.get("kind"):
        raise NotUnderstood(f"SELECT {node.args['kind']}", node)
    source = compile_from(node, outer, relations)
    node, source = with_time_windows(node, source, outer, relations)
    return _Select(node, source, outer, relations).relation()


SELECTS.append(compile_select)


class _Select:
    """One SELECT while it is read."""

    def __init__(
        self, node: exp.Select, source: Relation, outer: Context | None, relations: Relations
    ) -> None:
        self.node, self.source, self.outer, self.relations = node, source, outer, relations
        self.inner = Context(source.columns, outer, relations)
        self.items = self._items()
        where = node.args.get("where")
        self.where = None if where is None else boolean_of(where.this, self.inner).of
        self.windows = Windows([])
        named = {w.name.lower(): w for w in node.args.get("windows") or []}
        self.groups = self._groups()
        self.place = Context(
            source.columns, outer, relations, groups=self.groups, windows=self.windows, named_windows=named
        )

    def _items(self) -> list[Item]:
        found: list[Item] = []
        for node in self.node.expressions:
            star = node if isinstance(node, exp.Star) else node.this if isinstance(node, exp.Column) else None
            if isinstance(star, exp.Star):
                found += self._star(node, star)
            else:
                found.append(Item(_name(node), node))
        return found

    def _star(self, node: exp.Expr, star: exp.Star) -> list[Item]:
        if any(star.args.get(a) for a in ("replace", "rename")) or star.args.get("except"):
            raise NotUnderstood("a star with replacements", node)
        qualifiers = tuple(node.args[p].name.lower() for p in ("catalog", "db", "table") if node.args.get(p))
        ends = len(qualifiers)
        shown = [
            i
            for i, c in enumerate(self.source.columns)
            if (tuple(q.lower() for q in c.qualifiers[-ends:]) == qualifiers if ends else not c.is_hidden)
        ]
        if not shown:
            raise NotUnderstood("a star over nothing", node)
        left_out = {self._left_out(column, shown) for column in star.args.get("except_") or []}
        return [Item(self.source.columns[i].name, None, i) for i in shown if i not in left_out]

    def _left_out(self, column: exp.Expr, shown: list[int]) -> int:
        """The column of a star that EXCEPT names."""
        parts = [column.args[p].name for p in ("db", "table", "this") if column.args.get(p)]
        found = Context(tuple(self.source.columns[i] for i in shown)).find(parts, column)
        if found is None or found.fields:
            raise NotUnderstood("EXCEPT of an unknown column", column)
        return shown[found.index]

    def _groups(self) -> Groups | None:
        group, having = self.node.args.get("group"), self.node.args.get("having")
        nodes = [i.node for i in self.items if i.node is not None]
        if group is None:
            order = self.node.args.get("order")
            more = [n for n in (having, order, self.node.args.get("qualify")) if n is not None]
            if having is None and not any(has_aggregate(n) for n in [*nodes, *more]):
                return None
            return Groups(self.inner, [], None)
        if group.args.get("totals") or (group.args.get("all") and group.expressions):
            raise NotUnderstood("GROUP BY of another kind", group)
        if group.args.get("all"):
            every = [self._node_of(i) for i in self.items if i.node is None or not has_aggregate(i.node)]
            return Groups(self.inner, [_unaliased(n) for n in every], None)
        terms: list[exp.Expr] = []
        sets = sets_of(group, terms)
        return Groups(self.inner, [self._term(t) for t in terms], sets)

    def _node_of(self, item: Item) -> exp.Expr:
        if item.node is not None:
            return item.node
        column = self.source.columns[item.index]
        names = [*column.qualifiers[-1:], column.name]
        identifiers = [exp.to_identifier(n, quoted=True) for n in names]
        return exp.Column(this=identifiers[-1], table=identifiers[0] if len(identifiers) > 1 else None)

    def _term(self, node: exp.Expr) -> exp.Expr:
        """What is grouped by: an item by its position or, where there is no such column, by its alias."""
        if isinstance(node, exp.Literal) and not node.args.get("is_string"):
            return _unaliased(self._node_of(self.items[int(node.name) - 1]))
        if isinstance(node, exp.Column) and not node.table and self.inner.find([node.name], node) is None:
            for item in self.items:
                if item.name.lower() == node.name.lower() and item.node is not None:
                    return _unaliased(item.node)
        return node

    def relation(self) -> Relation:
        generator, shown, columns = self._shown()
        having = self._condition("having")
        qualify = self._condition("qualify")
        is_distinct = self.node.args.get("distinct")
        if is_distinct is not None and is_distinct.args.get("on") is not None:
            raise NotUnderstood("DISTINCT ON", is_distinct)
        order = self._order(columns, shown)
        cut = cut_of(self.node, self.relations)

        def rows(outer: Env | None) -> list[Row]:
            envs = [Env(row, outer) for row in self.source.rows(outer)]
            if self.where is not None:
                envs = [env for env in envs if self.where(env) is True]
            if self.groups is not None:
                envs = self.groups.of(envs, outer)
            if having is not None:
                envs = [env for env in envs if having(env) is True]
            self.windows.compute(envs)
            if qualify is not None:
                envs = [env for env in envs if qualify(env) is True]
            pairs = [(env, row) for env in envs for row in _projected(env, shown, generator)]
            if is_distinct is not None:
                pairs = [(Env((), outer), row) for row in distinct([row for _, row in pairs])]
            return cut(order(pairs))

        return Relation(columns, rows)

    def _shown(self) -> tuple[Generator | None, list[Expression | Generator], tuple[Column, ...]]:
        generator: Generator | None = None
        shown: list[Expression | Generator] = []
        columns: list[Column] = []
        for item in self.items:
            if item.node is None:
                found = (
                    compile_expression(self._node_of(item), self.place)
                    if self.groups is not None
                    else column_at(item.index, self.source.columns[item.index].type)
                )
            else:
                made = generator_of(_unaliased(item.node), self.place)
                if made is not None:
                    if generator is not None:
                        raise NotUnderstood("two generators in one SELECT", item.node)
                    generator = made
                    names = _aliases(item.node) or [c.name for c in made.columns]
                    columns += [Column(n, c.type) for n, c in zip(names, made.columns, strict=True)]
                    shown.append(made)
                    continue
                found = compile_expression(item.node, self.place)
                if isinstance(item.node, exp.Alias):
                    self.place.aliases.setdefault(item.name.lower(), item.node.this)
            shown.append(found)
            columns.append(Column(item.name, found.type))
        return generator, shown, tuple(columns)

    def _condition(self, clause: str) -> Callable[[Env], object] | None:
        node = self.node.args.get(clause)
        return None if node is None else boolean_of(node.this, self.place).of

    def _order(
        self, columns: tuple[Column, ...], shown: list[Expression | Generator]
    ) -> Callable[[list[tuple[Env, Row]]], list[Row]]:
        """ORDER BY: by what is shown, and by what is read where nothing of that name is shown."""
        order = self.node.args.get("order")
        if order is None or (cut_of(self.node, self.relations) is as_is):
            return lambda pairs: [row for _, row in pairs]
        above = Context(columns, self.place, self.relations, is_lambda=True)
        places = [column_at(i, c.type) for i, c in enumerate(columns)]
        keys = []
        for ordered in order.expressions:
            term = order_term(ordered, places)
            keys.append(term if not isinstance(term, exp.Expr) else compile_expression(term, above))
        directions = order_directions(order)

        def values(pair: tuple[Env, Row]) -> list[object]:
            env = Env(pair[1], pair[0])
            return [k.of(env) for k in keys]

        return lambda pairs: [row for _, row in sorted_rows(pairs, directions, values)]


def _projected(env: Env, shown: list[Expression | Generator], generator: Generator | None) -> list[Row]:
    lines = [()] if generator is None else generator.rows(env)
    found = []
    for line in lines:
        row: list[object] = []
        for item in shown:
            if isinstance(item, Generator):
                row += line
            else:
                row.append(item.of(env))
        found.append(tuple(row))
    return found


def _unaliased(node: exp.Expr) -> exp.Expr:
    return node.this if isinstance(node, (exp.Alias, exp.Aliases)) else node


def _aliases(node: exp.Expr) -> list[str]:
    if isinstance(node, exp.Aliases):
        return [n.name for n in node.expressions]
    return [node.alias] if isinstance(node, exp.Alias) else []


def _name(node: exp.Expr) -> str:
    if isinstance(node, exp.Alias):
        return str(node.alias)
    if isinstance(node, exp.Column):
        return str(node.name)
    if isinstance(node, exp.Dot):
        return str(node.expression.name)
    return node.sql(dialect="spark")
