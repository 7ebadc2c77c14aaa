with

landed as (

    {{ completed_segments_only(source('binlog', 'statements')) }}

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
        transaction_pos,
        kind,
        default_schema,
        thread_id,
        error_code,
        sql_text,
        sql_mode,
        time_zone,
        character_set_client,
        character_set_connection,
        collation_server,
        event_timestamp,
        dml_targets,
        digest,
        digest_text,
        tags
    from landed

)

select * from final
