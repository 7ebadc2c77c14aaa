"""The raw tables, all in one place: columns, types, partitions, descriptions.

The columns of the decoded tables come from `ingest.warehouse.landed`; this module adds the columns that say where a
row comes from. Spark's DDL, Arrow's schemas and the descriptions have this one origin; `make generate` writes dbt's
sources from it.
"""

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from ingest.binlog.batches import TIMESTAMP
from ingest.masking.rows import MASKED_COLUMNS
from ingest.warehouse.landed import LANDED_SCHEMAS, LandedKind

RAW_SCHEMA = "binlog_raw"

SEGMENT_PARTITION = pa.schema(
    [
        pa.field("source_id", pa.string(), nullable=False),
        pa.field("epoch", pa.int32(), nullable=False),
        pa.field("binlog_file", pa.string(), nullable=False),
        pa.field("segment_start", pa.int64(), nullable=False),
    ]
)
SOURCE_ID = SEGMENT_PARTITION.field("source_id")

# Descriptions of columns. A column means the same in every table.
COLUMN_DESCRIPTIONS: dict[str, str] = {
    "source_id": "Name of the stream of changes, as given with --source",
    "epoch": "0-based number of the unbroken series of files in the source; a failover or RESET opens the next",
    "binlog_file": "Name of the binlog file without its folder",
    "segment_start": "Offset in the file at which the landed segment starts; 0 for a compacted one, the whole file",
    "segment_end": "Offset in the file just after the segment's last byte",
    "start_pos": "Physical offset of the event's first byte in the file; for an event inside a payload, that of the "
    "payload; in sources, the offset in start_file of the first event that is landed",
    "end_pos": "Physical offset just after the event's last byte in the file; for an event inside a payload, that of "
    "the payload",
    "payload_ordinal": "Position of the event inside a compressed transaction payload; 0 for an event outside a "
    "payload",
    "row_ordinal": "0-based position of the row inside its event",
    "transaction_pos": "start_pos of the transaction that the event belongs to",
    "event_type": "Kind of the change or event",
    "event_timestamp": "When the statement began, by the server's clock, in whole seconds, UTC",
    "server_id": "server_id of the server that wrote the change first",
    "gtid": "Global transaction identifier, NULL where the server writes none",
    "table_map_id": "Hash of the table map that the row was decoded with; key of table_maps",
    "schema_name": "Schema (database) of the table",
    "table_name": "Name of the table",
    "column_count": "Number of columns of the table when the row was written",
    "before_values": "Values before the change, in column order, as the server prints them; all NULL for an INSERT",
    "after_values": "Values after the change, in column order, as the server prints them; all NULL for a DELETE",
    "before_columns": "0-based ordinals present in a partial before image; NULL when the image is full",
    "after_columns": "0-based ordinals present in a partial after image; NULL when the image is full",
    "undecoded_columns": "0-based ordinals of columns whose new value is unknown because the log has only a change "
    "of the JSON document (see json_changes); NULL when there are none",
    "json_changes": "Changes of JSON documents that the log does not contain, in order: operation (replace, insert, "
    "remove), path, value (JSON text, NULL for remove); NULL when there are none",
    "xid": "Transaction number of the storage engine, NULL for transactions that end without an XID event",
    "xa_xid": "Identifier of the XA transaction as XA COMMIT takes it, such as X'6162',X'',1; NULL outside of XA",
    "thread_id": "Connection id of the client on the server that first wrote the change",
    "started_at": "Timestamp of the transaction's first event, UTC",
    "committed_at": "When the transaction committed on this server; in microseconds where the server logs it, UTC",
    "original_committed_at": "When the transaction committed on the server that wrote it first, UTC",
    "is_ddl": "Whether the transaction is a statement that changes the schema",
    "outcome": "How the transaction ended: commit, rollback, xa_prepare or none",
    "events": "Number of events",
    "row_events": "Number of changed rows in the log, those that were rolled back too",
    "transactions": "Number of transactions",
    "inserts": "Number of inserted rows in the log",
    "updates": "Number of updated rows in the log",
    "deletes": "Number of deleted rows in the log",
    "rolled_back_ranges": "Events whose rows ROLLBACK TO SAVEPOINT took back, or may have; end excluded; NULL for none",
    "kind": "Kind of the event: QUERY, LOAD (LOAD DATA of a 4.x server), ROWS_QUERY or ANNOTATE (text of the "
    "statement whose rows follow); INTVAR, RAND or USER_VAR (context of the next statement); START_ALTER or "
    "ROLLBACK_ALTER (begin or failure of a two-phase ALTER)",
    "default_schema": "Schema that the statement ran in",
    "error_code": "Error that the statement ended with on the server that wrote it; 0 when it succeeded",
    "sql_mode": "sql_mode that the statement ran with, NULL when the event does not contain it",
    "time_zone": "time_zone that the statement ran with, NULL when the event does not contain it",
    "character_set_client": "Character set of the statement's text, NULL when the event does not contain it",
    "collation_server": "Collation of a database that is created without one, NULL when the event does not contain "
    "it or servers name it differently",
    "sql_text": "Text of the statement; for the context of a statement, the text that mysqlbinlog prints, such as "
    "SET INSERT_ID=5",
    "dml_targets": "Tables whose rows the statement may change, with the verb; SELECT is the call of a stored "
    "function. A name is NULL where the text has none. Empty if it changes no rows, or rows follow it; NULL if an "
    "older binloom landed it",
    "columns": "Columns in order: in table_maps, the table's columns; in ddl_actions, the columns that the action "
    "defines",
    "hint": "Source of the names and types that the wire format lacks: metadata, snapshot or none",
    "hints_used": "JSON object by schema and table: a hash of the definition that the values were decoded with, for "
    "each table whose values depend on it",
    "unknown_hints": "Columns whose text depends on an unknown fact: ordinal, and the fact (sign, charset, labels, "
    "or type); NULL when there are none",
    "masked_columns": "Columns that are masked, with tag and method; ordinal: 0-based place in the row images; "
    "fingerprint: equal for masks that mask alike, and no key can be found from it; NULL when there are none",
    "reason": "Why it could not be decoded; for a gap: purged (the server deleted logs that binloom had not read), "
    "reset (the logs started over, the rest of the old ones is lost) or diverged (the server lacks transactions of "
    "an earlier server)",
    "detail": "More about the reason; for an action, an effect that no other column has, or why the statement was "
    "not understood",
    "action_ordinal": "0-based position of the action in its statement",
    "action": "What the action does: create_table, add_column and others, as the documentation lists them; other "
    "means that it changes no columns",
    "statement_type": "Verb and object of the statement, such as ALTER TABLE",
    "other_schema_name": "Schema of other_table_name; for convert_character_set without a table's own default, the "
    "schema whose default applies",
    "other_table_name": "The new name in a rename, the model in create_like, the other table in exchange_partition",
    "place": "Position of the column: first, after (see after_column), or NULL for the end, or for its present "
    "position",
    "after_column": "Column that precedes the new position",
    "key_columns": "Columns of the primary key, in its order",
    "is_conditional": "Whether the action may do nothing: IF EXISTS, IF NOT EXISTS, the drop of OR REPLACE",
    "server_uuid": "server_uuid of the server, NULL when binloom read only its files",
    "host": "Host that binloom connected to, NULL for files",
    "port": "Port that binloom connected to, NULL for files",
    "flavor": "mysql or mariadb",
    "server_version": "Version of the server that wrote the file",
    "observed_at": "When binloom saw it, UTC",
    "change": "epoch_opened or server_changed; the latest epoch_opened of an epoch counts, because an opening may be "
    "given up before anything of the epoch is received",
    "start_file": "File in which landing of the epoch begins, in the row that opened the epoch; NULL for its first "
    "file",
    "gtids_before": "GTID set that is not landed in the epoch: an earlier epoch has it, or it precedes the requested "
    "start; in the row that opened the epoch; NULL when there is none",
    "file_sequence": "Number at the end of the file's name; orders the files of an epoch",
    "file_size": "Size of the file in bytes when it was scanned",
    "fingerprint": "SHA-256 of the format description event; stays the same while the file grows and when it is closed",
    "format_version": "Version of the binlog format: 1, 3 or 4",
    "checksum_algorithm": "CRC32 or NONE, NULL when the server predates checksums",
    "is_in_use": "Whether the header says that the server still writes to the file, or did not close it",
    "is_relay_log": "Whether the file is a relay log of a replica",
    "is_encrypted": "Whether the server encrypted the file",
    "created_at": "When the server created the file, UTC; NULL when the file does not contain it",
    "first_event_at": "Timestamp of the first event that has one, UTC",
    "last_event_at": "Timestamp of the last event that has one, UTC",
    "event_counts": "Number of events of each type",
    "bytes_covered": "Bytes of the magic number and of all whole, valid events",
    "checksum_failures": "Number of events whose checksum did not match",
    "first_misplaced_pos": "Offset of the first event whose recorded end is not its own: bytes before it were "
    "removed or inserted; NULL when there is none, or the server records no ends",
    "previous_gtids": "GTID set that precedes the file, NULL when the server writes none",
    "next_binlog_file": "Name of the next file in the ROTATE event at the end, NULL without one",
    "scanned_at": "When binloom scanned the file, UTC",
    "status": "For a segment: in_progress, completed, failed, skipped, replaced (by a compacted one), removed "
    "(files deleted), expired (rows dropped). For a gap: found (following stopped), accepted (--accept-gap), "
    "unproven (maybe nothing is missing), filled (read later)",
    "min_event_at": "Earliest timestamp of a changed row or transaction in the segment, UTC",
    "max_event_at": "Latest timestamp of a changed row or transaction in the segment, UTC",
    "error": "Why the segment failed or was skipped, NULL otherwise",
    "table_filter": "Filter on schemas and tables that the segment was landed with, NULL without a filter",
    "gtids": "GTIDs of the segment's transactions as a set in the server's notation; NULL without GTIDs",
    "run_id": "Identifier of the ingest run that recorded it",
    "recorded_at": "When binloom recorded the row, UTC",
    "erasure_id": "Random identifier of an erasure",
    "selection_hash": "Salt and PBKDF2 hash of the erased keys: somebody who knows the keys can check them",
    "erased_statements": "Number of statements whose text was replaced by a token",
    "erased_by": "Name of the user of the operating system who ran the erasure; NULL if an older binloom ran it",
    "erasure_reason": "Reason that was given for the erasure, such as the number of a ticket; NULL without any",
    "gap_id": "Hash of the source and of the position before the gap",
    "from_epoch": "Epoch of the last transaction that was read before the gap",
    "from_file": "File of the last transaction that was read before the gap",
    "from_pos": "Offset in from_file just after the last transaction that was read before the gap",
    "from_gtids": "GTID set that had been read before the gap, NULL without GTIDs",
    "to_epoch": "Epoch of the first event that can be read after the gap",
    "to_file": "File of the first event that can be read after the gap",
    "to_pos": "Offset in to_file of the first event that can be read after the gap",
    "to_gtids": "GTID set that precedes to_file on the server, NULL without GTIDs",
    "missing_gtids": "GTIDs in the gap, NULL when they are not known",
    "snapshot_id": "Hash of the snapshot's content and position",
    "taken_at": "When the snapshot or baseline was taken, UTC",
    "binlog_pos": "Offset in binlog_file at which the snapshot or baseline was taken, NULL when unknown",
    "gtid_executed": "GTID set that the server had executed when the snapshot or baseline was taken, NULL when unknown",
    "origin": "Source of the snapshot: server, files, ddl (statements of a dump) or binlog; of a baseline: server, "
    "dump or binlog (rows that the log gave, carried when its files expired)",
    "logs_cascades": "Whether the server logs the changes that foreign keys make in referring rows, NULL when no "
    "server was asked",
    "column_name": "Name of the column",
    "ordinal_position": "1-based position of the column in its table or key",
    "column_key": "PRI, UNI, MUL or empty, as in information_schema",
    "primary_key_ordinal": "1-based position of the column in the primary key, NULL for other columns",
    "data_type": "Name of the type without length and attributes",
    "column_type": "Type with length and attributes",
    "character_set": "Character set of the column, NULL for types without one; in an action, the new default; in "
    "schema_defaults, the default of the schema or table",
    "collation": "Collation of the column, NULL for types without one; in an action, the new default; in "
    "schema_defaults, the default of the schema or table",
    "is_nullable": "Whether the column takes NULL",
    "column_default": "Default as in information_schema, NULL without one",
    "is_generated": "Whether the column is computed from others",
    "extra": "EXTRA as in information_schema, such as auto_increment",
    "column_comment": "Comment that the column has on the server, NULL without one",
    "constraint_name": "Name of the key or constraint; PRIMARY for the primary key",
    "referenced_schema_name": "Schema of the table that a foreign key refers to",
    "referenced_table_name": "Table that a foreign key refers to",
    "referenced_column_name": "Column that a foreign key refers to",
    "baseline_id": "Hash of the source, of the position and of the time or file that the rows come from",
    "column_names": "Names of the columns whose values are known, in the order of row_values",
    "primary_key_ordinals": "0-based places of the primary key's columns in row_values, ascending; NULL without a key",
    "row_count": "Number of rows of the table",
    "is_complete": "Whether these are all rows of the table; FALSE only for the known rows of expired files, NULL for "
    "all rows",
    "known_columns": "0-based places in column_names of the values that are known, NULL when all of them are",
    "row_number": "0-based place of the row among the rows of its table, in the order in which they were read",
    "row_values": "Values of the row, in the order of column_names, as the server prints them",
    "update_rule": "What happens to the referring row when the key it refers to changes",
    "delete_rule": "What happens to the referring row when the row it refers to is deleted",
    "history_id": "Hash of a published set of versions and bindings",
    "published_at": "When the set was published, UTC",
    "evidence": "In schema_histories, a hash of what the set follows from; in table_versions, table_map, snapshot or "
    "ddl",
    "evidence_id": "Table map, snapshot, or file and position of the statement that gives the definition",
    "table_version_id": "Version of the table that gave the columns their names; key of table_versions: a hash of the "
    "definition, and of the position from which on it is in force",
    "definition_id": "Hash of the table and its columns",
    "confidence": "exact (the table map has the names itself), in_force, inferred or ambiguous; NULL if none fits",
    "valid_from_epoch": "Epoch of the first position; -1 for the beginning, NULL in a version of table maps",
    "valid_from_binlog_file": "File of the first position, NULL for the beginning",
    "valid_from_file_sequence": "Number of the file of the first position; -1 for the beginning",
    "valid_from_pos": "Offset of the first position; -1 for the beginning",
    "valid_to_epoch": "Epoch of the end; 2147483647 if it has none, NULL in a version of table maps",
    "valid_to_binlog_file": "File of the end, NULL if it has none",
    "valid_to_file_sequence": "Number of the file of the end",
    "valid_to_pos": "Offset of the end, excluded",
    "prefix_length": "Number of characters, or of bytes, that the key compares; NULL for whole values",
    "expression": "Expression that the key compares, or that its generated column has; NULL for other columns",
}


