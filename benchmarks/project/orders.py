"""What customers do, as SQL: orders and their history, holdings, cash, watches. All follow from ids by hashes.

Each text selects what arrives within a span of time. Now and then something arrives some days after it has happened.
"""

from __future__ import annotations

from benchmarks.project.sizes import DAY, HISTORY, Sizes, Span, chosen, hashed, instant, month_of

_LATE = 5 * DAY
_LONGEST = 25 * DAY
"""An order is closed, and all of it has arrived, so long after it was placed."""

_WATCHED = 200
"""Most days between a watch and its end."""


def history(sizes: Sizes, span: Span) -> str:
    """The statuses that arrive in a span."""
    return f"""
        select trade_id, event.status_id, {instant("event.at")} as changed_at, {month_of("event.at")} as month
        from (select trade_id, explode(events) as event from ({_orders(sizes, span)}))
        where {span.has(_arrival("event.at", "trade_id, event.status_id"))}
    """


def trades(sizes: Sizes, span: Span) -> str:
    """The orders that are placed in a span, as they are at its end."""
    return f"select {_TRADE} from ({_as_they_are(sizes, span)}) where {span.has('at')}"


def changed_trades(sizes: Sizes, span: Span) -> str:
    """Older orders that have another status at the end of a span than before it."""
    return f"""
        select trade_id, month, status_id, trade_price, commission, tax
        from (select {_TRADE}, at, {_status(span.after)} as old_status_id from ({_as_they_are(sizes, span)}))
        where at <= {span.after} and status_id <> old_status_id
    """


def holdings(sizes: Sizes, span: Span) -> str:
    """What completed orders have made of the holdings, in a span."""
    quantity = hashed("quantity", 500, "trade_id")
    return f"""
        select trade_id, greatest(0, trade_id - {hashed("opening", 50_000, "trade_id")}) as opening_trade_id,
            cast(if(is_sell, 100 + {quantity}, 0) as int) as before_quantity,
            cast(if(is_sell, {hashed("left", 100, "trade_id")}, 10 + {quantity}) as int) as after_quantity,
            {month_of("closed.at")} as month
        from (select *, element_at(events, -1) as closed from ({_orders(sizes, span)}))
        where closed.status_id = 'CMPT' and {span.has("closed.at")}
    """


def cash(sizes: Sizes, span: Span) -> str:
    """Money that comes to accounts and goes."""
    at = _at(sizes.cash_transactions)
    amount = f"if({hashed('sign', 20)} < 11, 1, -1) * (5 + {hashed('amount', 500_000)} / 100)"
    return f"""
        select {hashed("account", sizes.accounts)} as account_id, {instant("at")} as happened_at,
            cast({amount} as decimal(10,2)) as amount,
            {chosen("memo", "deposit", "dividend", "settlement", "fee")} as memo, {month_of("at")} as month
        from (select id, {at} as at from {span.ids(_gap(sizes.cash_transactions), _LATE)})
        where {span.has(_arrival("at", "id"))}
    """


def watches(sizes: Sizes, span: Span) -> str:
    """Watches that are placed, and some that are removed later."""
    placed, gap = _at(sizes.watches), _gap(sizes.watches)
    removed = f"if({hashed('is removed', 10)} < 4, at + {DAY} + {hashed('days', _WATCHED)} * {DAY}, null)"
    return f"""
        select {hashed("customer", sizes.customers)} as customer_id, {_symbol(sizes)} as symbol,
            {instant("event.at")} as happened_at, event.action, {month_of("event.at")} as month
        from (
            select id, explode(array(
                named_struct('action', 'ACTV', 'at', at), named_struct('action', 'CNCL', 'at', {removed})
            )) as event
            from (select id, {placed} as at from {span.ids(gap, (_WATCHED + 1) * DAY)})
        )
        where {span.has("event.at")}
    """


_TRADE = f"""
    trade_id, account_id, symbol, type_id, status_id, {instant("at")} as placed_at, is_cash, quantity, bid_price,
    if(status_id = 'CMPT', trade_price, null) as trade_price, fee,
    if(status_id = 'CMPT', cast(quantity * trade_price * 0.002 as decimal(10,2)), null) as commission,
    if(status_id = 'CMPT', cast(quantity * trade_price * 0.0005 as decimal(10,2)), null) as tax,
    {month_of("at")} as month
"""


def _as_they_are(sizes: Sizes, span: Span) -> str:
    """Orders with their status at the end of a span."""
    return f"select *, {_status(span.until)} as status_id from ({_orders(sizes, span)})"


def _status(until: int) -> str:
    """The newest status of an order, of which the events come by time."""
    return f"element_at(filter(events, e -> e.at <= {until}), -1).status_id"


def _orders(sizes: Sizes, span: Span) -> str:
    """The orders of which something may happen in a span: their columns, and all that ever happens to each."""
    kind = hashed("kind", 10)
    bid = "cast(5 + pmod(xxhash64(id, 'bid'), 20000) / 100 as decimal(8,2))"
    return f"""
        select id as trade_id, at, is_sell, {hashed("account", sizes.accounts)} as account_id,
            {_symbol(sizes)} as symbol, concat(if(is_market, 'M', 'L'), if(is_sell, 'S', 'B')) as type_id,
            {hashed("is cash", 5)} < 4 as is_cash, cast(10 + {hashed("quantity", 500)} as int) as quantity,
            {bid} as bid_price, cast({bid} * (0.98 + {hashed("price", 400)} / 10000) as decimal(8,2)) as trade_price,
            if({hashed("no fee", 50)} = 0, null, cast(1 + {hashed("fee", 2_000)} / 100 as decimal(10,2))) as fee,
            if(is_market, {_events(True)}, {_events(False)}) as events
        from (
            select id, {_at(sizes.trades)} as at, {kind} < 6 as is_market, pmod({kind}, 2) = 1 as is_sell
            from {span.ids(_gap(sizes.trades), _LONGEST)}
        )
    """


def _events(is_market: bool) -> str:
    """All that ever happens to an order: one at the market is filled in minutes, one with a limit waits for days."""
    if is_market:
        steps = [("'SBMT'", "at"), ("'CMPT'", f"at + 1 + {hashed('filled', 300)}")]
    else:
        closed = f"if({hashed('is canceled', 10)} < 2, 'CNCL', 'CMPT')"
        submitted, waited = f"at + 3600 + {hashed('submitted', 4 * DAY)}", f"{hashed('closed', 6 * DAY)}"
        steps = [("'PNDG'", "at"), ("'SBMT'", submitted), (closed, f"at + 7200 + {4 * DAY} + {waited}")]
    return f"array({', '.join(_event(status, at) for status, at in steps)})"


def _event(status: str, at: str) -> str:
    return f"named_struct('status_id', {status}, 'at', {at})"


def _arrival(at: str, key: str) -> str:
    """When something arrives: one of forty is late."""
    return f"({at} + if({hashed('late', 40, key)} = 0, {_LATE}, 0))"


def _symbol(sizes: Sizes) -> str:
    return f"concat('S', lpad({hashed('symbol', sizes.securities)}, 5, '0'))"


def _gap(number: int) -> float:
    """Seconds between two of what there are so many in the two years."""
    return HISTORY / number


def _at(number: int) -> str:
    """When one of them happens, by its id."""
    return f"cast(id * {_gap(number)!r}D as bigint)"
