{{ config(materialized='view', enabled=var('fivm_monitoring', false), tags=['fivm']) }}
-- One row per model: its newest finished refresh, and whether a later one was started and has not finished.
select
    journal_schema,
    model,
    max(case when event = 'finished' then refresh end) as last_refresh,
    max(case when event = 'finished' then recorded_at end) as last_refreshed_at,
    max_by(kind, struct(refresh, attempt)) filter (where event = 'finished') as last_kind,
    max_by(seconds, struct(refresh, attempt)) filter (where event = 'finished') as last_seconds,
    max(refresh) > max(case when event = 'finished' then refresh end) as is_unfinished
from {{ ref('fivm_refreshes') }}
group by journal_schema, model
