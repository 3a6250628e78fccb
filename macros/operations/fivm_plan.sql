{#
  dbt run-operation fivm_plan tells what the next dbt run does with the project's fivm models, and runs nothing; with
  --args '{models: [daily_delays]}' of these alone. `fivm plan` is the same with dbt's selectors.
#}
{% macro fivm_plan(models=none, full_refresh=false, as_json=false) %}
  {%- do fivm.fivm_require_wheel() -%}
  {%- for line in adapter.fivm_plan(models, full_refresh=full_refresh, propagate=var('fivm_propagate', false), as_json=as_json) -%}
    {%- do print(line) -%}
  {%- endfor -%}
{% endmacro %}
