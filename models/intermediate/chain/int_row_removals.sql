{{ config(materialized='ephemeral') }}

with

ddl_actions as (

    select * from {{ ref('stg_binlog__ddl_actions') }}

),

tables as (

    select distinct
        source_id,
        schema_name,
        table_name
    from {{ ref('table_versions') }}

),

removing_actions as (

    select
        source_id,
        epoch,
        binlog_file,
        start_pos,
        inline(
            if(
                action in ('rename_table', 'exchange_partition') or detail = 'convert partition',
                array(
                    struct(schema_name, table_name),
                    struct(other_schema_name as schema_name, other_table_name as table_name)
                ),
                array(struct(schema_name, table_name))
            )
        ) as (schema_name, table_name)
    from ddl_actions
    where
        action in (
            'drop_table', 'truncate_table', 'rename_table', 'drop_partition', 'truncate_partition',
            'exchange_partition', 'drop_database'
        )
        -- A new table contains no earlier rows.
        or (action in ('create_table', 'create_like', 'create_select') and not is_conditional)
        or detail in ('discard tablespace', 'import tablespace', 'convert partition', 'convert table to partition')

),

final as (

    select
        removing_actions.source_id,
        removing_actions.epoch,
        removing_actions.binlog_file,
        removing_actions.start_pos,
        tables.schema_name,
        tables.table_name
    from removing_actions
    inner join tables
        on
            removing_actions.source_id = tables.source_id
            and lower(removing_actions.schema_name) = lower(tables.schema_name)
            -- DROP DATABASE drops all its tables.
            and lower(coalesce(removing_actions.table_name, tables.table_name)) = lower(tables.table_name)

)

select * from final
