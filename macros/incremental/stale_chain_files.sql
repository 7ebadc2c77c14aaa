{% macro stale_chain_files(fingerprint) %}
    {#- The table must exist now: this runs while the model is compiled, before its hooks. -#}
    {%- do run_query(create_built_files()) -%}
    {%- set query -%}
        select
            coalesce(landed.source_id, built.source_id) as source_id,
            coalesce(landed.epoch, built.epoch) as epoch,
            coalesce(landed.binlog_file, built.binlog_file) as binlog_file
        from {{ ref('int_chain_files') }} as landed
        full outer join {{ built_files() }} as built
            on
                landed.source_id = built.source_id
                and landed.epoch = built.epoch
                and landed.binlog_file = built.binlog_file
        where not landed.{{ fingerprint }} <=> built.fingerprint
        order by source_id, epoch, binlog_file
    {%- endset -%}
    {%- set files = [] -%}
    {%- for row in run_query(query).rows -%}
        {%- do files.append({'source_id': row[0], 'epoch': row[1] | int, 'binlog_file': row[2]}) -%}
    {%- endfor -%}
    {{ return(files) }}
{% endmacro %}
