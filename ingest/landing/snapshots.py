"""Landing schema snapshots, and what the decoder is told from them. Needs no Spark."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.errors import UsageError
from ingest.landing.session import binloom_home, prepare_home, raw_table_dir
from ingest.landing.store import append_rows, read_rows
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


def land_snapshot(source_id: str, snapshot: SchemaSnapshot, home: Path | None = None) -> SnapshotResult:
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

    Raises
    ------
    StoreError
        The warehouse cannot be written.
    """
    if not source_id.strip():
        raise UsageError("The name of the source is empty.", hint="Give a name with --source, such as --source shop.")
    home = (home or binloom_home()).absolute()
    prepare_home(home)
    snapshot_id = snapshot.snapshot_id(source_id)
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
        }
        append_rows(SCHEMA_SNAPSHOTS, [head], snapshot_id, home)
    return SnapshotResult(snapshot_id, is_new, snapshot.tables, len(snapshot.columns), len(snapshot.foreign_keys))


def load_hints(source_id: str, home: Path | None = None) -> "SchemaHints | None":
    """Return what the snapshots of a source tell the decoder, None without any snapshot."""
    snapshots = sorted(read_rows(SCHEMA_SNAPSHOTS, home, source_id=source_id), key=lambda row: row["taken_at"])
    if not snapshots:
        return None
    from ingest.binlog import SchemaHints

    return SchemaHints.from_columns(_hint_rows(snapshots, home))


def _hint_rows(snapshots: list[dict[str, Any]], home: Path | None) -> Iterator[dict[str, Any]]:
    # Of two snapshots at the same place the later one counts, whole tables of it: not column by column.
    newest: dict[tuple[str, str, str | None, int | None], tuple[str, list[dict[str, Any]]]] = {}
    for snapshot in snapshots:
        identifier = snapshot["snapshot_id"]
        for row in read_rows(SCHEMA_COLUMNS, home, snapshot_id=identifier):
            place = (row["schema_name"], row["table_name"], snapshot["binlog_file"], snapshot["binlog_pos"])
            if place not in newest or newest[place][0] != identifier:
                newest[place] = (identifier, [])
            newest[place][1].append(row)
    for (_, _, binlog_file, binlog_pos), (_, rows) in newest.items():
        for row in rows:
            yield {**row, "binlog_file": binlog_file, "binlog_pos": binlog_pos}
