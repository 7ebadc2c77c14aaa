{{ config(materialized='view') }}

with

row_changes as (

    select * from {{ ref('row_changes') }}

),

keys as (

    select
        source_id,
        schema_name,
        table_name,
        event_hour,
        pk_values,
        count(*) as changes,
        count_if(event_type = 'INSERT') as inserts,
        count_if(event_type = 'UPDATE') as updates,
        count_if(event_type = 'DELETE') as deletes,
        count_if(event_type = 'UPDATE' and size(changed_columns) = 0) as updates_without_change,
        -- All rows of an event have its size. Events of a compressed payload have no place of their own in the file.
        coalesce(sum(case when row_ordinal = 0 and payload_ordinal = 0 then end_pos - start_pos end), 0) as event_bytes,
        count_if(payload_ordinal != 0) as compressed_changes
    from row_changes
    group by source_id, schema_name, table_name, event_hour, pk_values

),

ranked as (

    select
        *,
        row_number() over (
            partition by source_id, schema_name, table_name, event_hour
            order by pk_values is null asc, changes desc, pk_values asc
        ) as key_rank
    from keys

),

final as (

    select
        source_id,
        schema_name,
        table_name,
        event_hour,
        transform(
            array_sort(
                collect_list(
                    case when key_rank <= 3 and pk_values is not null then struct(key_rank, pk_values, changes) end
                )
            ),
            hot -> struct(hot.pk_values, hot.changes)
        ) as hot_keys,
        sum(changes) as changes,
        sum(inserts) as inserts,
        sum(updates) as updates,
        sum(deletes) as deletes,
        sum(updates_without_change) as updates_without_change,
        count(pk_values) as distinct_keys,
        sum(event_bytes) as event_bytes,
        sum(compressed_changes) as compressed_changes
    from ranked
    group by source_id, schema_name, table_name, event_hour

)

select * from final
