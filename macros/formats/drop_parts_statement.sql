{% macro drop_parts_statement(table, parts) -%}
    {%- set conditions = [] -%}
    {%- for part in parts -%}
        {%- set values = [] -%}
        {%- for column in config.get('partition_by') -%}
            {%- do values.append(
                column ~ " = " ~ (text_literal(part[column]) if part[column] is string else part[column])
            ) -%}
        {%- endfor -%}
        {%- do conditions.append(values) -%}
    {%- endfor -%}
    {%- if is_parquet() -%}
alter table {{ table }} drop if exists
        {%- for values in conditions %} partition ({{ values | join(', ') }}){{ "," if not loop.last }}{% endfor -%}
    {%- else -%}
delete from {{ table }} where
        {%- for values in conditions %} ({{ values | join(' and ') }}){{ " or" if not loop.last }}{% endfor -%}
    {%- endif -%}
{%- endmacro %}
