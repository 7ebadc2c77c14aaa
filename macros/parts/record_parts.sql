{% macro record_parts(built) %}
    {%- do run_query(
        "insert overwrite table " ~ built ~ " select * except (has_rows) from (" ~ current_parts() ~ ")"
    ) -%}
{% endmacro %}
