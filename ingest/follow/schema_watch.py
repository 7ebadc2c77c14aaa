"""Schema snapshots of a followed server: an initial snapshot, and a snapshot after each schema change."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ingest.errors import BrokenStreamError, SnapshotInputError, SourceError
from ingest.follow.checkpoint import Checkpoint
from ingest.follow.handover import is_same_server
from ingest.follow.spool import Spool
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.landing.snapshots import land_snapshot
from ingest.landing.transactions import transactions
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.information_schema import take_snapshot
from ingest.sources.servers.server import Server, server_identity
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.warehouse.files import read_rows
from ingest.warehouse.segments import done_upto, log_place
from ingest.warehouse.tables import SCHEMA_SNAPSHOTS

ATTEMPTS: Final = 5
WAIT_SECONDS: Final = 10.0
# Limit the wait: if the server never comes back, its received log must still be landed.
PATIENCE_SECONDS: Final = 30.0


class SchemaWatch:
    """Keeps the snapshots of a source up to date with the DDL statements in its log.

    Parameters
    ----------
    landing
        Landing of the source.
    address
        The server.
    spool
        Spool of the server; its checkpoint contains the epoch.
    say
        Function that shows a sentence to the user.
    """

    def __init__(
        self, landing: StreamLanding, address: ServerAddress, spool: Spool, say: Callable[[str], object]
    ) -> None:
        self._landing = landing
        self._address = address
        self._spool = spool
        self._say = say
        self._sought: dict[Path, int] = {}
        self._ends: list[tuple[str, int]] = []
        self._last: list[Any] | None = None
        self._taken: SchemaSnapshot | None = None
        self._waits_since: float | None = None

    def begin(self, is_behind_gap: bool = False) -> None:
        """Take a snapshot if the source has none of the epoch, or if a gap may contain schema changes.

        The snapshot is landed before the log that follows.
        """
        checkpoint = self._checkpoint
        # A snapshot from an earlier connection may come from another server.
        self._taken = None
        known = read_rows(SCHEMA_SNAPSHOTS, self._landing.home, ["epoch"], source_id=self._landing.source_id)
        # Snapshots of unknown epoch were taken when there was only epoch 0.
        if is_behind_gap or checkpoint.epoch not in {row["epoch"] or 0 for row in known}:
            # Earlier schema changes are not in the epoch's log: treat this position like the end of a DDL statement.
            states = self._landing.record.states.get((checkpoint.epoch, checkpoint.binlog_file), [])
            self._ends = [(checkpoint.binlog_file, done_upto(states))]
            self._last = self._waits_since = None
            try:
                self._taken = self._take()
            except SnapshotInputError as error:
                self._go_without(error)

    def catch_up(
        self,
        durable: Callable[[], Sequence[SpoolFile]],
        wait_for: Callable[[str, int, float], bool],
        is_patient: bool = True,
    ) -> Sequence[SpoolFile] | None:
        """Return the files that can be landed now; first land a snapshot if they contain new DDL statements.

        A snapshot is valid from the end of the last DDL statement before the position at which the snapshot was read,
        because only DDL statements change a schema. That statement is unknown until the log is received up to the
        position.

        Parameters
        ----------
        durable
            Function that returns the durable parts of the spool files.
        wait_for
            Function that waits at most a number of seconds until the log is received up to a position, and returns
            whether it is.
        is_patient
            Whether rows after a DDL statement may wait for the snapshot. If not, or after `PATIENCE_SECONDS`, they are
            landed with the schema known so far.

        Returns
        -------
        sequence of SpoolFile or None
            None while rows must wait.
        """
        files = durable()
        self._seek(files)
        for _ in range(ATTEMPTS):
            ends = list(self._ends)
            if not ends:
                return files
            has_waited = not is_patient or self._has_waited()
            try:
                self._taken = self._taken or self._take()
            except SourceError as error:
                self._say(f"{error} The schema behind a DDL statement could not be read yet.")
                return files if has_waited else None
            except SnapshotInputError as error:
                self._go_without(error)
                return files
            snapshot = self._taken
            assert snapshot.binlog_file is not None and snapshot.binlog_pos is not None
            seconds = 0.0 if has_waited else WAIT_SECONDS
            is_received = wait_for(snapshot.binlog_file, snapshot.binlog_pos, seconds)
            if not is_received and not has_waited:
                return None
            latest = durable()
            self._seek(latest)
            read_at = log_place(snapshot.binlog_file, snapshot.binlog_pos)
            before = [end for end in self._ends if log_place(*end) <= read_at]
            if is_received:
                self._waits_since = None
                if before:
                    name, position = max(before, key=lambda end: log_place(*end))
                    snapshot = replace(snapshot, binlog_file=name, binlog_pos=position, gtid_executed=None)
            self._land(snapshot)
            self._taken = None
            self._ends = [end for end in self._ends if log_place(*end) > read_at]
            if not self._ends:
                return latest
            if all(log_place(*end) <= read_at for end in ends):
                # DDL that arrived in the meantime is landed next time, after its own snapshot.
                return files
            files = latest
        return files if not is_patient or self._has_waited() else None

    @property
    def is_awaited(self) -> bool:
        """Whether rows are waiting, or have waited, for a snapshot that is not landed yet."""
        return self._waits_since is not None

    def _has_waited(self) -> bool:
        """Return whether rows have waited long enough; the first call starts the wait."""
        if self._waits_since is None:
            self._waits_since = time.monotonic()
        return time.monotonic() - self._waits_since > PATIENCE_SECONDS

    def _seek(self, files: Sequence[SpoolFile]) -> None:
        """Note the ends of DDL statements in parts of files that are neither landed nor searched before."""
        for file in files:
            states = self._landing.record.states.get((file.epoch, file.path.name), [])
            start = max(done_upto(states), self._sought.get(file.path, 0))
            self._sought[file.path] = file.upto
            for batch in transactions(file.path, start, file.upto, ("end_pos", "is_ddl")):
                self._ends += [(file.path.name, end) for end in batch["end_pos"].filter(batch["is_ddl"]).to_pylist()]

    def _take(self) -> SchemaSnapshot:
        """Read the schema until two connections in a row have read the same schema."""
        last = None
        for _ in range(ATTEMPTS):
            snapshot = self._take_of_epoch()
            if last is not None and _content(snapshot) == _content(last):
                return snapshot
            last = snapshot
        raise BrokenStreamError(f"The schema of the server at {self._address} was read differently each time.")

    def _take_of_epoch(self) -> SchemaSnapshot:
        """Read the schema, and check that it comes from the followed server, at or after the received position."""
        received = self._checkpoint
        with Server(self._address) as server:
            identity, snapshot = server_identity(server), take_snapshot(server)
        assert snapshot.binlog_file is not None and snapshot.binlog_pos is not None
        read_at = log_place(snapshot.binlog_file, snapshot.binlog_pos)
        is_behind = read_at < log_place(received.binlog_file, received.position)
        if is_behind or not is_same_server(identity, received.server_uuid, received.server_id):
            raise BrokenStreamError(
                f"The log of the server at {self._address} is not the one that is received up to "
                f"{received.binlog_file}:{received.position}: it started over, or another server took over."
            )
        return snapshot

    @property
    def _checkpoint(self) -> Checkpoint:
        assert self._spool.checkpoint is not None
        return self._spool.checkpoint

    def _go_without(self, error: SnapshotInputError) -> None:
        """Continue without a snapshot: there is no table yet, or none that the user may see."""
        self._say(str(error))
        self._ends, self._waits_since = [], None

    def _land(self, snapshot: SchemaSnapshot) -> None:
        if self._last != _content(snapshot):
            self._last = _content(snapshot)
            epoch, masks = self._checkpoint.epoch, self._landing.masks_file
            land_snapshot(self._landing.source_id, snapshot, self._landing.home, epoch, masks)
            self._landing.reload_snapshots()


def wait_until(is_true: Callable[[], bool], seconds: float) -> bool:
    """Wait until a condition is true; return False when time runs out."""
    until = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _content(snapshot: SchemaSnapshot) -> list[Any]:
    return [snapshot.columns, snapshot.keys, snapshot.foreign_keys, snapshot.defaults]
