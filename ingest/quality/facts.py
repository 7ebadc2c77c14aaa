"""Facts for the gate: one narrow row for each landed segment, each file, and each description of columns.

One Spark job reads the wide tables once and counts the wrong rows of each segment. The expectations then compare these
counts with zero, and with the decoder's counts. A failed expectation names the segments.
"""

from typing import TYPE_CHECKING

import pandas as pd  # type: ignore[import-untyped]

from ingest.warehouse.catalog import sql_literal
from ingest.warehouse.segments import COMPACTED_START, STATUSES
from ingest.warehouse.tables import RAW_SCHEMA, SCHEMA_COLUMNS, SCHEMA_SNAPSHOTS, TABLE_MAPS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KNOWN_EVENT_TYPES = ("INSERT", "UPDATE", "DELETE")

_KEY = "source_id, epoch, binlog_file, segment_start"

_SEGMENT_STATES = f"""
segment_states as (
    select *
    from (
        select
            *,
            row_number() over (
                partition by {_KEY}
                order by recorded_at desc, array_position(array{STATUSES[::-1]}, status)
            ) as recency
        from {RAW_SCHEMA}.segments
        where {{of_source}}
    )
    -- No other segment covers the same bytes: see ingest.warehouse.segments.SegmentState.is_current.
    where
        recency = 1
        and if(
            segment_start = {COMPACTED_START},
            status = 'completed',
            status not in ('replaced', 'removed', 'expired')
        )
)"""

_SEGMENT_FACTS = f"""
with {_SEGMENT_STATES},

counted_rows as (
    select
        row_events.source_id,
        row_events.epoch,
        row_events.binlog_file,
        row_events.segment_start,
        count(*) as landed_row_events,
        count_if(
            row_events.start_pos is null or row_events.end_pos is null or row_events.payload_ordinal is null
            or row_events.row_ordinal is null or row_events.transaction_pos is null
        ) as null_positions,
        count_if(
            row_events.table_map_id is null or row_events.schema_name is null or row_events.table_name is null
            or row_events.event_timestamp is null or row_events.server_id is null
        ) as null_keys,
        count_if(coalesce(row_events.event_type, '') not in {KNOWN_EVENT_TYPES}) as unknown_event_types,
        count_if(
            row_events.column_count is distinct from size(row_events.before_values)
            or row_events.column_count is distinct from size(row_events.after_values)
        ) as value_count_mismatches,
        count_if(row_events.column_count is distinct from table_maps.column_count) as table_map_mismatches,
        min(row_events.start_pos) as first_start_pos,
        max(row_events.end_pos) as last_end_pos
    from {RAW_SCHEMA}.row_events
    left join {RAW_SCHEMA}.table_maps
        on row_events.source_id = table_maps.source_id and row_events.table_map_id = table_maps.table_map_id
    where {{of_source_row_events}}
    group by all
),

counted_transactions as (
    select {_KEY}, count(*) as landed_transactions
    from {RAW_SCHEMA}.transactions
    where {{of_source}}
    group by all
)

select
    source_id,
    epoch,
    binlog_file,
    segment_start,
    segment_states.segment_end,
    segment_states.row_events as counted_row_events,
    coalesce(landed_row_events, 0) as landed_row_events,
    segment_states.transactions as counted_transactions,
    coalesce(landed_transactions, 0) as landed_transactions,
    coalesce(null_positions, 0) as null_positions,
    coalesce(null_keys, 0) as null_keys,
    coalesce(unknown_event_types, 0) as unknown_event_types,
    coalesce(value_count_mismatches, 0) as value_count_mismatches,
    coalesce(table_map_mismatches, 0) as table_map_mismatches,
    coalesce(first_start_pos, segment_start) as first_start_pos,
    coalesce(last_end_pos, segment_states.segment_end) as last_end_pos
from segment_states
left join counted_rows using ({_KEY})
left join counted_transactions using ({_KEY})
where segment_states.status = 'completed'
"""

