"""Decoded rows as `row_changes`: the SQL of the model, for DuckDB, on one batch of the decoder at a time.

The conditions of a selection are part of the query, so that only selected rows are kept. The table keeps only a row's
own values. A view adds the names and everything else that all rows of a table map share. When DuckDB makes a map, it
checks each key, which takes longer than all other work here. So an image becomes a map only in a query that needs one.
"""

from typing import TYPE_CHECKING, Final

from recover.sources.files import missing_parts
from recover.sources.statement_digests import add_digest_function, with_digests

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TABLES: Final = """
create schema binloom;
create schema binloom_staging;
create table binloom_staging.server_starts (
    source_id varchar, epoch integer, file_sequence bigint, binlog_file varchar
);
create table bindings (
    number integer, source_id varchar, epoch integer, binlog_file varchar, file_sequence bigint, schema_name varchar,
    table_name varchar, table_map_id varchar, first_pos bigint, end_pos bigint, table_version_id varchar,
    names varchar[], joined_names varchar, key_places integer[], confidence varchar, reason varchar, detail varchar,
    sign_places integer[], value_places integer[], hints_in_words varchar
);
create table binloom.table_versions (
    table_version_id varchar, source_id varchar, schema_name varchar, table_name varchar,
    columns struct(
        ordinal integer, name varchar, data_type varchar, column_type varchar, character_set varchar,
        is_nullable boolean, is_primary_key boolean
    )[],
    column_names varchar[], primary_key_columns varchar[], evidence varchar, valid_from_epoch integer,
    valid_from_binlog_file varchar, valid_from_pos bigint
);
create table decoded_rows (
    binding integer, start_pos bigint, end_pos bigint, payload_ordinal integer, row_ordinal integer,
    transaction_pos bigint, gtid varchar, event_timestamp timestamptz, event_type varchar, pk_values varchar,
    pk_values_after varchar, changed_columns varchar[], partial_before_names varchar, before_values varchar[],
    partial_after_names varchar, after_values varchar[], undecoded_columns varchar[],
    json_changes struct(column_name varchar, operation varchar, path varchar, "value" varchar)[], server_id bigint
);
create table decoded_transactions (
    start_pos bigint, end_pos bigint, gtid varchar, xid bigint, xa_xid varchar, thread_id bigint, server_id bigint,
    started_at timestamptz, committed_at timestamptz, original_committed_at timestamptz, is_ddl boolean,
    outcome varchar, events bigint, row_events bigint, inserts bigint, updates bigint, deletes bigint,
    rolled_back_ranges struct(
        start_pos bigint, start_ordinal integer, end_pos bigint, end_ordinal integer, outcome varchar
    )[],
    source_id varchar, epoch integer, binlog_file varchar, file_sequence bigint
);
create table decoded_statements (
    start_pos bigint, end_pos bigint, payload_ordinal integer, transaction_pos bigint, kind varchar,
    default_schema varchar, thread_id bigint, error_code integer, sql_text varchar, sql_mode varchar,
    time_zone varchar, character_set_client varchar, character_set_connection varchar, collation_server varchar,
    event_timestamp timestamptz, dml_targets struct(verb varchar, schema_name varchar, table_name varchar)[],
    digest varchar, digest_text varchar, tags map(varchar, varchar),
    source_id varchar, epoch integer, binlog_file varchar
);
create table binloom.quarantined_row_events (
    source_id varchar, epoch integer, binlog_file varchar, file_sequence bigint, start_pos bigint, end_pos bigint,
    payload_ordinal integer, row_ordinal integer, transaction_pos bigint, gtid varchar, event_type varchar,
    event_timestamp timestamptz, event_hour varchar, schema_name varchar, table_name varchar, reason varchar,
    detail varchar
);
"""

