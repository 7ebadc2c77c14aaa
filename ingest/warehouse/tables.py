"""The raw tables, all in one place: columns, types, partitions; the columns are described in `descriptions`.

The columns of the decoded tables come from `ingest.warehouse.landed`; this module adds the columns that say where a
row comes from. Spark's DDL and Arrow's schemas have this one origin; `make generate` writes dbt's
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

_ROW_EVENT_COUNT = pa.struct(
    [
        *_strings("table_map_id", "schema_name", "table_name", "event_hour"),
        *_bigints("inserts", "updates", "deletes", "first_pos", "last_pos"),
        *_timestamps("first_event_at", "last_event_at"),
    ]
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
            pa.field("row_event_counts", pa.list_(_ROW_EVENT_COUNT)),
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
    pa.schema(
        [
            *_strings("history_id", "source_id", "evidence_hash"),
            *_timestamps("published_at"),
            pa.field("snapshot_epochs", pa.map_(pa.string(), pa.int32())),
        ]
    ),
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
            *_strings("position_proof"),
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

NAMING_RULES = 12
"""To be raised when the same evidence gives other names than before: then the next command writes the names anew."""

# Tables that follow from the others, by these rules.
DERIVED_TABLES = (SCHEMA_HISTORIES, TABLE_VERSIONS, TABLE_BINDINGS)

# Tables whose rows are stored in partition folders, one folder for each segment.
SEGMENT_TABLES: dict[LandedKind, RawTable] = {
    "row_events": ROW_EVENTS,
    "transactions": TRANSACTIONS,
    "statements": STATEMENTS,
    "ddl_actions": DDL_ACTIONS,
    "unsupported_events": UNSUPPORTED_EVENTS,
}
