{%- set forever = {'epoch': '2147483647', 'file_sequence': '9223372036854775807', 'pos': '9223372036854775807'} -%}
with

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

histories as (

    select * from {{ ref('int_table_histories') }}

),

table_versions as (

    select * from {{ ref('int_table_versions_unioned') }}

),

column_types as (

    select * from {{ ref('column_types') }}

),

named as (

    select
        table_maps.source_id,
        table_maps.table_map_id,
        table_versions.table_version_id,
        table_maps.schema_name,
        table_maps.table_name,
        table_maps.column_count,
        table_versions.column_names,
        table_versions.primary_key_ordinals,
        'exact' as confidence,
        -- A server cannot have written duplicate names, and a map of names to values could not hold them.
        if(
            size(array_distinct(table_versions.column_names)) != table_maps.column_count, 'column_count_mismatch', null
        ) as reason,
        if(
            size(array_distinct(table_versions.column_names)) != table_maps.column_count,
            'two columns have the same name',
            null
        ) as detail,
        cast(-1 as int) as valid_from_epoch,
        cast(-1 as bigint) as valid_from_file_sequence,
        cast(-1 as bigint) as valid_from_pos,
        {{ forever.epoch }} as valid_to_epoch,
        {{ forever.file_sequence }} as valid_to_file_sequence,
        {{ forever.pos }} as valid_to_pos
    from table_maps
    inner join table_versions
        on
            table_maps.source_id = table_versions.source_id
            and table_maps.table_map_id = table_versions.evidence_id
            and table_versions.evidence = 'table_map'

),

unnamed as (

    select table_maps.*
    from table_maps
    left anti join named
        on
            table_maps.source_id = named.source_id
            and table_maps.table_map_id = named.table_map_id

),

