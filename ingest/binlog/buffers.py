"""Memory that the kernel works on: context words, the window of input bytes, and output buffers.

Arrow uses the output buffers without a copy. The kernel overwrites them only when no batch holds them any more.
"""

import sys
from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingest.binlog.byte_files import Bytes
from ingest.binlog.kernel.guard import address_of
from ingest.binlog.kernel.layout import (
    CONTEXT_WORDS,
    INDEX_WORDS,
    JSON_SCRATCH_BYTES,
    PADDING,
    PROBLEM_WORDS,
    STMT_WORDS,
    TXN_WORDS,
    WORDS,
)
from ingest.binlog.kernel.tables import powers_of_ten, slicing_tables

Int64s = npt.NDArray[np.int64]

CRC_TABLES: Final = slicing_tables()
POWERS: Final = powers_of_ten()

ROW_CAPACITY: Final = 32768
VALUE_CAPACITY: Final = 524288
DATA_CAPACITY: Final = 8 << 20
TXN_CAPACITY: Final = 8192
STMT_CAPACITY: Final = 8192
PROBLEM_CAPACITY: Final = 1024
INDEX_CAPACITY: Final = 8192
GTID_BYTES: Final = 128
XA_BYTES: Final = 300
STATUS_BYTES: Final = 256
WINDOW_BYTES: Final = 1 << 20
SIDES: Final = ("BEFORE", "AFTER")


class Context:
    """The int64 block that the kernel works on. Its words are accessed by name: `context["POS"]`."""

    def __init__(self) -> None:
        self.words: Int64s = np.zeros(CONTEXT_WORDS, dtype=np.int64)
        self.address = address_of(self.words)
        self._kept: dict[str, npt.NDArray[Any]] = {}
        self.scratch = np.zeros(max(JSON_SCRATCH_BYTES, 4096), dtype=np.uint8)
        self.point("CRC_TABLES", CRC_TABLES)
        self.point("POWERS", POWERS)
        self.point("SCRATCH", self.scratch)

    def __getitem__(self, name: str) -> int:
        return int(self.words[WORDS[name]])

    def __setitem__(self, name: str, value: int) -> None:
        self.words[WORDS[name]] = value

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return the array that a word points at."""
        return self._kept[name]

    def point(self, name: str, array: npt.NDArray[Any], size: int | None = None) -> None:
        """Store the address of an array in a word and keep the array alive; `size` of its bytes are in use."""
        self._kept[name] = array
        self.words[WORDS[name]] = address_of(array, size)


class Window:
    """A part of a file in memory, moved forward as the kernel asks for bytes.

    Parameters
    ----------
    source
        The bytes of an open file.
    start, end
        Physical offsets; the bytes between them are read.
    """

    def __init__(self, source: Bytes, start: int, end: int) -> None:
        self.source = source
        self.end = end
        self.base = start
        self.size = 0
        self._bytes = np.zeros(WINDOW_BYTES + PADDING, dtype=np.uint8)

    def attach(self, context: Context) -> None:
        """Tell the kernel where the bytes are."""
        context.point("BUFFER", self._bytes, self.size + PADDING)
        context["BASE"] = self.base
        context["BUFFER_SIZE"] = self.size

    def advance(self, context: Context) -> bool:
        """Drop the bytes before POS and read on. Return False when the file has nothing more."""
        at = context["POS"]
        left = self.size - at
        needed = self._event_size(at, left)
        here = self.base + at
        end = min(self.end, self.source.wait_for(here + needed))
        if needed > end - here:
            return False
        if left:
            rest = self._bytes[at : self.size].copy()
            if needed > len(self._bytes) - PADDING:
                self._bytes = np.zeros(needed + WINDOW_BYTES + PADDING, dtype=np.uint8)
            self._bytes[:left] = rest
        self.base += at
        self.size = left
        room = min(len(self._bytes) - PADDING - left, end - self.base - left)
        view = self._bytes.data
        while room > 0:
            count = self.source.read_into(view[self.size : self.size + room], self.base + self.size)
            if count == 0:
                break
            self.size += count
            room -= count
        context["POS"] = 0
        self.attach(context)
        return self.size > left and self.size >= min(needed, 19)

    def _event_size(self, at: int, left: int) -> int:
        """Return how many bytes the event at `at` needs in the window; 13 while its size field is not loaded."""
        if left < 13:
            return 13
        return int.from_bytes(self._bytes[at + 9 : at + 13].tobytes(), "little")

    def bytes_at(self, position: int, size: int) -> bytes:
        """Return bytes of the window by physical offset."""
        at = position - self.base
        return self._bytes[at : at + size].tobytes()


def buffer(array: npt.NDArray[Any]) -> pa.Buffer:
    """Return an Arrow buffer over an array's memory."""
    return pa.py_buffer(array)


