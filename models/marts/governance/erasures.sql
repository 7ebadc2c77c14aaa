with

erasures as (

    select * from {{ ref('stg_binlog__erasures') }}

),

final as (

    select
        erasure_id,
        source_id,
        schema_name,
        table_name,
        selection_hash,
        count(binlog_file) as binlog_files,
        sum(row_events) as row_events,
        sum(erased_statements) as erased_statements,
        coalesce(sum(row_count), 0) as baseline_rows,
        erased_by,
        erasure_reason,
        max(recorded_at) as erased_at
    from erasures
    group by erasure_id, source_id, schema_name, table_name, selection_hash, erased_by, erasure_reason

)

select * from final
