{% macro uncounted_hours() %}
    {#- Hours of row_changes that were built since `this` counted them, or are gone. -#}
    {%- set query -%}
        select
            coalesce(built.event_hour, held.event_hour) as event_hour,
            built.event_hour is not null as is_built
        from {{ built_event_hours() }} as built
        full outer join (select distinct event_hour, fingerprint from {{ this }}) as held
            on built.event_hour = held.event_hour
        where not built.fingerprint <=> held.fingerprint
        order by event_hour
    {%- endset -%}
    {%- set hours = [] -%}
    {%- for row in run_query(query).rows -%}
        {%- do hours.append({'event_hour': row[0], 'is_built': row[1]}) -%}
    {%- endfor -%}
    {{ return(hours) }}
{% endmacro %}
