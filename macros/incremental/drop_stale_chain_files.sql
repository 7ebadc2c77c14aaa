{% macro drop_stale_chain_files(fingerprint) %}
    {#- insert_overwrite replaces only the partitions that a query returns; a partition without new rows would keep its
        old ones. If the build fails after this, the files still count as stale. -#}
    {%- if execute and is_incremental() -%}
        {%- set partitions = [] -%}
        {%- for file in stale_chain_files(fingerprint) -%}
            {%- do partitions.append(
                "partition (source_id = " ~ text_literal(file.source_id) ~ ", epoch = " ~ file.epoch
                ~ ", binlog_file = " ~ text_literal(file.binlog_file) ~ ")"
            ) -%}
        {%- endfor -%}
        {%- if partitions -%}
            {%- do run_query("alter table " ~ this ~ " drop if exists " ~ partitions | join(', ')) -%}
        {%- endif -%}
    {%- endif -%}
{% endmacro %}