def _timestamps(*names: str) -> list[pa.Field]:
    return [pa.field(name, TIMESTAMP) for name in names]


def _strings(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.string()) for name in names]


def _bigints(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.int64()) for name in names]


def _ints(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.int32()) for name in names]


def _booleans(*names: str) -> list[pa.Field]:
    return [pa.field(name, pa.bool_()) for name in names]


_KEY_COLUMNS = [
    *_strings("snapshot_id", "constraint_name", "schema_name", "table_name", "column_name"),
    *_ints("ordinal_position"),
    *_strings(
        "referenced_schema_name", "referenced_table_name", "referenced_column_name", "update_rule", "delete_rule"
    ),
]
_KEY_PARTS = [*_KEY_COLUMNS, *_ints("prefix_length"), *_strings("expression")]


@dataclass(frozen=True)
class RawTable:
    """One table of schema `binlog_raw`.

    Attributes
    ----------
    name
        Name of the table, and of its folder in the warehouse.
    description
        Meaning of one row.
    columns
        Columns in the order of the table, partition columns last (Spark puts them there).
    partition
        Names of the partition columns, empty for a plain table.
    """

    name: str
    description: str
    columns: pa.Schema
    partition: tuple[str, ...] = ()

    @cached_property
    def file_schema(self) -> pa.Schema:
        """Arrow schema of the Parquet files: the columns that are not partition columns in folder names."""
        return pa.schema([field for field in self.columns if field.name not in self.partition])

    @property
    def qualified_name(self) -> str:
        """Name with the schema, as in SQL."""
        return f"{RAW_SCHEMA}.{self.name}"


