{#
  A reference to parts as Spark SQL: a hint that Spark does not know, over the whole relation. While dbt parses, every
  ref() is the model itself: whether it is meant is known when it is compiled.
#}
{% macro _fivm_reference(hint, relation, low, high) -%}
  {%- set own = execute and relation | string == this | string -%}
  {%- if adapter.fivm_check_reference is defined -%}
    {%- do adapter.fivm_check_reference(model.name, relation | string, low, high, own) -%}
  {%- endif -%}
  (select /*+ {{ hint }}('{{ low }}'{% if high is not none %}, '{{ high }}'{% endif %}) */ * from {{ relation }})
{%- endmacro %}
