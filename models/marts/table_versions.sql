with

table_versions as (

    select * from {{ ref('int_table_versions_unioned') }}

),

with_position as (

    select
        *,
        if(epoch is null, null, struct(epoch, file_sequence, pos, binlog_file)) as position
    from table_versions

),

final as (

    select
        table_version_id,
        source_id,
        schema_name,
        table_name,
        evidence,
        any_value(columns) as columns,
        any_value(column_names) as column_names,
        transform(
            any_value(primary_key_ordinals), place -> any_value(column_names)[place]
        ) as primary_key_columns,
        any_value(column_count) as column_count,
        count(*) as evidence_count,
        min(position).epoch as first_epoch,
        min(position).binlog_file as first_binlog_file,
        min(position).pos as first_pos,
        max(position).epoch as last_epoch,
        max(position).binlog_file as last_binlog_file,
        max(position).pos as last_pos,
        min(taken_at) as first_taken_at,
        max(taken_at) as last_taken_at
    from with_position
    group by table_version_id, source_id, schema_name, table_name, evidence

)

select * from final
