"""EXISTS and IN inside expressions are spelled out as scalar subqueries that count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from fivm_dbt.ir.places import note, notes
from fivm_dbt.ir.scalar import column_ast
from fivm_dbt.naming import PREFIX
from fivm_dbt.sql.expressions import is_subquery, qualify, unparenthesized
from fivm_dbt.sql.generators import is_generator
from fivm_dbt.sql.group_keys import has_windows, is_aggregated
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.scope import Scope, resolved_outside

UNREAD = "unread"
"""In the meta of a SELECT: the one that was written, of which only the rows count."""

_ROWS = f"{PREFIX}rows"


def has_subquery(node: exp.Expr) -> bool:
    """Whether an expression contains a query."""
    return node.find(exp.Query) is not None


def query_of(node: exp.Expr) -> exp.Query:
    """The query in parentheses, or what has a clause of its own around it. Raises FIVM101 where none is there."""
    inner = node
    while isinstance(inner, (exp.Subquery, exp.Paren)) and not inner.args.get("limit"):
        inner = inner.this
    if not isinstance(inner, exp.Query):
        raise unsupported(
            node, "a query is expected in the parentheses", "write SELECT there", code="FIVM101"
        )
    return inner


def existing(query: exp.Query) -> exp.Query:
    """A query that has rows whenever ``query`` has: without the first ones being chosen.

    >>> from sqlglot import parse_one
    >>> print(existing(parse_one("select x from s order by x limit 3")).sql())
    SELECT x FROM s
    """
    limit = query.args.get("limit")
    if limit is None or query.args.get("offset") is not None:
        return query
    number = unparenthesized(limit.expression) if isinstance(limit, exp.Limit) else None
    if not isinstance(number, exp.Literal) or not number.is_int or int(number.this) < 1:
        return query
    result = query.copy()
    result.set("limit", None)
    result.set("order", None)
    return result


def unread_columns(query: exp.Query) -> Iterator[exp.Column]:
    """What the queries name that stand in lists of which only the rows count: they are read to be checked."""
    for select in query.find_all(exp.Select):
        unread = notes(select).get(UNREAD)
        for value in unread.expressions if unread is not None else ():
            if has_subquery(value):
                yield from value.find_all(exp.Column)


def selects_plain_rows(query: exp.Select) -> bool:
    """Whether a query is FROM, WHERE and a select list and nothing else, so that its condition can be joined on."""
    others = ("group", "having", "limit", "offset", "qualify", "laterals", "with_")
    if any(query.args.get(key) for key in others):
        return False
    values = [("", e.unalias()) for e in query.expressions]
    if any(is_generator(v.this if isinstance(v, exp.Aliases) else v) for _, v in values):
        return False
    return not (has_windows(query, values) or is_aggregated(query, values))


def outermost_query(node: exp.Expr) -> exp.Expr | None:
    """The first query in an expression that is in no other one."""
    for part in node.walk(bfs=True):
        if isinstance(part, exp.Subquery):
            return part
        if isinstance(part, exp.Query):
            return part
    return None


def operands(node: exp.Expr) -> list[exp.Expr]:
    """The values on the left of IN."""
    inner = unparenthesized(node)
    return [unparenthesized(e) for e in inner.expressions] if isinstance(inner, exp.Tuple) else [inner]


def counted(node: exp.Expr, scope: Scope) -> exp.Expr:
    """EXISTS and IN as scalar subqueries that count.

    Inside an expression Spark's IN is never NULL: where SQL says unknown, ``x IN (q)`` is false, and so is
    ``x NOT IN (q)``. As Spark does before it looks at subqueries, NOT is therefore first moved inwards.
    """
    if any(isinstance(part, exp.In) for part in own_predicates(node)):
        # A copy has no parent: NOT (x NOT IN (q)) is the IN that still hangs in the two NOTs.
        node = _with_negations_inside(node).copy()
    for part in own_predicates(node):
        if not isinstance(part, exp.In):
            node = _replaced(node, part, _is_above_zero(_number_of_rows(existing(query_of(part.this)))))
        elif isinstance(part.parent, exp.Not):
            node = _replaced(node, part.parent, _surely_not_in(part, scope))
        else:
            node = _replaced(node, part, _surely_in(part, scope))
    return node


def own_predicates(node: exp.Expr) -> list[exp.Expr]:
    """EXISTS and IN over queries, but for those inside these queries."""
    if isinstance(node, exp.Query):
        return []
    if isinstance(node, exp.Exists) and is_subquery(node):
        return [node]
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        return [node]
    return [found for child in node.iter_expressions() for found in own_predicates(child)]


def _with_negations_inside(node: exp.Expr, negated: bool = False) -> exp.Expr:
    """``node``, or NOT ``node``, with no NOT above AND, OR and NOT; ``x = FALSE`` is such a NOT too."""
    inner = unparenthesized(node)
    if isinstance(inner, exp.Not):
        return _with_negations_inside(inner.this, not negated)
    if isinstance(inner, exp.EQ):
        for side, other in ((inner.left, inner.right), (inner.right, inner.left)):
            if isinstance(side, exp.Boolean):
                return _with_negations_inside(other, negated == side.this)
    if isinstance(inner, (exp.And, exp.Or)):
        turned = {exp.And: exp.Or, exp.Or: exp.And}[type(inner)] if negated else type(inner)
        sides = [exp.paren(_with_negations_inside(part, negated)) for part in (inner.left, inner.right)]
        return exp.paren(turned(this=sides[0], expression=sides[1]))
    if not isinstance(inner, exp.Query):
        for child in list(inner.iter_expressions()):
            new = _with_negations_inside(child)
            if new is not child and new is not unparenthesized(child):
                child.replace(new)
    if not negated:
        return node
    return exp.Not(this=inner if isinstance(inner, exp.In) else exp.paren(inner))


def _replaced(root: exp.Expr, part: exp.Expr, new: exp.Expr) -> exp.Expr:
    if part is root:
        return new
    part.replace(new)
    return root


def _surely_in(node: exp.In, scope: Scope) -> exp.Expr:
    """Whether there is a match."""
    rows = _Compared.of(node, scope)
    return _is_above_zero(rows.count(rows.equal()))


def _surely_not_in(node: exp.In, scope: Scope) -> exp.Expr:
    """Whether no row matches or may match: of one value, whether there are no rows, or there is a value, no match and
    no NULL. That is three counts by equality, where one would have to look at every row for every value."""
    rows = _Compared.of(node, scope)
    zero = exp.Literal.number(0)
    if len(rows.ours) > 1:
        unknown = exp.Coalesce(this=exp.paren(rows.equal()), expressions=[exp.true()])
        return exp.paren(exp.EQ(this=rows.count(unknown), expression=zero))
    (value,), (theirs,) = rows.ours, rows.theirs
    null = exp.Is(this=theirs.copy(), expression=exp.Null())
    none = [exp.EQ(this=rows.count(c), expression=zero.copy()) for c in (rows.equal(), null)]
    is_there = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
    nothing = exp.EQ(this=rows.count(None), expression=zero.copy())
    return exp.paren(exp.or_(nothing, exp.and_(is_there, *none)))


def _is_above_zero(count: exp.Expr) -> exp.Expr:
    return exp.paren(exp.GT(this=count, expression=exp.Literal.number(0)))


@dataclass(frozen=True)
class _Compared:
    """What stands on the left of IN, as seen from inside its query, and the columns that it is compared with."""

    ours: tuple[exp.Expr, ...]
    theirs: tuple[exp.Expr, ...]
    query: exp.Select

    @staticmethod
    def of(node: exp.In, scope: Scope) -> _Compared:
        ours = tuple(exp.paren(resolved_outside(qualify(o, scope))) for o in operands(node.this))
        query = query_of(node.args["query"])
        if isinstance(query, exp.Select) and selects_plain_rows(query) and not query.find(exp.Star):
            theirs = tuple(exp.paren(e.unalias().copy()) for e in query.expressions)
            if len(ours) != len(theirs):
                what = f"IN compares {len(ours)} values with {len(theirs)} columns"
                raise unsupported(query, what, "select as many")
            return _Compared(ours, theirs, query)
        names = [f"{PREFIX}value_{i + 1}" for i in range(len(ours))]
        alias = exp.TableAlias(this=exp.to_identifier(_ROWS), columns=[exp.to_identifier(n) for n in names])
        rows = exp.Subquery(this=query.copy(), alias=alias)
        return _Compared(ours, tuple(column_ast(_ROWS, n) for n in names), exp.select(exp.Star()).from_(rows))

    def equal(self) -> exp.Expr:
        return exp.and_(
            *(exp.EQ(this=a.copy(), expression=b.copy()) for a, b in zip(self.theirs, self.ours, strict=True))
        )

    def count(self, condition: exp.Expr | None) -> exp.Expr:
        """``(SELECT COUNT(*) FROM ... WHERE condition)``."""
        return _counted(self.query, condition)


def _number_of_rows(query: exp.Query) -> exp.Expr:
    """``(SELECT COUNT(*) FROM ...)`` over the rows of a query."""
    if isinstance(query, exp.Select) and selects_plain_rows(query):
        return _counted(query, None)
    return _counted(exp.select(exp.Star()).from_(query.copy().subquery(_ROWS)), None)


def _counted(query: exp.Select, condition: exp.Expr | None) -> exp.Expr:
    counted = query.copy()
    note(counted, **{UNREAD: query.copy()})
    counted.set("distinct", None)
    counted.set("order", None)
    counted.set("expressions", [exp.Count(this=exp.Star())])
    return (counted.where(condition.copy()) if condition is not None else counted).subquery()
