{% if is_building() and has_no_rows(ref('stg_binlog__baselines')) -%}
{{ without_rows() }}
{% else %}
with

baselines as (

    select * from {{ ref('stg_binlog__baselines') }}

),

schema_histories as (

    select * from {{ ref('stg_binlog__schema_histories') }}

),

expired_segments as (

    select * from {{ ref('stg_binlog__segments') }}
    where status = 'expired'

),

ends_of_expired as (

    select
        source_id,
        max(struct(epoch, {{ file_sequence('binlog_file') }} as file_sequence)) as place
    from expired_segments
    group by source_id

),

table_versions as (

    select * from {{ ref('stg_binlog__table_versions') }}
    where evidence != 'table_map'

),

-- The schema snapshot of a baseline is at its position.
placed as (

    select
        baselines.*,
        try_element_at(schema_histories.snapshot_epochs, baselines.snapshot_id) as epoch,
        {{ file_sequence('baselines.binlog_file') }} as file_sequence
    from baselines
    left join schema_histories on baselines.source_id = schema_histories.source_id

),

-- The changes since a baseline in an expired file are gone, so only later baselines count.
kept as (

    select /*+ broadcast(ends_of_expired) */ placed.*
    from placed
    left anti join ends_of_expired
        on
            placed.source_id = ends_of_expired.source_id
            and struct(placed.epoch, placed.file_sequence) <= ends_of_expired.place

),

versions as (

    select
        placed.baseline_id,
        placed.schema_name,
        placed.table_name,
        min_by(
            table_versions.table_version_id,
            struct(table_versions.column_names != placed.column_names, table_versions.table_version_id)
        ) as table_version_id
    from kept as placed
    inner join table_versions
        on
            placed.source_id = table_versions.source_id
            and placed.schema_name = table_versions.schema_name
            and placed.table_name = table_versions.table_name
            and {{ position_reached(
                'placed.epoch', 'placed.file_sequence', 'placed.binlog_pos', 'table_versions.valid_from'
            ) }}
            and {{ position_before(
                'placed.epoch', 'placed.file_sequence', 'placed.binlog_pos', 'table_versions.valid_to'
            ) }}
    group by placed.baseline_id, placed.schema_name, placed.table_name

),

final as (

    select
        placed.baseline_id,
        placed.source_id,
        placed.epoch,
        placed.binlog_file,
        placed.file_sequence,
        placed.binlog_pos,
        placed.gtid_executed,
        placed.origin,
        placed.schema_name,
        placed.table_name,
        placed.column_names,
        placed.primary_key_ordinals,
        placed.row_count,
        versions.table_version_id,
        placed.masked_columns,
        placed.is_complete,
        placed.position_proof,
        placed.taken_at
    from kept as placed
    left join versions
        on
            placed.baseline_id = versions.baseline_id
            and placed.schema_name = versions.schema_name
            and placed.table_name = versions.table_name

)

select * from final
{%- endif %}