def _decoded(kind: LandedKind, description: str) -> RawTable:
    columns = [*LANDED_SCHEMAS[kind], *SEGMENT_PARTITION]
    return RawTable(kind, description, pa.schema(columns), tuple(SEGMENT_PARTITION.names))


SOURCES = RawTable(
    "sources",
    "An epoch that was opened, or a change of the server's identity within one",
    pa.schema(
        [
            *_strings("source_id"),
            *_ints("epoch"),
            *_strings("server_uuid"),
            *_bigints("server_id"),
            *_strings("host"),
            *_ints("port"),
            *_strings("flavor", "server_version"),
            *_timestamps("observed_at"),
            *_strings("change", "start_file"),
            *_bigints("start_pos"),
            *_strings("gtids_before"),
        ]
    ),
)

BINLOG_FILES = RawTable(
    "binlog_files",
    "A binlog file, each time that it was scanned",
    pa.schema(
        [
            *_strings("source_id"),
            *_ints("epoch"),
            *_strings("binlog_file"),
            *_bigints("file_sequence", "file_size"),
            *_strings("fingerprint"),
            *_ints("format_version"),
            *_strings("server_version", "flavor", "checksum_algorithm"),
            *_booleans("is_in_use", "is_relay_log", "is_encrypted"),
            *_timestamps("created_at", "first_event_at", "last_event_at"),
            *_bigints("events"),
            pa.field("event_counts", pa.map_(pa.string(), pa.int64())),
            *_bigints("bytes_covered", "checksum_failures"),
            *_strings("previous_gtids", "next_binlog_file"),
            *_timestamps("scanned_at"),
            *_bigints("first_misplaced_pos"),
        ]
    ),
)

