{% macro typed_changes(table, columns, former_columns={}, former_names=[], former_tables=[]) -%}
{%- set all_columns = dict(columns, **former_columns) -%}
{%- set count = all_columns | length -%}
with

changes as (

    {{ binloom.changes_of_table(table, former_names, former_tables) | indent }}
        and outcome = 'commit'

),

texts as (

    select
        *
        {%- for name in all_columns %},
        row_before[{{ binloom.text_literal(name) }}] as t{{ loop.index0 }},
        row_after[{{ binloom.text_literal(name) }}] as t{{ count + loop.index0 }}
        {%- endfor %}
    from changes

),

typed as (

    select
        *
        {%- for type in all_columns.values() %},
        {{ binloom.typed_value('t' ~ loop.index0, type) }} as v{{ loop.index0 }},
        {{ binloom.typed_value('t' ~ (count + loop.index0), type) }} as v{{ count + loop.index0 }}
        {%- endfor %}
    from texts

),

final as (

    select
        change_id,
        event_type,
        committed_at,
        pk_values,
        pk_values_after,
        changed_columns,
        {%- for name in all_columns %}
        v{{ loop.index0 }} as {{ binloom.quoted_name('before_' ~ name) }},
        v{{ count + loop.index0 }} as {{ binloom.quoted_name('after_' ~ name) }},
        {%- endfor %}
        array_except({{ binloom.names_of(columns) }}, map_keys(row_before)) as columns_absent_before,
        array_except({{ binloom.names_of(columns) }}, map_keys(row_after)) as columns_absent_after,
        {{ binloom.lost_values(all_columns, 'row_before', 0, true) }} as zero_dates_before,
        {{ binloom.lost_values(all_columns, 'row_after', count, true) }} as zero_dates_after,
        {{ binloom.lost_values(all_columns, 'row_before', 0, false) }} as unfit_columns_before,
        {{ binloom.lost_values(all_columns, 'row_after', count, false) }} as unfit_columns_after,
        thread_id,
        gtid,
        epoch,
        binlog_file,
        file_sequence,
        transaction_pos,
        start_pos,
        payload_ordinal,
        row_ordinal,
        event_timestamp,
        event_hour
    from typed

)

select * from final
{%- endmacro %}
