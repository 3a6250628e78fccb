{{ config(materialized='view', enabled=var('fivm_monitoring', false), tags=['fivm']) }}
{%- set schemas = var('fivm_monitoring_schemas', []) or [target.schema] %}
-- One row per part of each viewdf model and of each input as the model has seen it; last_updated is when the content
-- of a part changed last, so that readers and schedulers can ask what has changed since they looked.
{% for schema in schemas %}
select
    '{{ schema }}' as catalog_schema,
    model,
    relation,
    relation = model as is_own,
    part,
    part_timestamp,
    length,
    status,
    row_count,
    last_updated,
    input_versions,
    refresh
from {{ schema }}.fivm_parts
{% if not loop.last %}union all{% endif %}
{% endfor %}
