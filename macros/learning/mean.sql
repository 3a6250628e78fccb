{# The mean of a continuous variable as a double: {{ fivm.mean('m', 'price') }}. NULL where no row counts. #}
{% macro mean(column, variable) -%}
  (cast({{ column }}.sums[cast(array_position({{ column }}.variables, '{{ variable }}') as int) - 1] as double) / nullif({{ column }}.count, 0))
{%- endmacro %}
