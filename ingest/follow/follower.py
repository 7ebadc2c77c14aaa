"""Follow a live server: receive its log into the spool, land the durable part, and decide where to continue."""

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
from ingest.follow.handover import Decision, Start, begin, gap_gist, resume
from ingest.follow.identities import is_known, record_identity
from ingest.follow.receiver import Receiver
from ingest.follow.replica import replica_of
from ingest.follow.schema_watch import SchemaWatch, wait_until
from ingest.follow.spool import Spool
from ingest.follow.standing import find_standing
from ingest.landing.compact import KEEP_REPLACED_SECONDS, compact_closed_files, merge_logs, remove_replaced
from ingest.landing.held import StreamLanding
from ingest.landing.options import IngestOptions, IngestResult
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.server import Server
from ingest.sources.servers.server_check import require_usable
from ingest.sources.servers.view import ServerView, observe_server
from ingest.warehouse.gaps import Gap, gaps, record_gap
from ingest.warehouse.segments import FIRST_EVENT, log_place

# Words of the servers, whose error has the number of many others.
_CUT_EVENT: Final = "truncated in the middle of event"
FIRST_PAUSE: Final = 0.5
LONGEST_PAUSE: Final = 30.0
LONGEST_PAUSE_OF_ONCE: Final = 5.0
ATTEMPTS_OF_ONCE: Final = 8
# Land before the interval ends once this much is received; a large backlog delays the next landing too.
LAND_BYTES: Final = 80 << 20
ASK_SECONDS: Final = 5.0
SPOOL_SECONDS: Final = 7 * 86400.0


class Watcher(Protocol):
    """Callbacks of a Follower."""

    def say(self, text: str) -> None:
        """Show a sentence to the user."""

    def connected(self) -> None:
        """The connection is open and the server sends its log."""

    def disconnected(self) -> None:
        """The connection has ended."""

    def received(self, size: int) -> None:
        """`size` more bytes have arrived."""

    def landed(self, result: IngestResult, spool: Spool, landing: StreamLanding) -> None:
        """A landing cycle is done, whether it landed something or not."""


@dataclass(frozen=True)
class FollowOptions:
    """Options of following.

    Attributes
    ----------
    start
        Start position of a source that was not followed before.
    interval
        Seconds between landings.
    once
        Whether to end when everything is landed that the server had logged at the start.
    accept_gap
        Whether to continue after a gap.
    replica_id
        server_id of binloom as a replica; None: the number that was drawn at random for this home.
    spool_max_age, spool_max_size
        Limits in seconds and bytes beyond which closed and landed spool files are deleted. Without an age, they are
        kept for a week; if the source has masks, they are deleted at once, because they contain all values.
    masks
        File with the masks; None: as for `ingest`.
    """

    start: Start = field(default_factory=Start)
    interval: float = 30.0
    once: bool = False
    accept_gap: bool = False
    replica_id: int | None = None
    spool_max_age: float | None = None
    spool_max_size: int | None = None
    masks: Path | None = None


