"""Where following goes on when it connects: in the same file, in the next one, or in a new epoch; and what is lost.

Nothing is concluded from a single look: who asks for a decision looks twice, and acts on what both say.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from ingest.binlog.gtid_sets import GtidSet
from ingest.errors import GapError, SourceIdentityError, UsageError
from ingest.sources.directory import binlog_path
from ingest.sources.replication import FIRST_POSITION
from ingest.sources.server import ServerIdentity
from ingest.sources.view import ServerView
from ingest.warehouse.gaps import Gap, GapStatus


@dataclass(frozen=True)
class Received:
    """What is asked of the received files only when something changed, because they are read for it.

    Attributes
    ----------
    next_file
        The file that the last one's ROTATE event names when it is whole, None before.
    gtids
        What was received, None without GTIDs.
    """

    next_file: str | None
    gtids: str | None


@dataclass
class Standing:
    """What was received so far, and of whom.

    Attributes
    ----------
    epoch, binlog_file, position
        The end of the last complete transaction.
    fingerprint
        That of the file's format description, None when the file is still to begin.
    server_uuid, server_id
        Who wrote it.
    was_at_end
        Whether that was the end of the server's log as it was last asked.
    look
        Reads the received files.
    """

    epoch: int
    binlog_file: str
    position: int
    fingerprint: str | None
    server_uuid: str | None
    server_id: int | None
    was_at_end: bool
    look: Callable[[], Received]

    @cached_property
    def received(self) -> Received:
        """What the received files say."""
        return self.look()

    @property
    def gtids(self) -> str | None:
        """What was received, None without GTIDs."""
        return self.received.gtids


@dataclass(frozen=True)
class Start:
    """Where a person says that a source begins. Nothing said means the oldest file that the server has."""

    gtids: str | None = None
    binlog_file: str | None = None
    position: int | None = None
    from_now: bool = False


@dataclass(frozen=True)
class Decision:
    """Where following goes on.

    Attributes
    ----------
    epoch, binlog_file
        The file to receive: gone on with when the spool has it, else begun.
    opens
        Why an epoch is opened, None when it is not.
    start_file, start_pos, gtids_before
        What of a new epoch is left out, as in `sources`.
    gap, status
        What is lost on the way, and what became of it, None when nothing is.
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
        """Whether it goes on where it was, with nothing lost."""
        return self.opens is None and self.gap is None

    @property
    def gist(self) -> tuple[object, ...]:
        """What two looks at a server must agree on; the end of its log moves on between them."""
        return self.epoch, self.binlog_file, self.opens, self.gap and gap_gist(self.gap)


def gap_gist(gap: Gap) -> tuple[object, ...]:
    """What two looks at a server must agree on in a gap."""
    return gap.reason, gap.from_file, gap.from_pos, gap.to_file, gap.missing_gtids


def begin(view: ServerView, start: Start, accept_gap: bool = False) -> Decision:
    """Decide where a source begins that nothing is known of.

    Raises
    ------
    UsageError
        The server has no such file or position.
    GapError
        What comes next behind the GTID set is not in the server's files any more.
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
            detail = "The server has deleted the logs that hold what comes next."
            gap = Gap(None, None, None, start.gtids, 0, binlog_file, FIRST_POSITION, None, missing, "purged", detail)
            _refuse_unless(accept_gap, gap)
            return Decision(0, binlog_file, "first", gtids_before=start.gtids, gap=gap, status="accepted")
        return Decision(0, binlog_file, "first", gtids_before=start.gtids)
    return Decision(0, view.oldest, "first")


def go_on(
    view: ServerView,
    standing: Standing,
    writers: Mapping[int, tuple[str | None, int | None]],
    start: Start,
    accept_gap: bool = False,
) -> Decision:
    """Decide where a source that was followed before goes on.

    Parameters
    ----------
    view
        The server.
    standing
        What was received.
    writers
        server_uuid and server_id of each epoch's server.
    start
        Where to begin on another server that has no GTIDs.
    accept_gap
        Whether a person says that what is lost is lost.

    Raises
    ------
    SourceIdentityError
        The server is one of an earlier epoch, or has less than was received of it.
    GapError
        Something is lost; its `gap` says from where to where.
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
    """Whether a server is the one of this server_uuid and server_id."""
    # MariaDB has no uuid; a server_id is its own among servers that replicate.
    if identity.server_uuid and server_uuid:
        return identity.server_uuid == server_uuid
    return identity.server_id == server_id


