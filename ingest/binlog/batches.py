"""Arrow schemas of the decoder's batches: one batch kind for each raw table that the decoder fills.

The landing adds `source_id, epoch, binlog_file, segment_start` as partition columns; see
`ingest.warehouse.tables`.
"""

from typing import Literal

import pyarrow as pa

BatchKind = Literal["row_events", "transactions", "statements", "table_maps", "unsupported_events"]

TIMESTAMP = pa.timestamp("us", tz="UTC")
TEXTS = pa.list_(pa.field("element", pa.string()))
ORDINALS = pa.list_(pa.field("element", pa.int32()))
JSON_CHANGES = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                pa.field("column_ordinal", pa.int32()),
                pa.field("operation", pa.string()),
                pa.field("path", pa.string()),
                pa.field("value", pa.string()),
            ]
        ),
    )
)
ROLLED_BACK_RANGES = pa.list_(
    pa.field(
        "element",
        pa.struct(
            [
                pa.field("start_pos", pa.int64()),
                pa.field("start_ordinal", pa.int32()),
                pa.field("end_pos", pa.int64()),
                pa.field("end_ordinal", pa.int32()),
                pa.field("outcome", pa.string()),
            ]
        ),
    )
)
DICTIONARY = pa.dictionary(pa.int32(), pa.string())

ROW_EVENTS = pa.schema(
    [
        pa.field("start_pos", pa.int64(), nullable=False),
        pa.field("end_pos", pa.int64(), nullable=False),
        pa.field("payload_ordinal", pa.int32(), nullable=False),
        pa.field("row_ordinal", pa.int32(), nullable=False),
        pa.field("transaction_pos", pa.int64(), nullable=False),
        pa.field("event_type", DICTIONARY, nullable=False),
        pa.field("event_timestamp", TIMESTAMP, nullable=False),
        pa.field("server_id", pa.int64(), nullable=False),
        pa.field("gtid", DICTIONARY),
        pa.field("table_map_id", DICTIONARY, nullable=False),
        pa.field("schema_name", DICTIONARY, nullable=False),
        pa.field("table_name", DICTIONARY, nullable=False),
        pa.field("column_count", pa.int32(), nullable=False),
        pa.field("before_values", TEXTS, nullable=False),
        pa.field("after_values", TEXTS, nullable=False),
        pa.field("before_columns", ORDINALS),
        pa.field("after_columns", ORDINALS),
        pa.field("undecoded_columns", ORDINALS),
        pa.field("json_changes", JSON_CHANGES),
    ]
)

TRANSACTIONS = pa.schema(
    [
        pa.field("start_pos", pa.int64(), nullable=False),
        pa.field("end_pos", pa.int64(), nullable=False),
        pa.field("gtid", pa.string()),
        pa.field("xid", pa.int64()),
        pa.field("xa_xid", pa.string()),
        pa.field("thread_id", pa.int64()),
        pa.field("server_id", pa.int64(), nullable=False),
        pa.field("started_at", TIMESTAMP, nullable=False),
        pa.field("committed_at", TIMESTAMP),
        pa.field("original_committed_at", TIMESTAMP),
        pa.field("is_ddl", pa.bool_(), nullable=False),
        pa.field("outcome", pa.string(), nullable=False),
        pa.field("events", pa.int64(), nullable=False),
        pa.field("row_events", pa.int64(), nullable=False),
        pa.field("inserts", pa.int64(), nullable=False),
        pa.field("updates", pa.int64(), nullable=False),
        pa.field("deletes", pa.int64(), nullable=False),
        pa.field("rolled_back_ranges", ROLLED_BACK_RANGES),
    ]
)

STATEMENTS = pa.schema(
    [
        pa.field("start_pos", pa.int64(), nullable=False),
        pa.field("end_pos", pa.int64(), nullable=False),
        pa.field("payload_ordinal", pa.int32(), nullable=False),
        pa.field("transaction_pos", pa.int64()),
        pa.field("kind", pa.string(), nullable=False),
        pa.field("default_schema", pa.string()),
        pa.field("thread_id", pa.int64()),
        pa.field("error_code", pa.int32()),
        pa.field("sql_text", pa.string()),
        pa.field("sql_mode", pa.string()),
        pa.field("time_zone", pa.string()),
        pa.field("character_set_client", pa.string()),
        pa.field("character_set_connection", pa.string()),
        pa.field("collation_server", pa.string()),
        pa.field("event_timestamp", TIMESTAMP, nullable=False),
    ]
)

TABLE_MAPS = pa.schema(
    [
        pa.field("table_map_id", pa.string(), nullable=False),
        pa.field("schema_name", pa.string(), nullable=False),
        pa.field("table_name", pa.string(), nullable=False),
        pa.field("column_count", pa.int32(), nullable=False),
        pa.field(
            "columns",
            pa.list_(
                pa.field(
                    "element",
                    pa.struct(
                        [
                            pa.field("ordinal", pa.int32()),
                            pa.field("type", pa.string()),
                            pa.field("metadata", pa.int32()),
                            pa.field("is_nullable", pa.bool_()),
                            pa.field("is_unsigned", pa.bool_()),
                            pa.field("charset", pa.string()),
                            pa.field("members", TEXTS),
                            pa.field("name", pa.string()),
                            pa.field("is_primary_key", pa.bool_()),
                            pa.field("is_visible", pa.bool_()),
                        ]
                    ),
                )
            ),
            nullable=False,
        ),
        pa.field("hint", pa.string(), nullable=False),
        pa.field(
            "unknown_hints",
            pa.list_(pa.field("element", pa.struct([pa.field("ordinal", pa.int32()), pa.field("hint", pa.string())]))),
        ),
    ]
)

UNSUPPORTED_EVENTS = pa.schema(
    [
        pa.field("start_pos", pa.int64(), nullable=False),
        pa.field("end_pos", pa.int64(), nullable=False),
        pa.field("event_type", pa.string(), nullable=False),
        pa.field("schema_name", pa.string()),
        pa.field("table_name", pa.string()),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("detail", pa.string()),
    ]
)

SCHEMAS: dict[BatchKind, pa.Schema] = {
    "row_events": ROW_EVENTS,
    "transactions": TRANSACTIONS,
    "statements": STATEMENTS,
    "table_maps": TABLE_MAPS,
    "unsupported_events": UNSUPPORTED_EVENTS,
}
