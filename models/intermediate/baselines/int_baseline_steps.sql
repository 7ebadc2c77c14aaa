{{ config(materialized='ephemeral') }}

with

pairs as (

    select * from {{ ref('int_baseline_pairs') }}

),

row_changes as (

    select * from {{ ref('row_changes') }}
    where outcome = 'commit' and pk_values is not null

),

transactions as (

    select * from {{ ref('transactions') }}

),

-- A prepared transaction took effect at its XA COMMIT.
ends_of_xa as (

    select
        prepared.source_id,
        prepared.epoch,
        prepared.binlog_file,
        prepared.start_pos as transaction_pos,
        struct(ending.epoch, ending.file_sequence, ending.start_pos as binlog_pos) as position
    from transactions as prepared
    inner join transactions as ending on prepared.xa_end_transaction_id = ending.transaction_id

),

-- The changes between two baselines of a table, twice if they change the key: the old key has no row afterwards.
changes as (

    select /*+ broadcast(pairs), broadcast(ends_of_xa) */
        pairs.baseline_id,
        pairs.schema_name,
        pairs.table_name,
        row_changes.pk_values,
        row_changes.pk_values_after,
        row_changes.event_type,
        row_changes.row_before,
        row_changes.row_after,
        coalesce(row_changes.undecoded_columns, array()) as undecoded_columns,
        struct(
            coalesce(
                ends_of_xa.position,
                struct(row_changes.epoch, row_changes.file_sequence, row_changes.start_pos as binlog_pos)
            ) as position,
            row_changes.start_pos,
            row_changes.payload_ordinal,
            row_changes.row_ordinal
        ) as place
    from row_changes
    inner join pairs
        on
            row_changes.source_id = pairs.source_id
            and row_changes.schema_name = pairs.schema_name
            and row_changes.table_name = pairs.table_name
    left join ends_of_xa
        on
            row_changes.source_id = ends_of_xa.source_id
            and row_changes.epoch = ends_of_xa.epoch
            and row_changes.binlog_file = ends_of_xa.binlog_file
            and row_changes.transaction_pos = ends_of_xa.transaction_pos
    where
        coalesce(
            ends_of_xa.position,
            struct(row_changes.epoch, row_changes.file_sequence, row_changes.start_pos as binlog_pos)
        ) >= pairs.previous_position
        and coalesce(
            ends_of_xa.position,
            struct(row_changes.epoch, row_changes.file_sequence, row_changes.start_pos as binlog_pos)
        ) < pairs.position

),

steps as (

    select
        baseline_id,
        schema_name,
        table_name,
        pk_values,
        struct(
            place,
            event_type = 'UPDATE' as is_on_row,
            row_before,
            if(event_type = 'DELETE' or pk_values_after is not null, null, row_after) as row_after,
            undecoded_columns
        ) as step
    from changes

    union all

    select
        baseline_id,
        schema_name,
        table_name,
        pk_values_after as pk_values,
        struct(place, false as is_on_row, row_before, row_after, undecoded_columns) as step
    from changes
    where pk_values_after is not null

),

final as (

    select
        baseline_id,
        schema_name,
        table_name,
        pk_values,
        array_sort(
            collect_list(step),
            (left, right) -> case when left.place < right.place then -1 when left.place > right.place then 1 else 0 end
        ) as steps
    from steps
    group by baseline_id, schema_name, table_name, pk_values

)

select * from final
