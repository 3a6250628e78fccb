"""A SELECT with GROUP BY, aggregate calls or HAVING is lowered to Aggregate → Filter → Map."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import INT
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.aggregate import Aggregate
from fivm_dbt.ir.node import Field, Item, Node
from fivm_dbt.ir.nodes import Filter, Map
from fivm_dbt.ir.places import notes
from fivm_dbt.ir.scalar import ColumnId, Scalar, column_ast, conjuncts, grouped
from fivm_dbt.naming import CLOCK
from fivm_dbt.sql.aggregate_calls import AggregateCalls
from fivm_dbt.sql.aggregates import AROUND_AGGREGATES, called
from fivm_dbt.sql.expressions import MARKS, check_row_level, qualify, to_scalar, unparenthesized
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.group_keys import Projections, grouped_expression, outermost_aggregates, written_keys
from fivm_dbt.sql.grouping_sets import SET_NUMBER, GroupingSets, read_grouping_sets, repeat_for_sets
from fivm_dbt.sql.lowered import Ctes
from fivm_dbt.sql.membership import counted, has_subquery, outermost_query
from fivm_dbt.sql.outer_scope import CARRIED
from fivm_dbt.sql.over_nothing import completed
from fivm_dbt.sql.parse import span_of, unsupported
from fivm_dbt.sql.scope import GroupScope, Scope, resolved_outside
from fivm_dbt.sql.subqueries import Around, below_groups, with_columns
from fivm_dbt.sql.typing import known_type

if TYPE_CHECKING:
    from fivm_dbt.sql.domains import Domain
    from fivm_dbt.sql.lower import Lowering


def aggregated(
    lowering: Lowering, node: exp.Select, around: Around, projections: Projections, wanted: str
) -> Node:
    """``Map(select list, Filter(HAVING, Aggregate(GROUP BY, calls, relation)))``."""
    aggregate, outputs = aggregated_parts(lowering, node, around, projections)
    names, shown = [n for n, _ in projections], [v for _, v in projections]
    items = lowering.items(names, outputs, {f.id: f.type for f in aggregate.fields}, shown)
    return Map(aggregate, lowering.alias(wanted), items)


def aggregated_parts(
    lowering: Lowering, node: exp.Select, around: Around, projections: Projections
) -> tuple[Node, list[Scalar]]:
    """``Filter(HAVING, Aggregate(...))``, and the select list over its fields, window functions left as they are."""
    around, node, projections = _without_inner_subqueries(around, node, projections)
    grouping = _Grouping(lowering, around.scope, projections, lowering.approximate)
    found = _parts(grouping, node, around, projections)
    if lowering.approximate and any(call.written is not None for call in grouping.calls.found.values()):
        # A group that is recomputed for one call is recomputed for all of them, with Spark's own functions.
        found = _parts(_Grouping(lowering, around.scope, projections, False), node, around, projections)
    return found


def _parts(
    grouping: _Grouping, node: exp.Select, around: Around, projections: Projections
) -> tuple[Node, list[Scalar]]:
    grouping.add_keys(node)
    outputs = [grouping.above(value) for _, value in projections]
    having = node.args.get("having")
    filters = [grouping.above_having(p) for p in conjuncts(having.this)] if having is not None else []
    groups = grouping.build(around.relation, around.domain)
    aggregate, place = grouping.with_subqueries(groups, around.ctes)
    filters = [f.substitute(place.get) for f in filters]
    if filters:
        aggregate = Filter(aggregate, tuple(filters))
    return aggregate, [o.substitute(place.get) for o in outputs]


def _without_inner_subqueries(
    around: Around, node: exp.Select, projections: Projections
) -> tuple[Around, exp.Select, Projections]:
    """Subqueries in GROUP BY and inside aggregates are computed for each row, before it is grouped."""
    group, having = node.args.get("group"), node.args.get("having")
    changed = node.copy()
    replaced: list[tuple[exp.Expr, exp.Expr]] = []
    if group is not None and any(has_subquery(v) for v in (group, *(v for _, v in projections))):
        expressions = []
        for expression in group.expressions:
            shown = grouped_expression(expression, around.scope, projections)
            if has_subquery(shown):
                around, new = with_columns(around, shown)
                replaced.append((shown, new))
                shown = new
            expressions.append(shown.copy())
        changed.args["group"].set("expressions", expressions)

    def put(value: exp.Expr) -> exp.Expr:
        for old, new in replaced:
            value = value.transform(lambda part, old=old, new=new: new.copy() if part == old else part)
        return value

    result: Projections = []
    for name, value in projections:
        around, shown = below_groups(around, put(value))
        result.append((name, shown))
    if having is not None:
        around, condition = below_groups(around, put(having.this))
        changed.set("having", exp.Having(this=condition))
    return around, changed, result


class _Grouping:
    """Collects keys and aggregate calls while rewriting the expressions above the aggregate."""

    def __init__(self, lowering: Lowering, scope: Scope, projections: Projections, approximate: bool) -> None:
        self.lowering = lowering
        self.scope = scope
        self.projections = projections
        self.alias = lowering.alias("grouped")
        self.keys: dict[Scalar, Item] = {}
        self.calls = AggregateCalls(lowering, scope, projections, approximate)
        self.is_global = False
        self.lacks_rows = False
        """Whether it is a total for each value of a correlation, of which those without rows are to be added."""
        self.sets: GroupingSets | None = None
        self.grouped_by: list[Scalar] = []
        self.subqueries: list[exp.Expr] = []
        self.sets_alias = ""
        self.set_number = ""

    # GROUP BY

    def add_keys(self, node: exp.Select) -> None:
        group = node.args.get("group")
        carried = [(n, v) for n, v in self.projections if n.startswith(CARRIED)]
        if group is not None:
            self._add_written_keys(group)
        is_total = not self.keys and self.sets is None
        self.is_global = is_total and not carried
        self.lacks_rows = is_total and bool(carried)
        # A correlated subquery is computed for each value of its correlation.
        scalars = [to_scalar(v, self.scope) for _, v in carried]
        types = self.lowering.typer.types(scalars, self.scope.types)
        for (name, shown), scalar, type_ in zip(carried, scalars, types, strict=True):
            self.keys.setdefault(scalar, Item(self.calls.name(name), scalar, known_type(type_, shown)))

    def _add_written_keys(self, group: exp.Group) -> None:
        self.sets = read_grouping_sets(group)
        if self.sets is not None and not self.sets.expressions and len(self.sets.sets) == 1:
            # GROUPING SETS (()) is no GROUP BY at all, also in that it has a row over nothing.
            self.sets = None
            return
        wanted = written_keys(group, self.sets, self.scope, self.projections)
        scalars = [to_scalar(e, self.scope) for e in wanted]
        if self.sets is not None:
            self.sets, firsts = self.sets.merged(scalars)
            wanted, scalars = [wanted[i] for i in firsts], [scalars[i] for i in firsts]
            self.sets_alias = self.lowering.alias("grouping_sets")
        types = self.lowering.typer.types(scalars, self.scope.types)
        for shown, scalar, type_ in zip(wanted, scalars, types, strict=True):
            self._add_key(shown, scalar, type_)
        if self.sets is not None:
            self.grouped_by = scalars
            number = self.sets.number(self.sets_alias)
            self.set_number = self.calls.name(SET_NUMBER)
            self.keys[number] = Item(self.set_number, number, INT)

    def _add_key(self, shown: exp.Expr, scalar: Scalar, type_: SparkType | None) -> None:
        if scalar in self.keys:
            return
        known = known_type(type_, shown)
        output = next((n for n, v in self.projections if v == shown or self._is_key(v, scalar)), None)
        label = notes(shown).get("window_key") or f"key_{len(self.keys) + 1}"
        wanted = output or (shown.name if isinstance(shown, exp.Column) else label)
        value = scalar
        if self.sets is not None:
            number = self.sets.number(self.sets_alias).ast()
            value = Scalar(self.sets.where_grouped(len(self.keys), scalar.ast(), number))
        self.keys[scalar] = Item(self.calls.name(wanted), value, known)

    def _is_key(self, value: exp.Expr, scalar: Scalar) -> bool:
        if any(is_aggregate(p) for p in value.walk()):
            return False
        return Scalar(unparenthesized(qualify(value, self.scope))) == scalar

    # What stands above the aggregate

    def above(self, value: exp.Expr) -> Scalar:
        """An output expression over the aggregate's fields."""
        value = self._without_subqueries(value)
        check_row_level(value, allow_aggregates=True, allow_windows=True, allow_clock=True)
        return Scalar(unparenthesized(self._rewrite(qualify(value, self.scope), value)))

    def _without_subqueries(self, value: exp.Expr) -> exp.Expr:
        """``value`` with a mark for each subquery, which is joined to the groups once they are known."""
        if not has_subquery(value):
            return value
        node = counted(value.copy(), self.scope)
        while (found := outermost_query(node)) is not None:
            if any(is_aggregate(p) for p in _ancestors(found)):
                raise unsupported(value, "a subquery inside an aggregate", "compute it in a subquery in FROM")
            self.subqueries.append(self._with_our_aggregates(found.copy()))
            mark = column_ast(MARKS, f"value_{len(self.subqueries)}")
            if found is node:
                return mark
            found.replace(mark)
        return node

    def _with_our_aggregates(self, query: exp.Expr) -> exp.Expr:
        """A subquery with fields of the groups in place of the aggregates in its own conditions: there they can only be
        those of the query around."""
        for condition in _own_conditions(query):
            for call in outermost_aggregates(condition):
                ours = self._rewrite(qualify(call, self.scope), call)
                call.replace(resolved_outside(ours))
        return query

    def with_subqueries(self, node: Node, ctes: Ctes) -> tuple[Node, dict[ColumnId, Scalar]]:
        """The groups with every subquery's value joined to them, and what the marks mean then."""
        place: dict[ColumnId, Scalar] = {}
        fields = {k: Field(self.alias, item.name, item.type) for k, item in self.keys.items()}

        def resolve(column: exp.Column) -> exp.Expr | None:
            found = self.scope.resolve_outward(column)
            if found is None:
                return None
            field = fields.get(Scalar(found))
            if field is None:
                what = f"{column.sql('spark')} is not in GROUP BY, and the subquery needs it per group"
                raise unsupported(column, what, "add it to GROUP BY", code="FIVM110")
            return field.scalar.ast()

        scope = GroupScope(groups=resolve, group_types={f.id: f.type for f in node.fields})
        around = Around(self.lowering, node, scope, ctes)
        for number, query in enumerate(self.subqueries, start=1):
            around, value = with_columns(around, query)
            place[(MARKS, f"value_{number}")] = Scalar(unparenthesized(qualify(value, around.scope)))
        return around.relation, place

    def above_having(self, predicate: exp.Expr) -> Scalar:
        """A HAVING condition. Spark reads a name in it as a key, else as an alias of the select list; the columns
        inside an aggregate are those of the relations."""
        aliases = {name.lower(): value for name, value in self.projections}
        return self.above(self._with_aliases(predicate.copy(), aliases))

    def _with_aliases(self, node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
        if isinstance(node, exp.Query) or is_aggregate(node) or self._is_a_key(node):
            return node
        if isinstance(node, exp.Column):
            meant = aliases.get(node.name.lower()) if not node.table else None
            return grouped(meant.copy()) if meant is not None else node
        return _with_children(node, lambda child: self._with_aliases(child, aliases))

    def _is_a_key(self, node: exp.Expr) -> bool:
        if node.find(exp.Query) is not None:
            return False
        columns_only = replace(self.scope, aliases={})
        if any(columns_only.resolve(c) is None for c in node.find_all(exp.Column) if not c.table):
            return False
        return Scalar(unparenthesized(qualify(node, columns_only))) in self.keys

    def _rewrite(self, node: exp.Expr, shown: exp.Expr) -> exp.Expr:
        key = self.keys.get(Scalar(unparenthesized(node)))
        if key is not None:
            return column_ast(self.alias, key.name)
        if isinstance(node, exp.Window):
            return self._rewrite_window(node, shown)
        if isinstance(node, (exp.Grouping, exp.GroupingId)):
            return self._grouping(node)
        if is_aggregate(node) or isinstance(node, AROUND_AGGREGATES):
            spelled = self.calls.spelled_out(node) if self.calls.approximate else None
            if spelled is not None:
                return exp.paren(spelled.transform(self._as_field))
            return column_ast(self.alias, self.calls.call(node).name)
        if isinstance(node, exp.Column) and node.table in (MARKS, CLOCK):
            return node
        if isinstance(node, exp.Column):
            raise FivmError(
                "FIVM110",
                f"{node.sql('spark')} is neither in GROUP BY nor inside an aggregate",
                span=span_of(node) or span_of(shown),
                remedy="add it to GROUP BY, or aggregate it",
            )
        return _with_children(node, lambda child: self._rewrite(child, shown))

    def _as_field(self, node: exp.Expr) -> exp.Expr:
        return column_ast(self.alias, self.calls.call(node).name) if is_aggregate(node) else node

    def _grouping(self, node: exp.Grouping | exp.GroupingId) -> exp.Expr:
        """GROUPING(x) and GROUPING_ID(...): computed from the number of the set, which is a key."""
        if self.sets is None:
            what = f"{node.sql('spark')} without ROLLUP, CUBE or GROUPING SETS"
            raise unsupported(node, what, "leave it out", code="FIVM110")
        arguments = [Scalar(unparenthesized(e)) for e in node.expressions]
        for argument in arguments:
            if argument not in self.grouped_by:
                what = f"{argument.sql} is not in GROUP BY"
                raise unsupported(node, what, "name a grouping expression", code="FIVM110")
        positions = [self.grouped_by.index(a) for a in arguments] or list(range(len(self.grouped_by)))
        type_ = "tinyint" if isinstance(node, exp.Grouping) else "bigint"
        return self.sets.grouping(positions, column_ast(self.alias, self.set_number), type_)

    def _rewrite_window(self, node: exp.Window, shown: exp.Expr) -> exp.Expr:
        """A window function over the groups: what it is called on is no aggregate of this SELECT, its operands are."""
        call = called(node.this)
        _with_children(call, lambda child: self._rewrite(child, shown))
        return self._rewrite_around(node, call, shown)

    def _rewrite_around(self, node: exp.Expr, call: exp.Expr, shown: exp.Expr) -> exp.Expr:
        """OVER, FILTER and WITHIN GROUP have operands too."""
        below = node.this
        _with_children(node, lambda part: part if part is below else self._rewrite(part, shown))
        if below is not call:
            self._rewrite_around(below, call, shown)
        return node

    def build(self, relation: Node, domain: Domain | None) -> Node:
        """The groups, with the fields that the expressions above them name."""
        if self.sets is not None:
            relation = repeat_for_sets(relation, self.sets_alias, self.sets)
        keys, calls = tuple(self.keys.values()), tuple(self.calls.found.values())
        if not self.lacks_rows or domain is None or domain.is_sparse:
            return Aggregate(relation, self.alias, keys, calls, self.is_global)
        found = Aggregate(relation, self.lowering.alias("found"), keys, calls)
        return completed(self.lowering, found, domain, self.alias)


def _with_children(node: exp.Expr, rewrite: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """``node`` itself, with what ``rewrite`` makes of each of its operands."""
    for child in list(node.iter_expressions()):
        new = rewrite(child)
        if new is not child:
            child.replace(new)
    return node


def _own_conditions(node: exp.Expr) -> list[exp.Expr]:
    """What stands in WHERE and ON of a query, not of those inside it."""
    select = node
    while isinstance(select, (exp.Subquery, exp.Paren, exp.Exists)):
        select = select.this
    if isinstance(select, exp.SetOperation):
        return [c for side in (select.left, select.right) for c in _own_conditions(side)]
    where = select.args.get("where")
    on = [join.args.get("on") for join in select.args.get("joins") or []]
    return [c for c in (where, *on) if c is not None]


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    while node.parent is not None:
        node = node.parent
        yield node