def _behind_purged(view: ServerView, standing: Standing, accept_gap: bool) -> Decision:
    """The file is deleted: nothing is lost when it was received to its end and the next one is there."""
    plain = Decision(standing.epoch, view.oldest)
    if standing.received.next_file == view.oldest:
        return plain
    previous = view.head_of(view.oldest).previous_gtids
    missing = None
    if previous is not None and standing.gtids is not None:
        lost = GtidSet.parse(previous) - GtidSet.parse(standing.gtids)
        if not lost:
            return plain
        missing = str(lost)
    gap = _gap(
        view,
        standing,
        standing.epoch,
        "purged",
        missing,
        f"The server has deleted {standing.binlog_file}, of which position {standing.position} was reached, and all "
        f"files before {view.oldest}.",
    )
    _refuse_unless(accept_gap, gap)
    return Decision(standing.epoch, view.oldest, gap=gap, status="accepted")


def _after_reset(view: ServerView, standing: Standing, accept_gap: bool) -> Decision:
    """The server's files started over: what was written behind the last event that was received cannot be known."""
    gap = _gap(
        view,
        standing,
        standing.epoch + 1,
        "reset",
        None,
        f"The server's files have started over (RESET, or a restore); what it wrote behind {standing.binlog_file}:"
        f"{standing.position} cannot be read any more."
        + (" That was the end of its log when it was last asked." if standing.was_at_end else ""),
    )
    if not standing.was_at_end:
        _refuse_unless(accept_gap, gap)
    status: GapStatus = "unproven" if standing.was_at_end else "accepted"
    return Decision(standing.epoch + 1, view.oldest, "reset", gap=gap, status=status)


def _has_lost_its_end(view: ServerView, standing: Standing, size: int, accept_gap: bool) -> Decision:
    """The server has less of the file than it sent: it lost the end of its log in a crash."""
    gap = _gap(
        view,
        standing,
        standing.epoch + 1,
        "diverged",
        None,
        f"The server has {size} bytes of {standing.binlog_file} and had sent {standing.position}: it lost the end of "
        "its log in a crash. What was received of it is kept.",
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
    """Another server: what it has beyond what was received, found by GTID, makes the next epoch."""
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
        detail = f"{identity.host}:{identity.port} took over, and has deleted the logs that hold what comes next."
        gap = _gap(view, standing, epoch, "purged", missing, detail, binlog_file)
        _refuse_unless(accept_gap, gap)
        return replace(decision, gap=gap, status="accepted")
    only_ours = ours - GtidSet.parse(view.gtids)
    if only_ours:
        detail = f"{identity.host}:{identity.port} took over, and has not (yet) what was received of the one before."
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
        f"{view.identity.host}:{view.identity.port} is another server, and without GTIDs nothing says where its log "
        "goes on from what was received.",
        binlog_file,
    )
    if start.binlog_file is None or not accept_gap:
        raise GapError(
            gap.detail,
            hint="Find the place in its log, and give it with --start-file, --start-pos and --accept-gap; or give the "
            "server a --source of its own.",
            gap=gap,
        )
    return replace(begin(view, start), epoch=standing.epoch + 1, opens="failover", gap=gap, status="accepted")


def _file_behind(view: ServerView, ours: GtidSet) -> tuple[str, str | None]:
    """Find the newest file before which there is nothing that a set lacks.

    Returns
    -------
    file, missing
        Where there is none: the oldest file, and what the set lacks of what stood before it.
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
        hint="It is recorded in stream_gaps. If a backup has the files, land them with `binloom ingest`; "
        "--accept-gap goes on behind it.",
        gap=gap,
    )
