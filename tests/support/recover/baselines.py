"""The tables `baselines` and `baseline_rows` of the marts, beside decoded files."""

from typing import TYPE_CHECKING

from ingest.binlog import TableFilter
from ingest.sources.baselines.consistent_read import ConsistentRead
from ingest.sources.servers.address import ServerAddress
from recover.timeline.baselines import sequence_of_file

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

    from ingest.sources.snapshots.snapshot import SchemaSnapshot
    from tests.servers import Server

NO_BASELINES = """
    alter table binloom_quality.stream_gaps add column to_epoch integer;
    alter table binloom_quality.stream_gaps add column to_file varchar;
    alter table binloom_quality.stream_gaps add column to_pos bigint;
    alter table binloom_quality.failed_segments add column segment_end bigint;
    create table binloom.baselines (
        baseline_id varchar, source_id varchar, epoch integer, binlog_file varchar, file_sequence bigint,
        binlog_pos bigint, schema_name varchar, table_name varchar, taken_at timestamptz, is_complete boolean
    );
    create table binloom.baseline_rows (
        baseline_id varchar, source_id varchar, epoch integer, binlog_file varchar, file_sequence bigint,
        binlog_pos bigint, schema_name varchar, table_name varchar, row_number bigint, pk_values varchar,
        "row" map(varchar, varchar), table_version_id varchar
    )
"""

Rows = list[tuple[str, list[str], list[int], list[list[str | None]]]]
"""Name, columns, ordinals of the primary key and rows of each table."""


def read_baseline(server: "Server", schema: str) -> "tuple[SchemaSnapshot, Rows]":
    """Return all rows of the tables of a schema, and their definitions, at one position."""
    with ConsistentRead(ServerAddress(server.host, server.port, "root"), TableFilter.of(schemas=[schema])) as read:
        rows: Rows = [
            (
                table.table_name,
                list(table.column_names),
                list(table.primary_key_ordinals or ()),
                [row for batch in read.rows(table) for row in batch.to_pylist()],
            )
            for table in read.tables
        ]
        return read.snapshot, rows


def add_baseline(
    connection: "DuckDBPyConnection", source_id: str, schema: str, snapshot: "SchemaSnapshot", rows: Rows
) -> None:
    """Add a baseline to a connection with the marts of decoded files."""
    assert snapshot.binlog_file is not None
    sequence = sequence_of_file(snapshot.binlog_file)
    place = [source_id, 0, snapshot.binlog_file, sequence, snapshot.binlog_pos, schema]
    connection.execute(NO_BASELINES)
    for name, columns, key, values in rows:
        connection.execute(
            "insert into binloom.baselines values ('first', ?, ?, ?, ?, ?, ?, ?, now(), true)", [*place, name]
        )
        for number, row in enumerate(values):
            pk_values = "|".join(str(row[ordinal]) for ordinal in key)
            connection.execute(
                "insert into binloom.baseline_rows values ('first', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, null)",
                [*place, name, number, pk_values, {"key": columns, "value": row}],
            )
