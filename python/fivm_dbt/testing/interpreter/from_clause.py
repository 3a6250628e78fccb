"""FROM has relations, joins of all kinds, LATERAL, and views of generators."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from fivm_dbt.testing.interpreter.comparisons import comparable
from fivm_dbt.testing.interpreter.errors import NotUnderstood
from fivm_dbt.testing.interpreter.expressions import boolean_of, compile_expression, constant_of, converted
from fivm_dbt.testing.interpreter.generators import generator_of
from fivm_dbt.testing.interpreter.pivots import pivoted
from fivm_dbt.testing.interpreter.queries import (
    Relations,
    compile_query,
    compile_values,
    relation_at,
    renamed,
)
from fivm_dbt.testing.interpreter.scope import Column, Context, Env, Expression, Relation, column_at
from fivm_dbt.testing.interpreter.types import BIGINT, wider
from fivm_dbt.testing.interpreter.values import Row, equal

ONE_ROW = Relation((), lambda env: [()])


def compile_from(node: exp.Select, outer: Context | None, relations: Relations) -> Relation:
    """The rows of FROM with all that stands behind it."""
    from_ = node.args.get("from_")
    found = ONE_ROW if from_ is None else _item(from_.this, outer, relations)
    for join in node.args.get("joins") or []:
        found = _joined(found, join, outer, relations)
    for lateral in node.args.get("laterals") or []:
        found = _viewed(found, lateral, outer, relations)
    return found


def _item(node: exp.Expr, outer: Context | None, relations: Relations) -> Relation:
    """One relation of FROM under its alias."""
    for argument in (
        "sample",
        "match_recognize",
        "when",
        "version",
        "hints",
        "rows_from",
        "changes",
        "partition",
    ):
        if node.args.get(argument):
            raise NotUnderstood(f"{argument} in FROM", node)
    if isinstance(node, exp.Table):
        found = _table(node, outer, relations)
    elif (
        isinstance(node, exp.Subquery) and isinstance(node.this, (exp.Table, exp.Subquery)) and not node.alias
    ):
        found = _item(node.this, outer, relations)
    elif isinstance(node, exp.Subquery):
        found = _aliased(compile_query(_bare(node), outer, relations), node)
    elif isinstance(node, exp.Values):
        found = _aliased(compile_values(node, outer, relations), node)
    elif isinstance(node, exp.Lateral):
        found = _lateral(node, outer, relations)
    else:
        raise NotUnderstood(f"{type(node).__name__} in FROM", node)
    for pivot in node.args.get("pivots") or []:
        found = pivoted(found, pivot, outer, relations)
    for join in node.args.get("joins") or []:
        found = _joined(found, join, outer, relations)
    for lateral in node.args.get("laterals") or []:
        found = _viewed(found, lateral, outer, relations)
    return found


def _bare(node: exp.Subquery) -> exp.Expr:
    """A subquery of FROM without its alias and what follows it."""
    copy = node.copy()
    for argument in ("alias", "pivots", "joins", "laterals"):
        copy.set(argument, None)
    return copy


def _aliased(found: Relation, node: exp.Expr) -> Relation:
    alias = node.args.get("alias")
    if alias is None:
        return renamed(found, [], ())
    names = [c.name for c in alias.args.get("columns") or []]
    return renamed(found, names, (alias.name,) if alias.name else ())


def _table(node: exp.Table, outer: Context | None, relations: Relations) -> Relation:
    if isinstance(node.this, exp.Anonymous):
        return _aliased(_function(node.this, outer, relations), node)
    parts = [p.name for p in (node.args.get("catalog"), node.args.get("db"), node.this) if p]
    named = relations.get(".".join(parts).lower())
    if named is None:
        raise NotUnderstood(f"unknown relation {'.'.join(parts)}", node)
    found = relation_at(named, outer)
    return (
        _aliased(found, node)
        if node.args.get("alias")
        else renamed(found, [], tuple(p.lower() for p in parts))
    )


def _function(node: exp.Anonymous, outer: Context | None, relations: Relations) -> Relation:
    """A table function: RANGE, or a generator over what does not stand beside it."""
    context = Context((), outer, relations)
    if node.this == "RANGE":
        numbers = [constant_of(compile_expression(a, context), a) for a in node.expressions[:3]]
        span = range(*numbers)
        return Relation((Column("id", BIGINT),), lambda env: [(n,) for n in span])
    made = generator_of(node, context)
    if made is None:
        raise NotUnderstood(f"table function {node.this}", node)
    return Relation(made.columns, lambda env: made.rows(Env((), env)))


def _lateral(node: exp.Lateral, outer: Context | None, relations: Relations) -> Relation:
    if node.args.get("view") or node.args.get("cross_apply"):
        raise NotUnderstood("LATERAL of another kind", node)
    if isinstance(node.this, exp.Anonymous):
        return _aliased(_function(node.this, outer, relations), node)
    return _aliased(compile_query(node.this, outer, relations), node)


def _viewed(left: Relation, node: exp.Lateral, outer: Context | None, relations: Relations) -> Relation:
    """LATERAL VIEW: each row beside what the generator makes of it."""
    made = generator_of(node.this, Context(left.columns, outer, relations), bool(node.args.get("outer")))
    if made is None:
        raise NotUnderstood("LATERAL VIEW of no generator", node)
    alias = node.args.get("alias")
    names = [c.name for c in alias.args.get("columns") or []] if alias else []
    names = names or [c.name for c in made.columns]
    qualifiers = (alias.name,) if alias and alias.name else ()
    columns = tuple(Column(n, c.type, qualifiers) for n, c in zip(names, made.columns, strict=True))

    def rows(env: Env | None) -> list[Row]:
        return [(*row, *more) for row in left.rows(env) for more in made.rows(Env(row, env))]

    return Relation((*left.columns, *columns), rows)


def _joined(left: Relation, join: exp.Join, outer: Context | None, relations: Relations) -> Relation:
    for argument in ("hint", "global_", "match_condition", "expressions"):
        if join.args.get(argument):
            raise NotUnderstood(f"JOIN with {argument}", join)
    method, side = str(join.args.get("method") or "").upper(), str(join.args.get("side") or "").upper()
    kind = str(join.args.get("kind") or "").upper()
    if method not in ("", "NATURAL") or kind not in ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI"):
        raise NotUnderstood(f"{method} {side} {kind} JOIN", join)
    if isinstance(join.this, exp.Lateral):
        inside = Context(left.columns, outer, relations)
        right = _item(join.this, inside, relations)
        rights: Callable[[Row, Env | None], list[Row]] = lambda row, env: right.rows(Env(row, env))  # noqa: E731
        if side == "RIGHT" or side == "FULL":
            raise NotUnderstood(f"{side} JOIN LATERAL", join)
    else:
        right = _item(join.this, outer, relations)
        rights = lambda row, env: right.rows(env)  # noqa: E731
    both = (*left.columns, *right.columns)
    using = _using(join, method, left, right)
    matches = _test(join, using, left=left, right=right, outer=outer, relations=relations)
    if kind in ("SEMI", "ANTI"):
        wanted = kind == "SEMI"

        def half(env: Env | None) -> list[Row]:
            return [
                r for r in left.rows(env) if any(matches((*r, *s), env) for s in rights(r, env)) is wanted
            ]

        return _with_first(Relation(left.columns, half), [a for a, _ in using])
    rows = _rows(left, right, rights, matches, side)
    found = Relation(both, rows)
    return _merged(found, using, side, left, right) if using else found


def _rows(
    left: Relation,
    right: Relation,
    rights: Callable[[Row, Env | None], list[Row]],
    matches: Callable[[Row, Env | None], bool],
    side: str,
) -> Callable[[Env | None], list[Row]]:
    """Pairs that match; of an outer join also the rows that match nothing, beside NULLs."""
    nothing_left, nothing_right = (None,) * len(left.columns), (None,) * len(right.columns)

    def rows(env: Env | None) -> list[Row]:
        found, met = [], set()
        lefts = left.rows(env)
        for row in lefts:
            is_met = False
            for number, other in enumerate(rights(row, env)):
                if matches((*row, *other), env):
                    is_met = True
                    met.add(number)
                    found.append((*row, *other))
            if not is_met and side in ("LEFT", "FULL"):
                found.append((*row, *nothing_right))
        if side in ("RIGHT", "FULL"):
            found += [(*nothing_left, *r) for n, r in enumerate(rights((), env)) if n not in met]
        return found

    return rows


Pairs = list[tuple[int, int]]


def _using(join: exp.Join, method: str, left: Relation, right: Relation) -> Pairs:
    """Places of the columns that USING or NATURAL puts together."""
    names = [i.name for i in join.args.get("using") or []]
    if method == "NATURAL":
        shown = {c.name.lower() for c in right.columns if not c.is_hidden}
        names = [c.name for c in left.columns if not c.is_hidden and c.name.lower() in shown]
    return [(_place(left, n, join), _place(right, n, join)) for n in names]


def _place(relation: Relation, name: str, node: exp.Expr) -> int:
    found = [i for i, c in enumerate(relation.columns) if c.name.lower() == name.lower() and not c.is_hidden]
    if len(found) != 1:
        raise NotUnderstood(f"USING ({name})", node)
    return found[0]


def _test(
    join: exp.Join, using: Pairs, left: Relation, right: Relation, outer: Context | None, relations: Relations
) -> Callable[[Row, Env | None], bool]:
    context = Context((*left.columns, *right.columns), outer, relations)
    on = join.args.get("on")
    condition = None if on is None else boolean_of(on, context).of
    width = len(left.columns)
    equalities: list[tuple[Expression, Expression]] = []
    for a, b in using:
        one = column_at(a, left.columns[a].type)
        other = column_at(width + b, right.columns[b].type)
        equalities.append(comparable(one, other, join))

    def matches(row: Row, env: Env | None) -> bool:
        inside = Env(row, env)
        for one, other in equalities:
            a, b = one.of(inside), other.of(inside)
            if a is None or b is None or not equal(a, b):
                return False
        return condition is None or condition(inside) is True

    return matches


def _merged(found: Relation, using: Pairs, side: str, left: Relation, right: Relation) -> Relation:
    """The columns of USING once and first: of the side whose rows are all there, of a full join either one's.

    The others are still there under their relation's name.
    """
    width = len(left.columns)
    chosen: list[Column] = []
    values: list[Callable[[Env], object]] = []
    hidden: list[int] = []
    for a, b in using:
        one, other = left.columns[a], right.columns[b]
        if side == "FULL":
            type_ = wider(one.type, other.type)
            if type_ is None:
                raise NotUnderstood(f"USING of {one.type} and {other.type}")
            first = converted(column_at(a, one.type), type_).of
            second = converted(column_at(width + b, other.type), type_).of
            chosen.append(Column(one.name, type_))
            values.append(_either(first, second))
            hidden += [a, width + b]
        else:
            place = width + b if side == "RIGHT" else a
            chosen.append(replace(found.columns[place], name=one.name))
            values.append(column_at(place, found.columns[place].type).of)
            hidden.append(a if side == "RIGHT" else width + b)
    taken = {a for a, _ in using} | {width + b for _, b in using}
    rest = [i for i in range(len(found.columns)) if i not in taken]
    columns = [*chosen, *(found.columns[i] for i in rest)]
    columns += [replace(found.columns[i], is_hidden=True) for i in hidden]
    places = [*rest, *hidden]

    def rows(env: Env | None) -> list[Row]:
        return [(*(v(Env(row, None)) for v in values), *(row[i] for i in places)) for row in found.rows(env)]

    return Relation(tuple(columns), rows)


def _with_first(found: Relation, first: list[int]) -> Relation:
    """The relation with some columns before the others: USING and NATURAL put theirs first in a semijoin too."""
    order = [*first, *(i for i in range(len(found.columns)) if i not in first)]

    def rows(env: Env | None) -> list[Row]:
        return [tuple(row[i] for i in order) for row in found.rows(env)]

    return Relation(tuple(found.columns[i] for i in order), rows)


def _either(first: Callable[[Env], object], second: Callable[[Env], object]) -> Callable[[Env], object]:
    return lambda env: second(env) if (value := first(env)) is None else value
