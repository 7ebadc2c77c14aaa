{% macro row_versions(table=none, former_names=[], former_tables=[]) %}
{%- set removed_at = 'struct(removed.epoch, removed.file_sequence, removed.transaction_pos)' -%}
{%- set place_of_change = 'struct(counted.epoch, counted.file_sequence, counted.transaction_pos)' -%}
{%- set existed_before -%}
    first_row_before is not null and {{ 'place = 1' if table is none else 'begins_age_with_rows' }}
{%- endset -%}
{%- set row_key = ['source_id', 'schema_name', 'table_name', 'pk_values', 'pk_hash'] %}

with

row_changes as (

    {% if table is none -%}
    select * from {{ ref('row_changes') }}
    {%- else -%}
    select * from ({{ binloom.changes_of_table(table, former_names, former_tables) }})
    {%- endif %}
    where outcome = 'commit' and pk_values is not null

),

schema_changes as (

    select * from {{ ref('schema_changes') }}

),

-- An UPDATE that changes the key ends the life of the old key and begins that of the new key. A union, because a filter
-- on the key reaches the scan through it.
lives as (

    select
        source_id,
        schema_name,
        table_name,
        pk_values,
        pk_hash,
        pk_values_after as next_pk_values,
        cast(null as string) as previous_pk_values,
        change_id,
        epoch,
        binlog_file,
        file_sequence,
        start_pos,
        payload_ordinal,
        row_ordinal,
        transaction_pos,
        gtid,
        thread_id,
        committed_at,
        event_type,
        table_version_id,
        undecoded_columns,
        row_before,
        case when pk_values_after is null then row_after end as row_after
    from row_changes

    union all

    select
        source_id,
        schema_name,
        table_name,
        pk_values_after as pk_values,
        sha2(pk_values_after, 256) as pk_hash,
        cast(null as string) as next_pk_values,
        pk_values as previous_pk_values,
        change_id,
        epoch,
        binlog_file,
        file_sequence,
        start_pos,
        payload_ordinal,
        row_ordinal,
        transaction_pos,
        gtid,
        thread_id,
        committed_at,
        event_type,
        table_version_id,
        undecoded_columns,
        if(false, row_before, null) as row_before,
        {% if table is none -%}
        row_after
        {%- else -%}
        {{ binloom.whole_image() }} as row_after
        {%- endif %}
    from row_changes
    where pk_values_after is not null
    {%- if table is not none %}

    union all

    {{ binloom.baseline_lives(table, former_names, former_tables) }}
    {%- endif %}

),

-- TRUNCATE, DROP and RENAME end all rows of a table; the log does not list the rows. DROP DATABASE has only a schema.
removals as (

    select
        source_id,
        {%- if table is none %}
        lower(table_key) as table_key,
        {%- endif %}
        array_sort(
            collect_list(
                struct(
                    epoch,
                    file_sequence,
                    transaction_pos,
                    binlog_file,
                    gtid,
                    event_timestamp as committed_at,
                    -- The table is another one since, and may have rows.
                    exists(actions, action -> action rlike '^(rename_table|exchange_partition)') as has_rows
                )
            )
        ) as positions
    from schema_changes
        lateral view explode(if(table_name is null, array(concat(schema_name, '.')), tables)) as table_key
    where
        exists(
            actions,
            action -> action rlike '^(drop_table|truncate_table|drop_database|rename_table|exchange_partition)'
        )
        {%- if table is not none %}
        and {{ binloom.names_table('table_key', table, former_tables) | indent }}
        {%- endif %}
    group by source_id{{ ', lower(table_key)' if table is none }}

),

{% if table is not none -%}
{{ binloom.with_ages('lives') }}
{{ binloom.with_whole_images('aged', row_key) }}
{{ binloom.without_logged_baselines('carried', row_key) }}
{%- endif %}
-- The last change of each transaction, and the row before its first change.
of_transactions as (

    select
        *,
        first_value(row_before) over (
            partition by {{ row_key | join(', ') }}, epoch, file_sequence, transaction_pos
            order by start_pos, payload_ordinal, row_ordinal
        ) as first_row_before,
        row_number() over (
            partition by {{ row_key | join(', ') }}, epoch, file_sequence, transaction_pos
            order by start_pos desc, payload_ordinal desc, row_ordinal desc
        ) as changes_until_commit
    from {{ 'lives' if table is none else 'known' }}

),

