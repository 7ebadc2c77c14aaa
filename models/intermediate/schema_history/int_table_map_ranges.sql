{{ config(materialized='ephemeral') }}

{%- set forever = {'epoch': '2147483647', 'file_sequence': '9223372036854775807', 'pos': '9223372036854775807'} -%}
with

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

histories as (

    select * from {{ ref('int_table_histories') }}

),

table_versions as (

    select * from {{ ref('int_table_versions_unioned') }}

),

-- The names in a table map are right at any position, whatever the history of its table is.
unnamed as (

    select table_maps.*
    from table_maps
    left anti join table_versions
        on
            table_maps.source_id = table_versions.source_id
            and table_maps.table_map_id = table_versions.evidence_id
            and table_versions.evidence = 'table_map'

),

final as (

    select
        unnamed.source_id,
        unnamed.table_map_id,
        unnamed.schema_name,
        unnamed.table_name,
        unnamed.column_count,
        unnamed.columns,
        coalesce(histories.valid_from_epoch, -1) as valid_from_epoch,
        coalesce(histories.valid_from_file_sequence, -1) as valid_from_file_sequence,
        coalesce(histories.valid_from_pos, -1) as valid_from_pos,
        coalesce(histories.valid_to_epoch, {{ forever.epoch }}) as valid_to_epoch,
        coalesce(histories.valid_to_file_sequence, {{ forever.file_sequence }}) as valid_to_file_sequence,
        coalesce(histories.valid_to_pos, {{ forever.pos }}) as valid_to_pos,
        case
            when histories.table_name is null
                then 'the table map has no column names, and nothing tells what the table looks like'
            when histories.status = 'unknown'
                then concat(
                    'the table map has no column names, and what the table looks like is known only from another ',
                    'position on'
                )
            else concat(
                'the table map has no column names, and what the table looks like is not known since ',
                coalesce(histories.evidence_id, 'the beginning'), ': ', histories.detail
            )
        end as gap,
        histories.candidates
    from unnamed
    left join histories
        on
            unnamed.source_id = histories.source_id
            and unnamed.schema_name = histories.schema_name
            and unnamed.table_name = histories.table_name

)

select * from final
