"""What is traded, as SQL: companies and their reports, securities, and each day's prices."""

from __future__ import annotations

from benchmarks.project.sizes import BEFORE, DAY, HISTORY, START, Sizes, Span, chosen, hashed, instant

_SECTORS = ("Energy", "Materials", "Industry", "Consumers", "Health", "Finance", "Technology", "Utilities")
_RATINGS = ("AAA", "AA", "A", "BBB+", "BBB", "BB", "B", "CCC")
_INDUSTRIES = 100
_QUARTER = 91 * DAY
_REPORTED = 60
"""Most days between the end of a quarter and its report."""

_YEAR_OF_HISTORY = BEFORE // DAY
_ONE_DAY_LATE = 5 * DAY
"""Some prices come that late."""


def industries() -> str:
    """Each is of a sector."""
    return f"""
        select concat('I', id) as industry_id, concat('industry ', id) as name, {chosen("sector", *_SECTORS)} as sector
        from range({_INDUSTRIES})
    """


def companies(sizes: Sizes, span: Span) -> str:
    """What companies file: once at the beginning, and then whenever something changes."""
    return f"""
        select id as filing_id, {_whose("company", sizes.companies)} as company_id, {instant("at")} as filed_at,
            concat('company ', {_whose("company", sizes.companies)}) as name,
            if({hashed("status", 40)} = 0, 'inactive', 'active') as status,
            concat('I', {hashed("industry", _INDUSTRIES, "pmod(id, 7919)")}) as industry_id,
            if({hashed("no rating", 20)} = 0, null, {chosen("rating", *_RATINGS)}) as rating,
            {chosen("country", "AT", "DE", "US", "GB", "FR")} as country
        from {span.comers(sizes.companies, 1)} where {span.has("at")}
    """


def securities(sizes: Sizes, span: Span) -> str:
    """The same of securities."""
    symbol = _symbol(_whose("symbol", sizes.securities))
    return f"""
        select id as filing_id, {symbol} as symbol, {instant("at")} as filed_at,
            pmod({_whose("symbol", sizes.securities)}, {sizes.companies}) as company_id,
            concat('security ', {_whose("symbol", sizes.securities)}) as name,
            {chosen("issue", "COMMON", "PREF_A", "PREF_B")} as issue,
            {chosen("exchange", "NYSE", "NASDAQ", "AMEX")} as exchange,
            100000 + {hashed("shares", 10_000_000)} as shares,
            cast({hashed("dividend", 500)} / 100 as decimal(8,2)) as dividend
        from {span.comers(sizes.securities, 1)} where {span.has("at")}
    """


def reports(sizes: Sizes, span: Span) -> str:
    """A report for each company and quarter, some weeks after the quarter."""
    quarters = HISTORY // _QUARTER + 5
    started = "add_months(date'2021-01-01', cast(3 * quarter as int))"
    reported = f"date_add(add_months({started}, 3), cast(5 + pmod(xxhash64(company_id, quarter), {_REPORTED}) as int))"
    key = "company_id, quarter"
    return f"""
        select company_id, {started} as quarter_start, {reported} as reported_on,
            cast(100000 + {hashed("revenue", 900_000_000, key)} as decimal(15,2)) as revenue,
            cast({hashed("earnings", 90_000_000, key)} - 10000000 as decimal(15,2)) as earnings,
            100000 + {hashed("shares", 10_000_000, key)} as shares
        from (
            select company.id as company_id, quarters.id as quarter
            from range({sizes.companies}) as company cross join range({quarters}) as quarters
        )
        where {span.has(_seconds(reported))}
    """


def market(sizes: Sizes, span: Span) -> str:
    """Prices of all weekdays; one of two thousand comes some days late."""
    first = max(-_YEAR_OF_HISTORY // 4, (span.after - _ONE_DAY_LATE) // DAY - 1)
    return f"""
        select symbol, day, close, cast(close * (1 + move) as decimal(8,2)) as high,
            cast(close * (1 - move) as decimal(8,2)) as low, volume, date_format(day, 'yyyy-MM') as month
        from (
            select {_symbol("id")} as symbol, day, pmod(xxhash64(id, day, 'move'), 500) / 10000 as move,
                pmod(xxhash64(id, day, 'volume'), 10000000) as volume,
                cast({_price()} as decimal(8,2)) as close,
                at + if(pmod(xxhash64(id, day, 'late'), 2000) = 0, {_ONE_DAY_LATE}, 0) as arrives
            from (
                select symbols.id, days.id * {DAY} + {DAY} as at, days.id as number,
                    date_add(date'{START:%Y-%m-%d}', cast(days.id as int)) as day
                from range({sizes.securities}) as symbols cross join range({first}, {span.until // DAY}) as days
            )
            where dayofweek(day) not in (1, 7)
        )
        where {span.has("arrives")}
    """


def _price() -> str:
    """Two waves around what a security is about worth, with noise."""
    waves = f"0.2 * sin(number / (20.0D + {hashed('wave', 60)})) + 0.1 * sin(number / (5.0D + {hashed('ripple', 9)}))"
    return f"(10 + {hashed('worth', 20_000)} / 100) * (1 + {waves} + pmod(xxhash64(id, day, 'noise'), 400) / 10000)"


def _whose(of: str, number: int) -> str:
    """Whose filing it is: the first ones are one of each."""
    return f"if(id < {number}, id, {hashed(of, number)})"


def _symbol(number: str) -> str:
    return f"concat('S', lpad({number}, 5, '0'))"


def _seconds(day: str) -> str:
    return f"(datediff({day}, date'{START:%Y-%m-%d}') * {DAY})"
