{% macro drop_uncounted_hours() %}
    {#- insert_overwrite replaces only the partitions that a query returns; a partition without new rows would keep its
        old ones. -#}
    {%- if execute and is_incremental() -%}
        {%- for hour in uncounted_hours() if not hour.is_built -%}
            {%- do run_query(
                "alter table " ~ this ~ " drop if exists partition (event_hour = " ~ text_literal(hour.event_hour) ~ ")"
            ) -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}
