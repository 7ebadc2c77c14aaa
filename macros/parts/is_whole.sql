{% macro is_whole(built) %}
    {%- for row in run_query("show tblproperties " ~ built).rows if row[0] == 'binloom.is_whole' -%}
        {{ return(row[1] == 'true') }}
    {%- endfor -%}
    {{ return(false) }}
{% endmacro %}
