{% macro forget_built(built) -%}
{#- Before the table is dropped: one that is cut short while it is made again must not pass for what was recorded. -#}
{%- if execute and not is_incremental() -%}truncate table {{ built }}{%- endif -%}
{%- endmacro %}
