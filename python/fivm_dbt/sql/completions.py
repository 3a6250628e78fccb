"""Completions: edits of a query's text after which its result depends on no tie and no order of reading.

Spark may answer ``row_number() over (order by ts)`` in several ways where two rows have one ts. Each way is right, but
two evaluations need not agree. So the text is completed to ask for one of them, always one that the text as written
allows, and the completed text is what is maintained *and* recomputed.

A window is completed by a key of what its SELECT reads, if one is known, which are the group keys above GROUP BY;
else by the columns that the SELECT uses. Rows that are equal in the order and in all that is used give equal rows of
the result, whichever comes first; but only if all windows put them in the same order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.catalog import SparkType
from fivm_dbt.errors import FivmError
from fivm_dbt.functions.function import Order
from fivm_dbt.functions.lookup import function_name, order_of
from fivm_dbt.ir.node import Field
from fivm_dbt.ir.scalar import ColumnId, Scalar, column_ast
from fivm_dbt.naming import quote
from fivm_dbt.sql.aggregates import AROUND_AGGREGATES, called, is_sorted, names_its_ties
from fivm_dbt.sql.edits import Edit, Text
from fivm_dbt.sql.expressions import qualify, unparenthesized
from fivm_dbt.sql.filled_values import filled
from fivm_dbt.sql.functions import is_aggregate
from fivm_dbt.sql.group_keys import Projections, group_keys, is_aggregated
from fivm_dbt.sql.named_windows import check_definitions, definition_of
from fivm_dbt.sql.numbered_rows import NumberedRows, numbered_rows
from fivm_dbt.sql.parse import span_of, unsupported
from fivm_dbt.sql.scope import OF_OUTER, Scope
from fivm_dbt.sql.uniqueness import unique_keys
from fivm_dbt.sql.window_bounds import key_text

if TYPE_CHECKING:
    from fivm_dbt.ir.node import Node
    from fivm_dbt.sql.lower import Lowering

_FIRST = (Order.FIRST, Order.ANY_ROW)
_FROM_FRAME = (*_FIRST, Order.LAST, Order.NTH, Order.LIST)

_Order = tuple[frozenset[Scalar], tuple[Scalar, ...]]
"""PARTITION BY and ORDER BY of a window."""


class Completions:
    """The edits found while a query is lowered, and the calls that they make exact."""

    def __init__(self, sql: str) -> None:
        self.text = Text(sql)
        self._found: dict[Edit, None] = {}
        self._exact: set[int] = set()

    @property
    def edits(self) -> tuple[Edit, ...]:
        """All edits in the order of their places; of several at one place the innermost first."""
        return tuple(sorted(self._found, key=lambda e: e.position))

    def makes_exact(self, call: exp.Expr) -> bool:
        """Whether the call of a function has one right result once the text is completed."""
        return self._place(call) in self._exact

    def of_select(
        self, lowering: Lowering, node: exp.Select, scope: Scope, relation: Node, projections: Projections
    ) -> None:
        """Complete the aggregates and windows that a SELECT computes itself.

        Raises FIVM106 where a result depends on ties and no completion would be what the text says.
        """
        check_definitions(node.args.get("windows") or [])
        select = _Select(self, lowering, node=node, scope=scope, relation=relation, projections=projections)
        clauses = [node.args.get(key) for key in ("having", "qualify", "order")]
        own = [n for part in (*node.expressions, *(c for c in clauses if c is not None)) for n in _own(part)]
        select.tell_rows_apart([found for found in own if isinstance(found, exp.Window)])
        for found in own:
            if isinstance(found, exp.Window):
                select.window(found)
            elif is_aggregate(found):
                select.aggregate(found)

    def of_limit(
        self, node: exp.Expr, ordered_by: Sequence[int | exp.Expr], outputs: Sequence[Field]
    ) -> None:
        """Complete the ORDER BY of a query with LIMIT by all columns of its result, by their positions.

        Rows that are equal in all of them are the same to whoever reads the result.
        """
        order = node.args["order"]
        missing = [i for i in range(len(outputs)) if i not in ordered_by]
        unordered = next((outputs[i] for i in missing if not outputs[i].type.is_groupable), None)
        end = self.text.end_of_order(order) if missing else None
        if unordered is not None or (missing and end is None):
            why = "its ORDER BY" if unordered is None else f"column {unordered.name} of type {unordered.type}"
            raise FivmError(
                "FIVM107",
                f"{why} does not tell which rows are the first",
                span=span_of(order),
                remedy="order by columns that tell all rows apart",
            )
        if end is not None:
            self.insert(end, "".join(f", {i + 1}" for i in missing))

    # Edits, by tokens

    def add(self, edits: Iterable[Edit]) -> None:
        """What has been found elsewhere."""
        self._found.update(dict.fromkeys(edits))

    def insert(self, behind: int, text: str) -> None:
        """Put ``text`` behind a token."""
        self._found.setdefault(Edit(self.text.end(behind), 0, text))

    def wrap(self, first: int, last: int, before: str, after: str) -> None:
        """Put text before one token and behind another."""
        self._found.setdefault(Edit(self.text.start(first), 0, before))
        self.insert(last, after)

    def replace(self, first: int, last: int, text: str) -> None:
        """Put ``text`` in the place of the tokens from one to another."""
        start = self.text.start(first)
        self._found.setdefault(Edit(start, self.text.end(last) - start, text))

    def touches(self, first: int, last: int) -> bool:
        """Whether something between two tokens is completed itself."""
        start, end = self.text.start(first), self.text.end(last)
        return any(start <= edit.position <= end for edit in self._found)

    def settle(self, call: exp.Expr) -> None:
        """Note that a call is exact after these edits."""
        place = self._place(call)
        if place is not None:
            self._exact.add(place)

    def _place(self, call: exp.Expr) -> int | None:
        if "start" in call.meta:
            return int(call.meta["start"])
        found = self.text.call(call)
        return self.text.start(found[0]) if found is not None else None


class _Select:
    """One SELECT of the text: what its names mean, and what it uses."""

    def __init__(
        self,
        found: Completions,
        lowering: Lowering,
        node: exp.Select,
        scope: Scope,
        relation: Node,
        projections: Projections,
    ) -> None:
        self.found = found
        self.text = found.text
        self.lowering = lowering
        self.node = node
        self.scope = scope
        self.relation = relation
        self.projections = projections
        self.aliases = {name.lower(): value for name, value in reversed(projections)}
        qualify_ = node.args.get("qualify")
        conditions = [("", qualify_.this)] if qualify_ is not None else []
        visible = {f.id for s in scope.sources for _, f in s.columns} | {f.id for _, f in scope.outputs}
        self.keys = [key for key in unique_keys(relation, lowering.catalog) if key <= visible]
        self.numbered: NumberedRows | None = None
        """The key that the text is given where none is known and rows must be told apart."""
        self.is_grouped = is_aggregated(node, [*projections, *conditions])

    # Windows

    def window(self, window: exp.Window) -> None:
        call = called(window.this)
        by = order_of(call)
        if self.found.makes_exact(call):
            return
        definition = self._definition(window)
        order, spec = definition.args.get("order"), definition.args.get("spec")
        frame = _Frame(spec)
        if not _depends_on_order(by, frame) or (by is Order.LIST and _is_sorted_list(window, frame)):
            return
        if order is None and by is Order.LIST and not frame.by_rows:
            return  # a list over the whole partition is sorted: see aggregate
        if order is None:
            raise _depends(window, "has no ORDER BY, so it", "add ORDER BY to the window")
        given = [*(definition.args.get("partition_by") or []), *(o.this for o in order.expressions)]
        if (
            by in (*_FIRST, Order.LAST, Order.NTH)
            and not frame.by_rows
            and self._is_given(_argument(call), given)
        ):
            # Rows that are equal in the order begin and end frames together, and have one value.
            self.found.settle(call)
            return
        missing = (
            self._missing_keys(given) if self.is_grouped else self._missing_columns(given, window, order)
        )
        if missing and not _may_complete(by, frame, window):
            is_end = by in (*_FIRST, Order.LAST)
            if is_end and _ignores_nulls(window) and self._fill(window, call, definition):
                return
            what = "has rows that are equal in its ORDER BY, among which it"
            raise _depends(window, what, "order by columns that tell all rows apart, or write a ROWS frame")
        if missing:
            self._complete_window(window, call, definition, "".join(f", {m}" for m in missing))
        self.found.settle(call)

    def _fill(self, window: exp.Window, call: exp.Expr, definition: exp.Window) -> bool:
        """Put the extreme by the order in the place of the first or last value that is not NULL."""
        place = self.text.call(call)
        over = self.text.behind(place[2], "OVER") if place is not None else None
        opening = self._bracket(window, definition, over) if over is not None else None
        if place is None or over is None or opening is None:
            raise _not_found(window)
        written = self.text.window_order(opening, framed=definition.args.get("spec") is not None)
        value = self.text.slice(*self.text.arguments(place[1], place[2])[0])
        order = definition.args["order"].expressions
        text = filled(value, written, order, last=order_of(call) is Order.LAST)
        if text is None or window.find(exp.Filter) is not None:
            return False
        if self.found.touches(place[0], over - 1):
            raise _not_found(window)
        self._must_be_ordered(call, _argument(call), "struct")
        self.found.replace(place[0], over - 1, text)
        self.found.settle(call)
        return True

    def _bracket(self, window: exp.Window, definition: exp.Window, over: int) -> int | None:
        """The opening bracket of the definition of a window; None where it is not found."""
        opening: int | None = over + 1
        if definition is not window:
            name = self.text.stands_at(definition.this)
            opening = None if name is None else name + 2
        return opening if opening is not None and self.text.tokens[opening].text == "(" else None

    def _is_given(self, value: exp.Expr, given: Sequence[exp.Expr]) -> bool:
        """Whether rows that are equal in what is given have equal values."""
        column = self._column(unparenthesized(value))
        return column is not None and any(column == self._column(unparenthesized(g)) for g in given)

    def _definition(self, window: exp.Window) -> exp.Window:
        return definition_of(window, self.node.args.get("windows") or [])

    def _complete_window(self, window: exp.Window, call: exp.Expr, definition: exp.Window, text: str) -> None:
        framed = definition.args.get("spec") is not None
        place = self.text.call(call)
        over = self.text.behind(place[2], "OVER") if place is not None else None
        opening = self._bracket(window, definition, over) if over is not None else None
        if over is None or opening is None:
            raise _not_found(window)
        if definition is window:
            self.found.insert(self.text.end_of_window_order(opening, framed=framed), text)
            return
        # The name may stand for other functions too, which are not to change: its definition is written out here.
        closing, end = self.text.closing(opening), self.text.end_of_window_order(opening, framed=framed)
        if self.found.touches(opening, closing):
            raise _not_found(window)
        rest = self.text.sql[self.text.end(end) : self.text.end(closing)]
        last = self.text.closing(over + 1) if self.text.tokens[over + 1].text == "(" else over + 1
        self.found.replace(over + 1, last, self.text.slice(opening, end) + text + rest)

    def tell_rows_apart(self, windows: Sequence[exp.Window]) -> None:
        """Number the rows that may be equal where windows put them in several orders.

        Otherwise it is open which place in one order goes with which in another. Raises FIVM106 where the text does
        not allow it.
        """
        if self.keys or self.is_grouped:
            return
        orders: dict[_Order, exp.Window] = {}
        for window in windows:
            order = self._order_of_equal_rows(window)
            if order is not None:
                orders.setdefault(order, window)
        if len(orders) < 2:
            return
        numbered = numbered_rows(self.text, self.node, self.scope, self.relation, self.lowering.catalog)
        if numbered is None:
            what = "is ordered in another way than a window beside it, so where rows are equal it"
            remedy = "compute one of the two in a subquery, and order the other by it too; or declare a key"
            raise _depends(list(orders.values())[1], what, remedy)
        self.numbered = numbered
        self.found.add(numbered.edits)

    def _order_of_equal_rows(self, window: exp.Window) -> _Order | None:
        """The order of a window that tells rows apart which are equal in all that is used; None of the others."""
        call = called(window.this)
        by = order_of(call)
        definition = self._definition(window)
        order, frame = definition.args.get("order"), _Frame(definition.args.get("spec"))
        if order is None or self.found.makes_exact(call) or not _tells_equal_rows_apart(by, frame, window):
            return None
        rows = frozenset(Scalar(p.copy()) for p in definition.args.get("partition_by") or [])
        return rows, tuple(Scalar(o.copy()) for o in order.expressions)

    def _missing_columns(self, given: Sequence[exp.Expr], window: exp.Window, order: exp.Expr) -> list[str]:
        """The columns that the SELECT uses besides those of the window's PARTITION BY and ORDER BY.

        Numbered rows go down where the order does: so the last of equal rows in one order is the first in the reverse.
        """
        fixed = {c for g in given for c in [self._column(unparenthesized(g))] if c is not None}
        if self.numbered is not None:
            down = " desc" if all(o.args.get("desc") for o in order.expressions) else ""
            columns = self._columns(self.numbered.fields, fixed, window)
            return [f"{column}{down}" for column in (*columns, *self.numbered.numbers)]
        if any(key <= fixed for key in self.keys):
            return []
        used: Collection[ColumnId]
        if self.keys:
            key = min(self.keys, key=lambda k: (len(k.difference(fixed)), sorted(k)))
            used = key
        else:
            used = self._used_columns()
        return self._columns(used, fixed, window)

    def _columns(self, used: Collection[ColumnId], fixed: set[ColumnId], window: exp.Window) -> list[str]:
        """The columns that are used and not fixed, as they can be written."""
        missing = []
        for source in self.scope.sources:
            for name, field in source.columns:
                if field.id in used and field.id not in fixed:
                    fixed.add(field.id)
                    missing.append(self._written(source.name, name, field, window))
        for name, field in self.scope.outputs:
            if field.id in used and field.id not in fixed:
                fixed.add(field.id)
                missing.append(self._written("", name, field, window))
        return missing

    def _used_columns(self) -> set[ColumnId]:
        used: set[ColumnId] = set()
        parts = [value for _, value in self.projections]
        clauses = (
            *(self.node.args.get(k) for k in ("qualify", "order")),
            *(self.node.args.get("windows") or []),
        )
        for part in (*parts, *(c for c in clauses if c is not None)):
            for column in part.find_all(exp.Column):
                if isinstance(column.this, exp.Star):
                    used.update(f.id for _, f in self.scope.outputs)
                used.update(self._meant(column))
        return used

    def _meant(self, column: exp.Column) -> Iterator[ColumnId]:
        """The columns of FROM that a reference may mean; none of another query."""
        try:
            meaning = self.scope.resolve(column)
        except FivmError:
            meaning = None
        if meaning is not None:
            yield from ((c.table, c.name) for c in meaning.find_all(exp.Column))

    def _column(self, value: exp.Expr) -> ColumnId | None:
        """The column that an item of an order is, maybe by an alias of the select list."""
        if isinstance(value, exp.Column) and not value.table and not list(self._meant(value)):
            value = unparenthesized(self.aliases.get(value.name.lower(), value))
        found = list(self._meant(value)) if isinstance(value, exp.Column) else []
        # A field of a struct does not tell what the whole is.
        is_whole = (
            isinstance(value, exp.Column) and found and isinstance(self.scope.resolve(value), exp.Column)
        )
        return found[0] if is_whole else None

    def _written(self, source: str, name: str, field: Field, window: exp.Window) -> str:
        if not field.type.is_groupable:
            what = f"is ordered neither by {name}, which has type {field.type}, nor by a key, so it"
            raise _depends(window, what, "order by columns that tell all rows apart")
        if source and source.lower() in self._names_in_from():
            return column_ast(source, name).sql(dialect="spark")
        if sum(n.lower() == name.lower() for n, _ in self.scope.outputs) != 1:
            raise _not_found(window)
        return quote(name)

    def _names_in_from(self) -> set[str]:
        """What the relations in FROM are called in the text."""
        clauses = [self.node.args.get("from_"), *(self.node.args.get("joins") or [])]
        names: set[str] = set()
        for clause in (*(c for c in clauses if c is not None), *(self.node.args.get("laterals") or [])):
            for part in clause.walk(
                prune=lambda n: isinstance(n, exp.Subquery) and not isinstance(n.this, exp.Table)
            ):
                alias = part.args.get("alias")
                name = alias.this if isinstance(alias, exp.TableAlias) else part.this
                if isinstance(name, exp.Identifier) and self.text.stands_at(name) is not None:
                    names.add(name.name.lower())
        return names

    def _missing_keys(self, given: Sequence[exp.Expr]) -> list[str]:
        """The group keys besides those in the window's PARTITION BY and ORDER BY."""
        keys = group_keys(self.node, self.scope, self.projections)
        fixed = {self._scalar(g) for g in given}
        missing = {self._scalar(k): key_text(k) for k in keys.expressions if not _is_outer(k)}
        written = [text for scalar, text in missing.items() if scalar not in fixed]
        by_set = keys.in_sets and not any(isinstance(g, exp.GroupingId) and not g.expressions for g in given)
        return [*written, "grouping_id()"] if by_set else written

    def _scalar(self, value: exp.Expr) -> Scalar:
        inner = unparenthesized(value)
        if isinstance(inner, exp.Column) and not inner.table and not list(self._meant(inner)):
            inner = self.aliases.get(inner.name.lower(), inner)
        try:
            return Scalar(unparenthesized(qualify(inner, self.scope)))
        except FivmError:
            return Scalar(inner.copy())

    # Aggregates

    def aggregate(self, call: exp.Expr) -> None:
        by = order_of(call)
        if self.found.makes_exact(call):
            return  # a subquery may be read twice: the second time with what it needs of the query around it
        if by is Order.LIST:
            self._collected(call)
        elif by is Order.TIES and isinstance(call, exp.Mode):
            self._mode(call)
        elif by is Order.TIES:
            self._extreme_by(call)
        elif by is Order.TEXT:
            self._joined(call)
        elif by is Order.ANY_ROW:
            self._any_value(call)

    def _collected(self, call: exp.Expr) -> None:
        """``sort_array(collect_list(x))``, where the list is not sorted, only counted, or in a window's order."""
        outer = call
        while isinstance(outer.parent, AROUND_AGGREGATES):
            outer = outer.parent
        parent = outer.parent
        if isinstance(parent, exp.Window) and parent.this is outer:
            outer = parent
            definition = self._definition(parent)
            if definition.args.get("order") is not None or _Frame(definition.args.get("spec")).by_rows:
                return
        place = self.text.call(call)
        if is_sorted(outer) or place is None:
            return
        self._must_be_ordered(call, _argument(call), "sort_array")
        self.found.wrap(place[0], self.text.end_of_call(place[2]), "sort_array(", ")")
        self.found.settle(call)

    def _extreme_by(self, call: exp.Expr) -> None:
        """``max_by(x, y)``: of the rows with the greatest y that with the greatest x."""
        if len(call.expressions) < 2:
            raise unsupported(
                call, f"{function_name(call)} of one argument", "say by what the row is chosen, too"
            )
        value, by = call.expressions[:2]
        column = self._column(unparenthesized(by))
        if names_its_ties(value, by):
            return
        if column is not None and any(key <= {column} for key in self.keys):
            self.found.settle(call)
            return
        place = self.text.call(call)
        arguments = self.text.arguments(place[1], place[2]) if place is not None else []
        if len(arguments) != len(call.expressions) or self.found.touches(arguments[0][0], arguments[1][1]):
            raise _not_found(call)
        self._must_be_ordered(call, value, "struct")
        x, y = (self.text.slice(*a) for a in arguments[:2])
        self.found.wrap(*arguments[1], "if((", f") is null, null, named_struct('y', {y}, 'x', {x}))")
        self.found.settle(call)

    def _mode(self, call: exp.Expr) -> None:
        """``mode(x, true)``: of the most frequent values the least."""
        place = self.text.call(call)
        if place is not None and len(self.text.arguments(place[1], place[2])) == 1:
            self._must_be_ordered(call, _argument(call), "mode(x, true)")
            self.found.insert(place[2] - 1, ", true")
            self.found.settle(call)

    def _any_value(self, call: exp.Expr) -> None:
        """``min(x)``, one of the values: NULL only where all are."""
        place = self.text.call(call)
        outer = call
        while isinstance(outer.parent, AROUND_AGGREGATES):
            outer = outer.parent
        if place is None or isinstance(outer.parent, exp.Window):
            return
        first, last = self.text.arguments(place[1], place[2])[0]
        if self.found.touches(place[0], place[2]):
            raise _not_found(call)
        self._must_be_ordered(call, _argument(call), "min")
        end = self.text.end_of_nulls(place[2])
        self.found.replace(place[0], end, f"min({self.text.slice(first, last)})")
        self.found.settle(call)

    def _joined(self, call: exp.Expr) -> None:
        """``listagg(x) WITHIN GROUP (ORDER BY y, x)``. With DISTINCT an order that is given is by the value already."""
        within = call.parent
        value = call.expressions[0]
        given = within.expression.expressions if isinstance(within, exp.WithinGroup) else []
        if given and (isinstance(value, exp.Distinct) or any(o.this == value for o in given)):
            return
        place = self.text.call(call)
        group = self.text.within_group(place[2]) if place is not None and given else None
        if place is None or (given and group is None):
            raise _not_found(call)
        first, last = self.text.arguments(place[1], place[2])[0]
        first += self.text.tokens[first].text.upper() in ("DISTINCT", "ALL")
        value_text = self.text.slice(first, last)
        if group is not None:
            self.found.insert(self.text.closing(group) - 1, f", {value_text}")
        else:
            self.found.insert(place[2], f" within group (order by {value_text})")
            self.found.settle(call)

    def _must_be_ordered(self, call: exp.Expr, value: exp.Expr, how: str) -> None:
        """FIVM106 where the values cannot be ordered, so that no tie between them can be broken."""
        type_ = self._type(value)
        if type_ is not None and not (type_.is_groupable or type_.text == "void"):
            what = f"is over {type_}, which {how} cannot order, so it"
            raise _depends(call, what, "extract what can be ordered, as in max_by(x.a, struct(y, x.a))")

    def _type(self, value: exp.Expr) -> SparkType | None:
        if self.is_grouped and any(is_aggregate(p) for p in value.walk()):
            return None
        try:
            scalar = Scalar(unparenthesized(qualify(value, self.scope)))
        except FivmError:
            return None  # lowering says why
        if scalar.ast().find(exp.Query) is not None:
            return None
        return self.lowering.typer.types([scalar], self.scope.types)[0]


