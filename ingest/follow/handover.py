"""Decide where following continues after connecting: same file, next file, or new epoch; and detect lost log.

One observation of the server is not enough: the caller observes it twice, and acts only if both decisions agree.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

from ingest.binlog.gtid_sets import GtidSet
from ingest.errors import GapError, SourceIdentityError, UsageError
from ingest.sources.files.directory import binlog_path
from ingest.sources.servers.replication import FIRST_POSITION
from ingest.sources.servers.server import ServerIdentity
from ingest.sources.servers.view import ServerView
from ingest.warehouse.gaps import Gap, GapStatus

# Whoever ends a file begins the next one with the same time, except when a signal made the server do so.
ROTATION: Final = timedelta(seconds=5)


@dataclass(frozen=True)
class Received:
    """Facts that are read from the received files only when they are needed, because reading takes time.

    Attributes
    ----------
    next_file
        File that the ROTATE event at the end of the last file names; None when the last file is not complete.
    gtids
        Received GTID set, None without GTIDs.
    own_gtids
        The part of `gtids` that the last file shows to be logged by its server; None: all. The rest may have been
        skipped on request, logged by an earlier server, or landed from a later file.
    rotated_at
        Time of that ROTATE event, None when it is unknown.
    is_anonymous
        Whether the last transaction has no GTID, so that GTIDs do not show what follows it.
    """

    next_file: str | None
    gtids: str | None
    own_gtids: str | None = None
    rotated_at: datetime | None = None
    is_anonymous: bool = False

    @property
    def logged(self) -> GtidSet:
        """The received GTIDs that every later file of the server lists as previous."""
        return GtidSet.parse(self.gtids if self.own_gtids is None else self.own_gtids)


@dataclass
class Standing:
    """The received part of the log, and the server that sent it.

    Attributes
    ----------
    epoch, binlog_file, position
        End of the last complete transaction.
    fingerprint
        Fingerprint of the file's format description, None when nothing of the file is received yet.
    server_uuid, server_id
        The server that wrote the file.
    was_at_end
        Whether this position was the end of the server's log when the server was last asked.
    read_received
        Function that reads the received files.
    """

    epoch: int
    binlog_file: str
    position: int
    fingerprint: str | None
    server_uuid: str | None
    server_id: int | None
    was_at_end: bool
    read_received: Callable[[], Received]

    @cached_property
    def received(self) -> Received:
        """Facts from the received files."""
        return self.read_received()

    @property
    def gtids(self) -> str | None:
        """Received GTID set, None without GTIDs."""
        return self.received.gtids


@dataclass(frozen=True)
class Start:
    """Start of a source as requested by the user; the default is the oldest file of the server."""

    gtids: str | None = None
    binlog_file: str | None = None
    position: int | None = None
    from_now: bool = False


@dataclass(frozen=True)
class Decision:
    """The decision where following continues.

    Attributes
    ----------
    epoch, binlog_file
        The file to receive: continued when the spool has it, else started.
    opens
        Reason why an epoch is opened, None when no epoch is opened.
    start_file, start_pos, gtids_before
        Start of a new epoch and GTIDs to skip in it, as in `sources`.
    gap, status
        The lost part of the log and its status, None when nothing is lost.
    """

    epoch: int
    binlog_file: str
    opens: Literal["first", "failover", "reset"] | None = None
    start_file: str | None = None
    start_pos: int | None = None
    gtids_before: str | None = None
    gap: Gap | None = None
    status: GapStatus | None = None

    @property
    def is_plain(self) -> bool:
        """Whether following continues in the same epoch, with nothing lost."""
        return self.opens is None and self.gap is None

    @property
    def gist(self) -> tuple[object, ...]:
        """The values that two looks at a server must agree on; the end of its log may move between them."""
        return self.epoch, self.binlog_file, self.opens, self.gap and gap_gist(self.gap)


def gap_gist(gap: Gap) -> tuple[object, ...]:
    """Return the values of a gap that two looks at a server must agree on."""
    return gap.reason, gap.from_file, gap.from_pos, gap.to_file, gap.missing_gtids


def begin(view: ServerView, start: Start, accept_gap: bool = False) -> Decision:
    """Decide where a new source begins.

    Raises
    ------
    UsageError
        The server has no such file or position.
    GapError
        The server has deleted the files with the transactions that follow the GTID set.
    """
    if start.from_now:
        return Decision(0, view.end[0], "first", start_file=view.end[0], start_pos=view.end[1])
    if start.binlog_file is not None:
        size = view.size(start.binlog_file)
        if size is None:
            raise UsageError(
                f"The server has no file {start.binlog_file}: it has {view.oldest} to {view.logs[-1][0]}.",
                hint="Check --start-file.",
            )
        position = FIRST_POSITION if start.position is None else start.position
        if not FIRST_POSITION <= position <= size:
            raise UsageError(
                f"{start.binlog_file} goes from position {FIRST_POSITION} to {size}: {position} is not in it.",
                hint="Check --start-pos.",
            )
        return Decision(0, start.binlog_file, "first", start_file=start.binlog_file, start_pos=position)
    if start.gtids is not None:
        binlog_file, missing = _file_behind(view, GtidSet.parse(start.gtids))
        if missing is not None:
            detail = "The server has deleted the logs that contain the next events."
            gap = Gap(None, None, None, start.gtids, 0, binlog_file, FIRST_POSITION, None, missing, "purged", detail)
            _refuse_unless(accept_gap, gap)
            return Decision(0, binlog_file, "first", gtids_before=start.gtids, gap=gap, status="accepted")
        return Decision(0, binlog_file, "first", gtids_before=start.gtids)
    return Decision(0, view.oldest, "first")


def resume(
    view: ServerView,
    standing: Standing,
    writers: Mapping[int, tuple[str | None, int | None]],
    start: Start,
    accept_gap: bool = False,
    *,
    is_cut: bool = False,
) -> Decision:
    """Decide where a source that was followed before continues.

    Parameters
    ----------
    view
        The server.
    standing
        The received part of the log.
    writers
        server_uuid and server_id of each epoch's server.
    start
        Start position on another server without GTIDs.
    accept_gap
        Whether the user accepts the loss of a part of the log.
    is_cut
        Whether the server cannot read the file behind this position, because an event ends there amid its bytes.

    Raises
    ------
    SourceIdentityError
        The server wrote an earlier epoch of the source.
    GapError
        A part of the log is lost; the error's `gap` gives its start and end.
    """
    size = view.size(standing.binlog_file)
    is_known_server = is_same_server(view.identity, standing.server_uuid, standing.server_id)
    if standing.fingerprint is None:
        is_same_file = size is not None and is_known_server
    else:
        is_same_file = (
            size is not None and view.head_of(standing.binlog_file).format.fingerprint == standing.fingerprint
        )
    if is_same_file and size is not None:
        if is_cut and (following := view.file_after(standing.binlog_file)) is not None:
            return _behind_cut(view, standing, following, accept_gap)
        if size >= standing.position:
            return Decision(standing.epoch, standing.binlog_file)
        return _has_lost_its_end(view, standing, size, accept_gap)
    if not is_known_server:
        return _fail_over(view, standing, writers, start, accept_gap)
    ours, oldest = binlog_path(Path(standing.binlog_file)), binlog_path(Path(view.oldest))
    if size is None and oldest.base == ours.base and (oldest.sequence or 0) > (ours.sequence or 0):
        return _behind_purged(view, standing, accept_gap)
    return _after_reset(view, standing, accept_gap)


def is_same_server(identity: ServerIdentity, server_uuid: str | None, server_id: int | None) -> bool:
    """Return whether a server has this server_uuid, or this server_id if a server_uuid is missing."""
    # MariaDB has no uuid; a server_id is unique among servers that replicate from each other.
    if identity.server_uuid and server_uuid:
        return identity.server_uuid == server_uuid
    return identity.server_id == server_id


def _behind_purged(view: ServerView, standing: Standing, accept_gap: bool) -> Decision:
    """Decide when the file is deleted: the oldest file continues it, a part between is lost, or neither is known."""
    received, previous = standing.received, view.head_of(view.oldest).previous_gtids
    is_next = received.next_file == view.oldest
    has_all_gtids = _has_all_gtids(view, received)
    missing = None
    if previous is not None and (lost := _not_received(received, previous)) is not None:
        listed = GtidSet.parse(previous)
        # A later file of the same series lists everything received as previous, and the next file lists nothing else.
        if not received.logged <= listed or (is_next and lost):
            return _after_reset(view, standing, accept_gap, is_whole=has_all_gtids and not listed)
        if has_all_gtids and not lost:
            return Decision(standing.epoch, view.oldest)
        missing = str(lost) or None
    if is_next:
        return _behind_next_by_name(view, standing, accept_gap)
    gap = _purged(view, standing, missing)
    _refuse_unless(accept_gap, gap)
    return Decision(standing.epoch, view.oldest, gap=gap, status="accepted")


def _has_all_gtids(view: ServerView, received: Received) -> bool:
    """Return whether each transaction has a GTID, so that lists of them can prove that none is missing."""
    return not (received.is_anonymous or view.may_be_anonymous)


def _not_received(received: Received, previous: str | None) -> GtidSet | None:
    """Return which of the GTIDs that a file lists as logged before it were not received; None if that is unknown."""
    if previous is None or received.gtids is None:
        return None
    return GtidSet.parse(previous) - GtidSet.parse(received.gtids).as_positions()


def _behind_next_by_name(view: ServerView, standing: Standing, accept_gap: bool) -> Decision:
    """Decide for the file that the received one names as its next, without GTIDs: another series has this name, too."""
    rotated_at, written_at = standing.received.rotated_at, view.head_of(view.oldest).written_at
    plain = Decision(standing.epoch, view.oldest)
    if rotated_at is None or written_at is None:
        return replace(plain, gap=_purged(view, standing, None), status="unproven")
    if abs(written_at - rotated_at) > ROTATION:
        return _after_reset(view, standing, accept_gap, is_whole=False)
    return plain


def _purged(view: ServerView, standing: Standing, missing: str | None) -> Gap:
    return _gap(
        view,
        standing,
        standing.epoch,
        "purged",
        missing,
        f"The server has deleted {standing.binlog_file}, of which position {standing.position} was reached, and all "
        f"files before {view.oldest}.",
    )


def _after_reset(view: ServerView, standing: Standing, accept_gap: bool, is_whole: bool = True) -> Decision:
    """Decide when the server's files started over: the log after the last received event is unknown.

    `is_whole` is False if the first of the new files may be deleted, too: then more than the old log's end is lost.
    """
    gap = _gap(
        view,
        standing,
        standing.epoch + 1,
        "reset",
        None,
        f"The server's files have started over (RESET, or a restore); what it wrote behind {standing.binlog_file}:"
        f"{standing.position} cannot be read any more."
        + (" That was the end of its log when it was last asked." if standing.was_at_end else "")
        + ("" if is_whole else f" Of the new files, those before {view.oldest} are deleted, too."),
    )
    is_unproven = standing.was_at_end and is_whole
    if not is_unproven:
        _refuse_unless(accept_gap, gap)
    status: GapStatus = "unproven" if is_unproven else "accepted"
    return Decision(standing.epoch + 1, view.oldest, "reset", gap=gap, status=status)


def _behind_cut(view: ServerView, standing: Standing, following: str, accept_gap: bool) -> Decision:
    """Decide when an event of the file is cut off: a server that was killed, or a full disk, leaves that behind.

    MariaDB keeps such an end, and sends no replica what is behind it. The next file lists what was logged before.
    """
    lost = _not_received(standing.received, view.head_of(following).previous_gtids)
    if lost is not None and not lost and _has_all_gtids(view, standing.received):
        return Decision(standing.epoch, following)
    gap = _gap(
        view,
        standing,
        standing.epoch,
        "purged",
        str(lost) if lost else None,
        f"The server cannot read {standing.binlog_file} behind position {standing.position}, because an event there is "
        f"cut off. Its log goes on in {following}.",
        following,
    )
    _refuse_unless(accept_gap, gap)
    return Decision(standing.epoch, following, gap=gap, status="accepted")


def _has_lost_its_end(view: ServerView, standing: Standing, size: int, accept_gap: bool) -> Decision:
    """Decide when the server has less of the file than it sent: it lost the end of its log in a crash."""
    gap = _gap(
        view,
        standing,
        standing.epoch + 1,
        "diverged",
        None,
        f"The server has {size} bytes of {standing.binlog_file} and had sent {standing.position}: it lost the end of "
        "its log in a crash. The received part is kept.",
    )
    _refuse_unless(accept_gap, gap)
    return Decision(
        standing.epoch + 1, standing.binlog_file, "reset", standing.binlog_file, size, gap=gap, status="accepted"
    )


def _fail_over(
    view: ServerView,
    standing: Standing,
    writers: Mapping[int, tuple[str | None, int | None]],
    start: Start,
    accept_gap: bool,
) -> Decision:
    """Decide for another server: its transactions that were not received yet, found by GTID, form the next epoch."""
    identity, epoch = view.identity, standing.epoch + 1
    earlier = [one for one, writer in writers.items() if one < standing.epoch and is_same_server(identity, *writer)]
    if earlier:
        raise SourceIdentityError(
            f"The server at {identity.host}:{identity.port} (server_id {identity.server_id}) wrote epoch "
            f"{max(earlier)} of this source; since then the server with server_id {standing.server_id} took over: two "
            "servers are writing under one source.",
            hint="Follow the one that took over; if this one is to be followed, give it a --source of its own.",
        )
    if standing.gtids is None or view.gtids is None:
        return _fail_over_by_hand(view, standing, start, accept_gap)
    ours = GtidSet.parse(standing.gtids)
    binlog_file, missing = _file_behind(view, ours)
    decision = Decision(epoch, binlog_file, "failover", gtids_before=standing.gtids)
    if missing is not None:
        detail = f"{identity.host}:{identity.port} took over, and has deleted the logs that contain the next events."
        gap = _gap(view, standing, epoch, "purged", missing, detail, binlog_file)
        _refuse_unless(accept_gap, gap)
        return replace(decision, gap=gap, status="accepted")
    only_ours = ours - GtidSet.parse(view.gtids)
    if only_ours:
        detail = f"{identity.host}:{identity.port} took over, and does not have all events received "
        "from the earlier server yet."
        gap = _gap(view, standing, epoch, "diverged", str(only_ours), detail, binlog_file)
        return replace(decision, gap=gap, status="unproven")
    return decision


def _fail_over_by_hand(view: ServerView, standing: Standing, start: Start, accept_gap: bool) -> Decision:
    binlog_file = start.binlog_file or view.oldest
    gap = _gap(
        view,
        standing,
        standing.epoch + 1,
        "diverged",
        None,
        f"{view.identity.host}:{view.identity.port} is another server, and without GTIDs binloom cannot find the "
        "position in its log at which to continue.",
        binlog_file,
    )
    if start.binlog_file is None or not accept_gap:
        raise GapError(
            gap.detail,
            hint="Find the position in its log, and give it with --start-file, --start-pos and --accept-gap; or give "
            "the server a --source of its own.",
            gap=gap,
        )
    return replace(begin(view, start), epoch=standing.epoch + 1, opens="failover", gap=gap, status="accepted")


def _file_behind(view: ServerView, ours: GtidSet) -> tuple[str, str | None]:
    """Find the newest file such that a GTID set contains all transactions before it.

    Returns
    -------
    file, missing
        If there is no such file: the oldest file, and the GTIDs before it that the set lacks.
    """
    for binlog_file, _ in reversed(view.logs):
        previous = view.head_of(binlog_file).previous_gtids
        if previous is None or GtidSet.parse(previous) <= ours:
            return binlog_file, None
    before = GtidSet.parse(view.head_of(view.oldest).previous_gtids)
    return view.oldest, str(before - ours)


def _gap(
    view: ServerView,
    standing: Standing,
    to_epoch: int,
    reason: Literal["purged", "reset", "diverged"],
    missing: str | None,
    detail: str,
    to_file: str | None = None,
) -> Gap:
    to_file = to_file or view.oldest
    return Gap(
        standing.epoch,
        standing.binlog_file,
        standing.position,
        standing.gtids,
        to_epoch,
        to_file,
        FIRST_POSITION,
        view.head_of(to_file).previous_gtids,
        missing,
        reason,
        detail,
        view.identity.server_uuid,
    )


def _refuse_unless(accept_gap: bool, gap: Gap) -> None:
    if accept_gap:
        return
    missing = f" Missing: {gap.missing_gtids}." if gap.missing_gtids else ""
    raise GapError(
        f"{gap.detail}{missing}",
        hint="The gap is recorded in stream_gaps. If a backup has the files, land them with `binloom ingest`; "
        "otherwise, --accept-gap continues after the gap.",
        gap=gap,
    )
