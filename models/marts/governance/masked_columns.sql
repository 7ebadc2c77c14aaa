with

row_event_counts as (

    select * from {{ ref('int_row_event_counts') }}

),

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}
    where masked_columns is not null

),

baselines as (

    select * from {{ ref('stg_binlog__baselines') }}
    where masked_columns is not null

),

landed as (

    select /*+ broadcast(table_maps) */
        table_maps.source_id,
        table_maps.schema_name,
        table_maps.table_name,
        table_maps.masked_columns,
        row_event_counts.row_events,
        cast(0 as bigint) as baseline_rows,
        row_event_counts.first_event_at as first_at,
        row_event_counts.last_event_at as last_at
    from row_event_counts
    inner join table_maps
        on
            row_event_counts.source_id = table_maps.source_id
            and row_event_counts.table_map_id = table_maps.table_map_id
    union all
    select
        source_id,
        schema_name,
        table_name,
        masked_columns,
        cast(0 as bigint) as row_events,
        row_count as baseline_rows,
        taken_at as first_at,
        taken_at as last_at
    from baselines

),

listed as (

    select
        source_id,
        schema_name,
        table_name,
        row_events,
        baseline_rows,
        first_at,
        last_at,
        explode(masked_columns) as masked
    from landed

),

final as (

    select
        source_id,
        schema_name,
        table_name,
        masked.column_name,
        masked.method,
        masked.fingerprint,
        max_by(masked.tag, struct(last_at, masked.tag)) as tag,
        sum(row_events) as row_events,
        sum(baseline_rows) as baseline_rows,
        min(first_at) as first_at,
        max(last_at) as last_at
    from listed
    group by source_id, schema_name, table_name, masked.column_name, masked.method, masked.fingerprint

)

select * from final
