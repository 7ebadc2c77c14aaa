"""Landing schema snapshots, and what the decoder is told from them. Needs no Spark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ingest.errors import UsageError
from ingest.landing.checkpoint import log_place
from ingest.landing.record import Row
from ingest.landing.session import binloom_home, prepare_home, raw_table_dir
from ingest.landing.store import append_rows, read_rows, read_table
from ingest.landing.tables import FOREIGN_KEYS, SCHEMA_COLUMNS, SCHEMA_KEYS, SCHEMA_SNAPSHOTS
from ingest.sources.snapshot import SchemaSnapshot

if TYPE_CHECKING:
    from ingest.binlog import SchemaHints


@dataclass(frozen=True)
class SnapshotResult:
    """What landing a snapshot came to.

    Attributes
    ----------
    snapshot_id
        Hash of its content and position.
    is_new
        Whether it was not landed before.
    tables, columns, foreign_keys
        How many of each it has; of foreign keys, how many columns.
    """

    snapshot_id: str
    is_new: bool
    tables: int
    columns: int
    foreign_keys: int


def land_snapshot(
    source_id: str, snapshot: SchemaSnapshot, home: Path | None = None, epoch: int | None = None
) -> SnapshotResult:
    """Land a schema snapshot under a source. The same one again changes nothing.

    Parameters
    ----------
    source_id
        Name of the source.
    snapshot
        From `ingest.sources.information_schema.take_snapshot` or
        `ingest.sources.snapshot_files.read_snapshot_dir`.
    home
        Folder that binloom keeps everything under; default `$BINLOOM_HOME`, else `.binloom`.
    epoch
        Epoch of the source that its position is in, None when nobody knows.

    Raises
    ------
    StoreError
        The warehouse cannot be written.
    """
    if not source_id.strip():
        raise UsageError("The name of the source is empty.", hint="Give a name with --source, such as --source shop.")
    home = (home or binloom_home()).absolute()
    prepare_home(home)
    snapshot_id = snapshot.snapshot_id(source_id, epoch)
    is_new = not (raw_table_dir(SCHEMA_SNAPSHOTS.name, home) / f"{snapshot_id}.parquet").exists()
    if is_new:
        for table, rows in (
            (SCHEMA_COLUMNS, snapshot.columns),
            (SCHEMA_KEYS, snapshot.keys),
            (FOREIGN_KEYS, snapshot.foreign_keys),
        ):
            append_rows(table, [{"snapshot_id": snapshot_id, **row} for row in rows], snapshot_id, home)
        # Last: a snapshot is there when this row is.
        head = {
            "snapshot_id": snapshot_id,
            "source_id": source_id,
            "taken_at": snapshot.taken_at,
            "binlog_file": snapshot.binlog_file,
            "binlog_pos": snapshot.binlog_pos,
            "gtid_executed": snapshot.gtid_executed,
            "origin": snapshot.origin,
            "epoch": epoch,
            "logs_cascades": snapshot.logs_cascades,
        }
        append_rows(SCHEMA_SNAPSHOTS, [head], snapshot_id, home)
    return SnapshotResult(snapshot_id, is_new, snapshot.tables, len(snapshot.columns), len(snapshot.foreign_keys))


def load_hints(source_id: str, epoch: int, home: Path | None = None) -> "SchemaHints | None":
    """Return what the snapshots of a source tell the decoder in an epoch, None without any snapshot.

    File names start over with each epoch, so positions count in their own one only. What a table looked like at the
    end of the epochs before is true from the beginning, and what it looks like later only where nothing else is known.
    A snapshot of an unknown epoch counts by its position.
    """
    snapshots = sorted(read_rows(SCHEMA_SNAPSHOTS, home, source_id=source_id), key=_place)
    if not snapshots:
        return None
    from ingest.binlog import SchemaHints

    return SchemaHints.from_columns(_hint_rows(snapshots, epoch, home))


def _place(snapshot: Row) -> tuple[int, tuple[int, int], datetime]:
    """Order snapshots: those of an unknown epoch first, and of two at the same place the later one last."""
    epoch, name, position = snapshot["epoch"], snapshot["binlog_file"], snapshot["binlog_pos"]
    in_log = log_place(name, position) if name and position is not None else (-1, -1)
    return -1 if epoch is None else epoch, in_log, snapshot["taken_at"]


def _hint_rows(snapshots: Sequence[Row], epoch: int, home: Path | None) -> Iterator[Row]:
    """Yield rows of `schema_columns` with the position from which they count in an epoch."""
    # Of two snapshots at the same place the later one counts, whole tables of it: not column by column.
    found: dict[tuple[str, str], dict[tuple[str | None, int | None], list[Row]]] = {}
    columns = read_table(SCHEMA_COLUMNS, home)
    for snapshot in snapshots:
        own = snapshot["epoch"] in (None, epoch)
        place = (snapshot["binlog_file"], snapshot["binlog_pos"]) if own else (None, None)
        for table, rows in _by_table(columns, snapshot["snapshot_id"]).items():
            # In order: those of a later epoch come when all others are known.
            if own or snapshot["epoch"] < epoch or table not in found:
                found.setdefault(table, {})[place] = rows
    for places in found.values():
        for (binlog_file, binlog_pos), of_table in places.items():
            for row in of_table:
                yield {**row, "binlog_file": binlog_file, "binlog_pos": binlog_pos}


def _by_table(columns: pa.Table, snapshot_id: str) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of `schema_columns` of one snapshot, by table."""
    tables: dict[tuple[str, str], list[Row]] = {}
    for row in columns.filter(pc.equal(columns["snapshot_id"], snapshot_id)).to_pylist():
        tables.setdefault((row["schema_name"], row["table_name"]), []).append(row)
    return tables
