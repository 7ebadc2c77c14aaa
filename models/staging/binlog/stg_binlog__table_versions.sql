with

landed as (

    select * from {{ source('binlog', 'table_versions') }}

),

schema_histories as (

    select * from {{ ref('stg_binlog__schema_histories') }}

),

final as (

    select
        landed.table_version_id,
        landed.source_id,
        landed.evidence,
        landed.evidence_id,
        landed.schema_name,
        landed.table_name,
        landed.definition_id,
        landed.column_count,
        landed.columns,
        landed.column_names,
        landed.primary_key_ordinals,
        landed.valid_from_epoch,
        landed.valid_from_binlog_file,
        landed.valid_from_file_sequence,
        landed.valid_from_pos,
        landed.valid_to_epoch,
        landed.valid_to_binlog_file,
        landed.valid_to_file_sequence,
        landed.valid_to_pos
    from landed
    inner join schema_histories
        on landed.source_id = schema_histories.source_id and landed.history_id = schema_histories.history_id

)

select * from final
