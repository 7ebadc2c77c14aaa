"""Following a live server: receive into the spool, land what is durable, and decide where to go on."""

import threading
import time
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from ingest.errors import (
    AccessRefusedError,
    BinloomError,
    BrokenStreamError,
    GapError,
    SourceError,
    SourceIdentityError,
)
from ingest.follow.checkpoint import Checkpoint, ServerEnd
from ingest.follow.durable_files import DurableFiles
from ingest.follow.handover import Decision, Start, begin, gap_gist, go_on
from ingest.follow.receiver import Receiver
from ingest.follow.replica import replica_of
from ingest.follow.schema_watch import SchemaWatch, wait_until
from ingest.follow.spool import FIRST_EVENT, Spool
from ingest.follow.standing import find_standing
from ingest.landing.compact import compact_closed_files, merge_logs, remove_replaced
from ingest.landing.held import StreamLanding
from ingest.landing.options import IngestResult
from ingest.sources.address import ServerAddress
from ingest.sources.server import Server, ServerIdentity
from ingest.sources.server_check import check_server, require_usable
from ingest.sources.view import ServerView, look
from ingest.warehouse.gaps import Gap, gaps, record_gap
from ingest.warehouse.segments import log_place

FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
LONGEST_PAUSE_OF_ONCE: Final = 5.0
ATTEMPTS_OF_ONCE: Final = 8
# So much is landed before its time has come: what waits longer takes longer, and the next waits for it.
LAND_BYTES: Final = 80 << 20
ASK_SECONDS: Final = 5.0
# For whoever began to read the small segments of a file before they were compacted.
KEEP_REPLACED_SECONDS: Final = 60.0


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
        The server_id that binloom has as a replica; None for the one that was drawn for this home.
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

    Attributes
    ----------
    problems
        What of the log could not be landed.
    """

    def __init__(
        self, source_id: str, address: ServerAddress, options: FollowOptions, home: Path, watcher: Watcher
    ) -> None:
        self._source_id = source_id
        self._address = replace(address, warn=lambda sentence: self._say(f"warning: {sentence}"))
        self._options = options
        self._home = home.absolute()
        self._watcher = watcher
        self._wake = threading.Event()
        self._is_stopped = False
        self._said: set[str] = set()
        self._target: tuple[str, int] | None = None
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
            self._replica = replica_of(self._source_id, self._home, self._options.replica_id)
            self._spool = Spool(self._source_id, self._home)
            self._spool.drop_unsynced()
            self._schema = SchemaWatch(self._landing, self._address, self._spool, self._say)
            self._durable = DurableFiles(self._spool)
            try:
                self._follow()
            finally:
                self._durable.close()
            remove_replaced(self._landing)

    def _follow(self) -> None:
        """Connect, receive, and connect again when the connection breaks."""
        pause, failures, last_error = FIRST_PAUSE, 0, ""
        has_looked = has_received = False
        while not self._is_stopped:
            before = self._place()
            try:
                decision, view = self._decide(is_first=not has_looked)
                has_looked = True
                self._apply(decision, view)
                if self._receive():
                    return
            except (GapError, SourceIdentityError):
                raise
            except SourceError as error:
                has_received = has_received or (self._receiver is not None and self._receiver.bytes_received > 0)
                # What is wrong at the start will not mend itself; what broke later may hold the next time.
                is_wrong = not has_looked or (isinstance(error, AccessRefusedError) and not has_received)
                if is_wrong or (self._options.once and failures >= ATTEMPTS_OF_ONCE):
                    if self._schema.is_awaited:
                        self._land(is_patient=False)
                    raise
                # Once for as long as it lasts, and again when it happens again.
                if str(error) != last_error:
                    self._watcher.say(str(error))
                last_error = str(error)
            has_come = before != self._place()
            last_error = "" if has_come else last_error
            longest = LONGEST_PAUSE_OF_ONCE if self._options.once else LONGEST_PAUSE
            pause, failures = (FIRST_PAUSE, 0) if has_come else (min(2 * pause, longest), failures + 1)
            self._wake.clear()
            if not self._is_stopped:
                self._wake.wait(pause)
                if self._schema.is_awaited:
                    self._land()

    def _place(self) -> tuple[object, ...]:
        """How far the log is received."""
        checkpoint = self._spool.checkpoint
        return () if checkpoint is None else (checkpoint.epoch, checkpoint.binlog_file, checkpoint.position)

    # --- where to go on ---

    def _decide(self, is_first: bool) -> tuple[Decision, ServerView]:
        """Look at the server and decide; what is not plain takes a second look that says the same."""
        gists = set()
        for attempt in range(2):
            view = self._look(checks=is_first and not attempt)
            try:
                decision, error = self._decision(view), None
            except (GapError, SourceIdentityError) as refusal:
                decision, error = None, refusal
            if decision is not None and decision.is_plain and self._is_known(view.identity):
                return decision, view
            gists.add(decision.gist if decision else gap_gist(error.gap) if isinstance(error, GapError) else str(error))
        if len(gists) > 1:
            raise BrokenStreamError(f"The server at {self._address} said different things when it was asked twice.")
        if isinstance(error, GapError):
            record_gap(self._source_id, error.gap, "found", self._home)
        if decision is None:
            raise error or AssertionError
        return decision, view

    def _look(self, checks: bool) -> ServerView:
        with Server(self._address) as server:
            if checks:
                findings = check_server(server)
                require_usable(server, findings)
                for finding in findings:
                    self._say(f"{finding.level}: {finding.message}")
            return look(server, self._replica)

    def _decision(self, view: ServerView) -> Decision:
        record, options = self._landing.record, self._options
        standing = find_standing(self._spool, record)
        if standing is None:
            return begin(view, options.start, options.accept_gap)
        writers = {row["epoch"]: (row["server_uuid"], row["server_id"]) for row in record.identities}
        return go_on(view, standing, writers, options.start, options.accept_gap)

    def _apply(self, decision: Decision, view: ServerView) -> None:
        """Land what is left of the old epoch, record what changed, and point the checkpoint to where it goes on."""
        checkpoint = self._spool.checkpoint
        if not decision.is_plain and checkpoint is not None:
            self._land(is_patient=False)
        if decision.gap is not None and decision.status is not None:
            record_gap(self._source_id, decision.gap, decision.status, self._home)
            self._say(f"{decision.status} gap: {decision.gap.detail}")
        elif checkpoint is not None:
            self._fill_gaps(checkpoint)
        self._record_identity(decision, view.identity)
        goes_on = checkpoint is not None and (checkpoint.epoch, checkpoint.binlog_file) == (
            decision.epoch,
            decision.binlog_file,
        )
        position = checkpoint.position if checkpoint is not None and goes_on else FIRST_EVENT
        self._point_to(decision, view, position)
        if not decision.is_plain or not goes_on or self._has_less(view, decision):
            self._spool.drop_unsynced()
        if self._target is None or decision.opens:
            self._target = view.end
        self._schema.begin(is_behind_gap=decision.gap is not None)

    def _fill_gaps(self, behind: Checkpoint) -> None:
        """A gap before which following had stopped, and that is none on this server, is filled."""
        place = (behind.epoch, behind.binlog_file, behind.position)
        for row in gaps(self._source_id, self._home):
            if row["status"] == "found" and (row["from_epoch"], row["from_file"], row["from_pos"]) == place:
                gap = Gap(**{one.name: row[one.name] for one in fields(Gap)})
                record_gap(self._source_id, gap, "filled", self._home)
                self._say(f"filled gap: what followed {behind.binlog_file}:{behind.position} can be read here.")

    def _record_identity(self, decision: Decision, identity: ServerIdentity) -> None:
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

    def _point_to(self, decision: Decision, view: ServerView, position: int) -> None:
        identity, now = view.identity, datetime.now(UTC)
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
                _end(view, decision.binlog_file, position),
            )
        )

    def _has_less(self, view: ServerView, decision: Decision) -> bool:
        """Whether the server has less of a file than came of it behind its last complete transaction."""
        path = self._spool.path(decision.epoch, decision.binlog_file)
        return path.exists() and path.stat().st_size > (view.size(decision.binlog_file) or 0)

    # --- receiving ---

    def _receive(self) -> bool:
        """Receive, and land each interval, until there is a reason to end; whether it is one to follow no more."""
        assert self._spool.checkpoint is not None
        receiver = Receiver(self._spool, self._address, self._replica, self._spool.checkpoint, self._wake.set)
        self._receiver = receiver
        receiver.start()
        self._watcher.connected()
        told = landed = 0
        is_landed = False
        asked_at, land_at = time.monotonic(), time.monotonic() + self._options.interval
        try:
            while receiver.is_alive and not self._is_stopped and not self._is_done():
                self._wake.wait(max(0.0, land_at - time.monotonic()))
                self._wake.clear()
                self._watcher.received(receiver.bytes_received - told)
                told = receiver.bytes_received
                if time.monotonic() >= land_at or told - landed >= LAND_BYTES:
                    landed = told
                    land_at = time.monotonic() + self._options.interval
                    if time.monotonic() - asked_at > ASK_SECONDS:
                        receiver.server_end, asked_at = self._ask_end() or receiver.server_end, time.monotonic()
                    self._land()
            # The snapshot behind a DDL statement may have been read further on in the log than what is asked for.
            while receiver.is_alive and not self._is_stopped and not is_landed:
                self._wake.clear()
                is_landed = self._land()
                if not is_landed:
                    self._wake.wait(FIRST_PAUSE)
        finally:
            receiver.stop()
            self._watcher.disconnected()
        is_landed = is_landed or self._land()
        is_over = self._is_stopped or (is_landed and self._is_done())
        if receiver.failure is not None and not is_over:
            raise receiver.failure
        return is_over

    def _is_done(self) -> bool:
        """Whether all is received that `once` asks for."""
        checkpoint = self._spool.checkpoint
        if not self._options.once or checkpoint is None or self._target is None:
            return False
        return checkpoint.is_at_least(*self._target)

    def _ask_end(self) -> ServerEnd | None:
        """Ask the server for the end of its log, None when it does not answer."""
        checkpoint = self._spool.checkpoint
        assert checkpoint is not None
        try:
            return _end(self._look(checks=False), checkpoint.binlog_file, checkpoint.position)
        except SourceError:
            return None

    # --- landing ---

    def _land(self, is_patient: bool = True) -> bool:
        """Land what is durable and not landed yet, compact what is closed, and prune the spool.

        False when rows wait for a snapshot of the schema that they were written with.
        """
        if self._spool.checkpoint is None:
            return True
        files = self._schema.catch_up(self._durable.files, self._wait_for, is_patient)
        if files is None:
            return False
        stale = [file for file in self._durable.left_out_files() if self._landing.is_stale(file.epoch, file.path.name)]
        result = self._landing.land([*stale, *files])
        for warning in result.warnings:
            self._say(warning)
        for problem in result.problems:
            if self._say(str(problem.error)):
                self.problems.append(problem.error)
        closed = [file for file in files if file.is_closed]
        for file in closed:
            if self._landing.record.is_landed(file.epoch, file.path.name, file.upto):
                self._durable.leave_out(file.path)
        if closed:
            compact_closed_files(self._landing)
        remove_replaced(self._landing, KEEP_REPLACED_SECONDS)
        merge_logs(self._landing)
        for gone in self._spool.prune(
            self._durable.left_out, self._options.spool_max_age, self._options.spool_max_size
        ):
            self._durable.left_out.remove(gone)
        self._watcher.landed(result, self._spool, self._landing)
        return True

    def _wait_for(self, binlog_file: str, position: int, seconds: float) -> bool:
        """Wait until the log is received up to a position, so long at most; False when it is not in time."""

        def is_received() -> bool:
            return self._spool.checkpoint is not None and self._spool.checkpoint.is_at_least(binlog_file, position)

        def is_over() -> bool:
            is_receiving = self._receiver is not None and self._receiver.is_alive
            return is_received() or not is_receiving or self._is_stopped

        wait_until(is_over, seconds)
        return is_received()

    def _say(self, text: str) -> bool:
        """Say a sentence once; whether it was not said before."""
        is_new = text not in self._said
        if is_new:
            self._said.add(text)
            self._watcher.say(text)
        return is_new


def _end(view: ServerView, binlog_file: str, position: int) -> ServerEnd:
    """The end of a server's log, and how far it is from a position."""
    name, end = view.end
    first, last = log_place(binlog_file, 0), log_place(name, 0)
    if first == last:
        ahead = end - position
    else:
        between = sum(size for other, size in view.logs if first < log_place(other, 0) < last)
        ahead = (view.size(binlog_file) or position) - position + between + end
    return ServerEnd(name, end, view.gtids, datetime.now(UTC), max(0, ahead))
