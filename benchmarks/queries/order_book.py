"""Bids and asks of one stock, as they come, change and go during a day.

As in the paper's trace nearly as many orders go as come, and there are ten brokers, by the order's number. Prices are
in ten-thousandths of a dollar, so that the 1,000 in query AXF are ten cents; volumes are shares.
"""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.queries.draft import Draft
from benchmarks.queries.suite import Batch
from fivm_dbt.catalog import Column
from fivm_dbt.refresh.engine import Row
from fivm_dbt.testing.workbench import TableSpec

_COLUMNS = ("t", "id", "broker_id", "price", "volume")
_SIDES = {"bids": 299_000, "asks": 301_000}
"""The middle of each side's prices; they spread over 3,000 around it, so that the sides overlap."""

BROKERS = 10
BOOK = tuple(TableSpec(side, tuple(Column.of(name, "bigint") for name in _COLUMNS)) for side in _SIDES)


class _Book:
    def __init__(self, orders: int, seed: int) -> None:
        self.draft = Draft(dict.fromkeys(_SIDES, _COLUMNS), {}, seed)
        self.orders = orders
        self._time = 0

    def come(self, side: str, count: int) -> None:
        """New orders; some are so small that PSP leaves them out."""
        random = self.draft.random
        for _ in range(count):
            self._time += 1
            price = _SIDES[side] + random.randint(-3_000, 3_000)
            volume = random.randint(1, 5) if random.random() < 0.2 else random.randint(100, 2_000)
            broker = self._time % BROKERS
            self.draft.insert(side, t=self._time, id=self._time, broker_id=broker, price=price, volume=volume)

    def go(self, side: str, count: int) -> None:
        for row in self.draft.some(side, count):
            self.draft.delete(side, row)

    def trade(self) -> None:
        """A usual batch: a tenth of either side comes, goes, or is partly filled."""
        tenth = max(1, self.orders // 10)
        for side in _SIDES:
            self.come(side, tenth)
            self.go(side, tenth - 1)
            for row in self.draft.some(side, tenth):
                self.draft.update(side, row, volume=max(1, (row.volume or 1) // 2))

    def best_go(self) -> None:
        """The orders at the highest prices go: the inner sums of VWAP and MST become sums over nothing elsewhere."""
        for side in _SIDES:
            for row in sorted(self.draft.rows(side), key=lambda r: -r.price)[: max(2, self.orders // 20)]:
                self.draft.delete(side, row)

    def one_again(self) -> None:
        """An order is placed twice, and another one changes its price."""
        for side in _SIDES:
            self.draft.insert_row(side, self.draft.some(side, 1)[0])
            row = self.draft.some(side, 1)[0]
            self.draft.update(side, row, price=row.price + 500)

    def nulls(self) -> None:
        """Orders without volume, without price, without broker."""
        for side in _SIDES:
            for row, column in zip(self.draft.some(side, 3), ("volume", "price", "broker_id"), strict=False):
                self.draft.update(side, row, **{column: None})

    def empty(self, *sides: str) -> None:
        for side in sides:
            for row in self.draft.rows(side):
                for _ in range(self.draft.copies(side, row)):
                    self.draft.delete(side, row)


def order_book(orders: int = 200, seed: int = 25) -> tuple[dict[str, tuple[Row, ...]], tuple[Batch, ...]]:
    """The first ``orders`` bids and asks, and the stream of batches that follow."""
    book = _Book(orders, seed)
    for side in _SIDES:
        book.come(side, orders)
    first = {side: change.insert for side, change in book.draft.finish("the first orders").changes.items()}
    batches: list[Batch] = []

    def do(title: str, make: Callable[[], None]) -> None:
        make()
        batches.append(book.draft.finish(title))

    def undo() -> None:
        batches.append(book.draft.undo())

    do("trade", book.trade)
    do("the highest prices go", book.best_go)
    undo()
    do("bids alone", lambda: book.come("bids", max(1, orders // 10)))
    do("asks go", lambda: book.go("asks", max(1, orders // 5)))
    do("the same order again", book.one_again)
    do("trade again", book.trade)
    do("no asks at all", lambda: book.empty("asks"))
    undo()
    do("nothing at all", lambda: book.empty("bids", "asks"))
    undo()
    do("a late trade", book.trade)
    do("NULLs", book.nulls)
    undo()
    undo()
    undo()
    return first, tuple(batches)
