{% macro state_after(event, state, model_state) -%}
{%- set has_shape = "in ('known', 'assumed', 'conditional')" -%}
{%- set by_event = event ~ '.evidence' -%}
{%- set id = event ~ '.evidence_id' -%}
case
    when {{ event }}.action = 'observe'
        then {{ table_state("'known'", event ~ '.columns', by_event, id) }}
    when {{ event }}.action = 'assume'
        then {{ table_state("'assumed'", event ~ '.columns', by_event, id) }}
    when {{ event }}.action = 'doubt'
        then case {{ state }}.status
            when 'known'
                then {{ table_state(
                    "'conditional'", state ~ '.columns', state ~ '.evidence', state ~ '.evidence_id',
                    "'the log before is not landed'"
                ) }}
            -- The part that is not landed may have created the table.
            when 'absent' then {{ table_state("'unknown'") }}
            else coalesce({{ state }}, {{ table_state("'unknown'") }})
        end
    when {{ event }}.action = 'drop_table'
        then {{ table_state("'absent'", evidence=by_event, evidence_id=id, detail="'dropped'") }}
    when {{ event }}.action = 'not_understood'
        then {{ table_state("'uncertain'", evidence=by_event, evidence_id=id, detail="'a statement is not understood'") }}
    when {{ event }}.action in ('create_table', 'create_like', 'create_select') then
        case
            -- A table whose columns are not known is there all the same, so the statement did nothing.
            when
                {{ event }}.is_conditional
                and ({{ state }}.status {{ has_shape }} or {{ state }}.status in ('uncertain', 'refuted'))
                then {{ state }}
            when {{ event }}.action = 'create_select'
                then {{ table_state(
                    "'uncertain'", evidence=by_event, evidence_id=id, detail="'created with the columns of a query'"
                ) }}
            when {{ event }}.action = 'create_like' and not coalesce({{ model_state }}.status {{ has_shape }}, false)
                then {{ table_state(
                    "'uncertain'", evidence=by_event, evidence_id=id,
                    detail="'created like a table that is not known'"
                ) }}
            else {{ table_state(
                "case
                    when " ~ event ~ ".is_conditional and coalesce(" ~ state ~ ".status, 'unknown') != 'absent'
                        then 'conditional'
                    when " ~ event ~ ".action = 'create_like' then " ~ model_state ~ ".status
                    else 'known'
                end",
                "if(" ~ event ~ ".action = 'create_like', " ~ model_state ~ ".columns, " ~ event ~ ".columns)",
                by_event,
                id
            ) }}
        end
    when {{ state }}.status {{ has_shape }} then
        transform(
            array({{ altered_columns(event, state ~ '.columns') }}),
            columns -> if(
                columns is null,
                {{ table_state(
                    "if(" ~ state ~ ".status = 'assumed', 'refuted', 'uncertain')", evidence=by_event,
                    evidence_id=id, detail="'altered in a way that its columns do not allow'"
                ) }},
                {{ table_state(state ~ '.status', 'columns', by_event, id) }}
            )
        )[0]
    when {{ state }}.status = 'absent'
        then {{ table_state(
            "'uncertain'", evidence=by_event, evidence_id=id, detail="'altered while it should not exist'"
        ) }}
    else coalesce({{ state }}, {{ table_state("'unknown'") }})
end
{%- endmacro %}