SEGMENTS = RawTable(
    "segments",
    "A change of the state of a segment; the latest row of a segment is its state",
    pa.schema(
        [
            *_strings("source_id"),
            *_ints("epoch"),
            *_strings("binlog_file"),
            *_bigints("segment_start", "segment_end"),
            *_strings("status"),
            *_bigints("row_events", "transactions"),
            *_timestamps("min_event_at", "max_event_at"),
            *_strings("error", "run_id"),
            *_timestamps("recorded_at"),
            *_strings("table_filter", "gtids", "hints_used"),
        ]
    ),
)

ROW_EVENTS = _decoded("row_events", "A changed row")
TRANSACTIONS = _decoded("transactions", "A transaction")
STATEMENTS = _decoded("statements", "A statement that the server logged, or a part of the context of one")
DDL_ACTIONS = _decoded(
    "ddl_actions", "A step of a statement that changes the schema; the steps one after another are the statement"
)
UNSUPPORTED_EVENTS = _decoded("unsupported_events", "An event or value that could not be decoded")

STREAM_GAPS = RawTable(
    "stream_gaps",
    "A gap in what was read from a live server, each time that its status changed; the latest row of a gap counts",
    pa.schema(
        [
            *_strings("gap_id", "source_id"),
            *_ints("from_epoch"),
            *_strings("from_file"),
            *_bigints("from_pos"),
            *_strings("from_gtids"),
            *_ints("to_epoch"),
            *_strings("to_file"),
            *_bigints("to_pos"),
            *_strings("to_gtids", "missing_gtids", "reason", "status", "detail", "server_uuid"),
            *_timestamps("recorded_at"),
        ]
    ),
)

