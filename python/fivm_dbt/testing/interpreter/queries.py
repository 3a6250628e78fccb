"""Queries have CTEs, set operations and VALUES; ORDER BY and LIMIT leave some of their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import compile_expression, constant_of, converted, unified
from fivm_dbt.testing.interpreter.scope import Column, Context, Env, Expression, Relation, column_at
from fivm_dbt.testing.interpreter.types import wider
from fivm_dbt.testing.interpreter.values import Row, Value, row_key, sorted_rows


@dataclass(frozen=True)
class Named:
    """A relation with a name, and at how many contexts around it it was read."""

    relation: Relation
    level: int


Relations = dict[str, Named]
Cell = Callable[[Env], Value]


SELECTS: list[Callable[[exp.Select, Context | None, Relations], Relation]] = []
"""What reads a SELECT registers itself here: it reads queries in FROM, as these read it."""


def level_of(context: Context | None) -> int:
    level = 0
    while context is not None:
        level, context = level + 1, context.parent
    return level


def relation_at(named: Named, outer: Context | None) -> Relation:
    """A named relation as it is read further in."""
    up = level_of(outer) - named.level

    def rows(env: Env | None) -> list[Row]:
        for _ in range(up):
            assert env is not None
            env = env.parent
        return named.relation.rows(env)

    return Relation(named.relation.columns, rows)


def compile_query(node: exp.Expr, outer: Context | None, relations: Relations) -> Relation:
    """The relation that a query is, in the context around it."""
    with_ = node.args.get("with_")
    if with_ is not None:
        relations = _with(with_, outer, relations)
    if isinstance(node, exp.Subquery):
        found = compile_query(node.this, outer, relations)
        return _limited(node, found, outer, relations)
    if isinstance(node, exp.Select):
        return SELECTS[0](node, outer, relations)
    if isinstance(node, exp.SetOperation):
        return _limited(node, _set_operation(node, outer, relations), outer, relations)
    if isinstance(node, exp.Values):
        return _limited(node, compile_values(node, outer, relations), outer, relations)
    if isinstance(node, (exp.Table, exp.Paren)):
        raise NotUnderstood(type(node).__name__, node)
    raise NotUnderstood(type(node).__name__, node)


def _with(node: exp.With, outer: Context | None, relations: Relations) -> Relations:
    known = dict(relations)
    for cte in node.expressions:
        name = cte.alias.lower()
        names = [c.name for c in cte.args["alias"].args.get("columns") or []]
        is_own = any(t.name.lower() == name and not t.db for t in cte.this.find_all(exp.Table))
        if node.args.get("recursive") and is_own:
            found = _recursive(cte, name, names, outer, known)
        else:
            found = renamed(compile_query(cte.this, outer, known), names, (name,))
        known[name] = Named(found, level_of(outer))
    return known


def _recursive(
    cte: exp.CTE, name: str, names: list[str], outer: Context | None, relations: Relations
) -> Relation:
    """Rows of the anchor, then what the other branch makes of the rows of the round before, until there are none."""
    union = cte.this
    if not isinstance(union, exp.Union) or union.args.get("distinct") or union.args.get("limit"):
        raise NotUnderstood("recursion without UNION ALL", cte)
    anchor = renamed(compile_query(union.this, outer, relations), names, (name,))
    last: list[list[Row]] = [[]]
    own = Named(Relation(anchor.columns, lambda env: last[0]), level_of(outer))
    step = compile_query(union.expression, outer, {**relations, name: own})
    if [c.type for c in step.columns] != [c.type for c in anchor.columns]:
        raise NotUnderstood("recursion that changes types", cte)

    def rows(env: Env | None) -> list[Row]:
        found = last[0] = anchor.rows(env)
        for _ in range(100):
            last[0] = step.rows(env)
            if not last[0]:
                return found
            found = found + last[0]
        raise NotUnderstood("recursion of more than 100 rounds", cte)

    return Relation(anchor.columns, rows)


def renamed(relation: Relation, names: list[str], qualifiers: tuple[str, ...]) -> Relation:
    """A relation under an alias, of which only columns that are shown remain, perhaps under other names."""
    shown = [i for i, c in enumerate(relation.columns) if not c.is_hidden]
    if names and len(names) != len(shown):
        raise NotUnderstood(f"{len(names)} names for {len(shown)} columns")
    columns = tuple(
        replace(
            relation.columns[i], name=names[n] if names else relation.columns[i].name, qualifiers=qualifiers
        )
        for n, i in enumerate(shown)
    )
    if len(shown) == len(relation.columns):
        return Relation(columns, relation.rows)
    return Relation(columns, lambda env: [tuple(row[i] for i in shown) for row in relation.rows(env)])


def compile_values(node: exp.Values, outer: Context | None, relations: Relations) -> Relation:
    """VALUES: rows of constants, each column of the type that all its values have in common."""
    context = Context((), outer, relations)
    lines = [r.expressions if isinstance(r, exp.Tuple) else [r.unnest()] for r in node.expressions]
    cells = [[compile_expression(n, context) for n in line] for line in lines]
    if len({len(line) for line in cells}) != 1:
        raise NotUnderstood("VALUES of different lengths", node)
    columns = [unified([line[i] for line in cells], node) for i in range(len(cells[0]))]
    shown = tuple(Column(f"col{i}", t) for i, (t, _) in enumerate(columns, start=1))

    def rows(env: Env | None) -> list[Row]:
        inside = Env((), env)
        return [tuple(items[n].of(inside) for _, items in columns) for n in range(len(cells))]

    return Relation(shown, rows)


def _set_operation(node: exp.SetOperation, outer: Context | None, relations: Relations) -> Relation:
    for argument in ("by_name", "side", "kind", "on"):
        if node.args.get(argument):
            raise NotUnderstood(f"{type(node).__name__} with {argument}", node)
    left, right = (compile_query(n, outer, relations) for n in (node.this, node.expression))
    left, right = renamed(left, [], ()), renamed(right, [], ())
    if len(left.columns) != len(right.columns):
        raise NotUnderstood("set operation of different widths", node)
    columns: list[Column] = []
    sides: tuple[list[Cell], list[Cell]] = ([], [])
    for index, (a, b) in enumerate(zip(left.columns, right.columns, strict=True)):
        common = wider(a.type, b.type)
        if common is None:
            raise NotUnderstood(f"set operation of {a.type} and {b.type}", node)
        columns.append(Column(a.name, common))
        for side, column in zip(sides, (a, b), strict=True):
            side.append(converted(column_at(index, column.type), common).of)

    def rows_of(relation: Relation, side: list[Cell]) -> Callable[[Env | None], list[Row]]:
        return lambda env: [tuple(of(Env(row, None)) for of in side) for row in relation.rows(env)]

    both = rows_of(left, sides[0]), rows_of(right, sides[1])
    is_distinct = node.args.get("distinct") is not False
    return Relation(tuple(columns), lambda env: _combined(node, is_distinct, both[0](env), both[1](env)))


def _combined(node: exp.SetOperation, is_distinct: bool, left: list[Row], right: list[Row]) -> list[Row]:
    if isinstance(node, exp.Union):
        return distinct(left + right) if is_distinct else left + right
    there = Counter(row_key(row) for row in right)
    found = []
    for row in distinct(left) if is_distinct else left:
        key = row_key(row)
        is_there = there[key] > 0
        if is_there and not is_distinct:
            there[key] -= 1
        if is_there == isinstance(node, exp.Intersect):
            found.append(row)
    return found


def distinct(rows: list[Row]) -> list[Row]:
    """Of equal rows the first."""
    return list({row_key(row): row for row in reversed(rows)}.values())[::-1]


def _limited(node: exp.Expr, relation: Relation, outer: Context | None, relations: Relations) -> Relation:
    """ORDER BY by the columns of the result, LIMIT, OFFSET."""
    order = node.args.get("order")
    sort = None
    if order is not None:
        context = Context(relation.columns, outer, relations)
        terms = [
            order_term(o, [column_at(i, c.type) for i, c in enumerate(relation.columns)])
            for o in order.expressions
        ]
        keys = [t if not isinstance(t, exp.Expr) else compile_expression(t, context) for t in terms]
        if any(k.type.name == "map" for k in keys):
            raise NotUnderstood("order of maps", node)
        directions = order_directions(order)

        def sort(rows: list[Row], env: Env | None) -> list[Row]:
            return sorted_rows(rows, directions, lambda row: [k.of(Env(row, env)) for k in keys])

    cut = cut_of(node, relations)

    def rows(env: Env | None) -> list[Row]:
        found = relation.rows(env)
        return cut(sort(found, env) if sort is not None else found)

    return Relation(relation.columns, rows) if sort is not None or cut is not as_is else relation


def order_term(node: exp.Expr, shown: list[Expression]) -> Expression | exp.Expr:
    """What is ordered by: a shown column by its position, or the expression."""
    term: exp.Expr = node.this
    if isinstance(term, exp.Literal) and not term.args.get("is_string"):
        return shown[int(term.name) - 1]
    return term


def order_directions(order: exp.Expr) -> list[tuple[int, bool, bool]]:
    return [
        (i, bool(o.args.get("desc")), bool(o.args.get("nulls_first")))
        for i, o in enumerate(order.expressions)
    ]


def as_is(rows: list[Row]) -> list[Row]:
    return rows


def _more(node: exp.Expr) -> bool:
    """Whether a clause has more than its number."""
    return any(value for name, value in node.args.items() if name not in ("this", "expression"))


def cut_of(node: exp.Expr, relations: Relations) -> Callable[[list[Row]], list[Row]]:
    """What LIMIT and OFFSET leave."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    if limit is None and offset is None:
        return as_is
    if limit is not None and (not isinstance(limit, exp.Limit) or _more(limit)):
        raise NotUnderstood("LIMIT of another kind", node)
    context = Context((), None, relations)

    def number(part: exp.Expr) -> int:
        value = constant_of(compile_expression(part.expression, context), part)
        if not isinstance(value, int):
            raise NotUnderstood("LIMIT that is no number", part)
        return value

    start = number(offset) if offset is not None else 0
    end = start + number(limit) if limit is not None else None
    return lambda rows: rows[start:end]