# A prepared transaction (XA) has the outcome of the next transaction with its identifier. One with more events than a
# GTID and a commit is another transaction, and the end is not in the files.
_VIEWS: Final = (
    f"""
create view binloom_staging.stg_binlog__statements as {with_digests("select * from decoded_statements")};
"""
    """
create view resolved as
with followed as (
    select
        *,
        lead({'id': concat_ws('/', source_id, epoch, binlog_file, start_pos), 'outcome': outcome,
            'events': events, 'committed_at': committed_at, 'original_committed_at': original_committed_at})
            over (partition by source_id, xa_xid order by epoch, file_sequence, start_pos) as following
    from decoded_transactions
),
ended as (
    select
        * exclude (following),
        case
            when
                xa_xid is not null and outcome = 'xa_prepare'
                and following.outcome in ('commit', 'rollback') and following.events <= 2
                then following
        end as xa_end
    from followed
)
select
    * exclude (outcome, committed_at, original_committed_at, xa_end),
    xa_end.id as xa_end_transaction_id,
    coalesce(xa_end.outcome, outcome) as outcome,
    case
        when outcome = 'xa_prepare' then case when xa_end.outcome = 'commit' then xa_end.committed_at end
        else committed_at
    end as committed_at,
    case
        when outcome = 'xa_prepare' then case when xa_end.outcome = 'commit' then xa_end.original_committed_at end
        else original_committed_at
    end as original_committed_at
from ended;
create view binloom.transactions as
select
    concat_ws('/', source_id, epoch, binlog_file, start_pos) as transaction_id,
    4::bigint as segment_start, file_sequence, start_pos, end_pos, gtid, xid, xa_xid, xa_end_transaction_id, thread_id,
    server_id, outcome, events, row_events, inserts, updates, deletes, rolled_back_ranges, is_ddl, started_at,
    committed_at, original_committed_at, null::timestamptz as landed_at, digests, tags, source_id, epoch, binlog_file
from resolved
left join (
    select file, pos, list(digest order by place) as digests, arg_min(first_tags, first_tagged_place) as tags
    from (
        select
            binlog_file as file, transaction_pos as pos, digest, min((start_pos, payload_ordinal)) as place,
            min((start_pos, payload_ordinal)) filter (where tags is not null) as first_tagged_place,
            arg_min(tags, (start_pos, payload_ordinal)) filter (where tags is not null) as first_tags
        from binloom_staging.stg_binlog__statements
        where digest is not null
        group by all
    )
    group by all
) as digests
    on binlog_file = digests.file and start_pos = digests.pos;
create macro image_of(partial_names, all_names, image_values) as case
    when len(image_values) = 0 then map([]::varchar[], []::varchar[])
    when image_values is not null
        then map(string_split(coalesce(partial_names, all_names), chr(0)), image_values)
end;
create macro outcome_of_range(pos, ordinal, ranges) as list_filter(
    ranges,
    lambda one: (pos, ordinal) >= (one.start_pos, one.start_ordinal) and (pos, ordinal) < (one.end_pos, one.end_ordinal)
)[1].outcome;
create view row_images as
select
    concat_ws('/', source_id, epoch, binlog_file, start_pos, payload_ordinal, row_ordinal) as change_id,
    source_id, epoch, binlog_file, file_sequence, start_pos, end_pos, payload_ordinal, row_ordinal, transaction_pos,
    gtid, event_timestamp, transactions.committed_at,
    coalesce(outcome_of_range(start_pos, payload_ordinal, rolled_back_ranges), transactions.outcome) as outcome,
    event_type, schema_name, table_name, pk_values, sha256(pk_values) as pk_hash, pk_values_after, changed_columns,
    image_of(partial_before_names, joined_names, before_values) as row_before,
    image_of(partial_after_names, joined_names, after_values) as row_after,
    undecoded_columns, json_changes, table_version_id, confidence as binding_confidence, transactions.thread_id,
    server_id, strftime(event_timestamp, '%Y-%m-%d-%H') as event_hour,
    case when before_values is not null then coalesce(partial_before_names, joined_names) end as before_names,
    before_values,
    case when after_values is not null then coalesce(partial_after_names, joined_names) end as after_names,
    after_values
from decoded_rows
inner join (
    select
        number, source_id, epoch, binlog_file, file_sequence, schema_name, table_name, table_version_id, confidence,
        joined_names
    from bindings
) as bindings
    on decoded_rows.binding = bindings.number
left join (
    select binlog_file as file, start_pos as pos, committed_at, outcome, rolled_back_ranges, thread_id from resolved
) as transactions
    on binlog_file = transactions.file and transaction_pos = transactions.pos;
create view binloom.row_changes as
select * exclude (before_names, before_values, after_names, after_values) from row_images;
"""
)

