{% macro assert_parent_is_whole(parent) %}
    {#- Otherwise rows would be missing in a table that counts as built. -#}
    {%- if execute and has_rows_left_out(parent) and not leaves_rows_out() -%}
        {%- do exceptions.raise_compiler_error(
            parent.name ~ " was built with --empty or --sample, and lacks rows. Build it first: dbt build --select +"
            ~ parent.name
        ) -%}
    {%- endif -%}
{% endmacro %}
