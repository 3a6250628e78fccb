{#
  dbt run-operation fivm_explain --args '{model: daily_delays}' prints how a model is maintained, with statements: true
  also its SQL; with format: html (or pdf) it writes a page into the target directory, and prints where.
#}
{% macro fivm_explain(model, format='text', statements=false) %}
  {%- do fivm.fivm_require_wheel() -%}
  {%- do print(adapter.fivm_explain(model, format, statements=statements)) -%}
{% endmacro %}
