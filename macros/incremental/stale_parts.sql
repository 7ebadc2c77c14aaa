{% macro stale_parts(built) %}
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
        order by {{ range(1, columns | length + 1) | join(', ') }}
    {%- endset -%}
    {%- set parts = [] -%}
    {%- for row in run_query(query).rows -%}
        {%- set n = columns | length -%}
        {%- do parts.append(part_of(row, is_landed=row[n], has_rows=row[n + 1], is_built=row[n + 2])) -%}
    {%- endfor -%}
    {{ return(parts) }}
{% endmacro %}
