{#
  A row with the edges of bins, for an incremental model: {{ fivm.bin_edges(ref('items'), {'price': 10}) }}. About the same
  number of rows lies in each bin. Nine columns, price_1 to price_9, are each the least value of the bins 2 to 10. The row
  is written by the first run and by --full-refresh, and stays as it is in all others.
#}
{% macro bin_edges(relation, bins) -%}
{%- set edges = [] -%}
{%- for column, number in bins.items() -%}
  {%- for edge in range(1, number) -%}
    {%- do edges.append('percentile_approx(' ~ column ~ ', ' ~ edge / number ~ ') as ' ~ column ~ '_' ~ edge) -%}
  {%- endfor -%}
{%- endfor -%}
select {{ edges | join(', ') }}
from {{ relation }}
{% if is_incremental() %}having false{% endif %}
{%- endmacro %}
