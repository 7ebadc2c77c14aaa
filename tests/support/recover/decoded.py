"""Binlog files as the marts that an undo reads, in a DuckDB connection: no landing, no Spark."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from ingest.binlog import open_binlog
from ingest.ddl.batches import ddl_batch
from ingest.landing.hints_of_files import hints_by_file
from ingest.sources.snapshots.snapshot import SchemaSnapshot

SOURCE = "server"
_CHANGES = pa.schema(
    [
        *((name, pa.string()) for name in ("change_id", "source_id")),
        ("epoch", pa.int32()),
        ("binlog_file", pa.string()),
        *((name, pa.int64()) for name in ("file_sequence", "start_pos")),
        *((name, pa.int32()) for name in ("payload_ordinal", "row_ordinal")),
        ("transaction_pos", pa.int64()),
        *((name, pa.string()) for name in ("gtid", "outcome", "event_type", "schema_name", "table_name")),
        *((name, pa.string()) for name in ("pk_values", "pk_values_after")),
        *((name, pa.map_(pa.string(), pa.string())) for name in ("row_before", "row_after")),
        ("event_timestamp", pa.timestamp("us", "UTC")),
        ("undecoded_columns", pa.list_(pa.string())),
    ]
)
_SCHEMA_CHANGES = pa.schema(
    [
        ("source_id", pa.string()),
        ("epoch", pa.int32()),
        ("binlog_file", pa.string()),
        *((name, pa.int64()) for name in ("file_sequence", "start_pos")),
        *((name, pa.string()) for name in ("statement_type", "sql_text")),
        ("tables", pa.list_(pa.string())),
    ]
)


def decoded_marts(files: Sequence[Path], snapshot: SchemaSnapshot) -> duckdb.DuckDBPyConnection:
    """Return a connection with `binloom.row_changes` of some files. All tables must be those of the snapshot."""
    keys: dict[tuple[str, str], set[str]] = {}
    for column in snapshot.columns:
        if column["primary_key_ordinal"]:
            name = (column["schema_name"], column["table_name"])
            keys.setdefault(name, set()).add(column["column_name"])
    connection = duckdb.connect()
    connection.execute("create schema binloom")
    hints = hints_by_file(snapshot, files)
    rows: list[dict[str, Any]] = []
    ddl: list[dict[str, Any]] = []
    for sequence, path in enumerate(files, 1):
        log = open_binlog(path, hints=hints[path])
        outcomes: dict[int, str] = {}
        of_file = []
        for kind, batch in log.batches():
            if kind == "transactions":
                outcomes |= {one["start_pos"]: one["outcome"] for one in batch.to_pylist()}
            if kind == "statements":
                ddl += _schema_changes(batch, path.name, sequence)
            if kind == "unsupported_events":
                raise AssertionError(batch.to_pylist())
            if kind == "row_events":
                for one in batch.to_pylist():
                    names = log.column_names(one["table_map_id"])
                    # A table that was dropped since has no names.
                    if names is not None:
                        of_file.append(_change(one, names, keys, path.name, sequence))
        for row in of_file:
            row["outcome"] = outcomes[row["transaction_pos"]]
        rows += of_file
    connection.register("found", pa.Table.from_pylist(rows, schema=_CHANGES))
    connection.execute("create table binloom.row_changes as select * from found")
    connection.unregister("found")
    connection.register("ddl", pa.Table.from_pylist(ddl, schema=_SCHEMA_CHANGES))
    connection.execute("create table binloom.schema_changes as select * from ddl")
    connection.unregister("ddl")
    return connection


def _schema_changes(statements: pa.RecordBatch, file: str, sequence: int) -> list[dict[str, Any]]:
    """Return the statements that may change definitions, as far as an undo asks for them."""
    actions = ddl_batch(statements, "mysql", None)
    texts = {one["start_pos"]: one["sql_text"] for one in statements.to_pylist()}
    return [
        {
            "source_id": SOURCE,
            "epoch": 0,
            "binlog_file": file,
            "file_sequence": sequence,
            "start_pos": one["start_pos"],
            "statement_type": one["statement_type"],
            "tables": [f"{one['schema_name']}.{one['table_name']}"],
            "sql_text": texts[one["start_pos"]],
        }
        for one in (actions.to_pylist() if actions is not None else ())
    ]


def _change(
    event: dict[str, Any],
    names: Sequence[str],
    keys: dict[tuple[str, str], set[str]],
    file: str,
    sequence: int,
) -> dict[str, Any]:
    before = _image(names, event["before_values"], event["before_columns"]) if event["event_type"] != "INSERT" else None
    after = _image(names, event["after_values"], event["after_columns"]) if event["event_type"] != "DELETE" else None
    of_key = keys.get((event["schema_name"], event["table_name"]), set())
    key = [name for name in names if name in of_key]
    old, new = before if before is not None else after, {**(before or {}), **(after or {})}
    pk = _key(old or {}, key)
    pk_after = _key(new, key)
    place = (event["start_pos"], event["payload_ordinal"], event["row_ordinal"])
    return {
        "change_id": "/".join(map(str, (SOURCE, 0, file, *place))),
        "source_id": SOURCE,
        "epoch": 0,
        "binlog_file": file,
        "file_sequence": sequence,
        **{name: event[name] for name in ("start_pos", "payload_ordinal", "row_ordinal", "transaction_pos", "gtid")},
        **{name: event[name] for name in ("event_timestamp", "event_type", "schema_name", "table_name")},
        "pk_values": pk,
        "pk_values_after": pk_after if event["event_type"] == "UPDATE" and pk_after != pk else None,
        "row_before": None if before is None else list(before.items()),
        "row_after": None if after is None else list(after.items()),
        "undecoded_columns": [names[place] for place in event["undecoded_columns"] or ()] or None,
    }


def _image(names: Sequence[str], values: Sequence[str | None], present: Sequence[int] | None) -> dict[str, str | None]:
    places = range(len(names)) if present is None else present
    return {names[place]: values[place] for place in places}


def _key(row: dict[str, str | None], names: Sequence[str]) -> str | None:
    if not names:
        return None
    return "|".join((row[name] or "").replace("\\", "\\\\").replace("|", "\\|") for name in names)
