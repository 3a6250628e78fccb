"""Who takes part, as SQL: customers and their accounts, employees, people on an agency's list, and codes."""

from __future__ import annotations

from benchmarks.project.sizes import BEFORE, HISTORY, Sizes, Span, chosen, hashed, instant

_GROWTH = 1 / 6
"""So many more customers and accounts come in the two years."""

_LAST_NAMES = (
    "Adler",
    "Bauer",
    "Costa",
    "Dubois",
    "Evans",
    "Fischer",
    "Garcia",
    "Hansen",
    "Ivanov",
    "Jansen",
)
_FIRST_NAMES = (
    "Anna",
    "Ben",
    "Clara",
    "David",
    "Emma",
    "Felix",
    "Greta",
    "Hugo",
    "Ida",
    "Jonas",
    "Klara",
    "Leo",
)
_CITIES = (
    "Vienna",
    "Graz",
    "Berlin",
    "Munich",
    "Paris",
    "Lyon",
    "Madrid",
    "Rome",
    "Milan",
    "Prague",
    "Brno",
    "Oslo",
)
_COUNTRIES = ("AT", "DE", "FR", "ES", "IT", "CZ", "NO")
_TAX_RATES = 320
_BRANCHES = 40


def customers(sizes: Sizes, span: Span) -> str:
    """New customers, and changes of what is known of others: these have only what has changed."""
    changed = f"""
        select 2 * id + 1 as event_id, {hashed("who", sizes.customers)} as customer_id,
            case when {hashed("ends", 60)} = 0 then 'INACT' else 'UPD' end as action, at,
            {_if_changed(0, _last_name())} as last_name, cast(null as string) as first_name,
            {_if_changed(1, _tier())} as tier, cast(null as date) as born_on,
            {_if_changed(2, chosen("city", *_CITIES))} as city, {_if_changed(2, _country())} as country,
            {_if_changed(3, _email())} as email, {_if_changed(2, _tax("national"))} as national_tax_id,
            {_if_changed(2, _tax("local"))} as local_tax_id
        from {_changes(sizes.customers, span)}
    """
    new = f"""
        select 2 * id as event_id, id as customer_id, 'New' as action, at, {_last_name()} as last_name,
            {chosen("first name", *_FIRST_NAMES)} as first_name, {_tier()} as tier,
            date_add(date'1940-01-01', cast({hashed("born", 23_000)} as int)) as born_on,
            {chosen("city", *_CITIES)} as city, {_country()} as country, {_email()} as email,
            {_tax("national")} as national_tax_id, {_tax("local")} as local_tax_id
        from {span.comers(sizes.customers, _GROWTH)}
    """
    return f"""
        select * except (at), {instant("at")} as happened_at from ({new} union all {changed}) where {span.has("at")}
    """


def accounts(sizes: Sizes, span: Span) -> str:
    """The same of accounts: each belongs to a customer who was there when trading began."""
    owner = hashed("owner", sizes.customers)
    changed = f"""
        select 2 * id + 1 as event_id, {hashed("which", sizes.accounts)} as account_id,
            case when {hashed("closes", 50)} = 0 then 'CLOSE' else 'UPD' end as action, at,
            cast(null as bigint) as customer_id, {_if_changed(0, _broker(sizes))} as broker_id,
            {_if_changed(1, _account_name())} as name, {_if_changed(2, _tax_status())} as tax_status
        from {_changes(sizes.accounts, span)}
    """
    new = f"""
        select 2 * id as event_id, id as account_id, 'New' as action, at + {BEFORE // 2} * if(at < 0, 1, 0) as at,
            {owner} as customer_id, {_broker(sizes)} as broker_id, {_account_name()} as name,
            {_tax_status()} as tax_status
        from {span.comers(sizes.accounts, _GROWTH)}
    """
    return f"""
        select * except (at), {instant("at")} as happened_at from ({new} union all {changed}) where {span.has("at")}
    """


