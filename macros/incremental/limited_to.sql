{% macro limited_to(parts, sql) %}
    {#- The compiled SQL of a model is the same in every build, so that it can be compared with the SQL that a table was
        built with. Here it gets the parts of this build. -#}
    {%- set hint = transactions_hint('transactions') -%}
    {%- set limited = sql -%}
    {%- if parts is not none and in_stale_parts() in limited -%}
        {%- set limited = limited | replace(in_stale_parts(), in_parts(parts)) -%}
    {%- endif -%}
    {%- if parts is not none and in_stale_files() in limited -%}
        {%- set limited = limited | replace(in_stale_files(), in_files(parts)) -%}
    {%- endif -%}
    {%- if parts is not none and in_files_looked_back_on() in limited -%}
        {%- set limited = limited | replace(in_files_looked_back_on(), in_files(files_looked_back_on(parts))) -%}
    {%- endif -%}
    {%- if hint in limited -%}
        {%- set limited = limited | replace(hint, chosen_transactions_hint('transactions', parts)) -%}
    {%- endif -%}
    {{ return(limited) }}
{% endmacro %}
