"""The ORDER BY of a window is completed in the text, so that equal rows have one order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from fivm_dbt.functions.function import Order
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.sql.aggregates import called, depends_on_order, first_argument
from fivm_dbt.sql.filled_values import filled
from fivm_dbt.sql.numbered_rows import NumberedRows, numbered_rows
from fivm_dbt.sql.select_names import SelectNames, not_found
from fivm_dbt.sql.tie_breakers import tie_breakers
from fivm_dbt.sql.window_ties import WindowCall

if TYPE_CHECKING:
    from fivm_dbt.sql.completions import Completions

_Order = tuple[frozenset[Scalar], tuple[Scalar, ...]]
"""PARTITION BY and ORDER BY of a window."""


class CompletedWindows:
    """The windows of one SELECT."""

    def __init__(self, found: Completions, select: SelectNames) -> None:
        self.found = found
        self.text = found.text
        self.select = select
        self.numbered: NumberedRows | None = None
        """The key that the text is given where none is known and rows must be told apart."""

    def tell_rows_apart(self, windows: Sequence[exp.Window]) -> None:
        """Number the rows that may be equal where windows put them in several orders.

        Otherwise it is open which place in one order goes with which in another. Raises FIVM106 where the text does
        not allow it.
        """
        select = self.select
        if select.keys or select.is_grouped:
            return
        orders: dict[_Order, exp.Window] = {}
        for window in windows:
            order = self._order_of_equal_rows(window)
            if order is not None:
                orders.setdefault(order, window)
        if len(orders) < 2:
            return
        self.numbered = numbered_rows(
            self.text, select.node, select.scope, select.relation, select.lowering.catalog
        )
        if self.numbered is None:
            what = "is ordered in another way than a window beside it, so where rows are equal it"
            remedy = "compute one of the two in a subquery, and order the other by it too; or declare a key"
            raise depends_on_order(list(orders.values())[1], remedy, what)
        self.found.add(self.numbered.edits)

    def _order_of_equal_rows(self, window: exp.Window) -> _Order | None:
        """The order of a window that tells rows apart which are equal in all that is used; None of the others."""
        call = WindowCall(window, self.select.definition(window))
        if not call.order or self.found.makes_exact(call.function) or not call.tells_equal_rows_apart:
            return None
        rows = frozenset(Scalar(p.copy()) for p in call.partition)
        return rows, tuple(Scalar(o.copy()) for o in call.order)

    def complete(self, window: exp.Window) -> None:
        """Raises FIVM106 where the result depends on ties and no completion would be what the text says."""
        if self.found.makes_exact(called(window.this)):
            return
        call = WindowCall(window, self.select.definition(window))
        if not call.depends_on_ties:
            return
        if not call.order:
            raise depends_on_order(window, "add ORDER BY to the window", "has no ORDER BY, so it")
        if self._is_given(call):
            self.found.settle(call.function)
            return
        missing = tie_breakers(self.select, call, self.numbered)
        if missing and not call.may_be_completed:
            if call.takes_an_end and call.ignores_nulls and self._fill(call):
                return
            what = "has rows that are equal in its ORDER BY, among which it"
            remedy = "order by columns that tell all rows apart, or write a ROWS frame"
            raise depends_on_order(window, remedy, what)
        if missing:
            self._add(call, "".join(f", {m}" for m in missing))
        self.found.settle(call.function)

    def _is_given(self, call: WindowCall) -> bool:
        """Whether rows that are equal in the order begin and end frames together, and have one value."""
        if call.by_rows or not call.takes_a_row:
            return False
        column = self.select.column(first_argument(call.function))
        return column is not None and any(column == self.select.column(g) for g in call.given)

    def _fill(self, call: WindowCall) -> bool:
        """Put the extreme by the order in the place of the first or last value that is not NULL."""
        place, over, opening = self._place(call)
        written = self.text.window_order(opening, framed=call.is_framed)
        value = self.text.slice(*self.text.arguments(place[1], place[2])[0])
        text = filled(value, written, call.order, last=call.by is Order.LAST)
        if text is None or call.window.find(exp.Filter) is not None:
            return False
        if self.found.touches(place[0], over - 1):
            raise not_found(call.window)
        self.select.check_ordered(call.function, first_argument(call.function), "struct")
        self.found.replace(place[0], over - 1, text)
        self.found.settle(call.function)
        return True

    def _add(self, call: WindowCall, text: str) -> None:
        """Put ``text`` behind the ORDER BY of a window."""
        _, over, opening = self._place(call)
        end = self.text.end_of_window_order(opening, framed=call.is_framed)
        if call.definition is call.window:
            self.found.insert(end, text)
            return
        # The name may stand for other functions too, which are not to change: its definition is written out here.
        start, middle = self.text.start(opening), self.text.end(end)
        closing = self.text.end(self.text.closing(opening))
        written = self.found.completed(start, middle) + text + self.found.completed(middle, closing)
        last = self.text.closing(over + 1) if self.text.tokens[over + 1].text == "(" else over + 1
        self.found.replace(over + 1, last, written)

    def _place(self, call: WindowCall) -> tuple[tuple[int, int, int], int, int]:
        """The tokens of a call, of its OVER, and of the bracket that opens the definition of its window."""
        place = self.text.call(call.function)
        over = self.text.behind(place[2], "OVER") if place is not None else None
        opening = over + 1 if over is not None else None
        if call.definition is not call.window:
            name = self.text.stands_at(call.definition.this)
            opening = name + 2 if name is not None else None
        if place is None or over is None or opening is None or self.text.tokens[opening].text != "(":
            raise not_found(call.window)
        return place, over, opening
