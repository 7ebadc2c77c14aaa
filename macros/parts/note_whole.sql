{% macro note_whole(built, is_whole) %}
    {%- do run_query(
        "alter table " ~ built ~ " set tblproperties ('binloom.is_whole' = '" ~ is_whole | string | lower ~ "')"
    ) -%}
{% endmacro %}
