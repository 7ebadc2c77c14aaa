"""Inventory of a binlog file without decoding its rows: one walk over headers and checksums."""

from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Final, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingest.binlog.assembly import statement_batch
from ingest.binlog.buffers import ControlBuffers, IndexBuffer
from ingest.binlog.byte_files import OPEN_END, LogPath, StoredFile, open_bytes
from ingest.binlog.decoder import defect_reason
from ingest.binlog.events.describe import event_body, rotate_target
from ingest.binlog.events.format import FormatDescription, format_of
from ingest.binlog.events.gtid_events import gtid_set, maria_gtid_list
from ingest.binlog.events.moments import moment, moment_of_seconds
from ingest.binlog.events.types import MARIA_GTID_LIST, PREVIOUS_GTIDS, ROTATE, counts_by_name
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
    """The first event that cannot be read. `is_cut` is true when the file ends inside this event."""

    position: int
    reason: str
    is_cut: bool


@dataclass(slots=True)
class Scan:
    """The inventory of a file.

    `bytes_covered` counts the magic and every whole event whose checksum is right. `complete_end` is the end of
    the last complete transaction before any defect. `is_closed` is true when the last event is a ROTATE or STOP.
    `rotated_at` is the time of the ROTATE event that names `next_binlog_file`.
    `first_misplaced_pos` is the offset of the first event whose recorded end is not its real end: bytes before it were
    removed or inserted. `is_encrypted` is true when the file has encrypted events, which cannot be read. `formats` has
    several entries for a relay log that contains its source's format too. `ddl_statements` contains batches of
    `STATEMENTS` with every statement that may be DDL, and sometimes other statements.
    """

    path: LogPath
    format: FormatDescription
    file_size: int
    events: int = 0
    event_counts: dict[str, int] = field(default_factory=dict)
    first_event_at: datetime | None = None
    last_event_at: datetime | None = None
    bytes_covered: int = 4
    checksum_failures: int = 0
    first_misplaced_pos: int | None = None
    previous_gtids: str | None = None
    next_binlog_file: str | None = None
    rotated_at: datetime | None = None
    is_closed: bool = False
    is_encrypted: bool = False
    formats: list[FormatDescription] = field(default_factory=list)
    segments: list[SegmentRange] = field(default_factory=list)
    complete_end: int = 4
    defect: Defect | None = None
    ddl_statements: list[pa.RecordBatch] = field(default_factory=list, compare=False)

    @property
    def open_transaction(self) -> int | None:
        """Where the transaction begins inside which the file ends, at the end of an event; None if there is none."""
        return self.complete_end if self.defect is None and self.complete_end < self.file_size else None


def scan_binlog(
    path: str | LogPath,
    *,
    segment_bytes: int = SEGMENT_BYTES,
    start: int | None = None,
    end: int | None = None,
    skip_bad_checksum: bool = False,
) -> Scan:
    """Walk a file once: inventory, verified checksums, and segments.

    Parameters
    ----------
    path
        A binlog file.
    segment_bytes
        A segment ends with the first transaction that makes it this long.
    start
        Physical offset where the walk and the first segment begin: a transaction's start. None: 4.
    end
        Offset that counts as the end of the file; bytes after it are not read.
    skip_bad_checksum
        Whether events with a wrong checksum are skipped and counted instead of being a defect.

    Raises
    ------
    BinlogError
        When the file has no readable head. A defect inside it is reported in `Scan.defect`.
    """
    with Scanner(path, segment_bytes=segment_bytes, start=start, skip_bad_checksum=skip_bad_checksum) as scanner:
        return scanner.scan(end)


