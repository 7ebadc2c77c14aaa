"""Following a live server: receive into the spool, land what is durable, and decide where to go on."""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Protocol

from ingest.binlog.format import read_format
from ingest.binlog.gtid_sets import GtidSet
from ingest.binlog.scan import Scanner, scan_binlog
from ingest.errors import BinloomError, BrokenStreamError, GapError, SourceError, SourceIdentityError
from ingest.landing.checkpoint import Checkpoint, ServerEnd
from ingest.landing.compact import compact_closed_files, remove_replaced
from ingest.landing.gaps import Gap, gaps, record_gap
from ingest.landing.handover import Decision, Received, ServerView, Standing, Start, begin, go_on
from ingest.landing.lag import done_upto, landed_gtids
from ingest.landing.land import IngestResult
from ingest.landing.plan import SEGMENT_BYTES
from ingest.landing.receiver import Receiver
from ingest.landing.snapshots import land_snapshot
from ingest.landing.spool import FIRST_EVENT, Spool
from ingest.landing.store import read_rows
from ingest.landing.stream import SpoolFile, StreamLanding
from ingest.landing.tables import SCHEMA_SNAPSHOTS
from ingest.landing.transactions import transactions
from ingest.sources.directory import binlog_path
from ingest.sources.information_schema import binlog_position, take_snapshot
from ingest.sources.replication import FileHead, Replica, read_head
from ingest.sources.server import (
    Server,
    ServerAddress,
    ServerIdentity,
    binary_logs,
    check_server,
    executed_gtids,
    require_usable,
    server_identity,
)
from ingest.sources.snapshot import SchemaSnapshot

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
ATTEMPTS_OF_ONCE: Final = 8
SNAPSHOT_ATTEMPTS: Final = 5
# For whoever began to read the small segments of a file before they were compacted.
KEEP_REPLACED_SECONDS: Final = 60.0
WAIT_SECONDS: Final = 10.0


class Watcher(Protocol):
    """Who is told what happens."""

    def say(self, text: str) -> None:
        """Take a sentence for a person."""

    def connected(self) -> None:
        """The server sends its log."""

    def disconnected(self) -> None:
        """It does not any more."""

    def received(self, size: int) -> None:
        """So many bytes more have come."""

    def landed(self, result: IngestResult, spool: Spool, landing: StreamLanding) -> None:
        """A cycle is done, whether it landed something or not."""


@dataclass(frozen=True)
class FollowOptions:
    """What a person can say about following.

    Attributes
    ----------
    start
        Where a source begins that was not followed before.
    interval
        Seconds from one landing to the next.
    once
        End when all is landed that the server had logged at the start.
    accept_gap
        Go on behind a gap.
    replica_id
        The server_id that binloom has as a replica; None for one made of the source's name.
    spool_max_age, spool_max_size
        Seconds and bytes beyond which files of the spool that are landed and closed are deleted; None for none.
    """

    start: Start = field(default_factory=Start)
    interval: float = 30.0
    once: bool = False
    accept_gap: bool = False
    replica_id: int | None = None
    spool_max_age: float | None = None
    spool_max_size: int | None = None


