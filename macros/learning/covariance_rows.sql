{#
  A covariance as rows, for FROM: {{ fivm.covariance_rows(ref('moments'), 'm', ['store']) }}.
  Columns: the keys, then variable, category, other, other_category and value. What is not there is ''. So '' and '' is
  the count, x and '' the sum of x, x and y the sum of x·y; a category beside x is the sum of x over its rows, and a
  category beside another the count of both. With categories=true the cells of categorical variables are read too.
#}
{% macro covariance_rows(relation, column='m', keys=[], categories=false) -%}
  (
  select {{ fivm._fivm_keys(keys) }} '' as variable, '' as category, '' as other, '' as other_category, t.{{ column }}.count as value
  from {{ relation }} t
  union all
  select {{ fivm._fivm_keys(keys) }} one.variable, '', '', '', t.{{ column }}.sums[one.place]
  from {{ relation }} t lateral view posexplode(t.{{ column }}.variables) one as place, variable
  union all
  {{ fivm._fivm_products(relation, column, keys, "one.variable, '', other.variable, ''") }}
  {%- if categories %}
  union all
  select {{ fivm._fivm_keys(keys) }} cells.cell.variable, cells.cell.category, cells.cell.other, cells.cell.other_category, cells.cell.value
  from {{ relation }} t lateral view explode(t.{{ column }}.cells) cells as cell
  {%- endif %}
  )
{%- endmacro %}

{# Each product once, with what is shown of it before its value. #}
{% macro _fivm_products(relation, column, keys, shown) -%}
  {%- set m = 'size(t.' ~ column ~ '.variables)' -%}
  select {{ fivm._fivm_keys(keys) }} {{ shown }},
    t.{{ column }}.products[one.place * {{ m }} - (one.place * (one.place - 1)) div 2 + other.place - one.place] as value
  from {{ relation }} t
  lateral view posexplode(t.{{ column }}.variables) one as place, variable
  lateral view posexplode(t.{{ column }}.variables) other as place, variable
  where one.place <= other.place
{%- endmacro %}

{% macro _fivm_keys(keys) -%}
  {%- for key in keys %}t.{{ key }} as {{ key }}, {% endfor -%}
{%- endmacro %}
