{% macro columns_after(event_type, before_columns, after_columns) -%}
case
    -- An INSERT has no image before.
    when {{ event_type }} = 'INSERT' then {{ after_columns }}
    when {{ before_columns }} is not null then array_union({{ before_columns }}, {{ after_columns }})
end
{%- endmacro %}
