{% macro names_table(key, table, former_tables) -%}
source_id = {{ binloom.text_literal(table.source) }}
    and (
        {%- for period in binloom.table_periods(table, former_tables) %}
        {%- set schema = binloom.text_literal(period.schema | lower ~ '.') %}
        {%- set name = binloom.text_literal((period.schema ~ '.' ~ period.name) | lower) %}
        {{ 'or ' if not loop.first }}(lower({{ key }}) in ({{ schema }}, {{ name }}){{ binloom.is_in_period(period, 'start_pos') }})
        {%- endfor %}
    )
{%- endmacro %}
