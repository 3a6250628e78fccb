{#
  dbt run-operation fivm_history lists the last refreshes of the project's fivm models, newest first;
  with --args '{model: daily_delays, limit: 50}' those of one model, and more of them.
#}
{% macro fivm_history(model=none, limit=20) %}
  {%- do fivm.fivm_require_wheel() -%}
  {%- for line in adapter.fivm_history(model, limit) -%}
    {%- do print(line) -%}
  {%- endfor -%}
{% endmacro %}