_MAP_FIELDS = list(LANDED_SCHEMAS["table_maps"])
TABLE_MAPS = RawTable(
    "table_maps",
    "A distinct table map as it was decoded",
    pa.schema([_MAP_FIELDS[0], SOURCE_ID, *_MAP_FIELDS[1:]]),
)

SCHEMA_SNAPSHOTS = RawTable(
    "schema_snapshots",
    "A snapshot of a source's schema",
    pa.schema(
        [
            *_strings("snapshot_id", "source_id"),
            *_timestamps("taken_at"),
            *_strings("binlog_file"),
            *_bigints("binlog_pos"),
            *_strings("gtid_executed", "origin"),
            *_ints("epoch"),
            *_booleans("logs_cascades"),
        ]
    ),
)

SCHEMA_COLUMNS = RawTable(
    "schema_columns",
    "A column of a table in a schema snapshot",
    pa.schema(
        [
            *_strings("snapshot_id", "schema_name", "table_name", "column_name"),
            *_ints("ordinal_position"),
            *_strings("column_key"),
            *_ints("primary_key_ordinal"),
            *_strings("data_type", "column_type", "character_set", "collation"),
            *_booleans("is_nullable"),
            *_strings("column_default"),
            *_booleans("is_generated"),
            *_strings("extra", "column_comment"),
        ]
    ),
)