class Buffers:
    """Arrays that the kernel fills and that batches then view without a copy.

    A set is reused once no batch holds a view of it. Reused memory is in the caches and needs no page faults,
    which cost as much as a third of the decoding.
    """

    def __init__(self) -> None:
        self._arrays: list[npt.NDArray[Any]] = []

    def _new(self, shape: int | tuple[int, int], kind: type[np.generic]) -> npt.NDArray[Any]:
        array = np.empty(shape, dtype=kind)
        self._arrays.append(array)
        return array

    def _offsets(self, count: int) -> npt.NDArray[np.int32]:
        """Return an offsets array for `count` values; the first offset is 0."""
        offsets = self._new(count + 1, np.int32)
        offsets[0] = 0
        return offsets

    @property
    def is_free(self) -> bool:
        """Whether only this object holds the arrays: by its attribute, its list, the loop and the call."""
        return all(sys.getrefcount(array) <= 4 for array in self._arrays)


class ControlBuffers(Buffers):
    """Records of transactions, statements and problems, and the texts that belong to them."""

    def __init__(self, text_bytes: int = 1 << 20) -> None:
        super().__init__()
        self.text_bytes = text_bytes
        self.transactions: Int64s = self._new((TXN_CAPACITY, TXN_WORDS), np.int64)
        self.gtid_offsets = self._offsets(TXN_CAPACITY)
        self.gtid_data = self._new(TXN_CAPACITY * GTID_BYTES, np.uint8)
        self.xa_offsets = self._offsets(TXN_CAPACITY)
        self.xa_data = self._new(TXN_CAPACITY * XA_BYTES, np.uint8)
        self.statements: Int64s = self._new((STMT_CAPACITY, STMT_WORDS), np.int64)
        self.schema_offsets = self._offsets(STMT_CAPACITY)
        self.schema_data = self._new(STMT_CAPACITY * 260 + PADDING, np.uint8)
        self.status_offsets = self._offsets(STMT_CAPACITY)
        self.status_data = self._new(STMT_CAPACITY * STATUS_BYTES + PADDING, np.uint8)
        self.text_offsets = self._offsets(STMT_CAPACITY)
        self.text_data = self._new(text_bytes + PADDING, np.uint8)
        self.problems: Int64s = self._new((PROBLEM_CAPACITY, PROBLEM_WORDS), np.int64)

    def attach(self, context: Context) -> None:
        context.point("TXN_RECORDS", self.transactions)
        context["TXN_CAPACITY"] = TXN_CAPACITY
        context["TXN_COUNT"] = 0
        context.point("GTID_OFFSETS", self.gtid_offsets)
        context.point("GTID_DATA", self.gtid_data)
        context.point("XA_OFFSETS", self.xa_offsets)
        context.point("XA_DATA", self.xa_data)
        context.point("STMT_RECORDS", self.statements)
        context["STMT_CAPACITY"] = STMT_CAPACITY
        context["STMT_COUNT"] = 0
        context.point("STMT_SCHEMA_OFFSETS", self.schema_offsets)
        context.point("STMT_SCHEMA_DATA", self.schema_data)
        context["STMT_SCHEMA_CAPACITY"] = len(self.schema_data) - PADDING
        context.point("STMT_STATUS_OFFSETS", self.status_offsets)
        context.point("STMT_STATUS_DATA", self.status_data)
        context["STMT_STATUS_CAPACITY"] = len(self.status_data) - PADDING
        context.point("STMT_TEXT_OFFSETS", self.text_offsets)
        context.point("STMT_TEXT_DATA", self.text_data)
        context["STMT_TEXT_CAPACITY"] = len(self.text_data) - PADDING
        context.point("PROBLEM_RECORDS", self.problems)
        context["PROBLEM_CAPACITY"] = PROBLEM_CAPACITY
        context["PROBLEM_COUNT"] = 0

    def begin_with(self, other: "ControlBuffers", number: int) -> None:
        """Copy a transaction of `other` (which may be this object) into first place: its record and its texts."""
        self.transactions[0] = other.transactions[number]
        for offsets, data, its_offsets, its_data in (
            (self.gtid_offsets, self.gtid_data, other.gtid_offsets, other.gtid_data),
            (self.xa_offsets, self.xa_data, other.xa_offsets, other.xa_data),
        ):
            first, last = its_offsets[number : number + 2].tolist()
            data[: last - first] = its_data[first:last]
            offsets[:2] = (0, last - first)


