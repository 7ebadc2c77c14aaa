{% macro table_periods(table, former_tables) -%}
{%- set periods = [] -%}
{%- set names = [table] + former_tables -%}
{%- for name in names -%}
    {%- set since = none if loop.last else names[loop.index].until -%}
    {%- do periods.append({'schema': name.schema, 'name': name.name, 'since': since, 'until': name.get('until')}) -%}
{%- endfor -%}
{{ return(periods) }}
{%- endmacro %}
