{% macro stale_event_hours() %}
    {#- Hours whose current raw rows and bindings differ from those that row_changes was built from. -#}
    {%- set built = built_event_hours() -%}
    {%- set query -%}
        select
            coalesce(landed.event_hour, built.event_hour) as event_hour,
            coalesce(landed.has_bound_rows, false) as has_bound_rows
        from {{ ref('int_event_hours') }} as landed
        full outer join {{ built }} as built on landed.event_hour = built.event_hour
        where not landed.fingerprint <=> built.fingerprint
        order by event_hour
    {%- endset -%}
    {%- set hours = [] -%}
    {%- for row in run_query(query).rows -%}
        {%- do hours.append({'event_hour': row[0], 'has_bound_rows': row[1]}) -%}
    {%- endfor -%}
    {{ return(hours) }}
{% endmacro %}
