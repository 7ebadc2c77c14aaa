"""The newest landed schema snapshot of a source."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingest.sources.snapshot import SchemaSnapshot


def newest_snapshot(source_id: str, home: Path) -> "tuple[SchemaSnapshot, int] | None":
    """Return the newest landed snapshot of a source and the epoch of its position; None if there is no snapshot."""
    import pyarrow.compute as pc

    from ingest.sources.snapshot import SchemaSnapshot
    from ingest.warehouse.files import read_rows, read_table
    from ingest.warehouse.tables import FOREIGN_KEYS, SCHEMA_COLUMNS, SCHEMA_KEYS, SCHEMA_SNAPSHOTS

    heads = read_rows(SCHEMA_SNAPSHOTS, home, source_id=source_id)
    if not heads:
        return None
    head = max(heads, key=lambda row: (row["taken_at"], row["snapshot_id"]))
    columns, keys, foreign_keys = (
        rows.filter(pc.equal(rows["snapshot_id"], head["snapshot_id"])).to_pylist()
        for rows in (read_table(table, home) for table in (SCHEMA_COLUMNS, SCHEMA_KEYS, FOREIGN_KEYS))
    )
    snapshot = SchemaSnapshot(
        origin=head["origin"],
        taken_at=head["taken_at"],
        binlog_file=head["binlog_file"],
        binlog_pos=head["binlog_pos"],
        columns=columns,
        keys=keys,
        foreign_keys=foreign_keys,
    )
    return snapshot, head["epoch"] or 0
