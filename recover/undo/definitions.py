"""The definitions of tables and foreign keys that an undo needs, from the newest landed schema snapshot."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recover.sources.cluster import Cluster
from recover.sources.landed_snapshot import newest_snapshot, newest_snapshot_on_cluster
from recover.sources.log import Log
from recover.timeline.baselines import sequence_of_file
from recover.timeline.events import Place, TableEvent
from recover.undo.tables import ForeignKey, Table, TableName, foreign_keys_of_snapshot, tables_of_snapshot

if TYPE_CHECKING:
    from ingest.sources.snapshot import SchemaSnapshot


@dataclass(frozen=True)
class Definitions:
    """The tables of a source, as its newest snapshot shows them.

    Attributes
    ----------
    place
        Where the snapshot was taken; None if that is unknown.
    """

    tables: Mapping[TableName, Table]
    foreign_keys: tuple[ForeignKey, ...] = ()
    place: Place | None = None

    def shows(self, event: TableEvent) -> bool:
        """Return whether the snapshot was taken after an event. Without a position, it is taken to be the newest."""
        return self.place is None or event.place < self.place

    @classmethod
    def landed(cls, source_id: str, home: Path) -> "Definitions":
        """Return the definitions of the newest landed snapshot; none if there is no snapshot."""
        found = newest_snapshot(source_id, home)
        return cls({}) if found is None else cls.of_snapshot(*found)

    @classmethod
    def of_log(cls, log: Log, source_id: str) -> "Definitions":
        """Return the definitions that belong to a log: of the snapshot given with its files, or the newest landed."""
        if log.copies is not None:
            return cls.of_cluster(source_id, log.copies.cluster)
        if log.snapshot is not None:
            return cls.of_snapshot(log.snapshot)
        return cls({}) if log.home is None else cls.landed(source_id, log.home)

    @classmethod
    def of_snapshot(cls, snapshot: "SchemaSnapshot", epoch: int = 0) -> "Definitions":
        """Return the definitions of a snapshot; `epoch` is that of its position."""
        place = None
        if snapshot.binlog_file is not None and snapshot.binlog_pos is not None:
            place = Place(epoch, sequence_of_file(snapshot.binlog_file), snapshot.binlog_pos)
        return cls.of_rows(snapshot.columns, snapshot.keys, snapshot.foreign_keys, place)

    @classmethod
    def of_cluster(cls, source_id: str, cluster: Cluster) -> "Definitions":
        """Return the definitions of the newest snapshot of a cluster; none if there is no snapshot."""
        found = newest_snapshot_on_cluster(source_id, cluster)
        return cls({}) if found is None else cls.of_snapshot(*found)

    @classmethod
    def of_rows(
        cls,
        columns: list[dict[str, Any]],
        keys: list[dict[str, Any]],
        foreign_keys: list[dict[str, Any]],
        place: Place | None = None,
    ) -> "Definitions":
        """Return the definitions that rows of `schema_columns`, `schema_keys` and `foreign_keys` give."""
        return cls(tables_of_snapshot(columns, keys), tuple(foreign_keys_of_snapshot(foreign_keys)), place)
