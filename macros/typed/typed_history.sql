{% macro typed_history(table, columns, former_columns={}, former_names=[], former_tables=[], prefix='binloom_') -%}
{%- set version_columns = [
    'row_version_id', 'pk_values', 'version', 'operation', 'is_current', 'is_deleted', 'valid_from', 'valid_to',
    'change_id', 'table_version_id', 'thread_id', 'valid_from_gtid', 'valid_from_binlog_file', 'valid_from_epoch',
    'valid_from_file_sequence', 'valid_from_pos', 'valid_to_gtid', 'valid_to_binlog_file', 'valid_to_epoch',
    'valid_to_file_sequence', 'valid_to_pos',
] -%}
{%- set all_columns = dict(columns, **former_columns) -%}
with

versions as (

{{ binloom.row_versions(table, former_names, former_tables) }}

),

texts as (

    select
        *
        {%- for name in all_columns %},
        row[{{ binloom.text_literal(name) }}] as t{{ loop.index0 }}
        {%- endfor %}
    from versions

),

typed as (

    select
        *
        {%- for type in all_columns.values() %},
        {{ binloom.typed_value('t' ~ loop.index0, type) }} as v{{ loop.index0 }}
        {%- endfor %}
    from texts

),

final as (

    select
        {%- for name in all_columns %}
        v{{ loop.index0 }} as {{ binloom.quoted_name(name) }},
        {%- endfor %}
        {%- for name in version_columns %}
        {{ name }} as {{ prefix }}{{ name }},
        {%- endfor %}
        array_except({{ binloom.names_of(columns) }}, map_keys(row)) as {{ prefix }}unknown_columns,
        {{ binloom.lost_values(all_columns, 'row', 0, true) }} as {{ prefix }}zero_dates,
        {{ binloom.lost_values(all_columns, 'row', 0, false) }} as {{ prefix }}unfit_columns
    from typed

)

select * from final
{%- endmacro %}
