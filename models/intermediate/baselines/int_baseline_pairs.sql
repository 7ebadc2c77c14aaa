{{ config(materialized='ephemeral') }}

with

baselines as (

    select
        *,
        struct(epoch, file_sequence, binlog_pos) as position,
        to_json(transform(masked_columns, masked -> struct(masked.column_name, masked.fingerprint))) as masks
    from {{ ref('baselines') }}
    where epoch is not null and primary_key_ordinals is not null and is_complete

),

schema_changes as (

    select * from {{ ref('schema_changes') }}

),

following as (

    select
        *,
        lag(baseline_id) over (
            partition by source_id, schema_name, table_name order by position, taken_at
        ) as previous_baseline_id,
        lag(position) over (
            partition by source_id, schema_name, table_name order by position, taken_at
        ) as previous_position,
        lag(column_names) over (
            partition by source_id, schema_name, table_name order by position, taken_at
        ) as previous_column_names,
        lag(masks) over (
            partition by source_id, schema_name, table_name order by position, taken_at
        ) as previous_masks
    from baselines

),

-- A statement that changes the schema may change rows without listing them. It may write names with other capitals than
-- the server has.
final as (

    select
        following.baseline_id,
        following.source_id,
        following.schema_name,
        following.table_name,
        following.epoch,
        following.binlog_file,
        following.binlog_pos,
        following.position,
        following.previous_baseline_id,
        following.previous_position
    from following
    left anti join schema_changes
        on
            following.source_id = schema_changes.source_id
            and (
                exists(
                    schema_changes.tables,
                    name -> lower(name) = lower(concat_ws('.', following.schema_name, following.table_name))
                )
                or (
                    schema_changes.table_name is null
                    and lower(following.schema_name) = lower(schema_changes.schema_name)
                )
            )
            and struct(
                schema_changes.epoch, schema_changes.file_sequence, schema_changes.start_pos as binlog_pos
            ) >= following.previous_position
            and struct(
                schema_changes.epoch, schema_changes.file_sequence, schema_changes.start_pos as binlog_pos
            ) < following.position
    where
        following.previous_baseline_id is not null
        and following.column_names = following.previous_column_names
        -- Values under different masks cannot be compared.
        and following.masks <=> following.previous_masks

)

select * from final