class RowBuffers(Buffers):
    """Columns of `row_events` that the kernel fills."""

    def __init__(self, value_capacity: int = VALUE_CAPACITY, data_capacity: int = DATA_CAPACITY) -> None:
        super().__init__()
        rows = ROW_CAPACITY
        self.value_capacity = value_capacity
        self.data_capacity = data_capacity
        self.starts, self.ends = self._new(rows, np.int64), self._new(rows, np.int64)
        self.payload_ordinals, self.ordinals = self._new(rows, np.int32), self._new(rows, np.int32)
        self.txn_pos, self.times = self._new(rows, np.int64), self._new(rows, np.int64)
        self.kinds, self.servers = self._new(rows, np.int32), self._new(rows, np.int64)
        self.txns, self.maps = self._new(rows, np.int32), self._new(rows, np.int32)
        self.widths = self._new(rows, np.int32)
        self.value_offsets = self._offsets(rows)
        self.images = {side: Image(*self._image()) for side in SIDES}
        self.ordinal_lists = {
            side: (self._offsets(rows), self._new(value_capacity, np.int32), self._new(rows, np.uint8))
            for side in SIDES
        }
        self.patches: Int64s = self._new(2 * value_capacity, np.int64)

    def has(self, side: str, row: int, ordinal: int) -> bool:
        """Return whether the image of a row contains a column."""
        offsets, values, is_partial = self.ordinal_lists[side]
        return not is_partial[row] or ordinal in values[offsets[row] : offsets[row + 1]]

    def _image(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.uint8], npt.NDArray[np.uint8]]:
        valid = self._new(self.value_capacity // 8 + 16, np.uint8)
        return self._offsets(self.value_capacity), valid, self._new(self.data_capacity + PADDING, np.uint8)

    def attach(self, context: Context) -> None:
        context["ROW_COUNT"] = context["VALUE_COUNT"] = context["PARTIAL_SEEN"] = context["PATCH_COUNT"] = 0
        context.point("PATCHES", self.patches)
        context["ROW_CAPACITY"] = ROW_CAPACITY
        context["VALUE_CAPACITY"] = context["ORDINAL_CAPACITY"] = self.value_capacity
        context.point("ROW_STARTS", self.starts)
        context.point("ROW_ENDS", self.ends)
        context.point("ROW_PAYLOAD_ORDINALS", self.payload_ordinals)
        context.point("ROW_ORDINALS", self.ordinals)
        context.point("ROW_TXN_POS", self.txn_pos)
        context.point("ROW_KINDS", self.kinds)
        context.point("ROW_TIMES", self.times)
        context.point("ROW_SERVERS", self.servers)
        context.point("ROW_TXNS", self.txns)
        context.point("ROW_MAPS", self.maps)
        context.point("ROW_WIDTHS", self.widths)
        context.point("ROW_VALUE_OFFSETS", self.value_offsets)
        for side, image in self.images.items():
            image.valid.fill(0xFF)
            context.point(f"{side}_OFFSETS", image.offsets)
            context.point(f"{side}_VALID", image.valid)
            context.point(f"{side}_DATA", image.data)
            context[f"{side}_OUT"] = context[f"{side}_DATA"]
            context[f"{side}_LIMIT"] = context[f"{side}_DATA"] + len(image.data) - PADDING
        for side, (offsets, values, partial) in self.ordinal_lists.items():
            context.point(f"{side}_ORDINAL_OFFSETS", offsets)
            context.point(f"{side}_ORDINALS", values)
            context.point(f"{side}_IS_PARTIAL", partial)


class Image(NamedTuple):
    """Texts of all before or all after images: the offsets, validity bits and bytes of an Arrow string array."""

    offsets: npt.NDArray[np.int32]
    valid: npt.NDArray[np.uint8]
    data: npt.NDArray[np.uint8]

    def array(self, count: int) -> pa.Array:
        used = int(self.offsets[count])
        buffers = [buffer(self.valid), buffer(self.offsets[: count + 1]), buffer(self.data[:used])]
        return pa.Array.from_buffers(pa.string(), count, buffers)

    def value(self, index: int) -> bytes | None:
        """Return one text as stored; None for NULL."""
        if not self.valid[index >> 3] >> (index & 7) & 1:
            return None
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes()


B = TypeVar("B", bound=Buffers)


class Pool(Generic[B]):
    """Sets of buffers to use in turn; the pool holds at most `keep` sets while their batches are alive.

    A writer of Parquet holds the batches of a row group, which are six of narrow rows.
    """

    def __init__(self, make: Callable[[], B], keep: int = 8) -> None:
        self._make = make
        self._keep = keep
        self._sets: list[B] = []

    def take(self) -> B:
        """Return a set that no batch views."""
        for known in self._sets:
            if known.is_free:
                return known
        made = self._make()
        if len(self._sets) < self._keep:
            self._sets.append(made)
        return made


class IndexBuffer:
    """One record per event, for listings."""

    def __init__(self) -> None:
        self.records: Int64s = np.empty((INDEX_CAPACITY, INDEX_WORDS), dtype=np.int64)

    def attach(self, context: Context) -> None:
        context.point("INDEX_RECORDS", self.records)
        context["INDEX_CAPACITY"] = INDEX_CAPACITY
        context["INDEX_COUNT"] = 0
