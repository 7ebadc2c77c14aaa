"""A walk of the kernel over a file: its window of bytes, the format in force, and the events inside other events."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import replace
from operator import itemgetter
from typing import Final

import numpy as np

from ingest.binlog.buffers import Context, ControlBuffers, Int64s, Window
from ingest.binlog.byte_files import Bytes, LogPath
from ingest.binlog.events.format import FormatDescription, checksum_is_good, format_of_event
from ingest.binlog.events.fragments import Fragments
from ingest.binlog.events.payload import unpack
from ingest.binlog.events.reader import MalformedEventError
from ingest.binlog.events.types import (
    FORMAT_DESCRIPTION,
    PARTIAL_ROW_DATA,
    ROWS_COMPRESSED,
    ROWS_V0,
    TRANSACTION_PAYLOAD,
    actions,
)
from ingest.binlog.kernel import layout, run
from ingest.binlog.kernel.layout import (
    ACTIVE_CAPACITY,
    ACTIVE_WORDS,
    INPUT_WORDS,
    OUTER_WORDS,
    PADDING,
    SLOT_COUNT,
    SLOT_WORDS,
)
from ingest.binlog.zstd import zstd_decompression
from ingest.errors import BinloomError

_FIRST: Final = 4
_INSIDE_BYTES: Final = 1 << 20
_WHOLE_FILE: Final = (1 << 62) - 1


class Walk:
    """A walk of the kernel through a file, from one of its statuses to the next.

    Parameters
    ----------
    path
        The file, for errors and hints.
    source
        The bytes of the file.
    format
        The format description from the file's first event.
    mode
        The modes of the kernel: `layout.WANT_…`, `layout.KEEP_GOING`, `layout.SKIP_BAD`.
    start, end
        Physical offsets, in bytes, where the walk begins and where the file ends.

    Attributes
    ----------
    counts, inner_counts
        Events so far by type code, shape (256,): events of the file, and events inside other events.
    rewrite
        Callback of the row decoder. It gets type code and bytes of a version 0 rows event and returns the equivalent
        version 1 event, or None when the rows are skipped or it has recorded a problem.
    """

    def __init__(
        self, path: LogPath, source: Bytes, format: FormatDescription, mode: int, start: int, end: int
    ) -> None:
        self.path = path
        self.window = Window(source, start, end)
        self.context = Context()
        self.counts: Int64s = np.zeros(256, dtype=np.int64)
        self.inner_counts: Int64s = np.zeros(256, dtype=np.int64)
        self.rewrite: Callable[[int, bytes], bytes | None] | None = None
        context = self.context
        context["MODE"] = mode
        context["END_POS"] = end
        context["FIRST_BAD"] = context["ATTENDED"] = -1
        context["SEGMENT_BYTES"] = _WHOLE_FILE
        context["SEGMENT_START"] = context["COMPLETE_END"] = start
        context.point("ACTIONS", actions())
        context.point("COUNTS", self.counts)
        context.point("INNER_COUNTS", self.inner_counts)
        context["ZSTD_DECOMPRESS"], context["ZSTD_CONTEXT"] = zstd_decompression(self)
        self._make_room_inside(_INSIDE_BYTES)
        context.point("SLOTS", np.full((SLOT_COUNT, SLOT_WORDS), -1, dtype=np.int64))
        context.point("ACTIVE", np.zeros((ACTIVE_CAPACITY, ACTIVE_WORDS), dtype=np.int64))
        self.window.attach(context)
        self._fragments = Fragments()
        self._formats: list[tuple[int, FormatDescription]] = []
        self._use(_format_in_force(path, source, format, start), start)

    def step(self) -> int:
        """Walk on to a status that the caller has to handle. ATTENTION is handled here."""
        status: int
        while (status := run(self.context.address)) == layout.ATTENTION:
            self._attend()
        return status

    def advance(self) -> bool:
        """Read on from the current event; return False when the file has nothing more."""
        return self.window.advance(self.context)

    @property
    def position(self) -> int:
        """Physical offset of the current event; inside a payload, the offset of the payload."""
        if self.context["PAYLOAD_END"]:
            return self.context["PAYLOAD_START"]
        return self.window.base + self.context["POS"]

    @property
    def end_position(self) -> int:
        """Physical offset after the current event; inside a payload, after the payload."""
        if self.context["PAYLOAD_END"]:
            return self.context["PAYLOAD_END"]
        return self.position + len(self.event())

    def event(self) -> bytes:
        """Return the bytes of the current event; inside a payload, of the inner event."""
        at = self.context["POS"]
        data = self.context.array("INSIDE" if self.context["PAYLOAD_END"] else "BUFFER")
        size = int.from_bytes(data[at + 9 : at + 13].tobytes(), "little")
        return data[at : at + size].tobytes()

    def event_at(self, position: int) -> bytes:
        """Return the bytes of the event at a physical offset that the walk has passed, in the window or not."""
        head = self.window.source.read(13, position)
        return self.window.source.read(int.from_bytes(head[9:], "little"), position)

    def type_at(self, position: int) -> int:
        """Return the type code of the event at a physical offset, anywhere in the file."""
        code: int = self.format_at(position).type_codes[self.window.source.read(1, position + 4)[0]]
        return code

    def stop_at(self, position: int) -> None:
        """Make the walk end with status END at a physical offset."""
        self.context["END_POS"] = position

    def end_at(self, end: int) -> None:
        """Set the physical offset that counts as the end of the file, also after the file has grown."""
        self.window.end = end
        self.context["END_POS"] = end

    def add_problem(self, code: int, map_number: int, row: int, reason: int) -> None:
        """Record that the current event could not be decoded; the kernel keeps one record free for this."""
        context = self.context
        count = context["PROBLEM_COUNT"]
        record = (self.position, self.end_position, code, map_number, row, -1, reason)
        context.array("PROBLEM_RECORDS")[count] = record
        context["PROBLEM_COUNT"] = count + 1

    @property
    def format(self) -> FormatDescription:
        """The format in force at the current event."""
        return self._formats[-1][1]

    @property
    def formats(self) -> list[FormatDescription]:
        """The format at the start of the walk, then the formats that the file changed to, in order."""
        return [format for _, format in self._formats]

    def format_at(self, position: int) -> FormatDescription:
        """Return the format of the event at a physical offset that the walk has passed."""
        return self._formats[bisect_right(self._formats, position, key=itemgetter(0)) - 1][1]

    def _use(self, format: FormatDescription, position: int) -> None:
        """Read events from an offset on in this format."""
        # The first format is known before the walk reaches its event.
        if not self._formats or self._formats[-1] != (position, format):
            self._formats.append((position, format))
        context = self.context
        context["CHECKSUM"] = int(format.has_checksums)
        context["HEADER_SIZE"] = format.header_size
        sizes = np.zeros(257, dtype=np.uint8)
        sizes[1 : 1 + len(format.post_header_sizes)] = np.frombuffer(format.post_header_sizes, dtype=np.uint8)[:256]
        context.point("POST_HEADERS", sizes)
        context.point("TYPE_CODES", np.frombuffer(format.type_codes, dtype=np.uint8))

    def _attend(self) -> None:
        context = self.context
        event = self.event()
        code = self.format.type_codes[event[4]]
        if code == FORMAT_DESCRIPTION:
            found = _format_of(event, self.path)
            context["ATTENDED_GOOD"] = found is not None
            if found is not None:
                self._use(found, self.position)
        elif code in ROWS_V0:
            rewritten = self.rewrite(code, event) if self.rewrite is not None else None
            context["ATTENDED_GOOD"] = rewritten is not None
            if rewritten is not None:
                # The kernel counts the rewritten event as an inner event, but it is the same event.
                self.inner_counts[ROWS_V0[code]] -= 1
                self._enter(rewritten, code, len(event))
                return
        elif code == PARTIAL_ROW_DATA:
            if self._attend_fragment(event):
                return
        else:
            try:
                self._enter(unpack(code, event, self.format), code, len(event))
            except MalformedEventError:
                self.add_problem(code, -1, -1, layout.BAD_PAYLOAD)
            else:
                return
        context["ATTENDED"] = self.position

    def _attend_fragment(self, event: bytes) -> bool:
        """Take in a fragment of a rows event; return whether the walk has entered the event that it completes.

        The rows of that event have the positions from the first fragment to the end of the last.
        """
        fragments, position = self._fragments, self.position
        behind = position + len(event)
        next_header = behind + self.format.header_size
        has_next = next_header <= min(self.context["END_POS"], self.window.source.wait_for(next_header))
        first = fragments.start
        try:
            found = fragments.add(event, position, self.type_at(behind) if has_next else None, self.format)
            if found is not None and self.format.type_codes[found[4]] in ROWS_COMPRESSED:
                unchecked = replace(self.format, checksum_algorithm=None)
                found = unpack(self.format.type_codes[found[4]], found, unchecked)
        except MalformedEventError:
            self.add_problem(PARTIAL_ROW_DATA, -1, -1, layout.BAD_FRAGMENTS)
            fragments.end()
            found = None
        self.context["ATTENDED_GOOD"] = found is not None
        if found is None:
            return False
        fragments.end()
        self._enter(found, PARTIAL_ROW_DATA, len(event), position if first is None else first)
        return True

    def _enter(self, events: bytes, code: int, size: int, start: int | None = None) -> None:
        """Switch to the events inside an event of `size` bytes; the kernel returns from them by itself.

        `start` is the offset from which on they count, if it is not that of the event.
        """
        position, context = self.position, self.context
        if len(events) > context["INSIDE_CAPACITY"]:
            self._make_room_inside(2 * len(events))
        context.array("INSIDE").data[: len(events)] = events
        context.words[OUTER_WORDS] = context.words[INPUT_WORDS]
        context.words[INPUT_WORDS] = (
            context["INSIDE"],
            len(events),
            0,
            0,
            len(events),
            0,
            context["INNER_COUNTS"],
            position if start is None else start,
            position + size,
            int(code == TRANSACTION_PAYLOAD),
        )

    def _make_room_inside(self, size: int) -> None:
        self.context.point("INSIDE", np.zeros(size + PADDING, dtype=np.uint8))
        self.context["INSIDE_CAPACITY"] = size


def _format_of(event: bytes, path: LogPath) -> FormatDescription | None:
    """Return the format description in a whole event; None when it is invalid or its checksum is wrong."""
    try:
        found = format_of_event(event, path)
    except BinloomError:
        return None
    return found if checksum_is_good(event, found) else None


def _format_in_force(path: LogPath, source: Bytes, first: FormatDescription, start: int) -> FormatDescription:
    """Return the format in force at an offset: a relay log has its own description first, then its source's."""
    if start == _FIRST or not (first.is_relay_log or first.format_version != 4):
        return first
    walk = Walk(path, source, first, layout.KEEP_GOING, _FIRST, start)
    ControlBuffers().attach(walk.context)
    while (status := walk.step()) == layout.FULL or (status == layout.NEED_BYTES and walk.advance()):
        walk.context["PROBLEM_COUNT"] = 0
    return walk.format
