{#
  The query of the first part: {% call fivm.initialize() %} select ... {% endcall %}. It is compiled to comments, so that
  the rest of the file is a query as it stands.
#}
{% macro initialize() %}
{%- for line in caller().strip().split('\n') %}
--fivm:initialize {{ line.strip() }}
{%- endfor %}
{% endmacro %}
