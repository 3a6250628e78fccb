{#
  --empty and --sample show a model a part of its inputs. That must never reach a state that is maintained: a model
  that has one is left as it is. One that has none becomes a plain view over the part, without a state, so that the
  next ordinary run builds it.
#}
{% macro _fivm_build_partial(existing_relation, target_relation, request) %}
  {%- if existing_relation is not none and adapter.fivm_is_maintained(target_relation) -%}
    {%- set line = 'left as it is (--empty, --sample)' -%}
    {%- call noop_statement('main', message=line) -%}
-- {{ line }}
    {%- endcall -%}
  {%- else -%}
    {%- set line = 'plain view over a part of its inputs (--empty, --sample); the next ordinary run builds it' -%}
    {%- if existing_relation is not none and not existing_relation.is_view -%}
      {%- do adapter.drop_relation(existing_relation) -%}
    {%- endif -%}
    {%- call statement('main') -%}
      {{ get_create_view_as_sql(target_relation, adapter.fivm_runnable_sql(request)) }}
    {%- endcall -%}
  {%- endif -%}
  {%- do log('fivm: ' ~ target_relation.identifier ~ ': ' ~ line, info=true) -%}
  {{ return([target_relation]) }}
{% endmacro %}
