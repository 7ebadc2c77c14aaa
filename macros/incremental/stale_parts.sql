{% macro stale_parts(built) %}
    {%- set columns = config.get('partition_by') -%}
    {%- set query -%}
        select
            {% for column in columns -%}
            coalesce(landed.{{ column }}, built.{{ column }}) as {{ column }},
            {% endfor -%}
            landed.fingerprint is not null as is_landed,
            coalesce(landed.has_rows, false) as has_rows
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
        {%- set part = {'is_landed': row[columns | length], 'has_rows': row[columns | length + 1]} -%}
        {%- for column in columns -%}
            {%- do part.update({column: row[loop.index0] if row[loop.index0] is string else row[loop.index0] | int}) -%}
        {%- endfor -%}
        {%- do parts.append(part) -%}
    {%- endfor -%}
    {{ return(parts) }}
{% endmacro %}
