{% macro forget_built(built) -%}
{#- Runs before the table is dropped: a rebuild that is cut short must not be taken for the table in the record. -#}
{%- if execute and not is_incremental() -%}truncate table {{ built }}{%- endif -%}
{%- endmacro %}
