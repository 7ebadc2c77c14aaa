{% macro add_leftovers(leftovers, folders) %}
    {%- if folders -%}
        {%- set partitions = [] -%}
        {%- for folder in folders -%}
            {%- do partitions.append(
                "partition (folder = " ~ text_literal(local_md5(folder)) ~ ") location " ~ text_literal(folder)
            ) -%}
        {%- endfor -%}
        {%- do run_query("alter table " ~ leftovers ~ " add if not exists " ~ partitions | join(' ')) -%}
    {%- endif -%}
{% endmacro %}