class Follower:
    """Follows one server under one source, until `stop` is called, or `once` is reached.

    Parameters
    ----------
    source_id
        Name of the source.
    address
        The server.
    options
        What a person said.
    home
        Folder that binloom keeps everything under.
    watcher
        Who is told what happens.
    """

    def __init__(
        self, source_id: str, address: ServerAddress, options: FollowOptions, home: Path, watcher: Watcher
    ) -> None:
        self._source_id = source_id
        self._address = address
        self._options = options
        self._home = home.absolute()
        self._watcher = watcher
        self._replica = Replica.of(f"binloom {source_id} {self._home}", options.replica_id)
        self._wake = threading.Event()
        self._is_stopped = False
        self._said: set[str] = set()
        self._scanners: dict[Path, Scanner] = {}
        self._landed: set[Path] = set()
        self._sought: dict[Path, int] = {}
        self._ddl_ends: list[tuple[str, int]] = []
        self._schema: list[Any] | None = None
        self._receiver: Receiver | None = None
        self.problems: list[BinloomError] = []

    def stop(self) -> None:
        """Ask it to end at the last complete transaction that came. Can be called from a signal handler."""
        self._is_stopped = True
        self._wake.set()

    def run(self) -> None:
        """Follow.

        Raises
        ------
        SourceError
            The server cannot be reached or used at the start; with `once` at any time.
        GapError
            A part of the log is lost. It is recorded.
        SourceIdentityError
            Another server writes under this source.
        StoreError, IngestInProgressError
            The warehouse cannot be written, or another command lands this source.
        """
        with StreamLanding(self._source_id, self._home) as self._landing:
            self._spool = Spool(self._source_id, self._home)
            self._spool.drop_unsynced()
            try:
                self._follow()
            finally:
                for scanner in self._scanners.values():
                    scanner.close()
            remove_replaced(self._landing)

    def _follow(self) -> None:
        """Connect, receive, and connect again when the connection breaks."""
        pause, failures, was_connected = FIRST_PAUSE, 0, False
        self._target: tuple[str, int] | None = None
        while not self._is_stopped:
            try:
                decision, view = self._decide(is_first=not was_connected)
                was_connected = True
                self._apply(decision, view)
                came = self._receive(view)
                if self._is_stopped or self._is_done():
                    return
            except (GapError, SourceIdentityError):
                raise
            except SourceError as error:
                if not was_connected or (self._options.once and failures >= ATTEMPTS_OF_ONCE):
                    raise
                self._say(str(error))
                came = 0
            pause, failures = (FIRST_PAUSE, 0) if came else (min(2 * pause, LONGEST_PAUSE), failures + 1)
            self._wake.clear()
            if not self._is_stopped:
                self._wake.wait(pause)

    # --- where to go on ---

    def _decide(self, is_first: bool) -> tuple[Decision, ServerView]:
        """Look at the server and decide; what is not plain takes a second look that says the same."""
        outcomes: list[Decision | GapError | SourceIdentityError] = []
        while True:
            view = self._look(checks=is_first and not outcomes)
            try:
                outcome: Decision | GapError | SourceIdentityError = self._decision(view)
            except (GapError, SourceIdentityError) as error:
                outcome = error
            outcomes.append(outcome)
            is_plain = isinstance(outcome, Decision) and outcome.is_plain and self._is_known(view.identity)
            if is_plain or len(outcomes) == 2:
                break
        if len({_gist(one) for one in outcomes}) > 1:
            raise BrokenStreamError(f"The server at {self._address} said different things when it was asked twice.")
        if isinstance(outcome, GapError):
            record_gap(self._source_id, outcome.gap, "found", self._home)
        if not isinstance(outcome, Decision):
            raise outcome
        return outcome, view

    def _look(self, checks: bool) -> ServerView:
        heads: dict[str, FileHead] = {}

        def head_of(binlog_file: str) -> FileHead:
            if binlog_file not in heads:
                heads[binlog_file] = read_head(self._address, identity.flavor, self._replica, binlog_file)
            return heads[binlog_file]

        with Server(self._address) as server:
            identity = server_identity(server)
            if checks:
                findings = check_server(server)
                require_usable(server, findings)
                for finding in findings:
                    self._say(f"{finding.level}: {finding.message}")
            # The end first: what is in it is in the files then.
            name, position, _ = binlog_position(server, identity)
            return ServerView(identity, binary_logs(server), (name, position), executed_gtids(server), head_of)

    def _decision(self, view: ServerView) -> Decision:
        standing = self._standing()
        if standing is None:
            return begin(view, self._options.start, self._options.accept_gap)
        writers = {row["epoch"]: (row["server_uuid"], row["server_id"]) for row in self._landing.record.identities}
        return go_on(view, standing, writers, self._options.start, self._options.accept_gap)

    def _standing(self) -> Standing | None:
        """What is received; before anything was, what is landed of files; None for a new source."""
        checkpoint = self._spool.checkpoint
        if checkpoint is None:
            return self._standing_of_files()
        path = self._spool.path(checkpoint.epoch, checkpoint.binlog_file)
        end = checkpoint.server
        return Standing(
            checkpoint.epoch,
            checkpoint.binlog_file,
            checkpoint.position,
            read_format(path).fingerprint if path.exists() else None,
            checkpoint.server_uuid,
            checkpoint.server_id,
            end is not None and (end.binlog_file, end.position) == (checkpoint.binlog_file, checkpoint.position),
            lambda: _received(path, checkpoint.position),
        )

    def _standing_of_files(self) -> Standing | None:
        record = self._landing.record
        landed = [(key, done_upto(states)) for key, states in record.states.items()]
        (epoch, name), position = max(
            (one for one in landed if one[1] and one[0] in record.files),
            key=lambda one: (one[0][0], record.files[one[0]]["file_sequence"] or 0),
            default=((0, ""), 0),
        )
        if not position:
            return None
        row, writer = record.files[epoch, name], record.identities[-1]
        next_file = row["next_binlog_file"] if position == row["file_size"] else None
        return Standing(
            epoch,
            name,
            position,
            row["fingerprint"],
            writer["server_uuid"],
            writer["server_id"],
            False,
            lambda: Received(next_file, str(landed_gtids(record)) or None),
        )

    def _apply(self, decision: Decision, view: ServerView) -> None:
        """Land what is left of the old epoch, record what changed, and point the checkpoint to where it goes on."""
        if not decision.is_plain and self._spool.checkpoint is not None:
            self._land()
        if decision.gap is not None and decision.status is not None:
            record_gap(self._source_id, decision.gap, decision.status, self._home)
            self._say(f"{decision.status} gap: {decision.gap.detail}")
        elif self._spool.checkpoint is not None:
            self._fill_gaps(self._spool.checkpoint)
        identity = view.identity
        row = {
            "epoch": decision.epoch,
            "server_uuid": identity.server_uuid,
            "server_id": identity.server_id,
            "host": identity.host,
            "port": identity.port,
            "flavor": identity.flavor,
            "server_version": identity.version,
        }
        if decision.opens and self._landing.record.opening(decision.epoch) is None:
            starts = {name: getattr(decision, name) for name in ("start_file", "start_pos", "gtids_before")}
            self._landing.open_epoch({**row, **starts})
        elif not self._is_known(identity):
            self._landing.record_identity(row)
        checkpoint, now = self._spool.checkpoint, datetime.now(UTC)
        goes_on = checkpoint is not None and (checkpoint.epoch, checkpoint.binlog_file) == (
            decision.epoch,
            decision.binlog_file,
        )
        position = checkpoint.position if checkpoint is not None and goes_on else FIRST_EVENT
        self._spool.write_checkpoint(
            Checkpoint(
                decision.epoch,
                decision.binlog_file,
                position,
                identity.server_uuid,
                identity.server_id,
                identity.flavor,
                identity.version,
                identity.host,
                identity.port,
                now,
                self._end(view, decision.binlog_file, position, now),
            )
        )
        self._spool.drop_unsynced()
        if self._target is None or decision.opens:
            self._target = view.end
        self._snapshot_first()

    def _fill_gaps(self, behind: Checkpoint) -> None:
        """A gap before which following had stopped, and that is none on this server, is filled."""
        place = (behind.epoch, behind.binlog_file, behind.position)
        for row in gaps(self._source_id, self._home):
            if row["status"] == "found" and (row["from_epoch"], row["from_file"], row["from_pos"]) == place:
                gap = Gap(**{one.name: row[one.name] for one in fields(Gap)})
                record_gap(self._source_id, gap, "filled", self._home)
                self._say(f"filled gap: what followed {behind.binlog_file}:{behind.position} can be read here.")

    def _is_known(self, identity: ServerIdentity) -> bool:
        """Whether the source's last identity is this one."""
        rows = self._landing.record.identities
        names = ("server_uuid", "server_id", "host", "port", "server_version")
        return bool(rows) and tuple(rows[-1][name] for name in names) == (
            identity.server_uuid,
            identity.server_id,
            identity.host,
            identity.port,
            identity.version,
        )

    # --- receiving ---

    def _receive(self, view: ServerView) -> int:
        """Receive, and land each interval, until there is a reason to end; return how many bytes came."""
        assert self._spool.checkpoint is not None
        receiver = Receiver(self._spool, self._address, self._replica, self._spool.checkpoint, self._wake.set)
        receiver.start()
        self._receiver = receiver
        self._watcher.connected()
        told, land_at = 0, time.monotonic() + self._options.interval
        try:
            while receiver.is_alive and not self._is_stopped and not self._is_done():
                self._wake.wait(max(0.0, land_at - time.monotonic()))
                self._wake.clear()
                self._watcher.received(receiver.bytes_received - told)
                told = receiver.bytes_received
                if time.monotonic() >= land_at:
                    land_at = time.monotonic() + self._options.interval
                    receiver.server_end = self._ask_end() or receiver.server_end
                    self._land()
        finally:
            receiver.stop()
            self._watcher.disconnected()
        self._land()
        if receiver.failure is not None and not self._is_stopped and not self._is_done():
            if not isinstance(receiver.failure, SourceError):
                raise receiver.failure
            self._say(f"{receiver.failure} Connecting again.")
        return receiver.bytes_received

    def _is_done(self) -> bool:
        """Whether all is received that `once` asks for."""
        checkpoint = self._spool.checkpoint
        if not self._options.once or checkpoint is None or self._target is None:
            return False
        return _place(checkpoint.binlog_file, checkpoint.position) >= _place(*self._target)

    def _ask_end(self) -> ServerEnd | None:
        """Ask the server for the end of its log, None when it does not answer."""
        checkpoint = self._spool.checkpoint
        assert checkpoint is not None
        try:
            view = self._look(checks=False)
        except SourceError:
            return None
        return self._end(view, checkpoint.binlog_file, checkpoint.position, datetime.now(UTC))

    def _end(self, view: ServerView, binlog_file: str, position: int, now: datetime) -> ServerEnd:
        name, end = view.end
        between = sum(size for other, size in view.logs if _place(binlog_file, 0) < _place(other, 0) < _place(name, 0))
        if name == binlog_file:
            ahead = end - position
        else:
            ahead = dict(view.logs).get(binlog_file, position) - position + between + end
        return ServerEnd(name, end, view.gtids, now, max(0, ahead))

    # --- landing ---

    def _land(self) -> None:
        """Land what is durable and not landed yet, compact what is closed, and prune the spool."""
        checkpoint = self._spool.checkpoint
        if checkpoint is None:
            return
        files = self._files_to_land()
        result = self._landing.land(files)
        for warning in result.warnings:
            self._say(warning)
        for problem in result.problems:
            if self._say(str(problem.error)):
                self.problems.append(problem.error)
        closed = [file for file in files if file.path.name != checkpoint.binlog_file or file.epoch != checkpoint.epoch]
        for file in closed:
            if self._landing.record.is_landed(file.epoch, file.path.name, file.upto):
                self._landed.add(file.path)
                self._scanners.pop(file.path).close()
        if closed:
            compact_closed_files(self._landing)
        remove_replaced(self._landing, KEEP_REPLACED_SECONDS)
        self._spool.prune(sorted(self._landed), self._options.spool_max_age, self._options.spool_max_size)
        self._watcher.landed(result, self._spool, self._landing)

    def _open_files(self) -> Iterator[SpoolFile]:
        """Yield the files of the spool that are not known to be landed whole, scanned as far as they are durable."""
        checkpoint = self._spool.checkpoint
        assert checkpoint is not None
        for epoch in range(checkpoint.epoch + 1):
            for file in self._spool.files(epoch):
                is_current = epoch == checkpoint.epoch and file.name == checkpoint.binlog_file
                is_later = epoch == checkpoint.epoch and _place(file.name, 0) > _place(checkpoint.binlog_file, 0)
                if file.path in self._landed or is_later:
                    continue
                upto = checkpoint.position if is_current else file.path.stat().st_size
                if upto <= FIRST_EVENT:
                    continue
                if file.path not in self._scanners:
                    self._scanners[file.path] = Scanner(file.path, segment_bytes=SEGMENT_BYTES)
                yield SpoolFile(file.path, epoch, upto, self._scanners[file.path].scan(upto))

    # --- snapshots ---

    def _snapshot_first(self) -> None:
        """Land a schema snapshot when the source has none."""
        if not read_rows(SCHEMA_SNAPSHOTS, self._home, ["snapshot_id"], source_id=self._source_id):
            self._land_snapshot(self._take_snapshot())

    def _files_to_land(self) -> list[SpoolFile]:
        """Return what can be landed, after a snapshot when there are DDL statements in it.

        The snapshot is true from the end of the last of them on: the schema was read later, and nothing but a DDL
        statement changes it.
        """
        files = list(self._open_files())
        self._ddl_ends += self._seek_ddl(files)
        for _ in range(SNAPSHOT_ATTEMPTS):
            if not self._ddl_ends:
                break
            try:
                snapshot = self._take_snapshot()
            except SourceError as error:
                self._say(f"{error} The schema behind a DDL statement could not be read yet.")
                break
            read_at = _place(snapshot.binlog_file or "", snapshot.binlog_pos or 0)
            is_received = self._wait_for(read_at)
            files = list(self._open_files())
            self._ddl_ends += self._seek_ddl(files)
            before = [end for end in self._ddl_ends if _place(*end) <= read_at]
            if is_received and before:
                name, position = max(before, key=lambda end: _place(*end))
                snapshot = replace(snapshot, binlog_file=name, binlog_pos=position, gtid_executed=None)
            self._land_snapshot(snapshot)
            self._ddl_ends = [end for end in self._ddl_ends if _place(*end) > read_at]
        return files

    def _seek_ddl(self, files: list[SpoolFile]) -> list[tuple[str, int]]:
        """Return where DDL statements end in what is not landed and was not looked at before."""
        ends = []
        for file in files:
            states = self._landing.record.states.get((file.epoch, file.path.name), [])
            start = max(FIRST_EVENT, done_upto(states), self._sought.get(file.path, 0))
            self._sought[file.path] = file.upto
            for batch in transactions(file.path, start, file.upto, ("end_pos", "is_ddl")):
                ends += [(file.path.name, end) for end in batch["end_pos"].filter(batch["is_ddl"]).to_pylist()]
        return ends

    def _wait_for(self, place: tuple[int, int]) -> bool:
        """Wait until the log is received up to a place; False when it is not in time."""
        until = time.monotonic() + WAIT_SECONDS
        while (checkpoint := self._spool.checkpoint) is not None:
            if _place(checkpoint.binlog_file, checkpoint.position) >= place:
                return True
            if self._receiver is None or not self._receiver.is_alive or time.monotonic() > until:
                return False
            time.sleep(0.05)
        return False

    def _take_snapshot(self) -> SchemaSnapshot:
        """Read the schema until two connections have read the same."""
        last = None
        for _ in range(SNAPSHOT_ATTEMPTS):
            with Server(self._address) as server:
                snapshot = take_snapshot(server)
            if last is not None and _content(snapshot) == _content(last):
                return snapshot
            last = snapshot
        raise BrokenStreamError(f"The schema of the server at {self._address} was read differently each time.")

    def _land_snapshot(self, snapshot: SchemaSnapshot) -> None:
        if self._schema == _content(snapshot):
            return
        self._schema = _content(snapshot)
        land_snapshot(self._source_id, snapshot, self._home)
        self._landing.reload_hints()

    def _say(self, text: str) -> bool:
        """Say a sentence once; whether it was not said before."""
        is_new = text not in self._said
        if is_new:
            self._said.add(text)
            self._watcher.say(text)
        return is_new


