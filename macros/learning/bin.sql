{#
  The number of the bin that a value lies in: {{ fivm.bin('i.price', 'e.price', 10) }}, where e is the row of bin_edges.
  What lies below all edges is in the first bin, what lies above in the last, and NULL in none.
#}
{% macro bin(value, edges, number) -%}
  (case when {{ value }} is null then null
  {%- for edge in range(1, number) %} when {{ value }} < {{ edges }}_{{ edge }} then {{ edge }}{% endfor %} else {{ number }} end)
{%- endmacro %}
