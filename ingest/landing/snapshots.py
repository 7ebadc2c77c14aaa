"""Land schema snapshots. Needs no Spark."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ingest.landing.other_names import rows_with_other_names
from ingest.landing.published import publish_history, published_bindings
from ingest.masking.masked_snapshots import masked_snapshot
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.warehouse.files import append_rows, delete_temporaries
from ingest.warehouse.home import binloom_home, prepare_home, raw_table_dir
from ingest.warehouse.locks import history_locked
from ingest.warehouse.masks import masks_of
from ingest.warehouse.names import require_source_name
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.tables import FOREIGN_KEYS, SCHEMA_COLUMNS, SCHEMA_DEFAULTS, SCHEMA_KEYS, SCHEMA_SNAPSHOTS


@dataclass(frozen=True)
class SnapshotResult:
    """Result of landing a snapshot.

    Attributes
    ----------
    snapshot_id
        Hash of the snapshot's content and position.
    is_new
        Whether the snapshot was not landed before.
    tables, columns, foreign_keys
        Numbers of tables, columns, and columns of foreign keys in the snapshot.
    renamed_rows
        Number of landed rows that have other names by the snapshot.
    """

    snapshot_id: str
    is_new: bool
    tables: int
    columns: int
    foreign_keys: int
    renamed_rows: int = 0


def land_snapshot(
    source_id: str,
    snapshot: SchemaSnapshot,
    home: Path | None = None,
    epoch: int | None = None,
    masks: Path | None = None,
    *,
    is_masked: bool = False,
) -> SnapshotResult:
    """Land a schema snapshot under a source, and publish the names that it gives.

    Landing the same snapshot again changes nothing.

    Defaults and comments of masked columns are not landed.

    Parameters
    ----------
    source_id
        Name of the source.
    snapshot
        From `ingest.sources.servers.information_schema.take_snapshot` or
        `ingest.sources.snapshots.snapshot_files.read_snapshot_dir`.
    home
        Folder that binloom keeps everything under; default `$BINLOOM_HOME`, else `.binloom`.
    epoch
        Epoch of the source that the snapshot's position belongs to, None when unknown.
    masks
        File with the masks; default as for `ingest`.
    is_masked
        Whether the definitions come from landed ones, which have their masks already.

    Raises
    ------
    StoreError
        The warehouse cannot be written.
    UsageError
        The masks have a mistake.
    """
    require_source_name(source_id)
    home = (home or binloom_home()).absolute()
    prepare_home(home)
    if not is_masked:
        snapshot = masked_snapshot(snapshot, masks_of(source_id, home, masks))
    snapshot_id = snapshot.snapshot_id(source_id, epoch)
    is_new = not (raw_table_dir(SCHEMA_SNAPSHOTS.name, home) / f"{snapshot_id}.parquet").exists()
    if is_new:
        publish_history(source_id, home)
        before = published_bindings(source_id, home)
        head = {
            "source_id": source_id,
            "taken_at": snapshot.taken_at,
            "binlog_file": snapshot.binlog_file,
            "binlog_pos": snapshot.binlog_pos,
            "gtid_executed": snapshot.gtid_executed,
            "origin": snapshot.origin,
            "epoch": epoch,
            "logs_cascades": snapshot.logs_cascades,
        }
        tables = (
            (SCHEMA_COLUMNS, snapshot.columns),
            (SCHEMA_DEFAULTS, snapshot.defaults),
            (SCHEMA_KEYS, snapshot.keys),
            (FOREIGN_KEYS, snapshot.foreign_keys),
            # Written last: a snapshot is complete when this row exists.
            (SCHEMA_SNAPSHOTS, [head]),
        )
        with history_locked(home, source_id):
            for table, rows in tables:
                delete_temporaries(table, snapshot_id, home)
                append_rows(table, [{"snapshot_id": snapshot_id, **row} for row in rows], snapshot_id, home)
    # Also where an earlier command was killed in between.
    publish_history(source_id, home)
    renamed_rows = _renamed_rows(before, source_id, home) if is_new else 0
    sizes = snapshot.tables, len(snapshot.columns), len(snapshot.foreign_keys)
    return SnapshotResult(snapshot_id, is_new, *sizes, renamed_rows)


def _renamed_rows(before: list[dict[str, Any]], source_id: str, home: Path) -> int:
    after = published_bindings(source_id, home)
    return rows_with_other_names(before, after, SourceRecord.load(source_id, home), home)