SCHEMA_DEFAULTS = RawTable(
    "schema_defaults",
    "The default character set of a table, or of a schema (table_name is NULL), in a schema snapshot",
    pa.schema([*_strings("snapshot_id", "schema_name", "table_name", "character_set", "collation")]),
)

SCHEMA_KEYS = RawTable("schema_keys", "A part of a primary or unique key in a schema snapshot", pa.schema(_KEY_PARTS))
FOREIGN_KEYS = RawTable("foreign_keys", "A column of a foreign key in a schema snapshot", pa.schema(_KEY_COLUMNS))

SCHEMA_HISTORIES = RawTable(
    "schema_histories",
    "A set of table_versions and table_bindings that was published; the latest set of a source counts",
    pa.schema([*_strings("history_id", "source_id", "evidence"), *_timestamps("published_at")]),
)

_COLUMN = pa.struct(
    [
        *_ints("ordinal"),
        *_strings("name", "data_type", "column_type", "character_set"),
        *_booleans("is_nullable", "is_primary_key"),
    ]
)
_VALID = [
    field
    for word in ("valid_from", "valid_to")
    for field in (*_ints(f"{word}_epoch"), *_bigints(f"{word}_file_sequence", f"{word}_pos"))
]

TABLE_VERSIONS = RawTable(
    "table_versions",
    "A definition of a table in a range of positions, as snapshots, statements and table maps give it",
    pa.schema(
        [
            *_strings("history_id", "source_id", "table_version_id", "definition_id", "evidence", "evidence_id"),
            *_strings("schema_name", "table_name"),
            *_ints("column_count"),
            pa.field("columns", pa.list_(_COLUMN)),
            pa.field("column_names", pa.list_(pa.string())),
            pa.field("primary_key_ordinals", pa.list_(pa.int32())),
            *_strings("valid_from_binlog_file", "valid_to_binlog_file"),
            *_VALID,
        ]
    ),
)

