{{
    config(
        materialized='parts',
        partition_by=['source_id', 'epoch', 'binlog_file'],
        meta={'parts': {'model': 'int_chain_files', 'fingerprint': 'window_fingerprint'}},
    )
}}

{%- set parts = stale_parts() -%}
{%- set files = files_looked_back_on(parts) -%}
{%- set suspected_files = none -%}
{%- set joins = '' -%}

{%- if is_building() -%}
    {#- Values are read only where a digest leaves doubt, which is nowhere in most logs. -#}
    {%- set query -%}
        select
            source_id,
            epoch,
            binlog_file,
            count(*) as suspects
        from (
            select source_id, inline(array(struct(epoch, binlog_file), struct(previous.epoch, previous.binlog_file)))
            from {{ ref('int_chain_suspects') }}
            where {{ in_files(parts) }}
        )
        group by source_id, epoch, binlog_file
    {%- endset -%}
    {%- set suspected_files = listed_parts(query) -%}
    {%- if suspected_files | sum(attribute='suspects') <= var('broadcast_transactions_limit') -%}
        {%- set joins = ', broadcast(suspects)' -%}
    {%- endif -%}
{%- endif -%}

with

suspects as (

    select * from {{ ref('int_chain_suspects') }}
    where {{ in_files(parts) }}

),

row_events as (

    select * from {{ ref('int_row_events_bound') }}
    where
        reason is null
        and {{ in_files(suspected_files) }}

),

row_removals as (

    select * from {{ ref('int_row_removals') }}
    where {{ in_files(files) }}

),

chain_files as (

    select * from {{ ref('int_chain_files') }}
    where {{ in_files(files) }}

),

table_versions as (

    select
        table_version_id,
        transform(columns, col -> concat(col.name, ' ', col.column_type)) as typed_names
    from {{ ref('table_versions') }}

),

changes as (

    select /*+ broadcast(table_versions){{ joins }} */
        suspects.*,
        row_events.schema_name,
        row_events.table_name,
        row_events.table_version_id,
        row_events.column_names,
        table_versions.typed_names,
        coalesce(
            case
                when not suspects.existed_before
                    then {{ pk_values_after(
                        'row_events.before_values', 'row_events.after_values', 'row_events.after_columns',
                        'row_events.primary_key_ordinals'
                    ) }}
            end,
            {{ pk_values(
                "if(row_events.event_type = 'INSERT', row_events.after_values, row_events.before_values)",
                'row_events.primary_key_ordinals'
            ) }}
        ) as pk_values,
        {{ row_image('table_versions.typed_names', 'row_events.before_values', 'row_events.before_columns') }}
            as row_before,
        row_events.masked_columns
    from row_events
    inner join suspects
        on
            row_events.source_id = suspects.source_id
            and row_events.epoch = suspects.epoch
            and row_events.binlog_file = suspects.binlog_file
            and row_events.start_pos = suspects.start_pos
            and row_events.payload_ordinal = suspects.payload_ordinal
            and row_events.row_ordinal = suspects.row_ordinal
    inner join table_versions on row_events.table_version_id = table_versions.table_version_id

),

pairs as (

    select /*+ broadcast(table_versions){{ joins | replace('suspects', 'changes') }} */
        changes.*,
        row_events.table_version_id as previous_table_version_id,
        {{ row_image(
            'table_versions.typed_names',
            values_after('row_events.before_values', 'row_events.after_values', 'row_events.after_columns'),
            columns_after('row_events.event_type', 'row_events.before_columns', 'row_events.after_columns')
        ) }} as previous_row_after,
        row_events.masked_columns as previous_masked_columns
    from row_events
    inner join changes
        on
            row_events.source_id = changes.source_id
            and row_events.epoch = changes.previous.epoch
            and row_events.binlog_file = changes.previous.binlog_file
            and row_events.start_pos = changes.previous.start_pos
            and row_events.payload_ordinal = changes.previous.payload_ordinal
            and row_events.row_ordinal = changes.previous.row_ordinal
    inner join table_versions on row_events.table_version_id = table_versions.table_version_id

),

compared as (

    select
        *,
        struct(epoch, file_sequence, start_pos) as position,
        struct(previous.epoch, previous.file_sequence, previous.start_pos) as previous_position,
        case
            when existed_before and not previous.exists_after then 'not_inserted'
            when not existed_before and previous.exists_after then 'not_deleted'
            else 'values_differ'
        end as defect,
        -- Columns of two versions are the same when they have the same name and type. A column that one of the images
        -- lacks proves nothing.
        case
            when existed_before and previous.exists_after
                then filter(
                    column_names,
                    (name, place) -> map_contains_key(row_before, typed_names[place])
                    and map_contains_key(previous_row_after, typed_names[place])
                    and not row_before[typed_names[place]] <=> previous_row_after[typed_names[place]]
                    -- Images with different masks do not show whether the value is the same.
                    and get(filter(masked_columns, masked -> masked.column_name = name), 0).fingerprint
                    <=> get(filter(previous_masked_columns, masked -> masked.column_name = name), 0).fingerprint
                )
        end as differing_columns
    from pairs

),

removals_by_table as (

    select /*+ broadcast(chain_files) */
        row_removals.source_id,
        row_removals.schema_name,
        row_removals.table_name,
        collect_list(struct(row_removals.epoch, chain_files.file_sequence, row_removals.start_pos)) as positions
    from row_removals
    inner join chain_files
        on
            row_removals.source_id = chain_files.source_id
            and row_removals.epoch = chain_files.epoch
            and row_removals.binlog_file = chain_files.binlog_file
    group by row_removals.source_id, row_removals.schema_name, row_removals.table_name

),

alive as (

    select /*+ broadcast(removals_by_table) */ compared.*
    from compared
    left join removals_by_table
        on
            compared.source_id = removals_by_table.source_id
            and compared.schema_name = removals_by_table.schema_name
            and compared.table_name = removals_by_table.table_name
    where
        (compared.differing_columns is null or size(compared.differing_columns) > 0)
        and not coalesce(
            exists(
                removals_by_table.positions,
                removed -> removed > compared.previous_position and removed < compared.position
            ),
            false
        )

),

final as (

    select
        concat_ws('/', source_id, epoch, binlog_file, start_pos, payload_ordinal, row_ordinal) as change_id,
        concat_ws(
            '/', source_id, previous.epoch, previous.binlog_file, previous.start_pos, previous.payload_ordinal,
            previous.row_ordinal
        ) as previous_change_id,
        schema_name,
        table_name,
        pk_values,
        defect,
        differing_columns,
        table_version_id,
        previous_table_version_id,
        file_sequence,
        start_pos,
        previous.epoch as previous_epoch,
        previous.binlog_file as previous_binlog_file,
        previous.file_sequence as previous_file_sequence,
        previous.start_pos as previous_start_pos,
        source_id,
        epoch,
        binlog_file
    from alive

)

select * from final
