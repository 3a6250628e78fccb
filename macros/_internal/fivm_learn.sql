{# What the materializations do that learn from a covariance: train where that is called for, and write a table. #}
{% macro _fivm_learn(materialized) %}
  {%- do fivm.fivm_require_wheel() -%}
  {%- set existing_relation = load_cached_relation(this) -%}
  {%- set target_relation = this.incorporate(type='table') -%}

  {{ run_hooks(pre_hooks) }}

  {%- set done = adapter.fivm_learn({
      'relation': target_relation,
      'existing': existing_relation,
      'materialized': materialized,
      'sql': compiled_code,
      'meta': config.get('meta', {}),
      'full_refresh': should_full_refresh(),
  }) -%}
  {%- do store_result('main', response=done.response) -%}
  {%- do log(done.line, info=true) -%}

  {%- set should_revoke = should_revoke(existing_relation, full_refresh_mode=True) -%}
  {%- do apply_grants(target_relation, config.get('grants'), should_revoke=should_revoke) -%}
  {%- do persist_docs(target_relation, model) -%}

  {{ run_hooks(post_hooks) }}

  {{ return({'relations': [target_relation]}) }}
{% endmacro %}
