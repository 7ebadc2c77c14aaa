{% macro drop_emptied_hours() %}
    {#- insert_overwrite replaces only the partitions that a query returns; a partition without new rows would keep its
        old ones. -#}
    {%- if execute and is_incremental() -%}
        {%- for hour in stale_event_hours() if not hour.has_bound_rows -%}
            {%- do run_query(
                "alter table " ~ this ~ " drop if exists partition (event_hour = " ~ text_literal(hour.event_hour) ~ ")"
            ) -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}
