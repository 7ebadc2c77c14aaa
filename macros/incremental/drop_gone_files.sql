{% macro drop_gone_files(counted) %}
    {#- insert_overwrite replaces only the partitions that a query returns; a partition without new rows would keep its
        old ones. -#}
    {%- if execute and is_incremental() -%}
        {%- for file in stale_files(counted) if not file.is_landed -%}
            {%- do run_query(
                "alter table " ~ this ~ " drop if exists partition (source_id = " ~ text_literal(file.source_id)
                ~ ", epoch = " ~ file.epoch ~ ", binlog_file = " ~ text_literal(file.binlog_file) ~ ")"
            ) -%}
        {%- endfor -%}
    {%- endif -%}
{% endmacro %}
