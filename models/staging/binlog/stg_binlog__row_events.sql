with

landed as (

    {{ completed_segments_only(source('binlog', 'row_events')) }}

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
        row_ordinal,
        transaction_pos,
        event_type,
        event_timestamp,
        server_id,
        gtid,
        table_map_id,
        schema_name,
        table_name,
        column_count,
        before_values,
        after_values,
        before_columns,
        after_columns,
        undecoded_columns,
        json_changes
    from landed

)

select * from final
