{% macro parts_without_rows(parts, sql) %}
    {%- set columns = config.get('partition_by') -%}
    {%- set found = [] -%}
    {%- if parts -%}
        {%- for row in run_query(
            "select distinct " ~ columns | join(', ') ~ " from (" ~ limited_to(parts, sql) ~ ")"
        ).rows -%}
            {%- do found.append(part_of(row, is_landed=true, has_rows=false, is_built=true)) -%}
        {%- endfor -%}
    {%- endif -%}
    {{ return(parts | reject('in', found) | list) }}
{% endmacro %}
