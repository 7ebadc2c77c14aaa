{% macro listed_parts(query) %}
    {#- As the types of Python, because the parts become literals of SQL. -#}
    {%- set found = run_query(query) -%}
    {%- set parts = [] -%}
    {%- for row in found.rows -%}
        {%- set part = {} -%}
        {%- for column in found.column_names -%}
            {%- set value = row[loop.index0] -%}
            {%- do part.update({column: value if value is string or value is boolean else value | int}) -%}
        {%- endfor -%}
        {%- do parts.append(part) -%}
    {%- endfor -%}
    {{ return(parts) }}
{% endmacro %}
