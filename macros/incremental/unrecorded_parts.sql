{% macro unrecorded_parts(built) %}
    {#- A build that was cut short may have written a part that is gone by now. -#}
    {%- set columns = config.get('partition_by') -%}
    {%- set query -%}
        select distinct {{ columns | join(', ') }}
        from {{ this }}
        left anti join {{ built }} using ({{ columns | join(', ') }})
        left anti join ({{ current_parts() }}) using ({{ columns | join(', ') }})
    {%- endset -%}
    {%- set parts = [] -%}
    {%- for row in run_query(query).rows -%}
        {%- do parts.append(part_of(row, is_landed=false, has_rows=false, is_built=true)) -%}
    {%- endfor -%}
    {{ return(parts) }}
{% endmacro %}
