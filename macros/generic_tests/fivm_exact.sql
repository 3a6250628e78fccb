{#
  The model equals its full recompute at the input versions of its last refresh, compared as bags. Returns the
  differing rows with the side on which they are. The query depends on that refresh, so it is written when the test
  runs and not when a project is merely compiled.
#}
{% test fivm_exact(model) %}
  {{- fivm._fivm_exact_sql(model) -}}
{% endtest %}

{% macro _fivm_exact_sql(model) %}
  {%- do fivm.fivm_require_wheel() -%}
  {%- if execute and flags.WHICH in ('test', 'build', 'retry') -%}
    {{- adapter.fivm_exact_sql(model | string) -}}
  {%- else -%}
    select 'written when the test runs' as fivm_side where false
  {%- endif -%}
{% endmacro %}
