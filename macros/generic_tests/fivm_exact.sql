{#
  The model equals its full recompute at the input versions of its last refresh, compared as bags. Returns the
  differing rows with the side on which they are.
#}
{% test fivm_exact(model) %}
  {{- fivm._fivm_exact_sql(model) -}}
{% endtest %}

{% macro _fivm_exact_sql(model) %}
  {%- do fivm.fivm_require_wheel() -%}
  {{- adapter.fivm_exact_sql(model | string) -}}
{% endmacro %}
