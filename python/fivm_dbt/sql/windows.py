"""A SELECT with window functions is lowered in order: relation or groups, windows, QUALIFY, select list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.errors import FivmError
from fivm_dbt.functions.function import Order
from fivm_dbt.functions.lookup import is_of
from fivm_dbt.ir.calls import function_name
from fivm_dbt.ir.node import Item, Node
from fivm_dbt.ir.nodes import Filter, Map
from fivm_dbt.ir.scalar import Scalar, conjuncts
from fivm_dbt.ir.window import Window
from fivm_dbt.naming import unique_name
from fivm_dbt.sql.aggregates import called
from fivm_dbt.sql.aggregation import aggregated_parts
from fivm_dbt.sql.expressions import check_row_level, qualify, unparenthesized
from fivm_dbt.sql.group_keys import Projections, is_aggregated
from fivm_dbt.sql.named_windows import definition_of
from fivm_dbt.sql.outer_scope import CARRIED
from fivm_dbt.sql.parse import span_of
from fivm_dbt.sql.subqueries import Around, with_subqueries
from fivm_dbt.sql.typing import known_type

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering


def windowed(
    lowering: Lowering, node: exp.Select, around: Around, projections: Projections, wanted: str
) -> Node:
    """``Map(select list, Filter(QUALIFY, Window(...)))`` over the relation, or over its groups."""
    named = node.args.get("windows") or []
    qualify_ = node.args.get("qualify")
    conditions = conjuncts(qualify_.this) if qualify_ is not None else []
    listed = [(n, _spelled_out(v.copy(), named)) for n, v in (*projections, *(("", c) for c in conditions))]
    carried = [v for n, v in projections if n.startswith(CARRIED)]
    for window in (w for _, v in listed for w in v.find_all(exp.Window)):
        by = [*(window.args.get("partition_by") or []), *(c.copy() for c in carried)]
        window.set("partition_by", by)
    if is_aggregated(node, listed):
        relation, scalars = aggregated_parts(lowering, node, around, listed)
    else:
        around, listed = with_subqueries(around, listed)
        for _, value in listed:
            check_row_level(value, allow_windows=True, allow_clock=True)
        relation = around.relation
        scalars = [Scalar(unparenthesized(qualify(v, around.scope))) for _, v in listed]
    return _Windows(lowering, relation, wanted).build(
        [name for name, _ in projections], scalars, [v for _, v in projections]
    )


class _Windows:
    """Hoists the window functions of expressions into Window nodes, one per PARTITION BY that has nothing in common."""

    def __init__(self, lowering: Lowering, relation: Node, wanted: str) -> None:
        self.lowering = lowering
        self.relation = relation
        self.wanted = wanted

    def build(self, names: list[str], scalars: list[Scalar], shown: list[exp.Expr]) -> Node:
        calls = list(dict.fromkeys(_window_calls(scalars)))
        for call in calls:
            self._check(call)
        node, place = self._stack(calls)
        placed = [_replaced(s, place) for s in scalars]
        outputs, conditions = placed[: len(names)], placed[len(names) :]
        above = Filter(node, tuple(conditions)) if conditions else node
        types = {f.id: f.type for f in node.fields}
        items = self.lowering.items(names, outputs, types, shown)
        return Map(above, self.lowering.alias(self.wanted), items)

    def _stack(self, calls: list[Scalar]) -> tuple[Node, dict[Scalar, Scalar]]:
        """Window nodes over the relation, and where each call and each column of the relation stands then."""
        place: dict[Scalar, Scalar] = {f.scalar: f.scalar for f in self.relation.fields}
        node = self.relation
        for group in _grouped(calls):
            alias = self.lowering.alias("windowed")
            taken: set[str] = set()
            items = []
            moved: dict[Scalar, Scalar] = {}
            fields = {f.id: f.type for f in node.fields}
            for value, now in place.items():
                column = next(iter(now.columns))
                name = unique_name(column[1], taken)
                taken.add(name.lower())
                items.append(Item(name, now, fields[column]))
                moved[value] = Scalar.column(alias, name)
            inside = [_replaced(call, place) for call in group]
            types = self.lowering.typer.types(inside, fields)
            for call, value, type_ in zip(group, inside, types, strict=True):
                name = unique_name(function_name(_function(call.ast())) or "window", taken)
                taken.add(name.lower())
                items.append(Item(name, value, known_type(type_, call.ast())))
                moved[call] = Scalar.column(alias, name)
            node = Window(node, alias, self._partition(group, place, node), tuple(items))
            place = moved
        return node, place

    def _partition(self, group: list[Scalar], place: dict[Scalar, Scalar], node: Node) -> tuple[Item, ...]:
        """What all windows of the group partition by."""
        every = [_partition_by(call) for call in group]
        common = list(
            dict.fromkeys(_replaced(p, place) for p in every[0] if all(p in others for others in every))
        )
        types = self.lowering.typer.types(common, {f.id: f.type for f in node.fields})
        return tuple(
            Item(f"partition_{i + 1}", p, known_type(t, p.ast()))
            for i, (p, t) in enumerate(zip(common, types, strict=True))
        )

    def _check(self, call: Scalar) -> None:
        """Refuse what may come out differently when the same rows are read in another order."""
        window = call.ast()
        assert isinstance(window, exp.Window)
        function = _function(window)
        if (
            is_of(function, Order.ROW, Order.NTH, Order.FIRST, Order.LAST)
            and window.args.get("order") is None
        ):
            raise FivmError(
                "FIVM106",
                f"{window.sql('spark')} has no ORDER BY, so it depends on the order in which rows are read",
                span=span_of(window),
                remedy="add ORDER BY to the window",
            )


def _grouped(calls: list[Scalar]) -> list[list[Scalar]]:
    """Calls that share a part of their PARTITION BY stand in one node; the others one after the other."""
    groups: list[tuple[set[Scalar], list[Scalar]]] = []
    for call in calls:
        by = set(_partition_by(call))
        for position, (common, members) in enumerate(groups):
            if common & by or (not common and not by):
                groups[position] = (common & by, [*members, call])
                break
        else:
            groups.append((by, [call]))
    return [members for _, members in groups]


def _partition_by(call: Scalar) -> list[Scalar]:
    return [Scalar(unparenthesized(p.copy())) for p in call.ast().args.get("partition_by") or []]


def _window_calls(scalars: list[Scalar]) -> list[Scalar]:
    return [Scalar(w.copy()) for s in scalars for w in s.ast().find_all(exp.Window)]


def _function(node: exp.Expr) -> exp.Expr:
    return called(node.this)


def _replaced(scalar: Scalar, place: dict[Scalar, Scalar]) -> Scalar:
    """The scalar with window calls and columns as they stand now."""

    def visit(part: exp.Expr) -> exp.Expr:
        if isinstance(part, (exp.Window, exp.Column)):
            found = place.get(Scalar(part.copy()))
            if found is not None:
                return found.ast()
        for child in list(part.iter_expressions()):
            new = visit(child)
            if new is not child:
                child.replace(new)
        return part

    return Scalar(visit(scalar.ast()))


def _spelled_out(node: exp.Expr, definitions: list[exp.Window]) -> exp.Expr:
    """Windows by name with their definition."""
    for window in list(node.find_all(exp.Window)):
        base = definition_of(window, definitions)
        if base is window:
            continue
        for key in ("partition_by", "order", "spec"):
            if base.args.get(key):
                value = base.args[key]
                window.set(key, [v.copy() for v in value] if isinstance(value, list) else value.copy())
        window.set("alias", None)
    return node
