{# Creates the journals that the monitoring views read: in a first run no model may have come to that. #}
{% macro _fivm_create_journals() %}
  {%- if execute and adapter.fivm_create_journals is defined -%}
    {%- do adapter.fivm_create_journals(var('fivm_monitoring_schemas', []) or [target.schema]) -%}
  {%- endif -%}
{% endmacro %}
