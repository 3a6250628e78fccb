{# dbt's persist_docs for the model's view, whose column comments Spark takes only when the view is created. #}
{% macro _fivm_persist_docs(relation) %}
  {%- set columns = {} -%}
  {%- if config.persist_column_docs() -%}
    {%- for name, column in model.columns.items() if column.description -%}
      {%- do columns.update({name: column.description}) -%}
    {%- endfor -%}
  {%- endif -%}
  {%- set comment = model.description if config.persist_relation_docs() else none -%}
  {%- if (comment or columns) and adapter.fivm_is_maintained(relation) -%}
    {%- do adapter.fivm_document(relation, comment, columns) -%}
  {%- endif -%}
{% endmacro %}
