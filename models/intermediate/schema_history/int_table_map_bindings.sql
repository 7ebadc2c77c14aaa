{%- set forever = {'epoch': '2147483647', 'file_sequence': '9223372036854775807', 'pos': '9223372036854775807'} -%}
with

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

table_versions as (

    select * from {{ ref('int_table_versions_unioned') }}

),

ranges as (

    select * from {{ ref('int_table_map_ranges') }}

),

candidates as (

    select * from {{ ref('int_table_map_candidates') }}

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
    from candidates
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
        table_maps.masked_columns,
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
