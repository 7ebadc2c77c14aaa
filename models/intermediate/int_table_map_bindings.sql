with

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

table_versions as (

    select * from {{ ref('int_table_versions_unioned') }}

),

column_types as (

    select * from {{ ref('column_types') }}

),

-- Snapshots without a position count as in force from before the first event on; the latest taken one of them wins.
snapshot_starts as (

    select
        source_id,
        schema_name,
        table_name,
        coalesce(epoch, -1) as epoch,
        coalesce(file_sequence, -1) as file_sequence,
        coalesce(pos, -1) as pos,
        max_by(table_version_id, struct(taken_at, evidence_id)) as table_version_id
    from table_versions
    where evidence = 'snapshot'
    group by
        source_id,
        schema_name,
        table_name,
        coalesce(epoch, -1),
        coalesce(file_sequence, -1),
        coalesce(pos, -1)

),

-- With none of that kind, what stands before the first snapshot takes its names from that first one.
reaching_back as (

    select
        *,
        row_number() over (
            partition by source_id, schema_name, table_name order by epoch, file_sequence, pos
        ) = 1 as is_first
    from snapshot_starts

),

starts as (

    select
        source_id,
        schema_name,
        table_name,
        if(is_first, -1, epoch) as epoch,
        if(is_first, -1, file_sequence) as file_sequence,
        if(is_first, -1, pos) as pos,
        table_version_id
    from reaching_back

),

changes as (

    select
        *,
        lag(table_version_id) over (
            partition by source_id, schema_name, table_name order by epoch, file_sequence, pos
        ) as previous_version_id
    from starts

),

-- Consecutive snapshots of an unchanged table are one range.
snapshot_ranges as (

    select
        source_id,
        schema_name,
        table_name,
        table_version_id,
        epoch as valid_from_epoch,
        file_sequence as valid_from_file_sequence,
        pos as valid_from_pos,
        lead(struct(epoch, file_sequence, pos)) over (
            partition by source_id, schema_name, table_name order by epoch, file_sequence, pos
        ) as next_start
    from changes
    where not table_version_id <=> previous_version_id

),

named_by_table_map as (

    select
        table_maps.*,
        table_versions.table_version_id,
        -1 as valid_from_epoch,
        -1 as valid_from_file_sequence,
        -1 as valid_from_pos,
        cast(null as struct<epoch: int, file_sequence: bigint, pos: bigint>) as next_start
    from table_maps
    inner join table_versions
        on
            table_maps.source_id = table_versions.source_id
            and table_maps.table_map_id = table_versions.evidence_id
            and table_versions.evidence = 'table_map'

),

named_by_snapshot as (

    select
        table_maps.*,
        snapshot_ranges.table_version_id,
        coalesce(snapshot_ranges.valid_from_epoch, -1) as valid_from_epoch,
        coalesce(snapshot_ranges.valid_from_file_sequence, -1) as valid_from_file_sequence,
        coalesce(snapshot_ranges.valid_from_pos, -1) as valid_from_pos,
        snapshot_ranges.next_start
    from table_maps
    left anti join named_by_table_map
        on
            table_maps.source_id = named_by_table_map.source_id
            and table_maps.table_map_id = named_by_table_map.table_map_id
    left join snapshot_ranges
        on
            table_maps.source_id = snapshot_ranges.source_id
            and table_maps.schema_name = snapshot_ranges.schema_name
            and table_maps.table_name = snapshot_ranges.table_name

),

candidates as (

    select * from named_by_table_map
    union all
    select * from named_by_snapshot

),

definitions as (

    select distinct
        table_version_id,
        column_count as version_column_count,
        columns as version_columns,
        column_names,
        primary_key_ordinals
    from table_versions

),

pairs as (

    select distinct
        candidates.source_id,
        candidates.table_map_id,
        candidates.table_version_id,
        candidates.columns,
        definitions.version_columns
    from candidates
    inner join definitions
        on
            candidates.table_version_id = definitions.table_version_id
            and candidates.column_count = definitions.version_column_count
    inner join table_versions
        on
            candidates.table_version_id = table_versions.table_version_id
            and table_versions.evidence = 'snapshot'

),

paired_columns as (

    select
        source_id,
        table_map_id,
        table_version_id,
        posexplode(arrays_zip(columns, version_columns)) as (ordinal, paired)
    from pairs

),

type_mismatches as (

    select
        paired_columns.source_id,
        paired_columns.table_map_id,
        paired_columns.table_version_id,
        array_join(
            array_sort(
                collect_list(
                    concat(
                        'column ', lpad(paired_columns.ordinal + 1, 4, ' '), ' ',
                        paired_columns.paired.version_columns.name, ' is ',
                        paired_columns.paired.version_columns.column_type, ' in the snapshot and ',
                        paired_columns.paired.columns.type, ' in the binlog'
                    )
                )
            ),
            '; '
        ) as detail
    from paired_columns
    left anti join column_types
        on
            paired_columns.paired.columns.type = column_types.wire_type
            and paired_columns.paired.version_columns.data_type = column_types.data_type
            and column_types.wire_metadata in ('*', cast(paired_columns.paired.columns.metadata as string))
    group by
        paired_columns.source_id,
        paired_columns.table_map_id,
        paired_columns.table_version_id

),

final as (

    select
        candidates.source_id,
        candidates.table_map_id,
        candidates.table_version_id,
        candidates.schema_name,
        candidates.table_name,
        candidates.column_count,
        definitions.column_names,
        definitions.primary_key_ordinals,
        case
            when candidates.table_version_id is null then 'unknown_table'
            when candidates.column_count != definitions.version_column_count then 'column_count_mismatch'
            -- Names that a server cannot have written; a map of names to values could not hold them.
            when size(array_distinct(definitions.column_names)) != definitions.version_column_count
                then 'column_count_mismatch'
            when type_mismatches.table_map_id is not null then 'column_type_mismatch'
        end as reason,
        case
            when candidates.table_version_id is null
                then 'the table map has no column names, and no snapshot of the source has the table'
            when candidates.column_count != definitions.version_column_count
                then concat(
                    'the table map has ', candidates.column_count, ' columns, the snapshot ',
                    definitions.version_column_count
                )
            when size(array_distinct(definitions.column_names)) != definitions.version_column_count
                then 'two columns have the same name'
            else regexp_replace(type_mismatches.detail, ' +', ' ')
        end as detail,
        cast(candidates.valid_from_epoch as int) as valid_from_epoch,
        cast(candidates.valid_from_file_sequence as bigint) as valid_from_file_sequence,
        cast(candidates.valid_from_pos as bigint) as valid_from_pos,
        coalesce(candidates.next_start.epoch, 2147483647) as valid_to_epoch,
        coalesce(candidates.next_start.file_sequence, 9223372036854775807) as valid_to_file_sequence,
        coalesce(candidates.next_start.pos, 9223372036854775807) as valid_to_pos
    from candidates
    left join definitions on candidates.table_version_id = definitions.table_version_id
    left join type_mismatches
        on
            candidates.source_id = type_mismatches.source_id
            and candidates.table_map_id = type_mismatches.table_map_id
            and candidates.table_version_id = type_mismatches.table_version_id

)

select * from final
