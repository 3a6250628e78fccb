"""Subqueries in expressions: joined to the relation around them, as semijoins, antijoins or columns."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog.types import BIGINT, INT
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.clock import clock_kinds, row_columns
from fivm_dbt.ir.nodes import (
    Aggregate,
    AggregateCall,
    Field,
    Filter,
    Item,
    Join,
    Map,
    Node,
    OuterJoin,
    SemiJoin,
)
from fivm_dbt.ir.rename import moved, renamed
from fivm_dbt.ir.scalar import ColumnId, Scalar, column_ast, conjuncts, grouped, raise_error
from fivm_dbt.naming import PREFIX
from fivm_dbt.sql.aggregation import is_aggregated
from fivm_dbt.sql.expressions import is_subquery, qualify, to_scalar, unparenthesized
from fivm_dbt.sql.functions import function_name, is_aggregate
from fivm_dbt.sql.outer_joins import as_one_item
from fivm_dbt.sql.outer_scope import CARRIED, NeedsDomain, Outer
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.part import Part
from fivm_dbt.sql.scope import Scope, Source, resolved_outside
from fivm_dbt.sql.windows import has_windows

if TYPE_CHECKING:
    from fivm_dbt.sql.aggregation import Projections
    from fivm_dbt.sql.lower import Ctes, Lowered, Lowering

_MATCHED = f"{PREFIX}matched"
_ZERO_OVER_NOTHING = frozenset("count count_if approx_count_distinct approx_distinct regr_count".split())


def has_subquery(node: exp.Expr) -> bool:
    """Whether an expression contains a query."""
    return node.find(exp.Query) is not None


@dataclass(frozen=True)
class Around:
    """The query around a subquery: its relation, the names in it, and the CTEs."""

    lowering: Lowering
    relation: Node
    scope: Scope
    ctes: Ctes


# Conditions


def filtered(around: Around, predicate: exp.Expr) -> Around:
    """The relation with one conjunct of WHERE applied that contains subqueries."""
    condition = unparenthesized(predicate)
    negated = False
    while isinstance(condition, exp.Not):
        condition, negated = unparenthesized(condition.this), not negated
    if isinstance(condition, exp.Exists) and is_subquery(condition):
        return replace(around, relation=_exists(around, query_of(condition.this), negated))
    if isinstance(condition, exp.In) and condition.args.get("query") is not None:
        return replace(around, relation=_in(around, condition, negated))
    around, rest = with_columns(around, predicate)
    return replace(around, relation=Filter(around.relation, (to_scalar(rest, around.scope),)))


def query_of(node: exp.Expr) -> exp.Query:
    inner = node
    while isinstance(inner, (exp.Subquery, exp.Paren)) and not inner.args.get("limit"):
        inner = inner.this
    assert isinstance(inner, exp.Query)
    return inner


def _exists(around: Around, query: exp.Query, negated: bool) -> Node:
    rows = _Rows.of(around, query, ())
    return SemiJoin(around.relation, rows.node, rows.conditions, negated)


def _in(around: Around, condition: exp.In, negated: bool) -> Node:
    """``x IN (q)`` is a semijoin; NOT IN keeps rows only where nothing is unknown.

    ``x NOT IN (q)``: no row of q equals x, no row of q is NULL, and x is not NULL unless q is empty.
    """
    left = _operands(condition.this)
    for part in left:
        if has_subquery(part):
            raise unsupported(part, "a subquery on the left of IN", "compute it in a subquery in FROM")
    ours = [to_scalar(part, around.scope) for part in left]
    query = query_of(condition.args["query"])
    rows = _Rows.of(around, query, tuple(ours))
    equal = tuple(
        Scalar(exp.EQ(this=_grouped(a), expression=_grouped(b)))
        for a, b in zip(ours, rows.values, strict=True)
    )
    if not negated:
        return SemiJoin(around.relation, rows.node, (*rows.conditions, *equal))
    if len(ours) > 1:
        # Unknown counts as equal: a row with a NULL matches what it may be.
        both = exp.and_(*(e.ast() for e in equal))
        unknown = Scalar(exp.Coalesce(this=exp.paren(both), expressions=[exp.Boolean(this=True)]))
        return SemiJoin(around.relation, rows.node, (*rows.conditions, unknown), anti=True)
    kept: Node = SemiJoin(around.relation, rows.node, (*rows.conditions, *equal), anti=True)
    second = rows.again(around.lowering)
    missing = Scalar(exp.Is(this=_grouped(second.values[0]), expression=exp.Null()))
    kept = SemiJoin(kept, second.node, (*second.conditions, missing), anti=True)
    third = rows.again(around.lowering)
    unknown = Scalar(exp.Is(this=_grouped(ours[0]), expression=exp.Null()))
    return SemiJoin(kept, third.node, (*third.conditions, unknown), anti=True)


def _grouped(scalar: Scalar) -> exp.Expr:
    return grouped(scalar.ast())


def _operands(node: exp.Expr) -> list[exp.Expr]:
    inner = unparenthesized(node)
    return [unparenthesized(e) for e in inner.expressions] if isinstance(inner, exp.Tuple) else [inner]


@dataclass(frozen=True)
class _Rows:
    """The rows of a subquery as an item to join: the condition of its correlation, and its columns."""

    node: Node
    conditions: tuple[Scalar, ...]
    values: tuple[Scalar, ...]

    @staticmethod
    def of(around: Around, query: exp.Query, wanted: tuple[Scalar, ...]) -> _Rows:
        """``wanted`` are the values compared with its columns, none for EXISTS."""
        if isinstance(query, exp.Select) and _selects_plain_rows(query):
            try:
                return _plain_rows(around, query, len(wanted))
            except NeedsDomain:
                pass
        return _any_rows(around, query, len(wanted))

    def again(self, lowering: Lowering) -> _Rows:
        """The same rows under other aliases, to be joined once more."""
        node, names = renamed(self.node, lowering.alias)
        return _Rows(
            node, tuple(moved(c, names) for c in self.conditions), tuple(moved(v, names) for v in self.values)
        )


def _selects_plain_rows(query: exp.Select) -> bool:
    """Whether a query is FROM, WHERE and a select list and nothing else, so that its condition can be joined on."""
    others = ("group", "having", "limit", "offset", "qualify", "laterals", "with_")
    if any(query.args.get(key) for key in others):
        return False
    values = [("", e.unalias()) for e in query.expressions]
    return not (has_windows(query, values) or is_aggregated(query, values))


def _plain_rows(around: Around, query: exp.Select, width: int) -> _Rows:
    from fivm_dbt.sql.from_clause import from_clause

    lowering = around.lowering
    outer = Outer(around.scope.resolve_outward, around.scope.types)
    scope, relation = from_clause(lowering, query, around.ctes, None)
    inner = Around(lowering, relation, replace(scope, outer=outer), around.ctes)
    conditions: list[Scalar] = []
    where = query.args.get("where")
    for predicate in conjuncts(where.this) if where is not None else []:
        if has_subquery(predicate):
            inner = filtered(inner, predicate)
            continue
        scalar = to_scalar(predicate, inner.scope)
        known = {f.id for f in inner.relation.fields}
        if row_columns(scalar) <= known:
            inner = replace(inner, relation=Filter(inner.relation, (scalar,)))
        elif clock_kinds(scalar):
            raise NeedsDomain  # a condition on the clock is a filter, not a part of a join
        else:
            conditions.append(scalar)
    values: list[Scalar] = []
    if width:
        shown = lowering.projections(query, inner.scope)
        for _, value in shown[:width]:
            inner, rest = with_columns(inner, value) if has_subquery(value) else (inner, value)
            values.append(to_scalar(rest, inner.scope))
        if len(shown) != width:
            raise unsupported(
                query, f"IN compares {width} values with {len(shown)} columns", "select as many"
            )
    part = as_one_item(lowering, Part(inner.scope.sources, (), (inner.relation,)))
    meaning = _meaning(inner.relation, part.node)
    known = {f.id for f in inner.relation.fields}

    def put(scalar: Scalar) -> Scalar:
        return scalar.substitute(lambda c: meaning.get(c) if c in known else None)

    return _Rows(part.node, tuple(put(c) for c in conditions), tuple(put(v) for v in values))


def _meaning(before: Node, after: Node) -> dict[ColumnId, Scalar]:
    """Where the fields of a node stand after it was made one item: in their order."""
    return {f.id: g.scalar for f, g in zip(before.fields, after.fields, strict=True)}


def _any_rows(around: Around, query: exp.Query, width: int) -> _Rows:
    """The rows of any query, correlated through a domain."""
    lowered, outer = correlated(around, query)
    part = as_one_item(around.lowering, Part((), (), (lowered.node,)))
    fields = part.node.fields
    if width and len(lowered.names) != width:
        raise unsupported(
            query, f"IN compares {width} values with {len(lowered.names)} columns", "select as many"
        )
    values = tuple(f.scalar for f in fields[: len(lowered.names)])
    keys = fields[len(lowered.names) : len(lowered.names) + len(outer.captured)]
    return _Rows(part.node, same(outer, keys), values[:width])


def same(outer: Outer, keys: tuple[Field, ...]) -> tuple[Scalar, ...]:
    return tuple(
        Scalar(exp.NullSafeEQ(this=column_ast(*column), expression=key.scalar.ast()))
        for column, key in zip(outer.captured, keys, strict=True)
    )


def correlated(around: Around, query: exp.Query) -> tuple[Lowered, Outer]:
    """A subquery with the domain of its correlation joined in; its fields are its columns, then those of the domain."""
    lowering = around.lowering
    first = Outer(around.scope.resolve_outward, around.scope.types, lowering.alias("domain"))
    for column in query.find_all(exp.Column):
        # Whatever might be meant: what is not needed is left out in the second pass.
        if not isinstance(column.this, exp.Star):
            with suppress(FivmError):
                first.reference(column)
    first.asked.clear()
    lowering.query(query, around.ctes, "subquery", _domain(around, first))
    exact = Outer(first.resolve, first.types, lowering.alias("domain"))
    for used in first.asked:
        exact.captured[used] = f"{CARRIED}{len(exact.captured) + 1}"
    return lowering.query(query, around.ctes, "subquery", _domain(around, exact)), exact


def _domain(around: Around, outer: Outer) -> Domain:
    return Domain(outer, outer.domain_of(around.relation, around.lowering.alias) if outer.captured else None)


@dataclass
class Domain:
    """An outer scope with the relation of its domain, to be joined into the subquery; None where it names nothing."""

    outer: Outer
    node: Node | None


def with_domain(relation: Node, plain: list[Scalar], domain: Domain) -> tuple[Node, list[Scalar]]:
    """What a subquery reads with the domain of its correlation, and its conditions.

    Where every column c of the domain is tested to equal an expression e of the subquery, e takes the place of c and
    no domain is joined: the subquery is computed for all values of e, and those that occur outside are found when the
    result is joined back. Rows where e is NULL equal nothing.
    """
    assert domain.node is not None
    known = {f.id: f.type for f in relation.fields}
    found: dict[str, tuple[Scalar, Scalar]] = {}
    for predicate in plain:
        for c, e in _sides(predicate):
            here = c.is_column and next(iter(c.columns))[0] == domain.outer.domain
            if here and e.is_column and e.columns <= known.keys():
                (_, name), (inner,) = next(iter(c.columns)), e.columns
                wanted = next(f.type for f in domain.outer.fields if f.name == name)
                if known[inner] == wanted:
                    found.setdefault(name, (predicate, e))
    if len(found) < len(domain.outer.fields):
        return Join((relation, domain.node), ()), plain
    domain.outer.inside.update({name: e for name, (_, e) in found.items()})
    equalities = [predicate for predicate, _ in found.values()]
    meaning = {(domain.outer.domain or "", name): e for name, (_, e) in found.items()}
    rest = [p.substitute(meaning.get) for p in plain if p not in equalities]
    present = [Scalar(exp.Not(this=exp.Is(this=e.ast(), expression=exp.Null()))) for _, e in found.values()]
    return relation, rest + present


def _sides(predicate: Scalar) -> list[tuple[Scalar, Scalar]]:
    ast = predicate.ast()
    if not isinstance(ast, exp.EQ):
        return []
    left, right = Scalar(unparenthesized(ast.left)), Scalar(unparenthesized(ast.right))
    return [(left, right), (right, left)]


# Columns


def with_subqueries(around: Around, projections: Projections) -> tuple[Around, Projections]:
    """A select list with each subquery as a column of the relation."""
    result: Projections = []
    for name, value in projections:
        if has_subquery(value):
            around, shown = with_columns(around, value)
            result.append((name, shown))
        else:
            result.append((name, value))
    return around, result


def below_groups(around: Around, value: exp.Expr) -> tuple[Around, exp.Expr]:
    """``value`` with the subqueries inside its aggregates as columns of what is aggregated."""
    node = value.copy()
    for call in _outermost_aggregates(node):
        for argument in [a for a in call.iter_expressions() if has_subquery(a)]:
            around, new = with_columns(around, argument)
            argument.replace(new)
    return around, node


def _outermost_aggregates(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Query):
        return []
    if is_aggregate(node) or isinstance(node, exp.Filter):
        return [node]
    return [found for child in node.iter_expressions() for found in _outermost_aggregates(child)]


def with_columns(around: Around, value: exp.Expr) -> tuple[Around, exp.Expr]:
    """``value`` with every subquery replaced by a column that is joined to the relation."""
    _refuse_quantified(value)
    node = spelled_out(value.copy(), around.scope)
    while True:
        found = outermost_query(node)
        if found is None:
            return around, node
        around, column = joined_value(around, found)
        if found is node:
            return around, column
        found.replace(column)


def _refuse_quantified(value: exp.Expr) -> None:
    """FIVM105 for ``x > ALL (query)`` and the like: Spark compares with one value, or with the list after LIKE."""
    for part in value.find_all(exp.All, exp.Any):
        if isinstance(part.this, exp.Query):
            raise unsupported(
                part,
                f"{part.key.upper()} over a query is not Spark SQL",
                "use EXISTS, NOT EXISTS or IN, or compare with MIN or MAX of the query",
            )


def outermost_query(node: exp.Expr) -> exp.Expr | None:
    for part in node.walk(bfs=True):
        if isinstance(part, exp.Subquery):
            return part
        if isinstance(part, exp.Query):
            return part
    return None


def spelled_out(node: exp.Expr, scope: Scope) -> exp.Expr:
    """EXISTS and IN as scalar subqueries that count.

    Inside an expression Spark's IN is never NULL: where SQL says unknown, ``x IN (q)`` is false, and so is
    ``x NOT IN (q)``. As Spark does before it looks at subqueries, NOT is therefore first moved inwards.
    """
    if any(isinstance(part, exp.In) for part in _own_predicates(node)):
        # A copy has no parent: NOT (x NOT IN (q)) is the IN that still hangs in the two NOTs.
        node = _with_negations_inside(node).copy()
    for part in _own_predicates(node):
        if not isinstance(part, exp.In):
            node = _replaced(node, part, _is_above_zero(_count_of(query_of(part.this), ())))
        elif isinstance(part.parent, exp.Not):
            node = _replaced(node, part.parent, _surely_not_in(part, scope))
        else:
            node = _replaced(node, part, _surely_in(part, scope))
    return node


def _own_predicates(node: exp.Expr) -> list[exp.Expr]:
    """EXISTS and IN over queries, but for those inside these queries."""
    if isinstance(node, exp.Query):
        return []
    if isinstance(node, exp.Exists) and is_subquery(node):
        return [node]
    if isinstance(node, exp.In) and node.args.get("query") is not None:
        return [node]
    return [found for child in node.iter_expressions() for found in _own_predicates(child)]


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
    value, theirs, query = _compared(node, scope)
    return _is_above_zero(_count_of(query, (exp.EQ(this=theirs, expression=value),)))


def _surely_not_in(node: exp.In, scope: Scope) -> exp.Expr:
    """Whether there are no rows, or there is a value, no match, and no NULL."""
    value, theirs, query = _compared(node, scope)
    zero = exp.Literal.number(0)
    matches = _count_of(query, (exp.EQ(this=theirs, expression=value),))
    nulls = _count_of(query, (exp.Is(this=theirs.copy(), expression=exp.Null()),))
    none = [exp.EQ(this=count, expression=zero.copy()) for count in (matches, nulls)]
    is_there = exp.Not(this=exp.Is(this=value.copy(), expression=exp.Null()))
    nothing = exp.EQ(this=_count_of(query, ()), expression=zero.copy())
    return exp.paren(exp.or_(nothing, exp.and_(is_there, *none)))


def _is_above_zero(count: exp.Expr) -> exp.Expr:
    return exp.paren(exp.GT(this=count, expression=exp.Literal.number(0)))


def _compared(node: exp.In, scope: Scope) -> tuple[exp.Expr, exp.Expr, exp.Query]:
    """The value on the left of IN, as seen from inside its query; the column that it is compared with; the query."""
    operands = _operands(node.this)
    if len(operands) > 1:
        raise unsupported(
            node, "IN over several columns inside an expression", "use it as a condition of WHERE"
        )
    query = query_of(node.args["query"])
    if not isinstance(query, exp.Select) or not _selects_plain_rows(query) or len(query.expressions) != 1:
        raise unsupported(node, "IN over such a query inside an expression", "use it as a condition of WHERE")
    value = resolved_outside(qualify(operands[0], scope))
    return exp.paren(value), exp.paren(query.expressions[0].unalias().copy()), query


def _count_of(query: exp.Query, conditions: tuple[exp.Expr, ...]) -> exp.Expr:
    """``(SELECT COUNT(*) FROM ...)`` over the rows of a query that meet the conditions too."""
    if isinstance(query, exp.Select) and _selects_plain_rows(query):
        counted = query.copy()
        counted.set("distinct", None)
        counted.set("order", None)
        counted.set("expressions", [exp.Count(this=exp.Star())])
        return counted.where(*(c.copy() for c in conditions)).subquery()
    if conditions:
        raise unsupported(
            query, "IN over such a query inside an expression", "use it as a condition of WHERE"
        )
    inner = query.copy().subquery("counted")
    return exp.select(exp.Count(this=exp.Star())).from_(inner).subquery()


def joined_value(around: Around, node: exp.Expr) -> tuple[Around, exp.Expr]:
    """The relation with the one value of a scalar subquery joined to it, and the expression for that value."""
    query = query_of(node)
    one_group = isinstance(query, exp.Select) and is_one_group(query)
    empty: exp.Expr | None = None
    if one_group:
        assert isinstance(query, exp.Select)
        query, empty = _total(query)
    lowered, outer = correlated(around, query)
    if len(lowered.names) != 1 + one_group:
        raise unsupported(
            node, f"a scalar subquery has one column, not {len(lowered.names)}", "select one column"
        )
    lowering = around.lowering
    if not one_group:
        lowered = _single(lowering, lowered, outer)
    part = as_one_item(lowering, Part((), (), (lowered.node,)))
    fields = part.node.fields
    conditions = same(outer, fields[2 : 2 + len(outer.captured)])
    name = lowering.alias("subquery_value")
    source = Source(name, (("value", fields[0]), ("matched", fields[1])))
    scope = replace(around.scope, sources=(*around.scope.sources, source))
    column: exp.Expr = column_ast(name, "value")
    if one_group and not outer.captured:
        # A total without correlation is there over nothing too: one row for every row around it.
        joined: Node = Join((around.relation, part.node), ())
        return replace(around, relation=joined, scope=scope), column
    if empty is not None:
        missing = exp.Is(this=column_ast(name, "matched"), expression=exp.Null())
        column = exp.paren(exp.Case(ifs=[exp.If(this=missing, true=empty)], default=column))
    joined = OuterJoin(around.relation, part.node, conditions)
    return replace(around, relation=joined, scope=scope), column


def is_one_group(query: exp.Select) -> bool:
    """Whether a query aggregates without GROUP BY: it has one row, over nothing too."""
    if (
        query.args.get("group")
        or query.args.get("limit")
        or query.args.get("offset")
        or query.args.get("qualify")
    ):
        return False
    values = [("", e.unalias()) for e in query.expressions]
    return is_aggregated(query, values) and not has_windows(query, values)


def _total(query: exp.Select) -> tuple[exp.Select, exp.Expr | None]:
    """An aggregate without GROUP BY with a mark that it is there, and what it is over nothing if that is not NULL.

    HAVING becomes a condition of the value: a group that fails it has the value NULL, as no row would.
    """
    total = query.copy()
    if len(total.expressions) != 1:
        raise unsupported(query, "a scalar subquery has one column", "select one column")
    value = total.expressions[0].unalias()
    having = total.args.get("having")
    if having is not None:
        value = exp.Case(ifs=[exp.If(this=having.this.copy(), true=value.copy())])
        total.set("having", None)
    total.set("distinct", None)
    total.set("order", None)
    mark = exp.Literal.number(1)
    total.set("expressions", [exp.alias_(value.copy(), "value"), exp.alias_(mark, _MATCHED)])
    return total, over_nothing(value.copy())


def over_nothing(value: exp.Expr) -> exp.Expr | None:
    """The value of an expression over aggregates when there are no rows, None where that is plainly NULL."""

    def visit(part: exp.Expr) -> exp.Expr:
        if is_aggregate(part):
            if (function_name(part) or "") in _ZERO_OVER_NOTHING:
                return exp.cast(exp.Literal.number(0), "bigint", dialect="spark")
            return exp.Null()
        return part

    result = value.transform(visit)
    return None if isinstance(unparenthesized(result), exp.Null) else exp.paren(result)


def _single(lowering: Lowering, lowered: Lowered, outer: Outer) -> Lowered:
    """The one row of a scalar subquery per correlation; more than one is an error when it happens, as in Spark."""
    from fivm_dbt.sql.lower import Lowered

    fields = lowered.node.fields
    alias = lowering.alias("single")
    value = fields[0]
    keys = tuple(Item(f.name, f.scalar, f.type) for f in fields[1 : 1 + len(outer.captured)])
    rows = AggregateCall("rows_found", "count", None, None, BIGINT)
    one = AggregateCall("value", "max", None, None, value.type, Scalar(exp.Max(this=value.scalar.ast())))
    grouped = Aggregate(lowered.node, alias, keys, (one, rows), not keys)
    error = raise_error("a scalar subquery returned more than one row", value.type.text)
    many = exp.GT(this=column_ast(alias, "rows_found"), expression=exp.Literal.number(1))
    checked = exp.Case(
        ifs=[exp.If(this=many, true=error)],
        default=column_ast(alias, "value"),
    )
    items = (
        Item("value", Scalar(checked), value.type),
        Item(_MATCHED, Scalar.number(1), INT),
        *(Item(k.name, Scalar.column(alias, k.name), k.type) for k in keys),
    )
    return Lowered(Map(grouped, lowering.alias("subquery"), items), ("value",))
