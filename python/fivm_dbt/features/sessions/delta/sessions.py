"""Sessions that are kept are made anew near a change, from their own old rows and the change.

A row at time t changes no session but those of its key K that it is within a gap g of, before or after the change: the
ones that have a row in ``[t − g, t + g]``. All their rows are in the state, so no input is read:

``touched = {(K, start) : row ∈ State, row.K = K, |row.t − t| ≤ g, (K, t) ∈ ΔR}``, or some more, by blocks of time
``ΔSessions(R) = Sessions(State ⋉ touched ⊎ ΔR) − State ⋉ touched``

A row of ``ΔR`` that goes was in a touched session. What is left of these and what comes is more than a gap away from
all other rows, or it would have touched their session. On which days the rows of a session may lie is told by its
start and its *until* (:mod:`fivm_dbt.ir.sessions`). A row at the end of a session changes the row of it that was the
last one, and all rows when the session becomes twice as long: for that, of n rows that come one by one fewer than 2n
are written again.
"""

from __future__ import annotations

from dataclasses import dataclass

from fivm_dbt.catalog.types import BIGINT, DATE, INT
from fivm_dbt.delta.blocks import blocks_within
from fivm_dbt.delta.own_state import DELTAS_OF_OWN_ROWS
from fivm_dbt.delta.rule import told_of
from fivm_dbt.delta.rules.by_key import told_of_local
from fivm_dbt.delta.term import Term
from fivm_dbt.ir.aggregate import Aggregate, AggregateCall
from fivm_dbt.ir.instants import aligned, utc_day, utc_day_number
from fivm_dbt.ir.node import Item, Side
from fivm_dbt.ir.nodes import Distinct, Explode, Filter, Map, UnionAll
from fivm_dbt.ir.one_sided import Restrict
from fivm_dbt.ir.reads import Scan
from fivm_dbt.ir.scalar import Scalar
from fivm_dbt.ir.sessions import SESSION_START, SESSION_UNTIL, Sessions
from fivm_dbt.naming import COUNT

_OWN, _DAYS, _DAY = "own_state", "session_days", "day_number"


@DELTAS_OF_OWN_ROWS.add(Sessions)
def delta_of_sessions(
    rows: Map, local: Sessions, state: str, keys: tuple[str, ...], changed: tuple[Term, ...]
) -> tuple[Term, ...]:
    """``ΔSessions`` where ``state`` keeps ``rows``, a projection of all columns of ``local``.

    ``keys`` are the columns of the state in which K, the block of a row and the day of that are.
    """
    kept = _KeptSessions(rows, local, state, keys, changed)
    minus = Scalar.parse(f"-{Scalar.column(rows.alias, COUNT).sql}")
    return (Term(kept.made(), Scalar.column(rows.alias, COUNT)), Term(kept.gone(), minus))


@told_of(Sessions)
def told_of_sessions(node: Sessions, is_own: bool) -> str:
    if node.near is None:
        return told_of_local(node, is_own)
    return "sessions near a changed row, made anew from their rows in the own state and the change"


def days_between(first: Scalar, last: Scalar, gap: int) -> tuple[Scalar, Scalar]:
    """The numbers of the days on which rows from one time to another lie, by the blocks of these."""
    return utc_day_number(aligned(first, gap)), utc_day_number(aligned(last, gap))


