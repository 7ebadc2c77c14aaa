{% macro in_files(files) -%}
    {%- if files is none or files | length > var('literal_files_limit') -%}
true
    {%- elif not files -%}
false
    {%- else -%}
        {%- set groups = {} -%}
        {%- for file in files -%}
            {%- set key = "source_id = " ~ text_literal(file.source_id) ~ " and epoch = " ~ file.epoch -%}
            {%- do groups.setdefault(key, []).append(text_literal(file.binlog_file)) -%}
        {%- endfor -%}
(
        {%- for key, names in groups.items() %}
    ({{ key }} and binlog_file in ({{ names | unique(case_sensitive=true) | join(', ') }}))
            {%- if not loop.last %} or {% endif -%}
        {%- endfor %}
)
    {%- endif -%}
{%- endmacro %}