# Unlanded bytes of a file must have a reason: the file is still being written, a segment records the reason, or an
# event with a wrong checksum was skipped and is listed.
_FILE_FACTS = f"""
with {_SEGMENT_STATES},

latest_scans as (
    select *
    from (
        select
            *,
            row_number() over (partition by source_id, epoch, binlog_file order by scanned_at desc) as recency
        from {RAW_SCHEMA}.binlog_files
        where {{of_source}}
    )
    where recency = 1
),

landed as (
    select
        source_id,
        epoch,
        binlog_file,
        count_if(status = 'failed') as failed_segments
    from segment_states
    group by all
),

passed_over as (
    select source_id, epoch, binlog_file, sum(end_pos - start_pos) as passed_over_bytes
    from (
        select distinct source_id, epoch, binlog_file, start_pos, end_pos
        from {RAW_SCHEMA}.unsupported_events
        where reason = 'bad_checksum' and {{of_source}}
    )
    group by all
)

select
    source_id,
    epoch,
    binlog_file,
    latest_scans.file_size,
    latest_scans.bytes_covered,
    latest_scans.is_in_use,
    coalesce(failed_segments, 0) as failed_segments,
    latest_scans.checksum_failures,
    if(
        latest_scans.is_in_use or coalesce(failed_segments, 0) > 0, 0,
        latest_scans.file_size - latest_scans.bytes_covered - coalesce(passed_over_bytes, 0)
    ) as unexplained_uncovered_bytes
from latest_scans
left join landed using (source_id, epoch, binlog_file)
left join passed_over using (source_id, epoch, binlog_file)
"""


# Descriptions of columns: decoded table maps, and tables in schema snapshots. Positions have holes in a snapshot of a
# user who may not see every column, or of a server that hides some columns.
_DEFINITION_FACTS = f"""
select
    source_id,
    schema_name,
    table_name,
    table_map_id as definition_id,
    column_count as counted_columns,
    size(columns) as described_columns
from {RAW_SCHEMA}.table_maps
where {{of_source}}

union all

select
    schema_snapshots.source_id,
    schema_columns.schema_name,
    schema_columns.table_name,
    schema_columns.snapshot_id as definition_id,
    max(schema_columns.ordinal_position) as counted_columns,
    cast(count(distinct schema_columns.ordinal_position) as int) as described_columns
from {RAW_SCHEMA}.schema_columns
inner join (select distinct source_id, snapshot_id from {RAW_SCHEMA}.schema_snapshots where {{of_source}})
    as schema_snapshots
    on schema_columns.snapshot_id = schema_snapshots.snapshot_id
group by all
"""


def segment_facts(session: "SparkSession", source_id: str | None = None) -> pd.DataFrame:
    """Return one row for each completed segment: counts of the decoder, landed rows, and wrong rows."""
    return _collected(session, _SEGMENT_FACTS, source_id)


def file_facts(session: "SparkSession", source_id: str | None = None) -> pd.DataFrame:
    """Return one row for each file as last scanned: its bytes, and its unlanded bytes without a reason."""
    return _collected(session, _FILE_FACTS, source_id)


def definition_facts(session: "SparkSession", source_id: str | None = None) -> pd.DataFrame:
    """Return one row for each table map and each table of a snapshot: its column count and described columns."""
    # Snapshots are landed without a session, and a session lists the files of a table only once.
    for table in (TABLE_MAPS, SCHEMA_SNAPSHOTS, SCHEMA_COLUMNS):
        session.catalog.refreshTable(table.qualified_name)
    return _collected(session, _DEFINITION_FACTS, source_id)


def _collected(session: "SparkSession", sql: str, source_id: str | None) -> pd.DataFrame:
    condition = "true" if source_id is None else f"source_id = {sql_literal(source_id)}"
    qualified = "true" if source_id is None else f"row_events.{condition}"
    facts = session.sql(sql.format(of_source=condition, of_source_row_events=qualified))
    # Use pandas: there are few rows, and each expectation on a Spark table would be one or two Spark jobs.
    return pd.DataFrame([row.asDict() for row in facts.collect()], columns=facts.columns)
