"""What is in a binlog file, without decoding its rows: one walk over headers and checksums."""

import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from ingest.binlog.buffers import ControlBuffers, IndexBuffer
from ingest.binlog.control import event_body, rotate_target
from ingest.binlog.decoder import defect_reason, open_file
from ingest.binlog.events import MARIA_GTID_LIST, PREVIOUS_GTIDS, ROTATE, counts_by_name
from ingest.binlog.format import FormatDescription, read_format
from ingest.binlog.gtid_events import gtid_set, maria_gtid_list
from ingest.binlog.kernel import layout
from ingest.binlog.walking import Walk

SEGMENT_BYTES: Final = 256 << 20
_TOLD: Final = (PREVIOUS_GTIDS, MARIA_GTID_LIST, ROTATE)


@dataclass(frozen=True, slots=True)
class SegmentRange:
    """A range of a file from a transaction's start to a transaction's end: physical offsets, end excluded."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Defect:
    """The first event that cannot be read. `is_cut` when the file ends inside it."""

    position: int
    reason: str
    is_cut: bool


@dataclass(slots=True)
class Scan:
    """The inventory of a file.

    `bytes_covered` counts the magic and every whole event whose checksum is right. `complete_end` is where
    the last complete transaction before any defect ends. `is_closed` when the last event is a ROTATE or STOP.
    `is_encrypted` when events are that cannot be read. `formats` has more than one for a relay log that carries its
    source's.
    """

    path: Path
    format: FormatDescription
    file_size: int
    events: int = 0
    event_counts: dict[str, int] = field(default_factory=dict)
    first_event_at: datetime | None = None
    last_event_at: datetime | None = None
    bytes_covered: int = 4
    checksum_failures: int = 0
    previous_gtids: str | None = None
    next_binlog_file: str | None = None
    is_closed: bool = False
    is_encrypted: bool = False
    formats: list[FormatDescription] = field(default_factory=list)
    segments: list[SegmentRange] = field(default_factory=list)
    complete_end: int = 4
    defect: Defect | None = None


def scan_binlog(
    path: str | Path,
    *,
    segment_bytes: int = SEGMENT_BYTES,
    start: int | None = None,
    skip_bad_checksum: bool = False,
) -> Scan:
    """Walks a file once: inventory, verified checksums, and where it may be cut into segments.

    Parameters
    ----------
    path
        A binlog file.
    segment_bytes
        A segment ends with the first transaction that makes it this long.
    start
        Where the walk and the first segment begin, the physical offset of a transaction's start; 4 when not given.
    skip_bad_checksum
        Whether events with a wrong checksum are passed over and counted instead of being a defect.

    Raises
    ------
    BinlogError
        When the file has no readable head. A defect inside it is reported in `Scan.defect`.
    """
    path = Path(path)
    scan = Scan(path, read_format(path), 0)
    index, control = IndexBuffer(), ControlBuffers()
    first = 4 if start is None else start
    mode = layout.WANT_INDEX | layout.KEEP_GOING | (layout.SKIP_BAD if skip_bad_checksum else 0)
    with open_file(path) as file:
        scan.file_size = os.fstat(file.fileno()).st_size
        walk = Walk(path, file.fileno(), scan.format, mode, first, scan.file_size)
        context = walk.context
        index.attach(context)
        control.attach(context)
        context["SEGMENT_BYTES"] = segment_bytes
        cuts = [first]
        while True:
            status = walk.step()
            _take_index(scan, walk, index)
            if status == layout.NEED_BYTES and walk.advance():
                continue
            if status == layout.SEGMENT:
                cuts.append(context["COMPLETE_END"])
                context["SEGMENT_START"] = cuts[-1]
            elif status == layout.FULL:
                context["PROBLEM_COUNT"] = 0
            else:
                break
        _conclude(scan, walk, status, cuts, skip_bad_checksum)
    return scan


def _conclude(scan: Scan, walk: Walk, status: int, cuts: list[int], skip_bad_checksum: bool) -> None:
    context = walk.context
    scan.events = context["EVENTS"]
    scan.event_counts = counts_by_name(walk.counts)
    scan.first_event_at, scan.last_event_at = _moment(context["FIRST_AT"]), _moment(context["LAST_AT"])
    scan.checksum_failures = context["BAD_CHECKSUMS"]
    scan.complete_end = context["COMPLETE_END"]
    scan.is_closed = bool(context["CLOSED"])
    scan.is_encrypted = bool(context["IS_ENCRYPTED"])
    scan.formats = walk.formats
    if scan.complete_end > cuts[-1]:
        cuts.append(scan.complete_end)
    scan.segments = [SegmentRange(start, end) for start, end in pairwise(cuts)]
    at = walk.position
    if context["FIRST_BAD"] >= 0 and not skip_bad_checksum:
        scan.defect = Defect(context["FIRST_BAD"], defect_reason(layout.BAD_CHECKSUM, 0), is_cut=False)
    elif status == layout.DEFECT:
        size = int.from_bytes(walk.window.bytes_at(at + 9, 4), "little")
        scan.defect = Defect(at, defect_reason(context["REASON"], size), is_cut=False)
    elif at < scan.file_size:
        left = scan.file_size - at
        said = int.from_bytes(walk.window.bytes_at(at + 9, 4), "little") if left >= walk.format.header_size else None
        reason = f"an event of {said} bytes of which {left} are there" if said else f"{left} bytes of an event's header"
        scan.defect = Defect(at, reason, is_cut=True)


def _moment(micros: int) -> datetime | None:
    return datetime.fromtimestamp(micros // 1_000_000, UTC) if micros else None


def _take_index(scan: Scan, walk: Walk, index: IndexBuffer) -> None:
    """Adds the events that the kernel has listed, while their bytes are still in the window."""
    records = index.records[: walk.context["INDEX_COUNT"]]
    walk.context["INDEX_COUNT"] = 0
    good = records[:, layout.INDEX_GOOD] == 1
    scan.bytes_covered += int(records[good, layout.INDEX_SIZE].sum())
    for number in np.flatnonzero(np.isin(records[:, layout.INDEX_TYPE], _TOLD) & good):
        position, size, code = records[number, :3].tolist()
        format = walk.format_at(position)
        body = event_body(code, walk.window.bytes_at(position, size), format)
        if code == ROTATE:
            # One without a time is artificial: it names the file that a relay log goes on with, not the next one.
            if records[number, layout.INDEX_TIME]:
                scan.next_binlog_file = rotate_target(body, format.post_header_size(ROTATE))
        elif scan.previous_gtids is None:
            scan.previous_gtids = gtid_set(body) if code == PREVIOUS_GTIDS else maria_gtid_list(body)
