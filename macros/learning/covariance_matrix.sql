{#
  The sample covariance of each pair of continuous variables, for FROM: the keys, variable, other and covariance, both
  ways round. (Q_xy - s_x·s_y / n) / (n - 1) in doubles, NULL where n is less than 2.
#}
{% macro covariance_matrix(relation, column='m', keys=[]) -%}
  {%- set shown -%}
    one.variable as variable, other.variable as other, t.{{ column }}.count as n,
    cast(t.{{ column }}.sums[one.place] as double) as one, cast(t.{{ column }}.sums[other.place] as double) as another
  {%- endset -%}
  {%- set value = '(cast(value as double) - one * another / n) / (n - 1)' -%}
  (
  select {% for key in keys %}{{ key }}, {% endfor %}
    case when copy = 1 then variable else other end as variable,
    case when copy = 1 then other else variable end as other,
    case when n > 1 then {{ value }} end as covariance
  from ({{ fivm._fivm_products(relation, column, keys, shown) }}) p
  lateral view explode(array(1, 2)) copies as copy
  where copy = 1 or variable <> other
  )
{%- endmacro %}
