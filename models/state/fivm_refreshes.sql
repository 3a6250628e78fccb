{{ config(
    materialized='view', enabled=var('fivm_monitoring', false), tags=['fivm'], pre_hook='{{ fivm._fivm_create_journals() }}'
) }}
{%- set schemas = var('fivm_monitoring_schemas', []) or [target.schema] %}
{% for schema in schemas %}
select
    '{{ schema }}' as journal_schema,
    model,
    refresh,
    attempt,
    event,
    get_json_object(detail, '$.kind') as kind,
    cast(get_json_object(detail, '$.seconds') as double) as seconds,
    cast(recorded_at as timestamp) as recorded_at,
    plan_hash,
    detail
from {{ schema }}.fivm_journal
{% if not loop.last %}union all{% endif %}
{% endfor %}
