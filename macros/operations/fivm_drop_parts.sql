{# dbt run-operation fivm_drop_parts lists parts of sources older than their fivm_retention; with --args '{dry_run: false}' it deletes them. #}
{% macro fivm_drop_parts(dry_run=true) %}
  {%- do fivm.fivm_require_wheel() -%}
  {%- for line in adapter.fivm_drop_parts(dry_run) -%}
    {%- do print(line) -%}
  {%- endfor -%}
{% endmacro %}