class Scanner:
    """The walk of `scan_binlog` over a growing file: each scan continues where the last scan ended."""

    def __init__(
        self,
        path: str | LogPath,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        start: int | None = None,
        skip_bad_checksum: bool = False,
    ) -> None:
        self.path = path if isinstance(path, StoredFile) else Path(path)
        self._skips_bad_checksums = skip_bad_checksum
        self._source = open_bytes(self.path)
        try:
            self._found = Scan(self.path, format_of(self._source, self.path), 0)
        except BaseException:
            self._source.close()
            raise
        first = 4 if start is None else start
        mode = layout.WANT_INDEX | layout.WANT_DDL | layout.KEEP_GOING
        if skip_bad_checksum:
            mode |= layout.SKIP_BAD
        self._walk = Walk(self.path, self._source, self._found.format, mode, first, first)
        self._index, self._control = IndexBuffer(), ControlBuffers()
        self._index.attach(self._walk.context)
        self._control.attach(self._walk.context)
        self._walk.context["SEGMENT_BYTES"] = segment_bytes
        self._cuts = [first]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._source.close()

    def scan(self, end: int | None = None) -> Scan:
        """Return the inventory up to an offset, or up to the current end of the file.

        Parameters
        ----------
        end
            Offset, in bytes, that counts as the end of the file; never before the end of an earlier scan.
        """
        walk, context = self._walk, self._walk.context
        size = self._source.known_size if end is None else end
        walk.end_at(OPEN_END if size is None else size)
        while True:
            status = walk.step()
            has_room = self._take_index() or context["PROBLEM_COUNT"]
            context["PROBLEM_COUNT"] = 0
            has_room = self._take_statements() or has_room
            if status == layout.NEED_BYTES and walk.advance():
                continue
            if status == layout.SEGMENT:
                self._cuts.append(context["COMPLETE_END"])
                context["SEGMENT_START"] = self._cuts[-1]
            elif status == layout.FULL:
                if not has_room:
                    self._renew(min(len(walk.event()) + (1 << 20), layout.DATA_LIMIT))
            else:
                break
        return self._conclusion(status, self._source.size() if size is None else size)

    def _conclusion(self, status: int, file_size: int) -> Scan:
        walk, context = self._walk, self._walk.context
        cuts = self._cuts + ([context["COMPLETE_END"]] if context["COMPLETE_END"] > self._cuts[-1] else [])
        scan = replace(
            self._found,
            # The server clears the in-use flag when it closes the file.
            format=format_of(self._source, self.path),
            file_size=file_size,
            events=context["EVENTS"],
            event_counts=counts_by_name(walk.counts),
            first_event_at=moment(context["FIRST_AT"]),
            last_event_at=moment(context["LAST_AT"]),
            checksum_failures=context["BAD_CHECKSUMS"],
            complete_end=context["COMPLETE_END"],
            is_closed=bool(context["CLOSED"]),
            is_encrypted=bool(context["IS_ENCRYPTED"]),
            formats=walk.formats,
            segments=[SegmentRange(start, end) for start, end in pairwise(cuts)],
        )
        scan.defect = self._defect(status, file_size)
        return scan

    def _defect(self, status: int, file_size: int) -> Defect | None:
        walk, context = self._walk, self._walk.context
        at, left = walk.position, file_size - walk.position
        if context["FIRST_BAD"] >= 0 and not self._skips_bad_checksums:
            return Defect(context["FIRST_BAD"], defect_reason(layout.BAD_CHECKSUM, 0), is_cut=False)
        has_head = left >= walk.format.header_size
        has_size = has_head or status == layout.DEFECT
        size = int.from_bytes(walk.window.bytes_at(at + layout.EVENT_SIZE, 4), "little") if has_size else 0
        if status == layout.DEFECT:
            return Defect(at, defect_reason(context["REASON"], size), is_cut=False)
        if self._source.damage is not None and file_size == self._source.known_size:
            return Defect(at, self._source.damage, is_cut=False)
        if left <= 0:
            return None
        reason = f"an event of {size} bytes of which {left} are there" if size else f"{left} bytes of an event's header"
        return Defect(at, reason, is_cut=True)

    def _first_misplaced(self, records: npt.NDArray[np.int64]) -> int | None:
        """Return the offset of the first event that is not where its server wrote it; None if no event shows this.

        A header contains the lower 32 bits of the position after its event. It is 0 in events that a server makes up,
        and refers to another file in relay logs. Servers older than checksums wrote positions in a transaction's cache.
        """
        if self._found.format.is_relay_log or self._found.format.checksum_algorithm is None:
            return None
        recorded_ends = records[:, layout.INDEX_NEXT]
        ends = (records[:, layout.INDEX_POS] + records[:, layout.INDEX_SIZE]) & 0xFFFFFFFF
        misplaced = np.flatnonzero((recorded_ends != 0) & (recorded_ends != ends))
        return int(records[misplaced[0], layout.INDEX_POS]) if misplaced.size else None

    def _take_statements(self) -> bool:
        """Keep the statements that the kernel has noted; return whether there were any."""
        count = self._walk.context["STMT_COUNT"]
        if count:
            self._found.ddl_statements.append(statement_batch(self._control, count, self._walk.format))
            self._renew(self._control.text_bytes)
        return bool(count)

    def _renew(self, text_bytes: int) -> None:
        """Install fresh buffers. The open transaction continues in them."""
        context, control = self._walk.context, ControlBuffers(text_bytes)
        if context["TXN_STATE"] != layout.STATE_NONE:
            control.begin_with(self._control, context["TXN_COUNT"])
        self._control = control
        control.attach(context)

    def _take_index(self) -> bool:
        """Add the events that the kernel listed, while the window has their bytes; return whether there were any."""
        walk, found = self._walk, self._found
        records = self._index.records[: walk.context["INDEX_COUNT"]]
        walk.context["INDEX_COUNT"] = 0
        good = records[:, layout.INDEX_GOOD] == 1
        found.bytes_covered += int(records[good, layout.INDEX_SIZE].sum())
        if found.first_misplaced_pos is None:
            found.first_misplaced_pos = self._first_misplaced(records[good])
        for number in np.flatnonzero(np.isin(records[:, layout.INDEX_TYPE], _TOLD) & good):
            position, size, code = records[number, :3].tolist()
            format = walk.format_at(position)
            body = event_body(code, walk.window.bytes_at(position, size), format)
            if code == ROTATE:
                # A ROTATE without a time is artificial: it names the file whose events follow in a relay log.
                if seconds := int(records[number, layout.INDEX_TIME]):
                    found.next_binlog_file = rotate_target(body, format.post_header_size(ROTATE))
                    found.rotated_at = moment_of_seconds(seconds)
            elif found.previous_gtids is None:
                found.previous_gtids = gtid_set(body) if code == PREVIOUS_GTIDS else maria_gtid_list(body)
        return bool(len(records))