ranges as (

    select
        unnamed.source_id,
        unnamed.table_map_id,
        unnamed.schema_name,
        unnamed.table_name,
        unnamed.column_count,
        unnamed.columns,
        coalesce(histories.valid_from_epoch, -1) as valid_from_epoch,
        coalesce(histories.valid_from_file_sequence, -1) as valid_from_file_sequence,
        coalesce(histories.valid_from_pos, -1) as valid_from_pos,
        coalesce(histories.valid_to_epoch, {{ forever.epoch }}) as valid_to_epoch,
        coalesce(histories.valid_to_file_sequence, {{ forever.file_sequence }}) as valid_to_file_sequence,
        coalesce(histories.valid_to_pos, {{ forever.pos }}) as valid_to_pos,
        case
            when histories.table_name is null
                then 'the table map has no column names, and nothing tells what the table looks like'
            when histories.status = 'unknown'
                then concat(
                    'the table map has no column names, and what the table looks like is known only from another ',
                    'position on'
                )
            else concat(
                'the table map has no column names, and what the table looks like is not known since ',
                coalesce(histories.evidence_id, 'the beginning'), ': ', histories.detail
            )
        end as gap,
        histories.candidates
    from unnamed
    left join histories
        on
            unnamed.source_id = histories.source_id
            and unnamed.schema_name = histories.schema_name
            and unnamed.table_name = histories.table_name

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

judged as (

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

),

chosen as (

    select
        source_id,
        table_map_id,
        valid_from_epoch,
        valid_from_file_sequence,
        valid_from_pos,
        -- A candidate that fits wins over one that does not. Of two candidates with the same column names, the later
        -- snapshot wins, because it has the key from the server itself. It also wins when the earlier candidate is
        -- uncertain.
        min_by(
            struct(table_version_id, column_names, primary_key_ordinals, reason, detail, confidence),
            struct(reason is not null, if(reason is null, -candidate_ordinal, candidate_ordinal))
        ) as choice,
        count(*) as candidates,
        count(distinct if(reason is null, to_json(struct(column_names)), null)) > 1
        and bool_or(reason is null and confidence = 'in_force') as is_ambiguous
    from judged
    group by source_id, table_map_id, valid_from_epoch, valid_from_file_sequence, valid_from_pos

),

decided as (

    select
        ranges.source_id,
        ranges.table_map_id,
        chosen.choice.table_version_id,
        ranges.schema_name,
        ranges.table_name,
        ranges.column_count,
        chosen.choice.column_names,
        chosen.choice.primary_key_ordinals,
        case
            when chosen.is_ambiguous then 'ambiguous'
            when chosen.choice.reason is not null or chosen.table_map_id is null then null
            when chosen.candidates > 1 then 'inferred'
            else chosen.choice.confidence
        end as confidence,
        case
            when chosen.table_map_id is null then 'unknown_table'
            when chosen.is_ambiguous then 'ambiguous_version'
            else chosen.choice.reason
        end as reason,
        case
            when chosen.table_map_id is null then ranges.gap
            when chosen.is_ambiguous
                then 'what the table was before and what a later snapshot shows both fit, with other names'
            else chosen.choice.detail
        end as detail,
        ranges.valid_from_epoch,
        ranges.valid_from_file_sequence,
        ranges.valid_from_pos,
        ranges.valid_to_epoch,
        ranges.valid_to_file_sequence,
        ranges.valid_to_pos
    from ranges
    left join chosen
        on
            ranges.source_id = chosen.source_id
            and ranges.table_map_id = chosen.table_map_id
            and ranges.valid_from_epoch = chosen.valid_from_epoch
            and ranges.valid_from_file_sequence = chosen.valid_from_file_sequence
            and ranges.valid_from_pos = chosen.valid_from_pos

),

outcomes as (

    select
        *,
        struct(valid_from_epoch, valid_from_file_sequence, valid_from_pos) as valid_from,
        to_json(struct(table_version_id, confidence, reason, detail)) as outcome
    from decided

),

compared as (

    select
        *,
        not coalesce(
            lag(outcome) over (partition by source_id, table_map_id order by valid_from) = outcome, false
        ) as begins
    from outcomes

),

numbered as (

    select
        *,
        count_if(begins) over (partition by source_id, table_map_id order by valid_from) as run
    from compared

),

-- Consecutive ranges with the same outcome are merged.
merged as (

    select
        source_id,
        table_map_id,
        min_by(
            struct(
                table_version_id, schema_name, table_name, column_count, column_names, primary_key_ordinals, confidence,
                reason, detail
            ),
            valid_from
        ) as outcome,
        min(valid_from) as valid_from,
        max(struct(valid_to_epoch, valid_to_file_sequence, valid_to_pos)) as valid_to
    from numbered
    group by source_id, table_map_id, run

),

unioned as (

    select * from named
    union all
    select
        source_id,
        table_map_id,
        outcome.table_version_id,
        outcome.schema_name,
        outcome.table_name,
        outcome.column_count,
        outcome.column_names,
        outcome.primary_key_ordinals,
        outcome.confidence,
        outcome.reason,
        outcome.detail,
        valid_from.*,
        valid_to.*
    from merged

),

final as (

    select
        unioned.source_id,
        unioned.table_map_id,
        unioned.table_version_id,
        unioned.schema_name,
        unioned.table_name,
        unioned.column_count,
        unioned.column_names,
        unioned.primary_key_ordinals,
        unioned.confidence,
        unioned.reason,
        unioned.detail,
        table_maps.unknown_hints,
        cast(unioned.valid_from_epoch as int) as valid_from_epoch,
        cast(unioned.valid_from_file_sequence as bigint) as valid_from_file_sequence,
        cast(unioned.valid_from_pos as bigint) as valid_from_pos,
        cast(unioned.valid_to_epoch as int) as valid_to_epoch,
        cast(unioned.valid_to_file_sequence as bigint) as valid_to_file_sequence,
        cast(unioned.valid_to_pos as bigint) as valid_to_pos
    from unioned
    inner join table_maps
        on
            unioned.source_id = table_maps.source_id
            and unioned.table_map_id = table_maps.table_map_id

)

select * from final
