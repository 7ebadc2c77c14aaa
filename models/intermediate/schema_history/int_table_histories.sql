with

evidence as (

    select * from {{ ref('int_schema_evidence') }}

),

families as (

    select
        source_id,
        family,
        array_sort(
            collect_list(
                struct(
                    number,
                    schema_name,
                    table_name,
                    other_schema_name,
                    other_table_name,
                    action,
                    evidence,
                    evidence_id,
                    columns,
                    column_name,
                    place,
                    after_column,
                    key_columns,
                    character_set,
                    is_conditional
                )
            )
        ) as events
    from evidence
    group by source_id, family

),

folded as (

    select
        source_id,
        family,
        explode({{ table_changes('events') }}) as change
    from families

),

changes as (

    select
        folded.source_id,
        folded.family,
        folded.change.key.schema_name,
        folded.change.key.table_name,
        folded.change.number,
        folded.change.state,
        evidence.action,
        evidence.evidence_id,
        evidence.columns as evidence_columns,
        evidence.epoch,
        evidence.file_sequence,
        evidence.pos,
        evidence.binlog_file
    from folded
    inner join evidence on folded.source_id = evidence.source_id and folded.change.number = evidence.number

),

-- A snapshot without a position is assumed to show the beginning, unless the statements of the log are impossible on it
-- or lead to it: then it was taken after them.
assumptions as (

    select
        source_id,
        family,
        schema_name,
        table_name,
        max_by(if(action = 'assume', evidence_columns, null), action = 'assume') as columns,
        max_by(if(action = 'assume', evidence_id, null), action = 'assume') as evidence_id,
        bool_or(action = 'assume') as is_assumed,
        bool_or(state.status = 'refuted') as is_refuted,
        max_by(state, number) as last_state,
        bool_or(state.status = 'assumed' and action != 'assume') as is_changed
    from changes
    group by source_id, family, schema_name, table_name

),

refuted_families as (

    select
        source_id,
        family
    from assumptions
    group by source_id, family
    having
        bool_or(is_refuted)
        or bool_or(
            is_assumed
            and is_changed
            and {{ shape('last_state.columns') }} = {{ shape('columns') }}
        )

),

-- Nothing is known before the first evidence.
beginnings as (

    select
        source_id,
        family,
        schema_name,
        table_name,
        cast(-1 as int) as number,
        {{ table_state("'unknown'") }} as state,
        'begin' as action,
        cast(null as string) as evidence_id,
        cast(
            null as array<struct<
                name: string, data_type: string, column_type: string, character_set: string, is_nullable: boolean,
                is_primary_key: boolean
            >>
        ) as evidence_columns,
        cast(-1 as int) as epoch,
        cast(-1 as bigint) as file_sequence,
        cast(-1 as bigint) as pos,
        cast(null as string) as binlog_file
    from assumptions

),

entries as (

    select * from beginnings
    union all
    select * from changes

),

followed as (

    select
        *,
        lead(struct(action, evidence_columns, evidence_id, epoch, file_sequence, pos, binlog_file)) over (
            partition by source_id, schema_name, table_name order by number
        ) as next
    from entries

),

ranges as (

    select
        followed.source_id,
        followed.schema_name,
        followed.table_name,
        followed.epoch as valid_from_epoch,
        followed.file_sequence as valid_from_file_sequence,
        followed.pos as valid_from_pos,
        followed.binlog_file as valid_from_binlog_file,
        coalesce(followed.next.epoch, 2147483647) as valid_to_epoch,
        coalesce(followed.next.file_sequence, 9223372036854775807) as valid_to_file_sequence,
        coalesce(followed.next.pos, 9223372036854775807) as valid_to_pos,
        followed.next.binlog_file as valid_to_binlog_file,
        if(
            followed.state.status in ('assumed', 'refuted') and refuted_families.family is not null,
            {{ table_state("'uncertain'", detail="'a snapshot without a position was taken later'") }},
            followed.state
        ) as state,
        -- The columns in a later snapshot are valid since the last statement before it.
        case
            when followed.next.action = 'observe'
                then {{ table_state(
                    "'known'", 'followed.next.evidence_columns', "'snapshot'", 'followed.next.evidence_id'
                ) }}
            when followed.next is null and assumptions.is_assumed
                then {{ table_state("'assumed'", 'assumptions.columns', "'snapshot'", 'assumptions.evidence_id') }}
        end as later_state
    from followed
    inner join assumptions
        on
            followed.source_id = assumptions.source_id
            and followed.schema_name = assumptions.schema_name
            and followed.table_name = assumptions.table_name
    left join refuted_families
        on
            followed.source_id = refuted_families.source_id
            and followed.family = refuted_families.family

),

final as (

    select
        source_id,
        schema_name,
        table_name,
        valid_from_epoch,
        valid_from_file_sequence,
        valid_from_pos,
        valid_from_binlog_file,
        valid_to_epoch,
        valid_to_file_sequence,
        valid_to_pos,
        valid_to_binlog_file,
        state.status,
        state.detail,
        state.evidence_id,
        filter(
            array(
                case
                    when
                        state.columns is not null
                        and {{ shape('state.columns') }} = {{ shape('later_state.columns') }}
                        then {{ table_candidate(
                            'later_state',
                            "if(state.status = 'known' or later_state.status = 'known', 'in_force', 'inferred')"
                        ) }}
                    when state.columns is not null
                        then {{ table_candidate('state', "if(state.status = 'known', 'in_force', 'inferred')") }}
                end,
                case
                    when
                        later_state.columns is not null
                        and not coalesce({{ shape('state.columns') }} = {{ shape('later_state.columns') }}, false)
                        then {{ table_candidate('later_state', "'inferred'") }}
                end
            ),
            candidate -> candidate is not null
        ) as candidates
    from ranges
    where
        valid_from_epoch != valid_to_epoch
        or valid_from_file_sequence != valid_to_file_sequence
        or valid_from_pos != valid_to_pos

)

select * from final
