{{ config(materialized='ephemeral') }}

with

ranges as (

    select * from {{ ref('int_table_map_ranges') }}

),

table_versions as (

    select * from {{ ref('int_table_versions_unioned') }}

),

column_types as (

    select * from {{ ref('column_types') }}

),

candidates as (

    select
        ranges.* except (candidates, gap),
        posexplode(ranges.candidates) as (candidate_ordinal, candidate)
    from ranges

),

placed_candidates as (

    select
        candidates.* except (candidate),
        candidates.candidate.confidence,
        table_versions.table_version_id,
        table_versions.definition_id,
        table_versions.evidence,
        table_versions.column_count as version_column_count,
        table_versions.columns as version_columns,
        table_versions.column_names,
        table_versions.primary_key_ordinals
    from candidates
    inner join table_versions
        on
            candidates.source_id = table_versions.source_id
            and candidates.schema_name = table_versions.schema_name
            and candidates.table_name = table_versions.table_name
            and {{ definition_id('candidates.candidate.columns', 'candidates') }} = table_versions.definition_id
            and table_versions.evidence != 'table_map'
            and {{ position_reached(
                'candidates.valid_from_epoch', 'candidates.valid_from_file_sequence', 'candidates.valid_from_pos',
                'table_versions.valid_from'
            ) }}
            and {{ position_before(
                'candidates.valid_from_epoch', 'candidates.valid_from_file_sequence', 'candidates.valid_from_pos',
                'table_versions.valid_to'
            ) }}

),

pairs as (

    select
        source_id,
        table_map_id,
        definition_id,
        columns,
        version_columns,
        bool_or(evidence = 'ddl') as is_of_statement
    from placed_candidates
    where column_count = version_column_count
    group by source_id, table_map_id, definition_id, columns, version_columns

),

paired_columns as (

    select
        source_id,
        table_map_id,
        definition_id,
        is_of_statement,
        posexplode(arrays_zip(columns, version_columns)) as (ordinal, paired)
    from pairs

),

judged_columns as (

    select
        paired_columns.*,
        column_types.wire_type is not null and {{ column_fits('paired.columns', 'paired.version_columns') }} as fits
    from paired_columns
    left join column_types
        on
            paired_columns.paired.columns.type = column_types.wire_type
            and paired_columns.paired.version_columns.data_type = column_types.data_type
            and (
                column_types.wire_metadata in ('*', cast(paired_columns.paired.columns.metadata as string))
                -- The server enlarges a TEXT type when its character set needs more bytes.
                or (
                    paired_columns.is_of_statement
                    and paired_columns.paired.version_columns.data_type like '%text'
                    and paired_columns.paired.columns.metadata > try_cast(column_types.wire_metadata as int)
                )
            )

),

mismatches as (

    select
        source_id,
        table_map_id,
        definition_id,
        array_join(
            array_sort(
                collect_list(
                    concat(
                        'column ', lpad(ordinal + 1, 4, ' '), ' ', paired.version_columns.name, ' is ',
                        paired.version_columns.column_type,
                        case paired.version_columns.is_nullable when false then ' not null' else '' end,
                        ' in the schema and ', paired.columns.type, '(', paired.columns.metadata, ')',
                        case paired.columns.is_nullable when false then ' not null' else '' end, ' in the binlog'
                    )
                )
            ),
            '; '
        ) as detail
    from judged_columns
    where not fits
    group by source_id, table_map_id, definition_id

),

final as (

    select
        placed_candidates.*,
        case
            when placed_candidates.column_count != placed_candidates.version_column_count
                then 'column_count_mismatch'
            when size(array_distinct(placed_candidates.column_names)) != placed_candidates.version_column_count
                then 'column_count_mismatch'
            when mismatches.table_map_id is not null then 'column_type_mismatch'
        end as reason,
        case
            when placed_candidates.column_count != placed_candidates.version_column_count
                then concat(
                    'the table map has ', placed_candidates.column_count, ' columns, the schema ',
                    placed_candidates.version_column_count
                )
            when size(array_distinct(placed_candidates.column_names)) != placed_candidates.version_column_count
                then 'two columns have the same name'
            else regexp_replace(mismatches.detail, ' +', ' ')
        end as detail
    from placed_candidates
    left join mismatches
        on
            placed_candidates.source_id = mismatches.source_id
            and placed_candidates.table_map_id = mismatches.table_map_id
            and placed_candidates.definition_id = mismatches.definition_id

)

select * from final
