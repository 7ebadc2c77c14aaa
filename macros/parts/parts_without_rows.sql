{% macro parts_without_rows(parts, sql) %}
    {%- if not parts -%}
        {{ return([]) }}
    {%- endif -%}
    {#- The SQL has the rows of all stale parts. -#}
    {%- set columns = config.get('partition_by') -%}
    {%- set found = listed_parts(
        "select distinct " ~ columns | join(', ') ~ " from (" ~ sql ~ ") where " ~ in_files(parts)
    ) -%}
    {%- set missing = [] -%}
    {%- for part in parts -%}
        {%- set place = {} -%}
        {%- for column in columns -%}
            {%- do place.update({column: part[column]}) -%}
        {%- endfor -%}
        {%- do missing.append(part) if place not in found -%}
    {%- endfor -%}
    {{ return(missing) }}
{% endmacro %}
