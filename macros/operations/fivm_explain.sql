{# dbt run-operation fivm_explain --args '{model: daily_delays}' prints how a model is maintained. #}
{% macro fivm_explain(model) %}
  {%- do fivm.fivm_require_wheel() -%}
  {%- do print(adapter.fivm_explain(model)) -%}
{% endmacro %}
