{# dbt run-operation fivm_doctor checks the inputs of the project's fivm models; it changes nothing. #}
{% macro fivm_doctor() %}
  {%- do fivm.fivm_require_wheel() -%}
  {%- set findings = adapter.fivm_check() -%}
  {%- for finding in findings -%}
    {%- do print(finding.level.ljust(7) ~ finding.text) -%}
  {%- endfor -%}
  {%- set errors = findings | selectattr('level', 'equalto', 'error') | list -%}
  {%- if errors -%}
    {%- do exceptions.raise_compiler_error(errors | length ~ ' inputs cannot be maintained from') -%}
  {%- endif -%}
{% endmacro %}
