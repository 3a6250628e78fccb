"""GROUP BY, aggregate calls and HAVING of one SELECT, lowered to Aggregate → Filter → Map."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.catalog.types import BIGINT, DOUBLE
from fivm_dbt.errors import FivmError
from fivm_dbt.ir.nodes import Aggregate, AggregateCall, Filter, Item, Map, Node
from fivm_dbt.ir.scalar import Scalar, column_ast, conjuncts, grouped
from fivm_dbt.naming import unique_name
from fivm_dbt.rings.quotient import averages_exactly
from fivm_dbt.sql.expressions import check_row_level, qualify, to_scalar, unparenthesized
from fivm_dbt.sql.functions import function_name, is_aggregate
from fivm_dbt.sql.parse import span_of, unsupported
from fivm_dbt.sql.scope import Scope

if TYPE_CHECKING:
    from fivm_dbt.sql.lower import Lowering

Projections = list[tuple[str, exp.Expr]]


def is_aggregated(node: exp.Select, projections: Projections) -> bool:
    """Whether a SELECT groups: it has GROUP BY or HAVING, or an aggregate that is not a window function."""
    if node.args.get("group") or node.args.get("having"):
        return True
    return any(_aggregates_here(value) for _, value in projections)


def _aggregates_here(value: exp.Expr) -> bool:
    """Whether an expression aggregates the rows of its own SELECT: not those of a subquery or a window."""
    if isinstance(value, (exp.Query, exp.Window)):
        return False
    return is_aggregate(value) or any(_aggregates_here(child) for child in value.iter_expressions())


def aggregated(
    lowering: Lowering, node: exp.Select, scope: Scope, relation: Node, projections: Projections, wanted: str
) -> Node:
    """``Map(select list, Filter(HAVING, Aggregate(GROUP BY, calls, relation)))``."""
    grouping = _Grouping(lowering, scope, projections)
    grouping.add_keys(node)
    outputs = [grouping.above(value) for _, value in projections]
    having = node.args.get("having")
    filters = [grouping.above_having(p) for p in conjuncts(having.this)] if having is not None else []
    aggregate: Node = grouping.build(relation)
    if filters:
        aggregate = Filter(aggregate, tuple(filters))
    above_types = {f.id: f.type for f in aggregate.fields}
    types = lowering.typer.types(outputs, above_types)
    from fivm_dbt.sql.lower import known_type

    taken: set[str] = set()
    items = []
    for (name, value), scalar, type_ in zip(projections, outputs, types, strict=True):
        column = unique_name(name, taken)
        taken.add(column.lower())
        items.append(Item(column, scalar, known_type(type_, value)))
    return Map(aggregate, lowering.alias(wanted), tuple(items))


class _Grouping:
    """Collects keys and aggregate calls while rewriting the expressions above the aggregate."""

    def __init__(self, lowering: Lowering, scope: Scope, projections: Projections) -> None:
        self.lowering = lowering
        self.scope = scope
        self.projections = projections
        self.alias = lowering.alias("grouped")
        self.keys: dict[Scalar, Item] = {}
        self.calls: dict[tuple[str, Scalar | None], AggregateCall] = {}
        self.names: set[str] = set()
        self.is_global = False

    # GROUP BY

    def add_keys(self, node: exp.Select) -> None:
        group = node.args.get("group")
        self.is_global = group is None
        if group is None:
            return
        if group.find(exp.Rollup, exp.Cube, exp.GroupingSets) or group.args.get("totals"):
            what = "ROLLUP, CUBE and GROUPING SETS are not maintained yet"
            raise unsupported(group, what, "UNION ALL one SELECT per set")
        if group.args.get("all"):
            wanted = [v for _, v in self.projections if not any(is_aggregate(p) for p in v.walk())]
        else:
            wanted = [self._grouped_expression(e) for e in group.expressions]
        scalars = [to_scalar(e, self.scope) for e in wanted]
        types = self.lowering.typer.types(scalars, self.scope.types)
        for shown, scalar, type_ in zip(wanted, scalars, types, strict=True):
            self._add_key(shown, scalar, type_)

    def _grouped_expression(self, expression: exp.Expr) -> exp.Expr:
        """The meaning of one GROUP BY item: an ordinal, a column, or the alias of an output column."""
        inner = unparenthesized(expression)
        if isinstance(inner, exp.Literal) and not inner.is_string and inner.this.isdigit():
            position = int(inner.this)
            if not 1 <= position <= len(self.projections):
                raise FivmError(
                    "FIVM102",
                    f"GROUP BY {position}, but there are {len(self.projections)} columns",
                    span=span_of(expression),
                    remedy="use a position of the select list",
                )
            return self.projections[position - 1][1]
        if isinstance(inner, exp.Column) and not inner.table and self.scope.resolve(inner) is None:
            for name, value in self.projections:
                if name.lower() == inner.name.lower():
                    return value
        return inner

    def _add_key(self, shown: exp.Expr, scalar: Scalar, type_: SparkType | None) -> None:
        from fivm_dbt.sql.lower import known_type

        if scalar in self.keys:
            return
        known = known_type(type_, shown)
        output = next((n for n, v in self.projections if v == shown or self._is_key(v, scalar)), None)
        wanted = output or (shown.name if isinstance(shown, exp.Column) else f"key_{len(self.keys) + 1}")
        self.keys[scalar] = Item(self._name(wanted), scalar, known)

    def _is_key(self, value: exp.Expr, scalar: Scalar) -> bool:
        if any(is_aggregate(p) for p in value.walk()):
            return False
        return Scalar(unparenthesized(qualify(value, self.scope))) == scalar

    def _name(self, wanted: str) -> str:
        name = unique_name(_plain(wanted), self.names)
        self.names.add(name.lower())
        return name

    # What stands above the aggregate

    def above(self, value: exp.Expr) -> Scalar:
        """An output expression over the aggregate's fields."""
        check_row_level(value, allow_aggregates=True)
        return Scalar(unparenthesized(self._rewrite(qualify(value, self.scope), value)))

    def above_having(self, predicate: exp.Expr) -> Scalar:
        """A HAVING condition. Spark reads a name in it as a key, else as an alias of the select list; the columns
        inside an aggregate are those of the relations."""
        aliases = {name.lower(): value for name, value in self.projections}
        return self.above(self._with_aliases(predicate.copy(), aliases))

    def _with_aliases(self, node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
        if is_aggregate(node) or self._is_a_key(node):
            return node
        if isinstance(node, exp.Column):
            meant = aliases.get(node.name.lower()) if not node.table else None
            return grouped(meant.copy()) if meant is not None else node
        return _with_children(node, lambda child: self._with_aliases(child, aliases))

    def _is_a_key(self, node: exp.Expr) -> bool:
        columns_only = replace(self.scope, aliases={})
        if any(columns_only.resolve(c) is None for c in node.find_all(exp.Column) if not c.table):
            return False
        return Scalar(unparenthesized(qualify(node, columns_only))) in self.keys

    def _rewrite(self, node: exp.Expr, shown: exp.Expr) -> exp.Expr:
        key = self.keys.get(Scalar(unparenthesized(node)))
        if key is not None:
            return column_ast(self.alias, key.name)
        if is_aggregate(node):
            return column_ast(self.alias, self._call(node).name)
        if isinstance(node, exp.Column):
            raise FivmError(
                "FIVM110",
                f"{node.sql('spark')} is neither in GROUP BY nor inside an aggregate",
                span=span_of(node) or span_of(shown),
                remedy="add it to GROUP BY, or aggregate it",
            )
        return _with_children(node, lambda child: self._rewrite(child, shown))

    def _call(self, node: exp.Expr) -> AggregateCall:
        """The aggregate call of ``node``, the same object for the same call."""
        function = function_name(node) or ""
        if isinstance(node, exp.Filter) or node.find(exp.Distinct) or node.find(exp.Order):
            raise unsupported(
                node, "DISTINCT inside an aggregate is not maintained yet", "GROUP BY the column first"
            )
        if isinstance(node.parent, (exp.Filter, exp.Window, exp.WithinGroup)):
            raise unsupported(node.parent, "FILTER is not maintained yet", "use SUM(CASE WHEN ... END)")
        if any(is_aggregate(p) for p in node.walk() if p is not node):
            raise unsupported(node, "an aggregate inside an aggregate", "aggregate in a subquery first")
        if function not in ("count", "sum", "avg"):
            raise unsupported(node, f"{function.upper()} is not maintained yet", "use COUNT, SUM or AVG")
        argument = _argument(node)
        scalar = Scalar(unparenthesized(argument)) if argument is not None else None
        identity = (function, scalar)
        if identity not in self.calls:
            self.calls[identity] = self._new_call(node, function, scalar)
        return self.calls[identity]

    def _new_call(self, node: exp.Expr, function: str, scalar: Scalar | None) -> AggregateCall:
        argument_type = (
            self.lowering.typer.types([scalar], self.scope.types)[0] if scalar is not None else None
        )
        result = result_type(function, argument_type, node)
        label = next((n for n, v in self.projections if v.sql() == node.sql()), None)
        suffix = _plain(scalar.sql.split(".")[-1]) if scalar is not None and scalar.is_column else ""
        wanted = label or (f"{function}_{suffix}" if suffix else function)
        return AggregateCall(self._name(wanted), function, scalar, argument_type, result)

    def build(self, relation: Node) -> Aggregate:
        keys = tuple(self.keys.values())
        return Aggregate(relation, self.alias, keys, tuple(self.calls.values()), self.is_global)


def result_type(function: str, argument: SparkType | None, node: exp.Expr) -> SparkType:
    """Spark's result type of COUNT, SUM, AVG; FIVM108 for floating-point sums, FIVM109 where unknown."""
    if function == "count":
        return BIGINT
    if argument is None:
        raise FivmError(
            "FIVM109",
            f"the type of {node.sql('spark')} is not known",
            span=span_of(node),
            remedy="CAST the argument",
        )
    if argument.is_floating or argument.is_string:
        raise FivmError(
            "FIVM108",
            f"{node.sql('spark')} adds {'strings as doubles' if argument.is_string else f'values of type {argument}'}, "
            "and such a sum depends on the order of its rows",
            span=span_of(node),
            remedy="CAST the argument to a decimal type, e.g. CAST(x AS DECIMAL(18, 4))",
        )
    if argument.is_decimal:
        p, s = argument.precision, argument.scale
        if function == "avg" and not averages_exactly(argument):
            raise unsupported(
                node,
                f"the quotient of AVG over {argument} needs more than 38 digits",
                "CAST the argument to fewer digits",
            )
        return SparkType.decimal(p + 10, s) if function == "sum" else SparkType.decimal(p + 4, s + 4)
    if argument.is_integral:
        return BIGINT if function == "sum" else DOUBLE
    raise unsupported(
        node, f"{function.upper()} over {argument} is not maintained yet", "CAST it to a number"
    )


def _with_children(node: exp.Expr, rewrite: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """``node`` itself, with what ``rewrite`` makes of each of its operands."""
    for child in list(node.iter_expressions()):
        new = rewrite(child)
        if new is not child:
            child.replace(new)
    return node


def _argument(node: exp.Expr) -> exp.Expr | None:
    """The argument of an aggregate; None for COUNT(*) and COUNT(literal). COUNT(a, b) counts rows without NULLs."""
    first = node.this
    if isinstance(node, exp.Count):
        rest = node.expressions
        if isinstance(first, exp.Column) and isinstance(first.this, exp.Star):
            raise unsupported(node, f"{node.sql('spark')} is not maintained yet", "name the columns")
        if isinstance(first, exp.Star) or (isinstance(first, exp.Literal) and not rest):
            return None
        if rest:
            present = exp.and_(
                *(exp.Not(this=exp.Is(this=e.copy(), expression=exp.Null())) for e in [first, *rest])
            )
            return exp.Case(ifs=[exp.If(this=present, true=exp.Literal.number(1))])
    return unparenthesized(first.copy())


def _plain(name: str) -> str:
    """A name that is fit for a Delta column."""
    cleaned = "".join(c if c.isalnum() or c == "_" else "_" for c in name).strip("_").lower()
    return cleaned[:60] or "value"