class _Frame:
    """The frame of a window, as far as ties matter for it."""

    def __init__(self, spec: exp.Expr | None) -> None:
        args = spec.args if spec is not None else {}
        kind = str(args.get("kind") or "RANGE").upper()
        # ORDER BY without a frame means: up to the last row that is equal to this one.
        start, end = (_bound(args.get(k), d) for k, d in (("start", "UNBOUNDED"), ("end", "CURRENT ROW")))
        self.from_first = start == "UNBOUNDED"
        self.to_last = end == "UNBOUNDED"
        self.is_whole = self.from_first and self.to_last
        self.by_rows = kind == "ROWS" and not self.is_whole


def _bound(value: object, otherwise: str) -> str:
    return value.upper() if isinstance(value, str) else ("a row" if value is not None else otherwise)


def _depends_on_order(by: Order, frame: _Frame) -> bool:
    """Whether a window function looks at which of several equal rows comes first."""
    if by is Order.PEERS:
        return False
    return by is Order.ROW or by in _FROM_FRAME or frame.by_rows


def _may_complete(by: Order, frame: _Frame, window: exp.Window) -> bool:
    """Whether more columns in ORDER BY only choose among equal rows, and leave the frame what it was.

    In a frame by RANGE all rows that are equal in the order begin and end together, which more columns would change.
    """
    if by is Order.ROW or frame.by_rows or frame.is_whole:
        return True
    return not _ignores_nulls(window) and _is_from_an_end(by, frame)


