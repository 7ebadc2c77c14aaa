"""The kernel's side of memory: context words, the window of input bytes, and output buffers.

Output buffers are fresh for each batch and go to Arrow without a copy, so a batch stays valid for as long
as anybody holds it.
"""

import os
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ingest.binlog.kernel import crc, numbers
from ingest.binlog.kernel import json as binary_json
from ingest.binlog.kernel.layout import (
    CONTEXT_WORDS,
    INDEX_WORDS,
    PROBLEM_WORDS,
    STMT_WORDS,
    TXN_WORDS,
    WORDS,
)
from ingest.binlog.kernel.memory import PADDING

Int64s = npt.NDArray[np.int64]

CRC_TABLES: Final = crc.slicing_tables()
POWERS: Final = numbers.powers_of_ten()

ROW_CAPACITY: Final = 8192
VALUE_CAPACITY: Final = 131072
DATA_CAPACITY: Final = 2 << 20
DATA_LIMIT: Final = (1 << 31) - 4096
"""Arrow's 32-bit string offsets end here; a value beyond cannot be held."""
TXN_CAPACITY: Final = 8192
STMT_CAPACITY: Final = 8192
PROBLEM_CAPACITY: Final = 1024
INDEX_CAPACITY: Final = 8192
GTID_BYTES: Final = 128
WINDOW_BYTES: Final = 4 << 20


class Context:
    """The int64 block that the kernel works on, by name: `context["POS"]`."""

    def __init__(self) -> None:
        self.words: Int64s = np.zeros(CONTEXT_WORDS, dtype=np.int64)
        self.address = int(self.words.ctypes.data)
        self._kept: dict[str, npt.NDArray[Any]] = {}
        self.scratch = np.zeros(max(binary_json.SCRATCH_BYTES, 4096), dtype=np.uint8)
        self.point("CRC_TABLES", CRC_TABLES)
        self.point("POWERS", POWERS)
        self.point("SCRATCH", self.scratch)

    def __getitem__(self, name: str) -> int:
        return int(self.words[WORDS[name]])

    def __setitem__(self, name: str, value: int) -> None:
        self.words[WORDS[name]] = value

    def array(self, name: str) -> npt.NDArray[Any]:
        """The array that a word points at."""
        return self._kept[name]

    def point(self, name: str, array: npt.NDArray[Any]) -> None:
        """Makes a word the address of an array, and keeps the array alive."""
        self._kept[name] = array
        self.words[WORDS[name]] = array.ctypes.data


class Window:
    """A part of a file in memory, moved forward as the kernel asks for bytes.

    Parameters
    ----------
    descriptor
        An open file. Bytes are read, not mapped, so that a file cut while it is read is an error and
        not the end of the process.
    start, end
        Physical offsets between which bytes are read.
    """

    def __init__(self, descriptor: int, start: int, end: int) -> None:
        self.descriptor = descriptor
        self.end = end
        self.base = start
        self.size = 0
        self._bytes = np.zeros(WINDOW_BYTES + PADDING, dtype=np.uint8)

    def attach(self, context: Context) -> None:
        """Tells the kernel where the bytes are."""
        context.point("BUFFER", self._bytes)
        context["BASE"] = self.base
        context["BUFFER_SIZE"] = self.size

    def advance(self, context: Context) -> bool:
        """Drops what lies before POS and reads on; False when the file has nothing more."""
        at = context["POS"]
        left = self.size - at
        needed = self._event_size(at, left)
        if needed > self.end - (self.base + at):
            return False
        if left:
            rest = self._bytes[at : self.size].copy()
            if needed > len(self._bytes) - PADDING:
                self._bytes = np.zeros(needed + WINDOW_BYTES + PADDING, dtype=np.uint8)
            self._bytes[:left] = rest
        self.base += at
        self.size = left
        room = min(len(self._bytes) - PADDING - left, self.end - self.base - left)
        view = memoryview(self._bytes)  # type: ignore[arg-type]
        while room > 0:
            count = os.preadv(self.descriptor, [view[self.size : self.size + room]], self.base + self.size)
            if count == 0:
                break
            self.size += count
            room -= count
        context["POS"] = 0
        self.attach(context)
        return self.size > left and self.size >= min(needed, 19)

    def _event_size(self, at: int, left: int) -> int:
        """Bytes that the event at `at` needs to be in the window; a header's worth when that is not known."""
        if left < 13:
            return 13
        return int.from_bytes(self._bytes[at + 9 : at + 13].tobytes(), "little")

    def bytes_at(self, position: int, size: int) -> bytes:
        """Bytes of the window by physical offset."""
        at = position - self.base
        return self._bytes[at : at + size].tobytes()


def buffer(array: npt.NDArray[Any]) -> pa.Buffer:
    """An Arrow buffer over an array's memory."""
    return pa.py_buffer(array)


