{#
  What a regression predicts, as an expression: {{ fivm.predict(ref('price_model'), {'units': 's.units'}, "store = 1") }}.
  A variable is the column of its name where none is given. "where" chooses one group of a model that has several. The
  parameters are those of the time at which this is compiled. A category that was never seen counts as the one left out.
#}
{% macro predict(relation, variables={}, where='true') -%}
  {%- if not execute -%}
    {{ return('cast(null as double)') }}
  {%- endif -%}
  {%- if model.config.materialized in ['fivm', 'viewdf'] -%}
    {%- do exceptions.raise_compiler_error(
        'FIVM208 a model cannot learn from this query: ' ~ model.name ~ ' is maintained, and with each training all of its '
        ~ 'predictions would change\n'
        ~ "what to do: call fivm.predict in a view, or in a table, over this model\nmore about it: fivm error FIVM208"
    ) -%}
  {%- endif -%}
  {%- set rows = run_query(
      'select variable, category, cast(coefficient as string) from ' ~ relation ~ ' where ' ~ where
      ~ ' order by variable, category'
  ).rows -%}
  {%- if rows | selectattr(0, 'equalto', '') | list | length != 1 -%}
    {%- do exceptions.raise_compiler_error(
        'FIVM208 a model cannot learn from this query: fivm.predict needs one group of ' ~ relation ~ ', and where ' ~ where
        ~ ' there are ' ~ (rows | selectattr(0, 'equalto', '') | list | length) ~ '\n'
        ~ "what to do: choose one by its keys, as in fivm.predict(..., where='store = 1')\nmore about it: fivm error FIVM208"
    ) -%}
  {%- endif -%}
  {%- set terms, categorical = [], {} -%}
  {%- for variable, category, coefficient in rows -%}
    {%- set value = "cast('" ~ (coefficient or '0') ~ "' as double)" -%}
    {%- if variable == '' -%}
      {%- do terms.insert(0, value) -%}
    {%- elif category is none -%}
      {%- do terms.append(value ~ ' * ' ~ (variables[variable] or variable)) -%}
    {%- else -%}
      {%- do categorical.setdefault(variable, []).append(
          "when cast(" ~ (variables[variable] or variable) ~ " as string) = '" ~ (category | replace("\\", "\\\\") | replace("'", "\\'")) ~ "' then " ~ value
      ) -%}
    {%- endif -%}
  {%- endfor -%}
  {%- for variable, whens in categorical.items() -%}
    {%- do terms.append(
        'case when ' ~ (variables[variable] or variable) ~ ' is null then null ' ~ whens | join(' ') ~ ' else 0 end'
    ) -%}
  {%- endfor -%}
  ({{ terms | join(' + ') }})
{%- endmacro %}
