{#
  The time of some parts of the model itself in another relation: span(ref('hourly')) are the hours of day j, 23 to 25 of
  them, and span(ref('hourly'), 'j-6', 'j') those of a week.
#}
{% macro span(relation, low='j', high=none) -%}
  {{ fivm._fivm_reference('fivm_span', relation, low, high) }}
{%- endmacro %}