class ControlBuffers:
    """Records of transactions, statements and problems, and the texts that belong to them."""

    def __init__(self, gtid_bytes: int = TXN_CAPACITY * GTID_BYTES, text_bytes: int = 1 << 20) -> None:
        self.transactions: Int64s = np.zeros((TXN_CAPACITY, TXN_WORDS), dtype=np.int64)
        self.gtid_offsets = np.zeros(TXN_CAPACITY + 1, dtype=np.int32)
        self.gtid_data = np.empty(gtid_bytes, dtype=np.uint8)
        self.statements: Int64s = np.empty((STMT_CAPACITY, STMT_WORDS), dtype=np.int64)
        self.schema_offsets = np.zeros(STMT_CAPACITY + 1, dtype=np.int32)
        self.schema_data = np.empty(STMT_CAPACITY * 260 + PADDING, dtype=np.uint8)
        self.text_offsets = np.zeros(STMT_CAPACITY + 1, dtype=np.int32)
        self.text_data = np.empty(text_bytes + PADDING, dtype=np.uint8)
        self.problems: Int64s = np.empty((PROBLEM_CAPACITY, PROBLEM_WORDS), dtype=np.int64)

    def attach(self, context: Context) -> None:
        context.point("TXN_RECORDS", self.transactions)
        context["TXN_CAPACITY"] = TXN_CAPACITY
        context["TXN_COUNT"] = 0
        context.point("GTID_OFFSETS", self.gtid_offsets)
        context.point("GTID_DATA", self.gtid_data)
        context["GTID_CAPACITY"] = len(self.gtid_data)
        context.point("STMT_RECORDS", self.statements)
        context["STMT_CAPACITY"] = STMT_CAPACITY
        context["STMT_COUNT"] = 0
        context.point("STMT_SCHEMA_OFFSETS", self.schema_offsets)
        context.point("STMT_SCHEMA_DATA", self.schema_data)
        context["STMT_SCHEMA_CAPACITY"] = len(self.schema_data) - PADDING
        context.point("STMT_TEXT_OFFSETS", self.text_offsets)
        context.point("STMT_TEXT_DATA", self.text_data)
        context["STMT_TEXT_CAPACITY"] = len(self.text_data) - PADDING
        context.point("PROBLEM_RECORDS", self.problems)
        context["PROBLEM_CAPACITY"] = PROBLEM_CAPACITY
        context["PROBLEM_COUNT"] = 0


class ImageBuffers:
    """Texts of one side of the rows, before or after: an Arrow string array in the making."""

    def __init__(self, value_capacity: int, data_capacity: int) -> None:
        self.offsets = np.zeros(value_capacity + 1, dtype=np.int32)
        self.valid = np.full(value_capacity // 8 + 8, 0xFF, dtype=np.uint8)
        self.data = np.empty(data_capacity + PADDING, dtype=np.uint8)

    def attach(self, context: Context, side: str) -> None:
        context.point(f"{side}_OFFSETS", self.offsets)
        context.point(f"{side}_VALID", self.valid)
        context.point(f"{side}_DATA", self.data)
        context[f"{side}_OUT"] = context[f"{side}_DATA"]
        context[f"{side}_LIMIT"] = context[f"{side}_DATA"] + len(self.data) - PADDING

    def array(self, count: int) -> pa.Array:
        used = int(self.offsets[count])
        return pa.Array.from_buffers(
            pa.string(), count, [buffer(self.valid), buffer(self.offsets[: count + 1]), buffer(self.data[:used])]
        )


class RowBuffers:
    """Columns of `row_events` in the making."""

    def __init__(self, value_capacity: int = VALUE_CAPACITY, data_capacity: int = DATA_CAPACITY) -> None:
        rows = ROW_CAPACITY
        self.value_capacity = value_capacity
        self.data_capacity = data_capacity
        self.starts, self.ends = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
        self.payload_ordinals, self.ordinals = np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int32)
        self.txn_pos, self.times = np.empty(rows, dtype=np.int64), np.empty(rows, dtype=np.int64)
        self.kinds, self.servers = np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int64)
        self.txns, self.maps = np.empty(rows, dtype=np.int32), np.empty(rows, dtype=np.int32)
        self.widths = np.empty(rows, dtype=np.int32)
        self.value_offsets = np.zeros(rows + 1, dtype=np.int32)
        self.before = ImageBuffers(value_capacity, data_capacity)
        self.after = ImageBuffers(value_capacity, data_capacity)
        self.ordinal_lists = {
            side: (
                np.zeros(rows + 1, dtype=np.int32),
                np.empty(value_capacity, dtype=np.int32),
                np.zeros(rows, dtype=np.uint8),
            )
            for side in ("BEFORE", "AFTER")
        }

    def attach(self, context: Context) -> None:
        context["ROW_COUNT"] = context["VALUE_COUNT"] = context["PARTIAL_SEEN"] = 0
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
        self.before.attach(context, "BEFORE")
        self.after.attach(context, "AFTER")
        for side, (offsets, values, partial) in self.ordinal_lists.items():
            context.point(f"{side}_ORDINAL_OFFSETS", offsets)
            context.point(f"{side}_ORDINALS", values)
            context.point(f"{side}_IS_PARTIAL", partial)


class IndexBuffer:
    """One record an event, for listings."""

    def __init__(self) -> None:
        self.records: Int64s = np.empty((INDEX_CAPACITY, INDEX_WORDS), dtype=np.int64)

    def attach(self, context: Context) -> None:
        context.point("INDEX_RECORDS", self.records)
        context["INDEX_CAPACITY"] = INDEX_CAPACITY
        context["INDEX_COUNT"] = 0