def _tells_equal_rows_apart(by: Order, frame: _Frame, window: exp.Window) -> bool:
    """Whether rows that are equal in everything that is used may get different values, by their places."""
    if by is Order.ROW:
        return True
    return frame.by_rows and (_ignores_nulls(window) or not _is_from_an_end(by, frame))


def _is_from_an_end(by: Order, frame: _Frame) -> bool:
    return (by in _FIRST and frame.from_first) or (by is Order.LAST and frame.to_last)


def _ignores_nulls(window: exp.Window) -> bool:
    return window.find(exp.IgnoreNulls) is not None


def _is_sorted_list(window: exp.Window, frame: _Frame) -> bool:
    return not frame.by_rows and is_sorted(window)


def _own(node: exp.Expr) -> Iterator[exp.Expr]:
    """What belongs to a SELECT itself and not to a query in it, operands before what they are of."""
    if isinstance(node, exp.Query):
        return
    for child in node.iter_expressions():
        yield from _own(child)
    yield node


def _argument(call: exp.Expr) -> exp.Expr:
    first: exp.Expr = call.expressions[0] if isinstance(call, exp.Anonymous) else call.this
    return first.expressions[0] if isinstance(first, exp.Distinct) else first


def _is_outer(value: exp.Expr) -> bool:
    """Whether a group key is of the query around, so that it is the same for all groups."""
    return any(c.table.startswith(OF_OUTER) for c in value.find_all(exp.Column))


def _depends(node: exp.Expr, why: str, remedy: str) -> FivmError:
    return FivmError(
        "FIVM106",
        f"{node.sql('spark')} {why} depends on the order in which rows are read",
        span=span_of(node),
        remedy=remedy,
    )


def _not_found(node: exp.Expr) -> FivmError:
    what = f"{node.sql('spark')} may depend on ties, and its text cannot be completed here"
    return unsupported(node, what, "order by columns that tell all rows apart", code="FIVM106")
