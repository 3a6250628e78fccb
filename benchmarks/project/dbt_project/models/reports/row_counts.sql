select 'trades' as what, count(*) as number, max(placed_on) as newest from {{ ref('fact_trades') }}
union all
select 'holdings' as what, count(*) as number, max(closed_on) as newest from {{ ref('fact_holdings') }}
union all
select 'watches' as what, count(*) as number, max(placed_on) as newest from {{ ref('fact_watches') }}
union all
select 'market days' as what, count(*) as number, max(day) as newest from {{ ref('fact_market_history') }}