class Follower:
    """Follows one server under one source, until `stop` is called, or `once` is reached.

    Parameters
    ----------
    source_id
        Name of the source.
    address
        The server.
    options
        Options from the user.
    home
        Folder that binloom keeps everything under.
    watcher
        Callbacks.

    Attributes
    ----------
    problems
        Errors of the parts of the log that could not be landed.
    """

    def __init__(
        self, source_id: str, address: ServerAddress, options: FollowOptions, home: Path, watcher: Watcher
    ) -> None:
        self._source_id = source_id
        self._address = replace(address, warn=lambda sentence: self._say_once(f"warning: {sentence}"))
        self._options = options
        self._home = home.absolute()
        self._watcher = watcher
        self._wake = threading.Event()
        self._is_stopped = False
        self._shown: set[str] = set()
        self._target: tuple[str, int] | None = None
        self._receiver: Receiver | None = None
        self._cut_behind: tuple[object, ...] | None = None
        self.problems: list[BinloomError] = []

    def stop(self) -> None:
        """Request an end after the last complete transaction received. Can be called from a signal handler."""
        self._is_stopped = True
        self._wake.set()

    def run(self) -> None:
        """Follow the server.

        Raises
        ------
        SourceError
            The server cannot be reached or used at the start, or with `once` at any time.
        GapError
            A part of the log is lost. The gap is recorded.
        SourceIdentityError
            Another server writes to this source.
        StoreError, IngestInProgressError
            The warehouse cannot be written, or another command lands this source.
        """
        with StreamLanding(self._source_id, self._home, IngestOptions(masks=self._options.masks)) as self._landing:
            # A mistake in the masks ends the command before it connects.
            _ = self._landing.has_masks
            self._replica = replica_of(self._source_id, self._home, self._options.replica_id)
            self._spool = Spool(self._source_id, self._home)
            self._spool.drop_unsynced()
            self._schema = SchemaWatch(self._landing, self._address, self._spool, self._say_once)
            self._durable = DurableFiles(self._spool)
            try:
                self._follow()
            finally:
                self._durable.close()
            remove_replaced(self._landing)

    def _follow(self) -> None:
        """Connect and receive; reconnect when the connection breaks."""
        pause, failures, last_error = FIRST_PAUSE, 0, ""
        has_looked = has_received = False
        while not self._is_stopped:
            before, is_cut = self._place(), False
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
                # An error at the start is permanent: raise it. A later error may be temporary: connect again.
                is_wrong = not has_looked or (isinstance(error, AccessRefusedError) and not has_received)
                if is_wrong or (self._options.once and failures >= ATTEMPTS_OF_ONCE):
                    if self._schema.is_awaited:
                        self._land(is_patient=False)
                    raise
                is_cut = _CUT_EVENT in str(error)
                # Report a lasting error only once; report it again if it comes back after more log was received.
                if str(error) != last_error:
                    self._watcher.say(str(error))
                last_error = str(error)
            has_come = before != self._place()
            # While a server writes to a file, an event of it may be cut off for a moment.
            if is_cut and not has_come:
                self._cut_behind = before
            last_error = "" if has_come else last_error
            longest = LONGEST_PAUSE_OF_ONCE if self._options.once else LONGEST_PAUSE
            pause, failures = (FIRST_PAUSE, 0) if has_come else (min(2 * pause, longest), failures + 1)
            self._wake.clear()
            if not self._is_stopped:
                self._wake.wait(pause)
                if self._schema.is_awaited:
                    self._land()

    def _place(self) -> tuple[object, ...]:
        """Return the position up to which the log is received."""
        checkpoint = self._spool.checkpoint
        return () if checkpoint is None else (checkpoint.epoch, checkpoint.binlog_file, checkpoint.position)

    # --- where to continue ---

    def _decide(self, is_first: bool) -> tuple[Decision, ServerView]:
        """Observe the server and decide; unless the decision is plain, observe again: both decisions must agree."""
        gists = set()
        for attempt in range(2):
            view = self._observe(checks=is_first and not attempt)
            try:
                decision, error = self._decision(view), None
            except (GapError, SourceIdentityError) as refusal:
                decision, error = None, refusal
            if decision is not None and decision.is_plain and is_known(self._landing.record, decision, view.identity):
                return decision, view
            gists.add(decision.gist if decision else gap_gist(error.gap) if isinstance(error, GapError) else str(error))
        if len(gists) > 1:
            raise BrokenStreamError(f"The server at {self._address} gave different answers when it was asked twice.")
        if isinstance(error, GapError):
            record_gap(self._source_id, error.gap, "found", self._home)
        if decision is None:
            raise error or AssertionError
        return decision, view

    def _observe(self, checks: bool) -> ServerView:
        with Server(self._address) as server:
            if checks:
                for finding in require_usable(server):
                    self._say_once(f"{finding.level}: {finding.message}")
            return observe_server(server, self._replica)

    def _decision(self, view: ServerView) -> Decision:
        record, options = self._landing.record, self._options
        standing = find_standing(self._spool, record)
        if standing is None:
            return begin(view, options.start, options.accept_gap)
        writers = {row["epoch"]: (row["server_uuid"], row["server_id"]) for row in record.identities}
        is_cut = self._cut_behind == self._place()
        return resume(view, standing, writers, options.start, options.accept_gap, is_cut=is_cut)

    def _apply(self, decision: Decision, view: ServerView) -> None:
        """Land the rest of the old epoch, record changes, and set the checkpoint to where receiving continues."""
        checkpoint = self._spool.checkpoint
        if not decision.is_plain and checkpoint is not None:
            self._land(is_patient=False)
        if decision.gap is not None and decision.status is not None:
            record_gap(self._source_id, decision.gap, decision.status, self._home)
            self._say_once(f"{decision.status} gap: {decision.gap.detail}")
        elif checkpoint is not None:
            self._fill_gaps(checkpoint)
        record_identity(self._landing, decision, view.identity)
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
        """Record as filled each gap that had stopped following at this position: this server has the missing log."""
        place = (behind.epoch, behind.binlog_file, behind.position)
        for row in gaps(self._source_id, self._home):
            if row["status"] == "found" and (row["from_epoch"], row["from_file"], row["from_pos"]) == place:
                gap = Gap(**{one.name: row[one.name] for one in fields(Gap)})
                record_gap(self._source_id, gap, "filled", self._home)
                self._say_once(f"filled gap: this server has the events after {behind.binlog_file}:{behind.position}.")

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
        """Return whether the server has fewer bytes of a file than the spool, including unfinished transactions."""
        path = self._spool.path(decision.epoch, decision.binlog_file)
        return path.exists() and path.stat().st_size > (view.size(decision.binlog_file) or 0)

    # --- receiving ---

    def _receive(self) -> bool:
        """Receive, and land at each interval, until the connection or following ends; return whether following did."""
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
            # The snapshot after a DDL statement may have been read at a later log position than `once` asks for.
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
        """Return whether everything that `once` asks for is received."""
        checkpoint = self._spool.checkpoint
        if not self._options.once or checkpoint is None or self._target is None:
            return False
        return checkpoint.is_at_least(*self._target)

    def _ask_end(self) -> ServerEnd | None:
        """Ask the server for the end of its log; return None when it does not answer."""
        checkpoint = self._spool.checkpoint
        assert checkpoint is not None
        try:
            return _end(self._observe(checks=False), checkpoint.binlog_file, checkpoint.position)
        except SourceError:
            return None

    # --- landing ---

    def _land(self, is_patient: bool = True) -> bool:
        """Land the durable part of the log that is not landed yet, compact closed files, and prune the spool.

        Returns False when rows must wait for a snapshot of their schema.
        """
        if self._spool.checkpoint is None:
            return True
        files = self._schema.catch_up(self._durable.files, self._wait_for, is_patient)
        if files is None:
            return False
        stale = [file for file in self._durable.left_out_files() if self._landing.is_stale(file.epoch, file.path.name)]
        result = self._landing.land([*stale, *files])
        for warning in result.warnings:
            self._say_once(warning)
        for problem in result.problems:
            if self._say_once(str(problem.error)):
                self.problems.append(problem.error)
        closed = [file for file in files if file.is_closed]
        for file in closed:
            if self._landing.record.is_landed(file.epoch, file.path.name, file.upto):
                self._durable.leave_out(file.path)
        if closed:
            compact_closed_files(self._landing)
        remove_replaced(self._landing, KEEP_REPLACED_SECONDS)
        merge_logs(self._landing)
        for gone in self._spool.prune(self._durable.left_out, self._spool_age, self._options.spool_max_size):
            self._durable.left_out.remove(gone)
        self._watcher.landed(result, self._spool, self._landing)
        return True

    @property
    def _spool_age(self) -> float:
        """Seconds after which landed files leave the spool. They contain all values, also those that are masked."""
        if self._options.spool_max_age is not None:
            return self._options.spool_max_age
        return 0.0 if self._landing.has_masks else SPOOL_SECONDS

    def _wait_for(self, binlog_file: str, position: int, seconds: float) -> bool:
        """Wait at most `seconds` until the log is received up to a position; return whether it is."""

        def is_received() -> bool:
            return self._spool.checkpoint is not None and self._spool.checkpoint.is_at_least(binlog_file, position)

        def is_over() -> bool:
            is_receiving = self._receiver is not None and self._receiver.is_alive
            return is_received() or not is_receiving or self._is_stopped

        wait_until(is_over, seconds)
        return is_received()

    def _say_once(self, text: str) -> bool:
        """Show a sentence if it was not shown before; return whether it was new."""
        is_new = text not in self._shown
        if is_new:
            self._shown.add(text)
            self._watcher.say(text)
        return is_new


def _end(view: ServerView, binlog_file: str, position: int) -> ServerEnd:
    """Return the end of a server's log, with its distance from a position in bytes."""
    name, end = view.end
    first, last = log_place(binlog_file, 0), log_place(name, 0)
    if first == last:
        ahead = end - position
    else:
        between = sum(size for other, size in view.logs if first < log_place(other, 0) < last)
        ahead = (view.size(binlog_file) or position) - position + between + end
    return ServerEnd(name, end, view.gtids, datetime.now(UTC), max(0, ahead))
