{#
  Some parts of a relation, for FROM: part(ref('m'), 'j-1') is one, part(ref('m'), 'j*60', 'j*60+59') a range with both
  ends. Numbers count the parts of that relation. Compiled it is the whole relation, with a hint that fivm finds.
#}
{% macro part(relation, low='j', high=none) -%}
  {{ fivm._fivm_reference('fivm_part', relation, low, high) }}
{%- endmacro %}
