"""The rows of a query: from bytes of the socket to lists of texts, in the text form of the decoder's values.

A batch has as many rows as fit into its buffers, so memory is bounded whatever the size of a table.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.buffers import POWERS
from ingest.binlog.kernel import split_rows, write_singles
from ingest.binlog.kernel import text_row_layout as kernel
from ingest.binlog.kernel.guard import address_of
from ingest.binlog.kernel.layout import PADDING
from ingest.binlog.text.text_arrays import text_array
from ingest.errors import BrokenStreamError

SOURCE_BYTES: Final = 20 << 20
"""Room for the longest packet."""
TEXT_BYTES: Final = 2 * kernel.LONGEST + (2 << 20)
"""Room for the longest packet in hex; the texts of a batch take no more."""
MOST_VALUES: Final = 1 << 20
_SINGLE_BYTES: Final = 24
_NULL: Final = 0xFB
_HEAD: Final = 4
_WIDTHS: Final = {0xFC: 2, 0xFD: 3, 0xFE: 8}
_REASONS: Final = {
    kernel.BAD_SEQUENCE: "a packet came out of its turn",
    kernel.BAD_ROW: "a row does not have the columns that the answer has",
}


class TextRows:
    """Splits the rows of an answer.

    Parameters
    ----------
    is_binary
        For each column: whether its bytes become `0x` and hex.
    is_single
        For each column: whether its texts are numbers of a FLOAT with the digits of a DOUBLE.
    sequence
        Number of the first packet.
    receive
        Writes the next bytes of the server, at least one, and returns their number.
    """

    def __init__(
        self,
        is_binary: Sequence[bool],
        is_single: Sequence[bool],
        sequence: int,
        receive: Callable[[memoryview], int],
    ) -> None:
        self._columns = len(is_binary)
        self._is_binary = np.array(is_binary, dtype=np.uint8)
        self._is_single = np.array(is_single, dtype=bool)
        self._receive = receive
        capacity = max(MOST_VALUES // self._columns, 1) * self._columns
        self._source = np.zeros(SOURCE_BYTES + PADDING, dtype=np.uint8)
        self._present = np.zeros(capacity, dtype=np.uint8)
        self._offsets = np.zeros(capacity + 1, dtype=np.int32)
        self._text = np.empty(TEXT_BYTES + PADDING, dtype=np.uint8)
        self._words = np.zeros(len(kernel.WORDS), dtype=np.int64)
        self._set("SEQUENCE", sequence)
        self._set("COLUMNS", self._columns)
        self._set("VALUES_SIZE", capacity)
        self._set("TEXT_SIZE", TEXT_BYTES)
        for name, array in (
            ("SOURCE", self._source),
            ("IS_BINARY", self._is_binary),
            ("PRESENT", self._present),
            ("OFFSETS", self._offsets),
            ("TEXT", self._text),
        ):
            self._set(name, address_of(array))
        self.error: bytes | None = None
        """The server's packet, if an error ended the rows."""

    def batches(self) -> Iterator[pa.ListArray]:
        """Yield the rows, each a list of texts, until the server ends them.

        Raises
        ------
        BrokenStreamError
            The bytes are no rows of the answer.
        """
        while True:
            status = split_rows(address_of(self._words))
            if status == kernel.MORE:
                self._receive_more()
                continue
            if reason := _REASONS.get(status):
                raise BrokenStreamError(f"The rows of a table arrived damaged: {reason}.", hint="Try again.")
            if self._get("VALUES"):
                yield self._rows()
            if status == kernel.LONG:
                yield self._long_row()
            elif status != kernel.FULL:
                self.error = self._packet() if status == kernel.ERROR else None
                return

    def _receive_more(self) -> None:
        begin, end = self._get("SOURCE_POS"), self._get("SOURCE_END")
        if begin:
            self._source[: end - begin] = self._source[begin:end].copy()
            end -= begin
            self._set("SOURCE_POS", 0)
        self._set("SOURCE_END", end + self._receive(self._source.data[end:SOURCE_BYTES]))

    def _rows(self) -> pa.ListArray:
        values, size = self._get("VALUES"), self._get("TEXT_END")
        texts = text_array(values, self._present, self._offsets, self._text, size)
        self._set("VALUES", 0)
        self._set("TEXT_END", 0)
        return self._lists(texts)

    def _lists(self, texts: pa.StringArray) -> pa.ListArray:
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            raise _not_text() from None
        rows = len(texts) // self._columns
        ends = np.arange(0, len(texts) + 1, self._columns, dtype=np.int32)
        return pa.ListArray.from_arrays(ends, self._with_singles(texts, rows))

    def _with_singles(self, texts: pa.StringArray, rows: int) -> pa.StringArray:
        """Replace the digits of a DOUBLE by those of a FLOAT, where the column is one."""
        if not self._is_single.any():
            return texts
        chosen = pc.and_(pa.array(np.tile(self._is_single, rows)), texts.is_valid())
        return pc.replace_with_mask(texts, chosen, single_texts(texts.filter(chosen)))

    def _long_row(self) -> pa.ListArray:
        """Return a row that takes several packets."""
        payload = bytearray(self._packet())
        while len(payload) % kernel.LONGEST == 0:
            part = self._packet()
            payload += part
            if len(part) < kernel.LONGEST:
                break
        return self._lists(pa.array(list(self._values(payload)), pa.string()))

    def _packet(self) -> bytes:
        """Take the next packet and return its payload."""
        head = self._exactly(_HEAD)
        if head[3] != self._get("SEQUENCE"):
            raise BrokenStreamError(f"The rows of a table arrived damaged: {_REASONS[kernel.BAD_SEQUENCE]}.")
        self._set("SEQUENCE", (head[3] + 1) & 0xFF)
        return self._exactly(int.from_bytes(head[:3], "little"))

    def _exactly(self, size: int) -> bytes:
        while self._get("SOURCE_END") - self._get("SOURCE_POS") < size:
            self._receive_more()
        begin = self._get("SOURCE_POS")
        self._set("SOURCE_POS", begin + size)
        return self._source[begin : begin + size].tobytes()

    def _values(self, payload: bytearray) -> Iterator[str | None]:
        at = 0
        for is_binary in self._is_binary:
            size, at = payload[at], at + 1
            if size == _NULL:
                yield None
                continue
            if size > _NULL:
                wide = _WIDTHS[size]
                size, at = int.from_bytes(payload[at : at + wide], "little"), at + wide
            value, at = payload[at : at + size], at + size
            try:
                yield f"0x{value.hex().upper()}" if is_binary else value.decode()
            except UnicodeDecodeError:
                raise _not_text() from None
        if at != len(payload):
            raise BrokenStreamError(f"The rows of a table arrived damaged: {_REASONS[kernel.BAD_ROW]}.")

    def _get(self, name: str) -> int:
        return int(self._words[kernel.WORDS[name] >> 3])

    def _set(self, name: str, value: int) -> None:
        self._words[kernel.WORDS[name] >> 3] = value


def _not_text() -> BrokenStreamError:
    return BrokenStreamError("The server sent text that is not UTF-8.", hint="Check the values of the table.")


def single_texts(numbers: pa.StringArray) -> pa.StringArray:
    """Return the numbers of a FLOAT in the fewest digits that give the same 32 bits, as the decoder writes them."""
    bits: npt.NDArray[np.float32] = numbers.cast(pa.float64()).to_numpy(zero_copy_only=False).astype(np.float32)
    text = np.empty(len(bits) * _SINGLE_BYTES + PADDING, dtype=np.uint8)
    offsets = np.zeros(len(bits) + 1, dtype=np.int32)
    size = write_singles(address_of(bits), len(bits), address_of(text), address_of(offsets), address_of(POWERS))
    if size < 0:
        raise BrokenStreamError("The server sent a FLOAT that is not a number.", hint="Try again.")
    return pa.StringArray.from_buffers(len(bits), pa.py_buffer(offsets), pa.py_buffer(text[:size].tobytes()))