TABLE_BINDINGS = RawTable(
    "table_bindings",
    "The version that names the values of a table map in a range of positions, or the reason why none does",
    pa.schema(
        [
            *_strings("history_id", "source_id", "table_map_id", "table_version_id", "schema_name", "table_name"),
            *_ints("column_count"),
            pa.field("column_names", pa.list_(pa.string())),
            pa.field("primary_key_ordinals", pa.list_(pa.int32())),
            *_strings("confidence", "reason", "detail"),
            *_VALID,
        ]
    ),
)

BASELINES = RawTable(
    "baselines",
    "A table of a baseline: all rows of the table at one position of the binlog are landed",
    pa.schema(
        [
            *_strings("baseline_id", "source_id", "schema_name", "table_name"),
            pa.field("column_names", pa.list_(pa.string())),
            pa.field("primary_key_ordinals", pa.list_(pa.int32())),
            *_bigints("row_count"),
            *_strings("origin", "snapshot_id", "binlog_file"),
            *_bigints("binlog_pos"),
            *_strings("gtid_executed"),
            *_timestamps("taken_at", "recorded_at"),
            MASKED_COLUMNS,
            *_booleans("is_complete"),
        ]
    ),
)

BASELINE_ROWS = RawTable(
    "baseline_rows",
    "A row of a table of a baseline; rows without a row in baselines are those of one that was not completed",
    pa.schema(
        [
            *_strings("baseline_id", "source_id", "schema_name", "table_name"),
            *_bigints("row_number"),
            pa.field("row_values", pa.list_(pa.string())),
            pa.field("known_columns", pa.list_(pa.int32())),
        ]
    ),
)

ERASURES = RawTable(
    "erasures",
    "Rows of a table that binloom erase took the values of: one row for each binlog file, and one for baselines",
    pa.schema(
        [
            *_strings("erasure_id", "source_id", "schema_name", "table_name"),
            *_ints("epoch"),
            *_strings("binlog_file", "selection_hash"),
            *_bigints("row_events", "erased_statements", "row_count"),
            *_timestamps("recorded_at"),
            *_strings("erased_by", "erasure_reason"),
        ]
    ),
)

RAW_TABLES: dict[str, RawTable] = {
    table.name: table
    for table in (
        SOURCES,
        BINLOG_FILES,
        SEGMENTS,
        STREAM_GAPS,
        ROW_EVENTS,
        TRANSACTIONS,
        STATEMENTS,
        DDL_ACTIONS,
        TABLE_MAPS,
        UNSUPPORTED_EVENTS,
        SCHEMA_SNAPSHOTS,
        SCHEMA_COLUMNS,
        SCHEMA_DEFAULTS,
        SCHEMA_KEYS,
        FOREIGN_KEYS,
        SCHEMA_HISTORIES,
        TABLE_VERSIONS,
        TABLE_BINDINGS,
        BASELINES,
        BASELINE_ROWS,
        ERASURES,
    )
}

# Tables that follow from the others.
DERIVED_TABLES = (SCHEMA_HISTORIES, TABLE_VERSIONS, TABLE_BINDINGS)

# Tables whose rows are stored in partition folders, one folder for each segment.
SEGMENT_TABLES: dict[LandedKind, RawTable] = {
    "row_events": ROW_EVENTS,
    "transactions": TRANSACTIONS,
    "statements": STATEMENTS,
    "ddl_actions": DDL_ACTIONS,
    "unsupported_events": UNSUPPORTED_EVENTS,
}
