{# dbt run-operation fivm_clean lists what models that are gone have left; with --args '{dry_run: false}' it drops that. #}
{% macro fivm_clean(dry_run=true, schemas=[]) %}
  {%- do fivm.fivm_require_wheel() -%}
  {%- for line in adapter.fivm_clean(dry_run, schemas) -%}
    {%- do print(line) -%}
  {%- endfor -%}
{% endmacro %}
