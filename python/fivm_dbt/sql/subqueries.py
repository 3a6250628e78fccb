"""Subqueries in expressions are joined to the relation around them, as semijoins, antijoins or columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.clock import clock_kinds, row_columns
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Filter, Join, Map
from fivm_dbt.ir.one_sided import OuterJoin, SemiJoin
from fivm_dbt.ir.rename import moved, renamed
from fivm_dbt.ir.scalar import ColumnId, Scalar, column_ast, conjuncts, grouped, raise_error
from fivm_dbt.sql.domains import correlated, same
from fivm_dbt.sql.expressions import is_subquery, qualify, to_scalar, unparenthesized
from fivm_dbt.sql.group_keys import Projections, outermost_aggregates
from fivm_dbt.sql.lowered import Ctes, Lowered
from fivm_dbt.sql.membership import (
    counted,
    existing,
    has_subquery,
    operands,
    outermost_query,
    own_predicates,
    query_of,
    selects_plain_rows,
)
from fivm_dbt.sql.outer_joins import as_one_item
from fivm_dbt.sql.outer_scope import NeedsDomain, Outer
from fivm_dbt.sql.parse import unsupported
from fivm_dbt.sql.part import Part
from fivm_dbt.sql.scope import Scope, Source
from fivm_dbt.sql.totals import PASSES, Total, is_one_group

if TYPE_CHECKING:
    from fivm_dbt.sql.domains import Domain
    from fivm_dbt.sql.lower import Lowering


@dataclass(frozen=True)
class Around:
    """The query around a subquery: its relation, the names in it, the CTEs, and if it is a subquery its own domain."""

    lowering: Lowering
    relation: Node
    scope: Scope
    ctes: Ctes
    domain: Domain | None = None


# Conditions


def filtered(around: Around, predicate: exp.Expr) -> Around:
    """The relation with one conjunct of WHERE applied that contains subqueries."""
    around, rest = _tested(around, predicate)
    return around if rest is None else replace(around, relation=Filter(around.relation, (rest,)))


def _tested(around: Around, predicate: exp.Expr) -> tuple[Around, Scalar | None]:
    """The relation with what a conjunct looks up, and what is left to be asked of a row; None if that is nothing."""
    condition = unparenthesized(predicate)
    negated = False
    while isinstance(condition, exp.Not):
        condition, negated = unparenthesized(condition.this), not negated
    if isinstance(condition, exp.Exists) and is_subquery(condition):
        return replace(around, relation=_exists(around, existing(query_of(condition.this)), negated)), None
    if isinstance(condition, exp.In) and condition.args.get("query") is not None:
        return _in(around, condition, negated), None
    around, rest = with_columns(around, predicate)
    return around, to_scalar(rest, around.scope)


def _exists(around: Around, query: exp.Query, negated: bool) -> Node:
    rows = _Rows.of(around, query, ())
    return SemiJoin(around.relation, rows.node, rows.conditions, negated)


def _in(around: Around, condition: exp.In, negated: bool) -> Around:
    """``x IN (q)`` is a semijoin; NOT IN keeps rows only where nothing is unknown.

    ``x NOT IN (q)``: no row of q equals x, no row of q is NULL, and x is not NULL unless q is empty.
    """
    ours: list[Scalar] = []
    for part in operands(condition.this):
        around, value = with_columns(around, part) if has_subquery(part) else (around, part)
        ours.append(to_scalar(value, around.scope))
    if not all(row_columns(value) <= around.relation.ids for value in ours):
        raise NeedsDomain  # what is looked up is a value of the query around this one
    rows = _Rows.of(around, query_of(condition.args["query"]), tuple(ours))
    if not negated:
        return replace(
            around,
            relation=SemiJoin(around.relation, rows.node, (*rows.conditions, *_equal(ours, rows))),
        )
    return replace(around, relation=_not_in(around, ours, rows))


def _equal(ours: list[Scalar], rows: _Rows) -> tuple[Scalar, ...]:
    return tuple(
        Scalar(exp.EQ(this=_grouped(a), expression=_grouped(b)))
        for a, b in zip(ours, rows.values, strict=True)
    )


def _not_in(around: Around, ours: list[Scalar], rows: _Rows) -> Node:
    equal = _equal(ours, rows)
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


@dataclass(frozen=True)
class _Rows:
    """The rows of a subquery as an item to join: the condition of its correlation, and its columns."""

    node: Node
    conditions: tuple[Scalar, ...]
    values: tuple[Scalar, ...]

    @staticmethod
    def of(around: Around, query: exp.Query, wanted: tuple[Scalar, ...]) -> _Rows:
        """``wanted`` are the values compared with its columns, none for EXISTS."""
        if isinstance(query, exp.Select) and selects_plain_rows(query):
            try:
                return _plain_rows(around, query, len(wanted))
            except NeedsDomain:
                pass
            except FivmError as error:
                # What its FROM clause names outside is known through a domain only.
                if error.code.number != "FIVM102":
                    raise
        return _any_rows(around, query, len(wanted))

    def again(self, lowering: Lowering) -> _Rows:
        """The same rows under other aliases, to be joined once more."""
        node, names = renamed(self.node, lowering.alias)
        return _Rows(
            node, tuple(moved(c, names) for c in self.conditions), tuple(moved(v, names) for v in self.values)
        )


def _plain_rows(around: Around, query: exp.Select, width: int) -> _Rows:
    lowering = around.lowering
    outer = Outer(around.scope.resolve_outward, around.scope.types)
    read = lowering.from_clause(query, around.ctes)
    inner = Around(lowering, read.node, replace(read.scope, outer=outer), around.ctes)
    conditions: list[Scalar] = []
    where = query.args.get("where")
    for predicate in conjuncts(where.this) if where is not None else []:
        inner, scalar = (
            _tested(inner, predicate)
            if has_subquery(predicate)
            else (inner, to_scalar(predicate, inner.scope))
        )
        if scalar is None:
            continue
        known = {f.id for f in inner.relation.fields}
        if row_columns(scalar) <= known:
            inner = replace(inner, relation=Filter(inner.relation, (scalar,)))
        elif clock_kinds(scalar):
            raise NeedsDomain  # a condition on the clock is a filter, not a part of a join
        else:
            conditions.append(scalar)
    values: list[Scalar] = []
    if not width:
        check_unread(inner, query)
    else:
        shown = lowering.projections(query, inner.scope)
        for _, value in shown[:width]:
            inner, rest = with_columns(inner, value) if has_subquery(value) else (inner, value)
            values.append(to_scalar(rest, inner.scope))
        if len(shown) != width:
            raise _other_width(query, width, len(shown))
    part = as_one_item(lowering, Part(inner.scope.sources, (), (inner.relation,)))
    meaning = _meaning(inner.relation, part.node)
    known = {f.id for f in inner.relation.fields}

    def put(scalar: Scalar) -> Scalar:
        return scalar.substitute(lambda c: meaning.get(c) if c in known else None)

    return _Rows(part.node, tuple(put(c) for c in conditions), tuple(put(v) for v in values))


def _other_width(query: exp.Query, width: int, columns: int) -> FivmError:
    return unsupported(query, f"IN compares {width} values with {columns} columns", "select as many")


def _meaning(before: Node, after: Node) -> dict[ColumnId, Scalar]:
    """Where the fields of a node stand after it was made one item: in their order."""
    return {f.id: g.scalar for f, g in zip(before.fields, after.fields, strict=True)}


def _any_rows(around: Around, query: exp.Query, width: int) -> _Rows:
    """The rows of any query, correlated through a domain."""
    lowered, outer = correlated(around, query)
    part = as_one_item(around.lowering, Part((), (), (lowered.node,)))
    fields = part.node.fields
    if width and len(lowered.names) != width:
        raise _other_width(query, width, len(lowered.names))
    values = tuple(f.scalar for f in fields[: len(lowered.names)])
    keys = fields[len(lowered.names) : len(lowered.names) + len(outer.captured)]
    return _Rows(part.node, same(outer, keys), values[:width])


def check_unread(around: Around, query: exp.Select) -> None:
    """FIVM102 where the list of a query of which only the rows count names a column that does not exist."""
    scope = around.scope
    if scope.outer is not None:
        # What is named here is not computed, so that it needs no domain.
        scope = replace(scope, outer=Outer(scope.outer.resolve, scope.outer.types))
    around, shown = with_subqueries(around, around.lowering.projections(query, scope))
    scope = replace(scope, sources=around.scope.sources, aliases={n.lower(): v for n, v in reversed(shown)})
    for _, value in shown:
        qualify(value, scope)


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
    _refuse_quantified(value)
    node = value.copy()
    for call in outermost_aggregates(node):
        for argument in [a for a in call.iter_expressions() if has_subquery(a)]:
            around, new = with_columns(around, argument)
            argument.replace(new)
    return around, node


def with_columns(around: Around, value: exp.Expr) -> tuple[Around, exp.Expr]:
    """``value`` with every subquery replaced by a column that is joined to the relation."""
    _refuse_quantified(value)
    around, node = _with_operands(around, value.copy())
    node = counted(node, around.scope)
    while True:
        found = outermost_query(node)
        if found is None:
            return around, node
        around, column = joined_value(around, found)
        if found is node:
            return around, column
        found.replace(column)


def _with_operands(around: Around, node: exp.Expr) -> tuple[Around, exp.Expr]:
    """``node`` with the subqueries on the left of IN as columns: what is compared is named inside the query of IN."""
    for predicate in own_predicates(node):
        if isinstance(predicate, exp.In) and has_subquery(predicate.this):
            around, left = with_columns(around, predicate.this)
            predicate.set("this", left)
    return around, node


def _refuse_quantified(value: exp.Expr) -> None:
    """FIVM105 for ``x > ALL (query)`` and the like: Spark compares with one value, or with the list after LIKE."""
    for part in value.find_all(exp.All, exp.Any):
        if isinstance(part.this, exp.Query):
            raise unsupported(
                part,
                f"{part.key.upper()} over a query is not Spark SQL",
                "use EXISTS, NOT EXISTS or IN, or compare with MIN or MAX of the query",
            )


def joined_value(around: Around, node: exp.Expr) -> tuple[Around, exp.Expr]:
    """The relation with the one value of a scalar subquery joined to it, and the expression for that value."""
    query = query_of(node)
    if isinstance(query, exp.Select) and is_one_group(query):
        if len(query.expressions) != 1:
            raise _one_column(node, len(query.expressions))
        around, (value,), passes = joined_total(around, query)
        if passes is None:
            return around, value
        return around, exp.paren(exp.Case(ifs=[exp.If(this=passes, true=value)]))
    lowered, outer = correlated(around, query)
    if len(lowered.names) != 1:
        raise _one_column(node, len(lowered.names))
    return _with_single(around, lowered, outer)


def _one_column(node: exp.Expr, found: int) -> FivmError:
    return unsupported(node, f"a scalar subquery has one column, not {found}", "select one column")


def joined_total(around: Around, query: exp.Select) -> tuple[Around, tuple[exp.Expr, ...], exp.Expr | None]:
    """The relation with the row of an aggregate without GROUP BY joined to it, the expressions for its columns, and
    for whether HAVING lets it pass, None without HAVING."""
    total = Total.of(query)
    lowered, outer = correlated(around, total.select, is_sparse=True)
    lowering = around.lowering
    item = as_one_item(lowering, Part((), (), (lowered.node,))).node
    width = len(lowered.names)
    name = lowering.alias("subquery_value")
    source = Source(name, tuple(zip(lowered.names, item.fields[:width], strict=True)))
    scope = replace(around.scope, sources=(*around.scope.sources, source))
    if not outer.captured:
        # A total without correlation is there over nothing too: one row for every row around it.
        joined: Node = Join((around.relation, item), ())
        values: tuple[exp.Expr, ...] = tuple(column_ast(name, n) for n in lowered.names[: len(total.values)])
        passes = column_ast(name, PASSES) if total.having is not None else None
        return replace(around, relation=joined, scope=scope), values, passes
    joined = OuterJoin(around.relation, item, same(outer, item.fields[width:]))
    types = {n: f.type for n, f in source.columns}
    values = tuple(total.column(i, name, types[n]) for i, n in enumerate(lowered.names[: len(total.values)]))
    return replace(around, relation=joined, scope=scope), values, total.passes(name)


def _with_single(around: Around, lowered: Lowered, outer: Outer) -> tuple[Around, exp.Expr]:
    """The relation with the one row of a scalar subquery joined to it; more than one is an error when it happens.

    As in Spark it is one only for a row around the subquery: other values of the correlation may have several.
    """
    lowering = around.lowering
    fields = lowered.node.fields
    value = fields[0]
    keys = tuple(Item(f.name, f.scalar, f.type) for f in fields[1 : 1 + len(outer.captured)])
    rows = AggregateCall("rows_found", "count", None, None, BIGINT)
    one = AggregateCall.as_written("value", "max", Scalar(exp.Max(this=value.scalar.ast())), value.type)
    single = Aggregate(lowered.node, lowering.alias("single"), keys, (one, rows), not keys)
    by_key, (found, number) = single.fields[: len(keys)], single.fields[len(keys) :]
    # One value for all rows is asked for once, where it is computed: DuckDB orders by nothing that may fail.
    checked = found.scalar if keys else _checked(found.scalar, number.scalar, value.type)
    items = (Item("value", checked, value.type), Item("rows_found", number.scalar, BIGINT))
    item = Map(
        single, lowering.alias("subquery"), (*items, *(Item(f.name, f.scalar, f.type) for f in by_key))
    )
    name = lowering.alias("subquery_value")
    source = Source(name, (("value", item.fields[0]), ("rows_found", item.fields[1])))
    scope = replace(around.scope, sources=(*around.scope.sources, source))
    joined: Node = OuterJoin(around.relation, item, same(outer, item.fields[2:]))
    column = Scalar.column(name, "value")
    if keys:
        column = _checked(column, Scalar.column(name, "rows_found"), value.type)
    return replace(around, relation=joined, scope=scope), grouped(column.ast())


def _checked(value: Scalar, number: Scalar, type_: SparkType) -> Scalar:
    error = raise_error("a scalar subquery returned more than one row", type_.text)
    many = exp.GT(this=number.ast(), expression=exp.Literal.number(1))
    return Scalar(exp.Case(ifs=[exp.If(this=many, true=error)], default=value.ast()))