numbered as (

    select
        *,
        row_number() over (
            partition by {{ row_key | join(', ') }} order by epoch, file_sequence, transaction_pos
        ) as place,
        {%- if table is not none %}
        age is distinct from lag(age) over (
            partition by {{ row_key | join(', ') }} order by epoch, file_sequence, transaction_pos
        ) and may_have_begun_with_rows as begins_age_with_rows,
        {%- endif %}
        lead(struct(epoch, file_sequence, transaction_pos, binlog_file, gtid, committed_at, false as has_rows)) over (
            partition by {{ row_key | join(', ') }} order by epoch, file_sequence, transaction_pos
        ) as following
    from of_transactions
    where changes_until_commit = 1

),

counted as (

    select
        *,
        {{ existed_before }} as existed_before,
        count_if({{ existed_before }}) over (
            partition by {{ row_key | join(', ') }} order by epoch, file_sequence, transaction_pos
        ) as versions_before_changes
    from numbered

),

ended as (

    select /*+ broadcast(of_table){{ ', broadcast(of_schema)' if table is none }} */
        counted.*,
        {%- if table is not none %}
        array_max(filter(of_table.positions, removed -> {{ removed_at }} < {{ place_of_change }})) as beginning,
        {%- endif %}
        if(
            counted.row_after is null,
            counted.following,
            least(
                counted.following,
                get(filter(of_table.positions, removed -> {{ removed_at }} > {{ place_of_change }}), 0)
                {%- if table is none %},
                get(filter(of_schema.positions, removed -> {{ removed_at }} > {{ place_of_change }}), 0)
                {%- endif %}
            )
        ) as ending
    from counted
    left join removals as of_table
        on
            counted.source_id = of_table.source_id
            {%- if table is none %}
            and lower(concat(counted.schema_name, '.', counted.table_name)) = of_table.table_key
    left join removals as of_schema
        on
            counted.source_id = of_schema.source_id
            and lower(concat(counted.schema_name, '.')) = of_schema.table_key
            {%- endif %}

),

-- A row that existed before its first change has one version more. A row of a baseline has no event.
versions as (

    select
        *,
        event_type is null as is_of_baseline,
        explode(if(existed_before, array(true, false), array(false))) as is_before_the_log
    from ended

),

final as (

    select
        concat_ws('/', change_id, pk_values, if(is_before_the_log, 'before', null)) as row_version_id,
        source_id,
        schema_name,
        table_name,
        pk_values,
        pk_hash,
        if(is_before_the_log, null, previous_pk_values) as previous_pk_values,
        if(is_before_the_log, null, next_pk_values) as next_pk_values,
        if(is_before_the_log, null, event_type) as operation,
        if(is_before_the_log, first_row_before, row_after) as row,
        if(is_before_the_log or is_of_baseline, null, change_id) as change_id,
        table_version_id,
        if(is_before_the_log or is_of_baseline, {{ 'null' if table is none else 'beginning.gtid' }}, gtid) as valid_from_gtid,
        if(is_before_the_log or is_of_baseline, {{ 'null' if table is none else 'beginning.binlog_file' }}, binlog_file) as valid_from_binlog_file,
        if(is_before_the_log, gtid, ending.gtid) as valid_to_gtid,
        if(is_before_the_log, binlog_file, ending.binlog_file) as valid_to_binlog_file,
        cast(place + versions_before_changes - if(is_before_the_log, 1, 0) as int) as version,
        if(is_before_the_log, null, thread_id) as thread_id,
        if(is_before_the_log or is_of_baseline, {{ 'null' if table is none else 'beginning.epoch' }}, epoch) as valid_from_epoch,
        if(is_before_the_log or is_of_baseline, {{ 'null' if table is none else 'beginning.file_sequence' }}, file_sequence) as valid_from_file_sequence,
        if(is_before_the_log or is_of_baseline, {{ 'null' if table is none else 'beginning.transaction_pos' }}, transaction_pos) as valid_from_pos,
        if(is_before_the_log, epoch, ending.epoch) as valid_to_epoch,
        if(is_before_the_log, file_sequence, ending.file_sequence) as valid_to_file_sequence,
        if(is_before_the_log, transaction_pos, ending.transaction_pos) as valid_to_pos,
        not is_before_the_log and ending is null and row_after is not null as is_current,
        not is_before_the_log and row_after is null as is_deleted,
        if(is_before_the_log or is_of_baseline, {{ 'null' if table is none else 'beginning.committed_at' }}, committed_at) as valid_from,
        if(is_before_the_log, committed_at, ending.committed_at) as valid_to
    from versions

)

select * from final
{% endmacro %}
