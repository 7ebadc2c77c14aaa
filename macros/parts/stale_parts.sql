{% macro stale_parts() %}
    {#- None for all parts: of a table that is written whole, and in SQL that is shown or tested. -#}
    {%- if not is_building() -%}
        {{ return(none) }}
    {%- endif -%}
    {%- set built = built_parts(this) -%}
    {%- if should_full_refresh() or leaves_rows_out() or not has_parts_of_model(load_cached_relation(this), built) -%}
        {{ return(none) }}
    {%- endif -%}
    {%- set columns = config.get('partition_by') -%}
    {%- set query -%}
        select
            {% for column in columns -%}
            coalesce(landed.{{ column }}, built.{{ column }}) as {{ column }},
            {% endfor -%}
            landed.fingerprint is not null as is_landed,
            coalesce(landed.has_rows, false) as has_rows,
            built.fingerprint is not null as is_built
        from ({{ current_parts() }}) as landed
        full outer join {{ built }} as built
            on {% for column in columns -%}
                landed.{{ column }} = built.{{ column }}{{ " and " if not loop.last }}
            {%- endfor %}
        where not landed.fingerprint <=> built.fingerprint
        {%- if not is_whole(built) %}
        union all
        select distinct {{ columns | join(', ') }}, false as is_landed, false as has_rows, true as is_built
        from {{ this }}
        left anti join {{ built }} using ({{ columns | join(', ') }})
        left anti join ({{ current_parts() }}) using ({{ columns | join(', ') }})
        {%- endif %}
        order by {{ range(1, columns | length + 1) | join(', ') }}
    {%- endset -%}
    {{ return(listed_parts(query)) }}
{% endmacro %}
