{% if is_building() and has_no_rows(ref('foreign_keys')) -%}
{{ without_rows() }}
{% else %}
with

foreign_keys as (

    select * from {{ ref('foreign_keys') }}

),

schema_snapshots as (

    select * from {{ ref('stg_binlog__schema_snapshots') }}

),

binlog_files as (

    select * from {{ ref('stg_binlog__binlog_files') }}

),

last_files as (

    select
        source_id,
        max_by(flavor, struct(epoch, file_sequence)) as flavor,
        max_by(server_version, struct(epoch, file_sequence)) as server_version
    from binlog_files
    group by source_id

),

-- Since 9.6, MySQL by default carries out cascades above the storage engine, and logs them.
servers as (

    select
        source_id,
        flavor,
        server_version,
        flavor = 'mysql'
        and (
            try_cast(regexp_extract(server_version, r'^(\d+)\.(\d+)', 1) as int) > 9
            or (
                try_cast(regexp_extract(server_version, r'^(\d+)\.(\d+)', 1) as int) = 9
                and try_cast(regexp_extract(server_version, r'^(\d+)\.(\d+)', 2) as int) >= 6
            )
        ) as version_logs_cascades
    from last_files

),

cascading as (

    select
        source_id,
        snapshot_id,
        constraint_name,
        schema_name,
        table_name,
        referenced_schema_name,
        referenced_table_name,
        upper(update_rule) as update_rule,
        upper(delete_rule) as delete_rule,
        transform(
            array_sort(collect_list(struct(ordinal_position, column_name, referenced_column_name))),
            pair -> pair.column_name
        ) as column_names,
        transform(
            array_sort(collect_list(struct(ordinal_position, column_name, referenced_column_name))),
            pair -> pair.referenced_column_name
        ) as referenced_column_names,
        max(taken_at) as taken_at
    from foreign_keys
    where is_cascading
    group by
        source_id,
        snapshot_id,
        constraint_name,
        schema_name,
        table_name,
        referenced_schema_name,
        referenced_table_name,
        upper(update_rule),
        upper(delete_rule)

),

final as (

    select
        cascading.source_id,
        cascading.constraint_name,
        cascading.schema_name,
        cascading.table_name,
        cascading.column_names,
        cascading.referenced_schema_name,
        cascading.referenced_table_name,
        cascading.referenced_column_names,
        cascading.delete_rule,
        cascading.update_rule,
        servers.flavor,
        servers.server_version,
        schema_snapshots.logs_cascades,
        cascading.taken_at
    from cascading
    inner join schema_snapshots
        on
            cascading.source_id = schema_snapshots.source_id
            and cascading.snapshot_id = schema_snapshots.snapshot_id
    left join servers on cascading.source_id = servers.source_id
    where not coalesce(schema_snapshots.logs_cascades, servers.version_logs_cascades, false)

)

select * from final
{%- endif %}
