"""The newest landed schema snapshot of a source."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlglot import exp

    from ingest.sources.snapshots.snapshot import SchemaSnapshot
    from recover.sources.cluster.thrift import Cluster


def newest_snapshot(source_id: str, home: Path) -> "tuple[SchemaSnapshot, int] | None":
    """Return the newest landed snapshot of a source and the epoch of its position; None if there is no snapshot."""
    import pyarrow.compute as pc

    from ingest.warehouse.files import read_rows, read_table
    from ingest.warehouse.tables import FOREIGN_KEYS, SCHEMA_COLUMNS, SCHEMA_KEYS, SCHEMA_SNAPSHOTS

    landed = read_rows(SCHEMA_SNAPSHOTS, home, source_id=source_id)
    # A snapshot that was made of the log, when files expired, does not have all keys.
    heads = [head for head in landed if head["origin"] != "binlog"]
    if not heads:
        return None
    head = max(heads, key=lambda row: (row["taken_at"], row["snapshot_id"]))
    columns, keys, foreign_keys = (
        rows.filter(pc.equal(rows["snapshot_id"], head["snapshot_id"])).to_pylist()
        for rows in (read_table(table, home) for table in (SCHEMA_COLUMNS, SCHEMA_KEYS, FOREIGN_KEYS))
    )
    return _snapshot(head, columns, keys, foreign_keys)


def newest_snapshot_on_cluster(source_id: str, cluster: "Cluster") -> "tuple[SchemaSnapshot, int] | None":
    """Return the newest snapshot of a source on a cluster and the epoch of its position; None if there is none."""
    from sqlglot import exp

    def rows_of(table: str, column: str, value: str) -> "exp.Select":
        return exp.select("*").from_(f"binlog_raw.{table}").where(exp.column(column).eq(value))

    heads = rows_of("schema_snapshots", "source_id", source_id).where("origin <> 'binlog'")
    newest = heads.order_by("taken_at desc", "snapshot_id desc")
    head = next(iter(cluster.records(newest.limit(1))), None)
    if head is None:
        return None
    columns, keys, foreign_keys = (
        cluster.records(rows_of(table, "snapshot_id", head["snapshot_id"]))
        for table in ("schema_columns", "schema_keys", "foreign_keys")
    )
    return _snapshot(head, columns, keys, foreign_keys)


def _snapshot(
    head: dict[str, Any], columns: list[Any], keys: list[Any], foreign_keys: list[Any]
) -> "tuple[SchemaSnapshot, int]":
    from ingest.sources.snapshots.snapshot import SchemaSnapshot

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
