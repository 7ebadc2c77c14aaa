{% macro is_of_table(table, former_tables, pos='start_pos') -%}
source_id = {{ binloom.text_literal(table.source) }}
    {%- if not former_tables %}
    and schema_name = {{ binloom.text_literal(table.schema) }}
    and table_name = {{ binloom.text_literal(table.name) }}
    {%- else %}
    and (
        {%- for period in binloom.table_periods(table, former_tables) %}
        {{ 'or ' if not loop.first }}(
            schema_name = {{ binloom.text_literal(period.schema) }}
            and table_name = {{ binloom.text_literal(period.name) }}
            {{- binloom.is_in_period(period, pos) }}
        )
        {%- endfor %}
    )
    {%- endif %}
{%- endmacro %}
