"""The rows of INSERT statements: from bytes of a dump to lists of texts, in the text form of the decoder's values.

A batch has the rows of a few megabytes of the dump, so memory is bounded whatever the size of a table.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ingest.binlog.kernel import dump_row_layout as kernel
from ingest.binlog.kernel import split_dump
from ingest.binlog.kernel.guard import address_of, checked
from ingest.binlog.kernel.layout import PADDING
from ingest.binlog.text.text_arrays import text_array

_SOURCE_BYTES: Final = 4 << 20
# Offsets of texts have 32 bits.
_MOST_BYTES: Final = 1 << 30


class DumpRowError(Exception):
    """The bytes at an offset are no row. Its text is the reason.

    Attributes
    ----------
    offset
        Offset of the row from the begin of the bytes.
    """

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.offset = offset


class DumpRows:
    """Splits the rows of INSERT statements of one table.

    Parameters
    ----------
    kinds
        For each column its kind, as in `dump_row_layout`.
    read
        Writes the next bytes and returns their number, 0 at the end.
    head_size
        Takes bytes at the begin of a statement; returns the size of its text up to the first row, None if it is no
        INSERT statement of this table.
    """

    def __init__(
        self, kinds: Sequence[int], read: Callable[[memoryview], int], head_size: Callable[[bytes], int | None]
    ) -> None:
        self._columns = len(kinds)
        self._kinds = np.array(kinds, dtype=np.uint8)
        self._read = read
        self._head_size = head_size
        self._has_ended = False
        self._offset = 0
        self._words = np.zeros(len(kernel.WORDS), dtype=np.int64)
        self._head = np.zeros(PADDING, dtype=np.uint8)
        self._source = np.zeros(0, dtype=np.uint8)
        self._set("COLUMNS", self._columns)
        self._set("KINDS", address_of(self._kinds))
        self._grow(_SOURCE_BYTES)

    def batches(self) -> Iterator[pa.ListArray]:
        """Yield the rows, each a list of texts.

        Raises
        ------
        DumpRowError
            The bytes are no rows of the table.
        """
        split = checked(split_dump)
        while self._begin_statement():
            status = kernel.MORE
            while status == kernel.MORE:
                status = split(address_of(self._words))
                if status == kernel.BAD:
                    raise self._error("a row is not in a form that dumps have, or lacks columns of its table")
                is_empty = self._get("VALUES") == 0
                if not is_empty:
                    yield self._rows()
                if status == kernel.MORE and not self._receive(must_grow=is_empty):
                    raise self._error("a row is cut off")

    def _begin_statement(self) -> bool:
        """Go to the first row of the next statement; return whether there is one."""
        while True:
            begin, end = self._get("SOURCE_POS"), self._get("SOURCE_END")
            rest = self._source[begin:end].tobytes()
            blank = len(rest) - len(rest.lstrip())
            if blank < len(rest):
                size = self._head_size(rest[blank:])
                if size is not None:
                    self._take_head(rest[blank : blank + size])
                    self._set("SOURCE_POS", begin + blank + size)
                    return True
            if not self._receive(must_grow=False):
                if blank < len(rest):
                    raise self._error("a statement is not an INSERT statement of its table")
                return False

    def _take_head(self, head: bytes) -> None:
        self._head = np.frombuffer(head + bytes(PADDING), dtype=np.uint8).copy()
        self._set("HEAD", address_of(self._head))
        self._set("HEAD_SIZE", len(head))

    def _receive(self, *, must_grow: bool) -> bool:
        """Read further bytes behind those that are not split yet; return whether there are any."""
        begin, end = self._get("SOURCE_POS"), self._get("SOURCE_END")
        if begin:
            self._source[: end - begin] = self._source[begin:end].copy()
            self._offset += begin
            end -= begin
            self._set("SOURCE_POS", 0)
            self._set("SOURCE_END", end)
        size = len(self._source) - PADDING
        if end == size or (must_grow and 2 * end > size):
            if size >= _MOST_BYTES // 2:
                raise self._error("a row has more bytes than any server sends")
            self._grow(2 * size)
            size *= 2
        first = end
        while end < size and (count := self._read(self._source.data[end:size])):
            end += count
        self._set("SOURCE_END", end)
        return end > first

    def _grow(self, size: int) -> None:
        source = np.zeros(size + PADDING, dtype=np.uint8)
        source[: len(self._source)] = self._source
        values = size // kernel.LEAST_VALUE + 1
        self._source = source
        self._present = np.zeros(values, dtype=np.uint8)
        self._offsets = np.zeros(values + 1, dtype=np.int32)
        self._text = np.empty(kernel.TEXT_EXCESS * size + PADDING, dtype=np.uint8)
        for name, array in (
            ("SOURCE", self._source),
            ("PRESENT", self._present),
            ("OFFSETS", self._offsets),
            ("TEXT", self._text),
        ):
            self._set(name, address_of(array))

    def _rows(self) -> pa.ListArray:
        values, size = self._get("VALUES"), self._get("TEXT_END")
        texts = text_array(values, self._present, self._offsets, self._text, size)
        self._set("VALUES", 0)
        self._set("TEXT_END", 0)
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            raise self._error("a text before this row is not UTF-8") from None
        ends = np.arange(0, values + 1, self._columns, dtype=np.int32)
        return pa.ListArray.from_arrays(ends, self._with_bits(texts))

    def _with_bits(self, texts: pa.StringArray) -> pa.StringArray:
        """Replace hex and bits by numbers, where the column is a BIT."""
        is_bits = self._kinds == kernel.BITS
        if not is_bits.any():
            return texts
        chosen = pc.and_(pa.array(np.tile(is_bits, len(texts) // self._columns)), texts.is_valid())
        numbers = pa.array(map(_number_of_bits, texts.filter(chosen).to_pylist()), pa.string())
        return pc.replace_with_mask(texts, chosen, numbers)

    def _error(self, reason: str) -> DumpRowError:
        return DumpRowError(reason, self._offset + self._get("SOURCE_POS"))

    def _get(self, name: str) -> int:
        return int(self._words[kernel.WORDS[name] >> 3])

    def _set(self, name: str, value: int) -> None:
        self._words[kernel.WORDS[name] >> 3] = value


def _number_of_bits(text: str) -> str:
    return str(int(text[1:] or "0", 2) if text.startswith("b") else int(text[2:] or "0", 16))
