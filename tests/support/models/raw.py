"""Writes raw tables by hand, in the layout of the landing, to test models on exactly these rows."""

import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ingest.binlog.events.hints import enum_members
from ingest.landing.row_counts import RowCounts, merged
from ingest.warehouse.catalog import ensure_tables
from ingest.warehouse.files import read_rows
from ingest.warehouse.segments import COMPACTED_START, FIRST_EVENT
from ingest.warehouse.tables import RAW_SCHEMA, RAW_TABLES, ROW_EVENTS, SEGMENT_TABLES, SEGMENTS

WIRE_TYPES = {
    "int": ("LONG", 0),
    "varchar": ("VARCHAR", 80),
    "text": ("BLOB", 2),
    "datetime": ("DATETIME2", 0),
    "enum": ("ENUM", 1),
}
# The property that only metadata or a snapshot provides, for types whose values depend on it.
HINTS = {"int": "sign", "varchar": "charset", "text": "charset", "enum": "labels"}
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)


def data_type(kind: str) -> str:
    """Return the type without labels and attributes."""
    return kind.partition("(")[0].partition(" ")[0]


@dataclass
class Table:
    """A table on the server: columns as (name, type of information_schema); the first column is the key.

    Without `hints_known` the decoder knew only the names and the wire types.
    """

    name: str
    columns: list[tuple[str, str]]
    names_logged: bool = False
    schema: str = "shop"
    hints_known: bool = True

    @property
    def table_map_id(self) -> str:
        """The identifier of the table map; it differs when the columns differ."""
        described = [f"{name if self.names_logged else ''} {kind}" for name, kind in self.columns]
        return f"{self.schema}.{self.name}{'' if self.hints_known else '?'}: {', '.join(described)}"

    def table_map(self, source: str) -> dict[str, Any]:
        """Return the table map's row in the raw table table_maps."""
        return {
            "table_map_id": self.table_map_id,
            "source_id": source,
            "schema_name": self.schema,
            "table_name": self.name,
            "column_count": len(self.columns),
            "columns": [
                {
                    "ordinal": ordinal,
                    "type": WIRE_TYPES[data_type(kind)][0],
                    "metadata": WIRE_TYPES[data_type(kind)][1],
                    "is_nullable": ordinal > 0,
                    "is_unsigned": kind.endswith("unsigned") if self.hints_known else None,
                    "members": enum_members(kind) if self.hints_known and data_type(kind) == "enum" else None,
                    "name": name if self.names_logged else None,
                    "is_primary_key": ordinal == 0 if self.names_logged else None,
                }
                for ordinal, (name, kind) in enumerate(self.columns)
            ],
            "hint": "metadata" if self.names_logged else "none",
            "unknown_hints": None
            if self.hints_known
            else [
                {"ordinal": ordinal, "hint": HINTS[data_type(kind)]}
                for ordinal, (_, kind) in enumerate(self.columns)
                if data_type(kind) in HINTS
            ],
        }


@dataclass
class Change:
    """A changed row: before and after as lists of texts, None where this kind of change has no such image."""

    table: Table
    at: datetime
    before: list[str | None] | None = None
    after: list[str | None] | None = None
    outcome: str = "commit"
    xa_xid: str | None = None

    @property
    def event_type(self) -> str:
        """INSERT, UPDATE or DELETE."""
        return "INSERT" if self.before is None else "DELETE" if self.after is None else "UPDATE"


@dataclass
class XaEnd:
    """The XA COMMIT or XA ROLLBACK of a prepared transaction: a transaction without rows."""

    at: datetime
    xa_xid: str
    outcome: str