def employees(sizes: Sizes) -> str:
    """Some of them are brokers."""
    return f"""
        select id as employee_id, if(id = 0, null, {hashed("manager", max(1, sizes.employees // 20))}) as manager_id,
            {chosen("first name", *_FIRST_NAMES)} as first_name, {_last_name()} as last_name,
            cast(if({_is_broker()}, 314, 500 + {hashed("job", 50)}) as int) as job_code,
            concat('branch ', {hashed("branch", _BRANCHES)}) as branch, {chosen("office", *_CITIES)} as office
        from range({sizes.employees})
    """


def prospects(sizes: Sizes, changed: str = "0") -> str:
    """The agency's list; what ``changed`` says, a number in SQL, leads to other figures and another day."""
    district = f"if({hashed('suburb', 5)} = 0, '', concat(' ', {hashed('district', 400)}))"
    return f"""
        select id as agency_id, {_last_name()} as last_name, {chosen("first name", *_FIRST_NAMES)} as first_name,
            concat({chosen("city", *_CITIES)}, {district}) as city,
            {_figure("income", 300_000, changed)} as income, {_figure("net worth", 2_000_000, changed)} as net_worth,
            cast(400 + {_figure("rating", 450, changed)} as int) as credit_rating,
            cast({hashed("children", 6)} as int) as children, cast({hashed("cards", 9)} as int) as cards,
            cast({hashed("cars", 5)} as int) as cars,
            date_add(date'2023-12-31', cast({changed} as int)) as recorded_on
        from range({sizes.prospects})
    """


def tax_rates() -> str:
    """By the number in their ids."""
    return f"""
        select concat('T', id) as tax_id, concat('tax of region ', id) as name,
            cast(0.05 + {hashed("rate", 35_000)} / 100000 as decimal(6,5)) as rate
        from range({_TAX_RATES})
    """


def trade_types() -> str:
    """At the market or with a limit, to buy or to sell."""
    return """
        select * from values ('MB', 'Market Buy', false, true), ('MS', 'Market Sell', true, true),
            ('LB', 'Limit Buy', false, false), ('LS', 'Limit Sell', true, false)
            as types(type_id, name, is_sell, is_market)
    """


def status_types() -> str:
    """Of orders."""
    return """
        select * from values ('PNDG', 'Pending'), ('SBMT', 'Submitted'), ('CMPT', 'Completed'), ('CNCL', 'Canceled')
            as statuses(status_id, name)
    """


def calendar() -> str:
    """Days from before the first order to after the last batch."""
    return f"""
        select day, year(day) as year, quarter(day) as quarter, date_format(day, 'yyyy-MM') as month,
            dayofweek(day) in (1, 7) as is_weekend,
            date_format(day, 'MM-dd') in ('01-01', '05-01', '12-25') as is_holiday
        from (select date_add(date'2021-01-01', cast(id as int)) as day from range({4 * 365 + 1}))
    """


def _changes(number: int, span: Span) -> str:
    """As many changes in the two years as there were of them at the beginning."""
    gap = HISTORY / number
    return f"(select id, cast(id * {gap!r}D as bigint) as at from {span.ids(gap)})"


def _if_changed(part: int, value: str) -> str:
    """A change is about one of four parts."""
    return f"if({hashed('part', 4)} = {part}, {value}, null)"


def _figure(of: str, values: int, changed: str) -> str:
    return f"pmod(xxhash64(id, '{of}', {changed}), {values})"


def _last_name() -> str:
    return f"concat({chosen('last name', *_LAST_NAMES)}, {hashed('suffix', 90)})"


def _tier() -> str:
    return f"cast({hashed('tier', 4)} as int)"


def _country() -> str:
    return chosen("country", *_COUNTRIES)


def _email() -> str:
    return f"concat('Customer', id, '@', {chosen('host', 'mail.example', 'post.example')})"


def _tax(of: str) -> str:
    return f"concat('T', {hashed(of, _TAX_RATES)})"


def _is_broker() -> str:
    return f"{hashed('is broker', 4)} > 0"


def _broker(sizes: Sizes) -> str:
    """Now and then it is somebody who is none."""
    return hashed("broker", sizes.employees)


def _account_name() -> str:
    return f"concat('account ', {hashed('account name', 1_000)})"


def _tax_status() -> str:
    return f"cast({hashed('tax status', 3)} as int)"