_BOUND: Final = """
    select
        $source as source_id,
        $epoch::integer as epoch,
        $file as binlog_file,
        $sequence::bigint as file_sequence,
        batch.start_pos,
        batch.end_pos,
        batch.payload_ordinal,
        batch.row_ordinal,
        batch.transaction_pos,
        batch.gtid::varchar as gtid,
        batch.event_type::varchar as event_type,
        batch.event_timestamp,
        batch.server_id,
        batch.schema_name::varchar as schema_name,
        batch.table_name::varchar as table_name,
        batch.before_values,
        batch.after_values,
        batch.before_columns,
        batch.after_columns,
        batch.undecoded_columns as undecoded_places,
        batch.json_changes as json_steps,
        strftime(batch.event_timestamp, '%Y-%m-%d-%H') as event_hour,
        bindings.number as binding,
        bindings.table_version_id,
        bindings.names,
        bindings.joined_names,
        bindings.key_places,
        bindings.confidence as binding_confidence,
        {reason} as reason,
        {detail} as detail
    from batch
    inner join bindings
        on
            batch.table_map_id::varchar = bindings.table_map_id
            and bindings.binlog_file = $file
            and batch.start_pos >= bindings.first_pos
            and batch.start_pos < bindings.end_pos"""

_IS_UNCERTAIN: Final = " or ".join(
    f"""(
        len(list_filter(bindings.sign_places, lambda p: batch.{values}[p] like '-%')) > 0
        or len(list_filter(bindings.value_places, lambda p: batch.{values}[p] is not null)) > 0
    )"""
    for values in ("before_values", "after_values")
)
_REASON: Final = (
    f"case when bindings.reason is not null then bindings.reason when {_IS_UNCERTAIN} then 'value_uncertain' end"
)
_DETAIL: Final = "coalesce(bindings.detail, bindings.hints_in_words)"


def _escaped(value: str) -> str:
    return f"replace(replace({value}, '\\', '\\\\'), '|', '\\|')"


def _key(values: str) -> str:
    return f"""case
        when len(key_places) = 1 then {_escaped(f"{values}[key_places[1]]")}
        when len(key_places) > 1 and len(list_filter(key_places, lambda p: {values}[p] is null)) = 0
            then array_to_string(list_transform(key_places, lambda p: {_escaped(f"{values}[p]")}), '|')
    end"""


def _partial_names(present: str) -> str:
    """Return an expression of the names of a partial image, joined by NUL, which no name has; NULL for all names."""
    of_present = f"array_to_string(list_transform({present}, lambda p: names[p + 1]), chr(0))"
    return f"case when {present} is not null then {of_present} end"


def _values(values: str, present: str) -> str:
    of_present = f"list_transform({present}, lambda p: {values}[p + 1])"
    return f"case when {present} is null then {values} else {of_present} end"


