with

row_event_counts as (

    select * from {{ ref('int_row_event_counts') }}

),

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

final as (

    select
        row_event_counts.source_id,
        row_event_counts.schema_name,
        row_event_counts.table_name,
        table_maps.hint,
        count(distinct row_event_counts.table_map_id) as table_maps,
        array_sort(array_distinct(flatten(collect_list(table_maps.unknown_hints.hint)))) as unknown_hints,
        sum(row_event_counts.row_events) as row_events,
        min(row_event_counts.first_event_at) as first_event_at,
        max(row_event_counts.last_event_at) as last_event_at
    from row_event_counts
    left join table_maps
        on
            row_event_counts.source_id = table_maps.source_id
            and row_event_counts.table_map_id = table_maps.table_map_id
    group by
        row_event_counts.source_id,
        row_event_counts.schema_name,
        row_event_counts.table_name,
        table_maps.hint

)

select * from final
