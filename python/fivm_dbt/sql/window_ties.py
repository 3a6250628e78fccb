"""A window's function and frame say what becomes of rows that are equal in its ORDER BY."""

from __future__ import annotations

from sqlglot import exp

from fivm_dbt.functions.function import Order
from fivm_dbt.functions.lookup import order_of
from fivm_dbt.sql.aggregates import called, is_sorted

_FIRST = (Order.FIRST, Order.ANY_ROW)


class WindowCall:
    """The call of a function over a window, as far as ties matter for it."""

    def __init__(self, window: exp.Window, definition: exp.Window) -> None:
        self.window = window
        self.function = called(window.this)
        self.definition = definition
        self.partition: list[exp.Expr] = definition.args.get("partition_by") or []
        order = definition.args.get("order")
        self.order: list[exp.Expr] = order.expressions if order is not None else []
        self.by = order_of(self.function)
        self.takes_an_end = self.by in (*_FIRST, Order.LAST)
        self.takes_a_row = self.takes_an_end or self.by is Order.NTH
        self.ignores_nulls = window.find(exp.IgnoreNulls) is not None
        spec = definition.args.get("spec")
        self.is_framed = spec is not None
        args = spec.args if spec is not None else {}
        # ORDER BY without a frame means: up to the last row that is equal to this one.
        self.from_first = _bound(args.get("start"), "UNBOUNDED") == "UNBOUNDED"
        self.to_last = _bound(args.get("end"), "CURRENT ROW") == "UNBOUNDED"
        self.is_whole = self.from_first and self.to_last
        self.by_rows = str(args.get("kind") or "RANGE").upper() == "ROWS" and not self.is_whole

    @property
    def given(self) -> list[exp.Expr]:
        """What the window divides and orders rows by."""
        return [*self.partition, *(item.this for item in self.order)]

    @property
    def depends_on_ties(self) -> bool:
        """Whether the function looks at which of several equal rows comes first."""
        if self.by is Order.LIST and not self.by_rows:
            # A list over the whole partition is completed as an aggregate is.
            return bool(self.order) and not is_sorted(self.window)
        if self.by is Order.PEERS:
            return False
        return self.by is Order.ROW or self.takes_a_row or self.by_rows

    @property
    def may_be_completed(self) -> bool:
        """Whether more columns in ORDER BY only choose among equal rows, and leave the frame what it was.

        In a frame by RANGE all rows that are equal in the order begin and end together, which these would change.
        """
        if self.by is Order.ROW or self.by_rows or self.is_whole:
            return True
        return not self.ignores_nulls and self._is_from_an_end

    @property
    def tells_equal_rows_apart(self) -> bool:
        """Whether rows that are equal in everything that is used may get different values, by their places."""
        if self.by is Order.ROW:
            return True
        return self.by_rows and (self.ignores_nulls or not self._is_from_an_end)

    @property
    def _is_from_an_end(self) -> bool:
        return (self.by in _FIRST and self.from_first) or (self.by is Order.LAST and self.to_last)


def _bound(value: object, otherwise: str) -> str:
    return value.upper() if isinstance(value, str) else ("a row" if value is not None else otherwise)