_NEW_KEY_VALUE: Final = """(case
    when after_columns is null or list_contains(after_columns, p - 1) then after_values[p] else before_values[p]
end)"""
_KEY_AFTER: Final = f"""case
    when len(list_filter(
        key_places,
        lambda p: (after_columns is null or list_contains(after_columns, p - 1)) and before_values[p] != after_values[p]
    )) > 0
        then array_to_string(list_transform(key_places, lambda p: {_escaped(_NEW_KEY_VALUE)}), '|')
end"""
_CHANGED: Final = """case
    when before_columns is null and after_columns is null
        then list_filter(names, lambda name, p: before_values[p] is distinct from after_values[p])
    else list_filter(
        names,
        lambda name, p: coalesce(list_contains(undecoded_places, p - 1), false)
        or (
            (after_columns is null or list_contains(after_columns, p - 1))
            and (
                not (before_columns is null or list_contains(before_columns, p - 1))
                or before_values[p] is distinct from after_values[p]
            )
        )
    )
end"""


def add_tables(connection: "DuckDBPyConnection") -> None:
    """Add the tables for decoded rows and transactions to a connection, and the marts as views of them."""
    add_digest_function(connection)
    connection.execute(_TABLES)
    connection.execute(missing_parts.TABLES)
    connection.execute(_VIEWS)


def rows_query(condition: str, *, may_be_quarantined: bool) -> str:
    """Return the statement that adds the selected rows of a batch to `decoded_rows`.

    Parameters
    ----------
    condition
        Condition on the columns of `row_changes`, without those of transactions.
    may_be_quarantined
        Whether a row of the batch may be in quarantine.
    """
    bound = _BOUND.format(reason=_REASON if may_be_quarantined else "null", detail="null")
    return f"""insert into decoded_rows
with bound as ({bound}
),
keyed as (
    select *, {_key("(case when event_type = 'INSERT' then after_values else before_values end)")} as pk_values
    from bound
    where reason is null
),
named as (
    select
        concat_ws('/', source_id, epoch, binlog_file, start_pos, payload_ordinal, row_ordinal) as change_id,
        source_id, epoch, binlog_file, file_sequence, start_pos, end_pos, payload_ordinal, row_ordinal,
        transaction_pos, gtid, event_timestamp, event_type, schema_name, table_name, pk_values,
        sha256(pk_values) as pk_hash,
        case when event_type = 'UPDATE' then {_KEY_AFTER} end as pk_values_after,
        case when event_type = 'UPDATE' then {_CHANGED} end as changed_columns,
        case when event_type != 'INSERT' then {_partial_names("before_columns")} end as partial_before_names,
        case when event_type != 'INSERT' then {_values("before_values", "before_columns")} end as before_values,
        case when event_type != 'DELETE' then {_partial_names("after_columns")} end as partial_after_names,
        case when event_type != 'DELETE' then {_values("after_values", "after_columns")} end as after_values,
        list_transform(undecoded_places, lambda p: names[p + 1]) as undecoded_columns,
        list_transform(
            json_steps,
            lambda step: {{
                'column_name': names[step.column_ordinal + 1], 'operation': step.operation, 'path': step.path,
                'value': step.value
            }}
        ) as json_changes,
        binding, joined_names, table_version_id, binding_confidence, server_id, event_hour
    from keyed
),
row_changes as (
    select
        *,
        image_of(partial_before_names, joined_names, before_values) as row_before,
        image_of(partial_after_names, joined_names, after_values) as row_after
    from named
)
select
    binding, start_pos, end_pos, payload_ordinal, row_ordinal, transaction_pos, gtid, event_timestamp, event_type,
    pk_values, pk_values_after, changed_columns, partial_before_names, before_values, partial_after_names,
    after_values, undecoded_columns, json_changes, server_id
from row_changes where {condition}"""


def quarantine_query() -> str:
    """Return the statement that adds the rows of a batch that cannot be named or read with certainty."""
    bound = _BOUND.format(reason=_REASON, detail=_DETAIL)
    return f"""insert into binloom.quarantined_row_events
select
    source_id, epoch, binlog_file, file_sequence, start_pos, end_pos, payload_ordinal, row_ordinal, transaction_pos,
    gtid, event_type, event_timestamp, event_hour, schema_name, table_name, reason, detail
from ({bound}
)
where reason is not null"""