@dataclass
class RawTables:
    """The schema `binlog_raw` of a warehouse, one transaction for each change."""

    spark: Any
    warehouse: Path
    source: str = "shop"
    _clock: "itertools.count[int]" = field(default_factory=itertools.count)
    _parts: "itertools.count[int]" = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        ensure_tables(self.spark, self.warehouse)

    def _now(self) -> datetime:
        return NOON + timedelta(days=1, seconds=next(self._clock))

    def _write(self, name: str, rows: list[dict[str, Any]], folder: str = "") -> None:
        schema = RAW_TABLES[name].file_schema
        table = pa.Table.from_pylist([{column: row.get(column) for column in schema.names} for row in rows], schema)
        path = self.warehouse / f"{RAW_SCHEMA}.db" / name / folder / f"part-{next(self._parts):05d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path)
        self.spark.catalog.refreshTable(RAW_TABLES[name].qualified_name)

    def segment_folder(self, file: str, start: int = 4, epoch: int = 0) -> str:
        """Return the partition of a segment as folders."""
        return f"source_id={self.source}/epoch={epoch}/binlog_file={file}/segment_start={start}"

    def _register(self, folder: str) -> None:
        values = ", ".join(part.replace("=", "='") + "'" for part in folder.split("/"))
        for name in SEGMENT_TABLES:
            self.spark.sql(f"alter table {RAW_SCHEMA}.{name} add if not exists partition ({values})")
            self.spark.catalog.refreshTable(RAW_TABLES[name].qualified_name)

    def land(
        self,
        file: str,
        changes: list[Change] | list[XaEnd],
        *,
        undecoded: list[dict[str, Any]] | None = None,
        status: str = "completed",
        epoch: int = 0,
        start: int = 4,
        lost_rows: int = 0,
        lost_bytes: int = 0,
    ) -> None:
        """Land a segment of a file, by default its only one; landing it again replaces the earlier rows.

        The last `lost_rows` row events and the last `lost_bytes` bytes are not landed.
        """
        folder = self.segment_folder(file, start, epoch)
        for name in SEGMENT_TABLES:
            for part in (self.warehouse / f"{RAW_SCHEMA}.db" / name / folder).glob("*.parquet"):
                part.unlink()
        first = max(start, FIRST_EVENT) + 196
        positions = [first + 1000 * place for place in range(len(changes))]
        landed = list(zip(positions, changes[: len(changes) - lost_rows], strict=False))
        rows = [self._row_event(position, one) for position, one in landed if isinstance(one, Change)]
        decoded = [
            self._row_event(*pair) for pair in zip(positions, changes, strict=True) if isinstance(pair[1], Change)
        ]
        counts = RowCounts()
        counts.add(pa.RecordBatch.from_pylist(decoded, ROW_EVENTS.file_schema))
        self._write("row_events", rows, folder)
        self._write("transactions", [self._transaction(*pair) for pair in zip(positions, changes, strict=True)], folder)
        if undecoded:
            self._write("unsupported_events", undecoded, folder)
        maps = [change.table.table_map(self.source) for change in changes if isinstance(change, Change)]
        self._write("table_maps", maps)
        self._register(folder)
        end = first + 1000 * len(changes)
        common = {"source_id": self.source, "epoch": epoch, "binlog_file": file}
        moments = [change.at for change in changes] or [NOON]
        self._write(
            "segments",
            [
                {
                    **common,
                    "segment_start": start,
                    "segment_end": end,
                    "status": status,
                    "row_events": len(decoded),
                    "row_event_counts": counts.rows,
                    "transactions": len(changes),
                    "min_event_at": min(moments),
                    "max_event_at": max(moments),
                    "run_id": "test",
                    "recorded_at": self._now(),
                }
            ],
        )
        self._write(
            "binlog_files",
            [
                {
                    **common,
                    "file_sequence": int(file.rpartition(".")[2]),
                    "file_size": end + lost_bytes,
                    "format_version": 4,
                    "server_version": "9.7.0",
                    "flavor": "mysql",
                    "is_in_use": False,
                    "first_event_at": min(moments),
                    "bytes_covered": end,
                    "scanned_at": self._now(),
                }
            ],
        )

    def compact(self, file: str, starts: list[int]) -> None:
        """Put the rows of segments into a compacted one, as `binloom follow` does when a file is closed."""
        rows = [row for row in read_rows(SEGMENTS, self.warehouse.parent) if row["segment_start"] in starts]
        replaced = [row for row in rows if row["binlog_file"] == file]
        whole = self.segment_folder(file, COMPACTED_START)
        for name in SEGMENT_TABLES:
            table = self.warehouse / f"{RAW_SCHEMA}.db" / name
            for start in starts:
                for part in (table / self.segment_folder(file, start)).glob("*.parquet"):
                    (table / whole).mkdir(parents=True, exist_ok=True)
                    part.rename(table / whole / part.name)
        self._register(whole)
        moment = self._now()
        state = {
            **replaced[0],
            "segment_start": COMPACTED_START,
            "segment_end": max(row["segment_end"] for row in replaced),
            "row_events": sum(row["row_events"] for row in replaced),
            "row_event_counts": merged(row["row_event_counts"] for row in replaced),
            "transactions": sum(row["transactions"] for row in replaced),
            "recorded_at": moment,
        }
        self._write("segments", [state, *({**row, "status": "replaced", "recorded_at": moment} for row in replaced)])

    def snapshot(self, snapshot_id: str, tables: list[Table], at: tuple[str, int] | None = None) -> None:
        """Land a schema snapshot, at a file and offset or without a position."""
        self._write(
            "schema_snapshots",
            [
                {
                    "snapshot_id": snapshot_id,
                    "source_id": self.source,
                    "taken_at": self._now(),
                    "binlog_file": at[0] if at else None,
                    "binlog_pos": at[1] if at else None,
                    "origin": "server" if at else "files",
                }
            ],
        )
        self._write(
            "schema_columns",
            [
                {
                    "snapshot_id": snapshot_id,
                    "schema_name": table.schema,
                    "table_name": table.name,
                    "column_name": name,
                    "ordinal_position": ordinal + 1,
                    "column_key": "PRI" if ordinal == 0 else "",
                    "primary_key_ordinal": 1 if ordinal == 0 else None,
                    "data_type": data_type(kind),
                    "column_type": kind,
                    "is_nullable": ordinal > 0,
                    "is_generated": False,
                    "extra": "",
                }
                for table in tables
                for ordinal, (name, kind) in enumerate(table.columns)
            ],
        )

    def baseline(self, table: str, snapshot_id: str, at: tuple[str, int]) -> None:
        """Land a baseline of a table of schema `shop` that had no rows."""
        row = {"baseline_id": f"baseline of {table}", "source_id": self.source, "schema_name": "shop"}
        place = {"snapshot_id": snapshot_id, "binlog_file": at[0], "binlog_pos": at[1], "taken_at": self._now()}
        self._write("baselines", [{**row, "table_name": table, "row_count": 0, **place}])

    @staticmethod
    def _row_event(position: int, change: Change) -> dict[str, Any]:
        nulls = [None] * len(change.table.columns)
        return {
            "start_pos": position + 100,
            "end_pos": position + 300,
            "payload_ordinal": 0,
            "row_ordinal": 0,
            "transaction_pos": position,
            "event_type": change.event_type,
            "event_timestamp": change.at,
            "server_id": 1,
            "table_map_id": change.table.table_map_id,
            "schema_name": change.table.schema,
            "table_name": change.table.name,
            "column_count": len(change.table.columns),
            "before_values": nulls if change.before is None else change.before,
            "after_values": nulls if change.after is None else change.after,
        }

    @staticmethod
    def _transaction(position: int, change: Change | XaEnd) -> dict[str, Any]:
        event_type = change.event_type if isinstance(change, Change) else None
        return {
            "start_pos": position,
            "end_pos": position + 1000,
            "xid": position,
            "xa_xid": change.xa_xid,
            "thread_id": 42,
            "server_id": 1,
            "started_at": change.at,
            "committed_at": change.at + timedelta(microseconds=123),
            "is_ddl": False,
            "outcome": change.outcome,
            "events": 5 if event_type else 2,
            "row_events": int(event_type is not None),
            "inserts": int(event_type == "INSERT"),
            "updates": int(event_type == "UPDATE"),
            "deletes": int(event_type == "DELETE"),
        }
