with

histories as (

    select * from {{ ref('int_table_histories') }}

),

table_maps as (

    select * from {{ ref('stg_binlog__table_maps') }}

),

candidates as (

    select
        * except (candidates, evidence_id),
        explode(candidates) as candidate
    from histories

),

ranges as (

    select
        *,
        {{ definition_id('candidate.columns') }} as definition_id,
        struct(valid_from_epoch, valid_from_file_sequence, valid_from_pos) as valid_from,
        struct(valid_to_epoch, valid_to_file_sequence, valid_to_pos, valid_to_binlog_file) as valid_to
    from candidates

),

-- Consecutive ranges of one definition are one version.
compared as (

    select
        *,
        not coalesce(
            lag(struct(valid_to_epoch, valid_to_file_sequence, valid_to_pos)) over (
                partition by source_id, schema_name, table_name, definition_id order by valid_from
            ) = struct(valid_from_epoch, valid_from_file_sequence, valid_from_pos),
            false
        ) as begins
    from ranges

),

numbered as (

    select
        *,
        count_if(begins) over (
            partition by source_id, schema_name, table_name, definition_id order by valid_from
        ) as run
    from compared

),

runs as (

    select
        source_id,
        schema_name,
        table_name,
        definition_id,
        min_by(candidate, struct(candidate.confidence, valid_from)) as candidate,
        min(valid_from) as valid_from,
        min_by(valid_from_binlog_file, valid_from) as valid_from_binlog_file,
        max(valid_to) as valid_to
    from numbered
    group by source_id, schema_name, table_name, definition_id, run

),

from_histories as (

    select
        -- The same definition at another time is another version.
        md5(concat_ws('/', definition_id, to_json(valid_from))) as table_version_id,
        source_id,
        schema_name,
        table_name,
        candidate.evidence,
        candidate.evidence_id,
        transform(
            candidate.columns,
            (col, place) -> struct(
                place as ordinal,
                col.name as name,
                col.data_type as data_type,
                col.column_type as column_type,
                col.character_set as character_set,
                col.is_nullable as is_nullable,
                col.is_primary_key as is_primary_key
            )
        ) as columns,
        definition_id,
        valid_from.valid_from_epoch,
        valid_from_binlog_file,
        valid_from.valid_from_file_sequence,
        valid_from.valid_from_pos,
        valid_to.valid_to_epoch,
        valid_to.valid_to_binlog_file,
        valid_to.valid_to_file_sequence,
        valid_to.valid_to_pos
    from runs

),

-- With binlog_row_metadata=FULL each table map has the names itself, so it is right at any position.
named_table_maps as (

    select
        source_id,
        schema_name,
        table_name,
        table_map_id,
        transform(
            columns,
            col -> struct(
                col.ordinal as ordinal,
                col.name as name,
                lower(col.type) as data_type,
                concat_ws(
                    ' ', lower(col.type), cast(col.metadata as string), if(col.is_unsigned, 'unsigned', null)
                ) as column_type,
                col.charset as character_set,
                col.is_nullable as is_nullable,
                coalesce(col.is_primary_key, false) as is_primary_key
            )
        ) as columns
    from table_maps
    where
        column_count > 0
        and not exists(columns, col -> col.name is null)

),

from_table_maps as (

    select
        {{ definition_id('columns') }} as table_version_id,
        source_id,
        schema_name,
        table_name,
        'table_map' as evidence,
        table_map_id as evidence_id,
        columns,
        {{ definition_id('columns') }} as definition_id,
        cast(null as int) as valid_from_epoch,
        cast(null as string) as valid_from_binlog_file,
        cast(null as bigint) as valid_from_file_sequence,
        cast(null as bigint) as valid_from_pos,
        cast(null as int) as valid_to_epoch,
        cast(null as string) as valid_to_binlog_file,
        cast(null as bigint) as valid_to_file_sequence,
        cast(null as bigint) as valid_to_pos
    from named_table_maps

),

unioned as (

    select * from from_histories
    union all
    select * from from_table_maps

),

final as (

    select
        table_version_id,
        source_id,
        evidence,
        evidence_id,
        schema_name,
        table_name,
        definition_id,
        cast(size(columns) as int) as column_count,
        columns,
        transform(columns, col -> col.name) as column_names,
        transform(filter(columns, col -> col.is_primary_key), col -> col.ordinal) as primary_key_ordinals,
        valid_from_epoch,
        valid_from_binlog_file,
        valid_from_file_sequence,
        valid_from_pos,
        valid_to_epoch,
        valid_to_binlog_file,
        valid_to_file_sequence,
        valid_to_pos
    from unioned

)

select * from final
