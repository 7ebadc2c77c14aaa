"""Schema snapshots of a followed server: one when there is none, and one for each change of the schema."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ingest.errors import BrokenStreamError, SnapshotInputError, SourceError
from ingest.follow.checkpoint import Checkpoint
from ingest.follow.handover import is_same_server
from ingest.follow.lag import done_upto
from ingest.follow.spool import FIRST_EVENT, Spool
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.landing.snapshots import land_snapshot
from ingest.landing.transactions import transactions
from ingest.sources.address import ServerAddress
from ingest.sources.information_schema import take_snapshot
from ingest.sources.server import Server, server_identity
from ingest.sources.snapshot import SchemaSnapshot
from ingest.warehouse.files import read_rows
from ingest.warehouse.segments import log_place
from ingest.warehouse.tables import SCHEMA_SNAPSHOTS

ATTEMPTS: Final = 5
WAIT_SECONDS: Final = 10.0
# A server that is gone for good must not keep what is received of it from being landed.
PATIENCE_SECONDS: Final = 30.0


class SchemaWatch:
    """Sees to it that the snapshots of a source keep up with the DDL statements in its log.

    Parameters
    ----------
    landing
        The right to land the source.
    address
        The server.
    spool
        What is received of it; its checkpoint says the epoch.
    say
        Takes a sentence for a person.
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
        """Take a snapshot where the source has none of the epoch, or what is lost may have changed the schema.

        It is landed before what follows.
        """
        checkpoint = self._checkpoint
        # What was read over an earlier connection may be another server's.
        self._taken = None
        known = read_rows(SCHEMA_SNAPSHOTS, self._landing.home, ["epoch"], source_id=self._landing.source_id)
        # Of an unknown epoch are those from before there was more than one.
        if is_behind_gap or checkpoint.epoch not in {row["epoch"] or 0 for row in known}:
            # What changed the schema before is not in the epoch's log: here it is as behind a DDL statement.
            states = self._landing.record.states.get((checkpoint.epoch, checkpoint.binlog_file), [])
            self._ends = [(checkpoint.binlog_file, max(FIRST_EVENT, done_upto(states)))]
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
        """Return what can be landed, after a snapshot when there are DDL statements in it.

        A snapshot is true from the end of the last DDL statement on that stands before the position at which it was
        read: nothing else changes a schema. Until the log is received up to there, nobody knows which one that is.

        Parameters
        ----------
        durable
            Gives the files of the spool as far as they are durable.
        wait_for
            Waits until the log is received up to a position, so many seconds at most; False when it is not in time.
        is_patient
            Whether rows behind a DDL statement may wait for the snapshot. Without it, and when they have waited for
            `PATIENCE_SECONDS`, they are landed with what is known.

        Returns
        -------
        sequence of SpoolFile or None
            None while rows wait.
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
                # What came in the meantime is landed the next time, behind a snapshot of its own.
                return files
            files = latest
        return files if not is_patient or self._has_waited() else None

    @property
    def is_awaited(self) -> bool:
        """Whether a snapshot is due that rows wait for, or have waited for."""
        return self._waits_since is not None

    def _has_waited(self) -> bool:
        """Whether rows have waited long enough; the first time is when they begin to."""
        if self._waits_since is None:
            self._waits_since = time.monotonic()
        return time.monotonic() - self._waits_since > PATIENCE_SECONDS

    def _seek(self, files: Sequence[SpoolFile]) -> None:
        """Note where DDL statements end in what is not landed and was not looked at before."""
        for file in files:
            states = self._landing.record.states.get((file.epoch, file.path.name), [])
            start = max(FIRST_EVENT, done_upto(states), self._sought.get(file.path, 0))
            self._sought[file.path] = file.upto
            for batch in transactions(file.path, start, file.upto, ("end_pos", "is_ddl")):
                self._ends += [(file.path.name, end) for end in batch["end_pos"].filter(batch["is_ddl"]).to_pylist()]

    def _take(self) -> SchemaSnapshot:
        """Read the schema until two connections have read the same."""
        last = None
        for _ in range(ATTEMPTS):
            snapshot = self._take_of_epoch()
            if last is not None and _content(snapshot) == _content(last):
                return snapshot
            last = snapshot
        raise BrokenStreamError(f"The schema of the server at {self._address} was read differently each time.")

    def _take_of_epoch(self) -> SchemaSnapshot:
        """Read the schema of the server that wrote what is received, where its log goes on from that."""
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
        """No table is there yet, or none that the user may see: there is a log all the same."""
        self._say(str(error))
        self._ends, self._waits_since = [], None

    def _land(self, snapshot: SchemaSnapshot) -> None:
        if self._last != _content(snapshot):
            self._last = _content(snapshot)
            land_snapshot(self._landing.source_id, snapshot, self._landing.home, self._checkpoint.epoch)
            self._landing.reload_snapshots()


def wait_until(is_true: Callable[[], bool], seconds: float) -> bool:
    """Wait until something is true; False when it is not in time."""
    until = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def _content(snapshot: SchemaSnapshot) -> list[Any]:
    return [snapshot.columns, snapshot.keys, snapshot.foreign_keys, snapshot.defaults]
