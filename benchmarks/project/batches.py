"""What happens to the raw tables: the load of two years, and a week of business in each batch."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.project import markets, orders, parties
from benchmarks.project.sizes import Sizes, Span, hashed


def load(sizes: Sizes) -> Iterator[tuple[str, str]]:
    """Each table, and the SELECT that fills it."""
    yield "calendar", parties.calendar()
    yield "trade_types", parties.trade_types()
    yield "status_types", parties.status_types()
    yield "tax_rates", parties.tax_rates()
    yield "industries", markets.industries()
    yield "employees", parties.employees(sizes)
    yield "prospects", parties.prospects(sizes)
    yield from arrivals(sizes, Span.of_history())


def arrivals(sizes: Sizes, span: Span) -> Iterator[tuple[str, str]]:
    """Each table to which rows come in a span, and the SELECT that gives these."""
    yield "customer_events", parties.customers(sizes, span)
    yield "account_events", parties.accounts(sizes, span)
    yield "company_filings", markets.companies(sizes, span)
    yield "security_filings", markets.securities(sizes, span)
    yield "financial_reports", markets.reports(sizes, span)
    yield "daily_market", markets.market(sizes, span)
    yield "trades", orders.trades(sizes, span)
    yield "trade_history", orders.history(sizes, span)
    yield "holding_changes", orders.holdings(sizes, span)
    yield "cash_transactions", orders.cash(sizes, span)
    yield "watch_events", orders.watches(sizes, span)


def batch(sizes: Sizes, number: int) -> Iterator[str]:
    """The statements of a batch: a week of arrivals, orders that have moved on, and corrections."""
    span = Span.of_batch(number)
    yield from (f"insert into raw.{table} by name {rows}" for table, rows in arrivals(sizes, span))
    yield f"""
        merge into raw.trades as t using ({orders.changed_trades(sizes, span)}) as s
        on t.month = s.month and t.trade_id = s.trade_id
        when matched then update set
            status_id = s.status_id, trade_price = s.trade_price, commission = s.commission, tax = s.tax
    """
    yield from _corrections(number)
    yield from _deletions(number)
    is_changed = f"{hashed('changed', 100, 'agency_id')} = {number}"
    yield f"""
        merge into raw.prospects as t
        using (select * from ({parties.prospects(sizes, str(number))}) where {is_changed}) as s
        on t.agency_id = s.agency_id
        when matched then update set *
    """


def _corrections(number: int) -> Iterator[str]:
    """Fees of half a year ago, prices of last month, a branch that moves."""
    yield f"""
        update raw.trades set fee = fee + 1
        where month = '2023-{6 + number % 6:02d}' and pmod(trade_id, 200) = {number}
    """
    yield f"""
        update raw.daily_market set close = close + 0.05, high = high + 0.05
        where month = '2023-12' and {hashed("restated", 500, "symbol, day")} = {number}
    """
    yield f"update raw.employees set office = 'Linz' where branch = 'branch {number}'"


def _deletions(number: int) -> Iterator[str]:
    """Orders that had been entered twice, watches that nobody had wanted, and people who have moved away."""
    twice = f"{hashed('twice', 3_000, 'trade_id')} = {number}"
    yield f"delete from raw.trade_history where month in ('2023-12', '2024-01') and {twice}"
    yield f"delete from raw.trades where month = '2023-12' and {twice}"
    yield f"""
        delete from raw.watch_events
        where month = '2023-11' and {hashed("unwanted", 300, "customer_id, symbol")} = {number}
    """
    yield f"delete from raw.prospects where {hashed('moved', 1_000, 'agency_id')} = {number}"
