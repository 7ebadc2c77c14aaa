with

landed as (

    {{ completed_segments_only(source('binlog', 'ddl_actions')) }}

),

final as (

    select
        source_id,
        epoch,
        binlog_file,
        segment_start,
        start_pos,
        end_pos,
        payload_ordinal,
        action_ordinal,
        action,
        statement_type,
        schema_name,
        table_name,
        other_schema_name,
        other_table_name,
        column_name,
        columns,
        place,
        after_column,
        key_columns,
        character_set,
        collation,
        is_conditional,
        detail
    from landed

)

select * from final