def _place(binlog_file: str, position: int) -> tuple[int, int]:
    """A position that can be compared with others of the same epoch."""
    return binlog_path(Path(binlog_file)).sequence or 0, position


def _gist(outcome: Decision | GapError | SourceIdentityError) -> tuple[Any, ...]:
    """What two looks at a server must agree on; the end of its log moves on between them."""
    if isinstance(outcome, Decision):
        gap = outcome.gap
        return outcome.epoch, outcome.binlog_file, outcome.opens, gap and (gap.reason, gap.to_file, gap.missing_gtids)
    if isinstance(outcome, GapError):
        return type(outcome), outcome.gap.reason, outcome.gap.to_file, outcome.gap.missing_gtids
    return type(outcome), outcome.message


def _content(snapshot: SchemaSnapshot) -> list[Any]:
    return [snapshot.columns, snapshot.keys, snapshot.foreign_keys]


def _received(path: Path, position: int) -> Received:
    """Read what a received file says of itself, up to a position."""
    scan = scan_binlog(path, end=position)
    gtids = GtidSet.parse(scan.previous_gtids)
    for batch in transactions(path, FIRST_EVENT, position, ("gtid",)):
        gtids.add_all(batch["gtid"])
    has_gtids = scan.previous_gtids is not None or bool(gtids)
    return Received(scan.next_binlog_file, str(gtids) if has_gtids else None)
