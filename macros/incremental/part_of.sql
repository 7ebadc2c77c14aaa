{% macro part_of(row, is_landed, has_rows, is_built) %}
    {%- set part = {'is_landed': is_landed, 'has_rows': has_rows, 'is_built': is_built} -%}
    {%- for column in config.get('partition_by') -%}
        {%- set value = row[loop.index0] -%}
        {%- do part.update({column: value if value is string else value | int}) -%}
    {%- endfor -%}
    {{ return(part) }}
{% endmacro %}
