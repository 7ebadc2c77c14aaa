{% macro baseline_lives(table, former_names, former_tables=[]) -%}
{#- A baseline tells that a row existed, and not since when. Its position is where the next event begins. -#}
select
        source_id,
        {{ binloom.text_literal(table.schema) }} as schema_name,
        {{ binloom.text_literal(table.name) }} as table_name,
        pk_values,
        pk_hash,
        cast(null as string) as next_pk_values,
        cast(null as string) as previous_pk_values,
        baseline_id as change_id,
        epoch,
        binlog_file,
        file_sequence,
        binlog_pos - 1 as start_pos,
        0 as payload_ordinal,
        0 as row_ordinal,
        binlog_pos - 1 as transaction_pos,
        cast(null as string) as gtid,
        cast(null as bigint) as thread_id,
        cast(null as timestamp) as committed_at,
        cast(null as string) as event_type,
        table_version_id,
        cast(null as array<string>) as undecoded_columns,
        cast(null as map<string, string>) as row_before,
        {{ binloom.with_present_names('row', former_names) }} as row_after
    from {{ ref('baseline_rows') }}
    where
        {{ binloom.is_of_table(table, former_tables, 'binlog_pos - 1') | indent }}
        and pk_values is not null
        and epoch is not null
{%- endmacro %}
