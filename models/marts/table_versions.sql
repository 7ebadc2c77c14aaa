with

table_versions as (

    select * from {{ ref('stg_binlog__table_versions') }}

),

final as (

    select
        table_version_id,
        source_id,
        schema_name,
        table_name,
        evidence,
        -- Table maps with the same columns are one version.
        min(evidence_id) as evidence_id,
        any_value(columns) as columns,
        any_value(column_names) as column_names,
        transform(
            any_value(primary_key_ordinals), place -> any_value(column_names)[place]
        ) as primary_key_columns,
        any_value(column_count) as column_count,
        if(min(valid_from_epoch) = -1, null, min(valid_from_epoch)) as valid_from_epoch,
        min(valid_from_binlog_file) as valid_from_binlog_file,
        if(min(valid_from_pos) = -1, null, min(valid_from_pos)) as valid_from_pos,
        if(min(valid_to_epoch) = 2147483647, null, min(valid_to_epoch)) as valid_to_epoch,
        min(valid_to_binlog_file) as valid_to_binlog_file,
        if(min(valid_to_epoch) = 2147483647, null, min(valid_to_pos)) as valid_to_pos
    from table_versions
    group by table_version_id, source_id, schema_name, table_name, evidence

)

select * from final
