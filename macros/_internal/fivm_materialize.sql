{# What the materializations fivm and viewdf do, in the order that dbt's users expect of one. #}
{% macro _fivm_materialize(materialized) %}
  {%- do fivm.fivm_require_wheel() -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='view') -%}
  {%- set request = {
      'relation': target_relation,
      'existing': existing_relation,
      'materialized': materialized,
      'sql': compiled_code,
      'meta': config.get('meta', {}),
      'batch_size': config.get('batch_size'),
      'full_refresh': should_full_refresh(),
      'propagate': var('fivm_propagate', false),
  } -%}
  {%- do adapter.fivm_validate(request) -%}
  {%- if config.get('contract').enforced -%}
    {%- do get_assert_columns_equivalent(adapter.fivm_runnable_sql(request)) -%}
  {%- endif -%}

  {{ run_hooks(pre_hooks) }}

  {%- if adapter.fivm_is_partial() -%}
    {%- set relations = fivm._fivm_build_partial(existing_relation, target_relation, request) -%}
  {%- else -%}
    {%- set done = adapter.fivm_refresh(request) -%}
    {%- do write(done.sql) -%}
    {%- do store_result('main', response=done.response) -%}
    {%- do log(done.line, info=true) -%}
    {%- set target_relation = target_relation.incorporate(type=done.type) -%}
    {%- set relations = [target_relation] -%}
    {%- for path in done.tables -%}
      {%- do relations.append(target_relation.incorporate(path=path, type='table')) -%}
    {%- endfor -%}
  {%- endif -%}

  {%- set should_revoke = should_revoke(existing_relation, full_refresh_mode=True) -%}
  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke) -%}
  {%- do fivm._fivm_persist_docs(target_relation) -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': relations}) }}
{% endmacro %}
