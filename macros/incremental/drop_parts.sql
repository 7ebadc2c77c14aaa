{% macro drop_parts(table, parts) %}
    {%- set partitions = [] -%}
    {%- for part in parts -%}
        {%- set values = [] -%}
        {%- for column in config.get('partition_by') -%}
            {%- do values.append(
                column ~ " = " ~ (text_literal(part[column]) if part[column] is string else part[column])
            ) -%}
        {%- endfor -%}
        {%- do partitions.append("partition (" ~ values | join(', ') ~ ")") -%}
    {%- endfor -%}
    {%- if partitions -%}
        {%- do run_query("alter table " ~ table ~ " drop if exists " ~ partitions | join(', ')) -%}
    {%- endif -%}
{% endmacro %}
