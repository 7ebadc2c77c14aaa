{% macro table_changes(events) -%}
{%- set key_type = 'struct<schema_name: string, table_name: string>' -%}
{%- set column_type = 'struct<name: string, data_type: string, column_type: string, character_set: string, '
    ~ 'is_nullable: boolean, is_primary_key: boolean>' -%}
{%- set state_type = 'struct<status: string, columns: array<' ~ column_type ~ '>, evidence: string, '
    ~ 'evidence_id: string, detail: string>' -%}
{%- set own = "named_struct('schema_name', event.schema_name, 'table_name', event.table_name)" -%}
{%- set other = "named_struct('schema_name', event.other_schema_name, 'table_name', event.other_table_name)" -%}
{%- set own_state = 'try_element_at(history.tables, ' ~ own ~ ')' -%}
{%- set other_state = 'try_element_at(history.tables, ' ~ other ~ ')' -%}
aggregate(
    {{ events }},
    named_struct(
        'tables', cast(map() as map<{{ key_type }}, {{ state_type }}>),
        'changes', cast(array() as array<struct<key: {{ key_type }}, number: int, state: {{ state_type }}>>)
    ),
    (history, event) -> transform(
        array(
            case
                -- Two changes of one table would be two entries of one key in the map.
                when event.action = 'rename_table' and {{ own }} = {{ other }} then array()
                -- RENAME IF EXISTS did nothing: there was no such table, as another one already had the new name.
                when
                    event.action = 'rename_table'
                    and event.is_conditional
                    and coalesce({{ own_state }}.status, 'unknown') in ('unknown', 'absent')
                    and (
                        {{ own_state }}.status = 'absent'
                        or {{ other_state }}.status in ('known', 'assumed', 'conditional')
                    )
                    then array()
                when event.action = 'rename_table' then array(
                    named_struct(
                        'key', {{ own }},
                        'state', {{ table_state(
                            "'absent'", evidence='event.evidence', evidence_id='event.evidence_id', detail="'renamed'"
                        ) }}
                    ),
                    named_struct(
                        'key', {{ other }},
                        'state', if(
                            coalesce({{ own_state }}.status, 'unknown') in ('unknown', 'absent'),
                            {{ table_state(
                                "'uncertain'", evidence='event.evidence', evidence_id='event.evidence_id',
                                detail="'renamed from a table that is not known'"
                            ) }},
                            {{ own_state }}
                        )
                    )
                )
                else transform(
                    array(named_struct('own', {{ own_state }}, 'other', {{ other_state }})),
                    known -> named_struct('key', {{ own }}, 'state', {{ state_after('event', 'known.own', 'known.other') }})
                )
            end
        ),
        changed -> named_struct(
            'tables', map_concat(
                map_filter(history.tables, (key, state) -> not array_contains(changed.key, key)),
                map_from_entries(changed)
            ),
            'changes', concat(
                history.changes,
                transform(
                    changed,
                    change -> named_struct('key', change.key, 'number', event.number, 'state', change.state)
                )
            )
        )
    )[0],
    history -> history.changes
)
{%- endmacro %}
