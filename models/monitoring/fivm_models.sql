{{ config(enabled=var('fivm_monitoring', false), materialized='view', tags=['fivm']) }}
-- One row per fivm and viewdf model of the project, with what is known of its refreshes.
{%- do fivm.fivm_require_wheel() %}
with models as (
    {{ adapter.fivm_models_query() | indent(4) }}
),

refreshes as (
    select * from {{ ref('fivm_refreshes') }}
)

select
    models.model,
    models.materialized,
    models.inputs,
    models.description,
    min(refreshes.recorded_at) as known_since,
    count(refreshes.model) as refreshes,
    count_if(refreshes.action = 'rebuilt') as rebuilds,
    max(refreshes.recorded_at) as last_at,
    max_by(refreshes.action, refreshes.recorded_at) as last_action,
    max_by(refreshes.seconds, refreshes.recorded_at) as last_seconds,
    max_by(refreshes.state_bytes, refreshes.recorded_at) as state_bytes,
    percentile(refreshes.seconds, 0.5) filter (where refreshes.action = 'refreshed') as median_seconds,
    max_by(refreshes.seconds, refreshes.recorded_at)
        filter (where refreshes.action in ('built', 'rebuilt')) as build_seconds
from models
left join refreshes on models.model = refreshes.model
group by models.model, models.materialized, models.inputs, models.description