@dataclass(frozen=True)
class _KeptSessions:
    rows: Map
    local: Sessions
    state: str
    keys: tuple[str, ...]
    changed: tuple[Term, ...]

    def stored(self) -> Scan:
        columns = tuple((i.name, i.type) for i in self.rows.items)
        return Scan(self.state, _OWN, (*columns, (COUNT, BIGINT)), Side.OLD)

    def column_of(self, name: str) -> Scalar:
        """What of a stored row a column of the sessions is."""
        shown = Scalar.column(self.local.alias, name)
        return Scalar.column(_OWN, next(i.name for i in self.rows.items if i.value == shown))

    def touched(self) -> Distinct:
        """``(K, start, day)`` of each session near a changed row, for each day on which it may have rows."""
        local, near = self.local, self.local.near
        assert near is not None
        changed = tuple(t.node for t in self.changed)
        blocks = blocks_within(
            changed,
            local.keys,
            near=near,
            steps=near.needed,
            alias=f"{local.alias}_near",
            day_of=lambda block: utc_day(utc_day_number(block)),
        )
        pairs = tuple(
            (Scalar.column(_OWN, key), f.scalar) for key, f in zip(self.keys, blocks.fields, strict=True)
        )
        names = [f"key_{i + 1}" for i in range(len(local.keys))]
        of_keys = [
            Item(n, Scalar.column(_OWN, c), k.type)
            for n, c, k in zip(names, self.keys, local.keys, strict=False)
        ]
        bounds = [Item(n, self.column_of(n), BIGINT) for n in (SESSION_START, SESSION_UNTIL)]
        alias = f"{local.alias}_touched"
        each = Aggregate(Restrict(self.stored(), Distinct(blocks), pairs), alias, (*of_keys, *bounds), ())
        first = Scalar.column(alias, SESSION_START)
        last = Scalar.parse(f"{Scalar.column(alias, SESSION_UNTIL).sql} - {local.gap}")
        ends = ", ".join(day.sql for day in days_between(first, last, local.gap))
        days = Explode(each, _DAYS, Scalar.parse(f"EXPLODE(SEQUENCE({ends}))"), ((_DAY, INT),))
        items = [Item(n, Scalar.column(alias, n), k.type) for n, k in zip(names, local.keys, strict=True)]
        items += [
            Item(SESSION_START, first, BIGINT),
            Item("block_day", utc_day(Scalar.column(_DAYS, _DAY)), DATE),
        ]
        return Distinct(Map(days, f"{local.alias}_sessions", tuple(items)))

    def old_rows(self) -> Restrict:
        """The stored rows of touched sessions."""
        touched = self.touched()
        *of, _, day = (Scalar.column(_OWN, key) for key in self.keys)
        values = (*of, self.column_of(SESSION_START), day)
        pairs = tuple((v, f.scalar) for v, f in zip(values, touched.fields, strict=True))
        return Restrict(self.stored(), touched, pairs)

    def gone(self) -> Map:
        count = Item(COUNT, Scalar.column(_OWN, COUNT), BIGINT)
        items = tuple(Item(i.name, Scalar.column(_OWN, i.name), i.type) for i in self.rows.items)
        return Map(self.old_rows(), self.rows.alias, (*items, count))

    def made(self) -> Map:
        """What these rows and the changed ones are sessions of, each row with its multiplicity.

        One with a multiplicity below zero is left in, for the state to raise its alarm.
        """
        local, alias = self.local, f"{self.local.alias}_net"
        old = tuple(Item(i.name, self.column_of(i.name), i.type) for i in local.items)
        branches = [
            Map(self.old_rows(), alias, (*old, Item(COUNT, Scalar.column(_OWN, COUNT), BIGINT))),
            *(Map(t.node, alias, (*local.items, Item(COUNT, t.multiplicity, BIGINT))) for t in self.changed),
        ]
        summed = f"{self.local.alias}_rows"
        every = tuple(Item(i.name, Scalar.column(alias, i.name), i.type) for i in local.items)
        many = Scalar.parse(f"SUM({Scalar.column(alias, COUNT).sql})")
        net = Aggregate(
            UnionAll(tuple(branches), alias),
            summed,
            every,
            (AggregateCall.as_written(COUNT, "sum", many, BIGINT),),
        )
        count = Scalar.column(summed, COUNT)
        there = Filter(net, (Scalar.parse(f"{count.sql} <> 0"),))
        values = {i.value: Scalar.column(summed, i.name) for i in local.items}
        again = Sessions(
            there,
            local.alias,
            tuple(Item(k.name, values[k.value], k.type) for k in local.keys),
            (*(Item(i.name, values[i.value], i.type) for i in local.items), Item(COUNT, count, BIGINT)),
            at=values[local.at],
            gap=local.gap,
            bounds=local.bounds,
        )
        return Map(
            again,
            self.rows.alias,
            (*self.rows.items, Item(COUNT, Scalar.column(local.alias, COUNT), BIGINT)),
        )
