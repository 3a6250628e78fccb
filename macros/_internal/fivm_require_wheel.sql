{# Stops with the line to type where dbt runs without the Python half of fivm. #}
{% macro fivm_require_wheel() %}
  {%- if execute and adapter.fivm_refresh is not defined -%}
    {%- do exceptions.raise_compiler_error(
        "FIVM504 the fivm-dbt wheel is missing from dbt's environment: the dbt package fivm is installed, "
        ~ "its Python half is not (or the adapter " ~ adapter.type() ~ " is not a Spark adapter).\n"
        ~ "what to do: build the wheel and pip install it where dbt runs (README, Use it in your project)\n"
        ~ "see docs/errors.md#fivm504"
    ) -%}
  {%- endif -%}
{% endmacro %}
