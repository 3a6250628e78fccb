{{ config(materialized='view', enabled=var('fivm_monitoring', false), tags=['fivm']) }}
{%- set schemas = var('fivm_monitoring_schemas', []) or [target.schema] %}
-- One row per part of each model that has a catalog of parts, and of each input as a viewdf model has seen it;
-- last_updated is when the content of a part changed last, so that readers and schedulers can ask what has changed
-- since they looked. A model that is new needs this view built anew.
select
    cast(null as string) as catalog_schema,
    cast(null as string) as model,
    cast(null as string) as relation,
    cast(null as boolean) as is_own,
    cast(null as bigint) as part,
    cast(null as timestamp) as part_timestamp,
    cast(null as string) as length,
    cast(null as string) as status,
    cast(null as bigint) as row_count,
    cast(null as timestamp) as last_updated,
    cast(null as string) as input_versions,
    cast(null as bigint) as refresh,
    cast(null as date) as merged_into
where false
{%- do fivm.fivm_require_wheel() -%}
{%- for schema in schemas %}
{%- for relation in adapter.fivm_part_catalogs(this.database, schema) %}
union all
select
    '{{ schema }}',
    model,
    relation,
    relation = model,
    part,
    part_timestamp,
    length,
    status,
    row_count,
    last_updated,
    input_versions,
    refresh,
    merged_into
from {{ relation }}
{%- endfor %}
{%- endfor %}
