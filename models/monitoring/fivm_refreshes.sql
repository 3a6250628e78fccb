{{
  config(
    enabled=var('fivm_monitoring', false),
    materialized='incremental',
    incremental_strategy='merge',
    unique_key=['model', 'recorded_at'],
    file_format='delta',
    tags=['fivm'],
  )
}}
-- One row per refresh of each fivm and viewdf model, kept for longer than the history of the states is.
{%- do fivm.fivm_require_wheel() %}
{{ adapter.fivm_refreshes_query(var('fivm_monitoring_limit', 100)) }}
