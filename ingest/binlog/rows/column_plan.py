"""Column plans tell the kernel how to read the columns of a table map: eight words per column."""

import numpy as np
import numpy.typing as npt

from ingest.binlog.events.table_map import FIXED_BINARY, Column
from ingest.binlog.kernel.guard import address_of
from ingest.binlog.kernel.layout import (
    CHARSET_BINARY,
    CHARSET_UNKNOWN,
    HIRES_DATETIME_BYTES,
    HIRES_TIME_BYTES,
    HIRES_TIMESTAMP_BYTES,
    LABEL_ADDRESS,
    LABEL_SIZE,
    LABEL_WORDS,
    LABELS_COUNT,
    LABELS_FIRST,
    OPS,
    PLAN_A,
    PLAN_B,
    PLAN_CHARSET,
    PLAN_OP,
    PLAN_SIGNED,
    PLAN_TABLE,
    PLAN_WORDS,
)
from ingest.binlog.text.charsets import BINARY, conversion

_INTEGERS = {"TINY": 1, "SHORT": 2, "INT24": 3, "LONG": 4, "LONGLONG": 8}
_FIXED = {
    "FLOAT": "FLOAT",
    "DOUBLE": "DOUBLE",
    "YEAR": "YEAR",
    "DATE": "DATE",
    "NEWDATE": "DATE",
    "TIME": "OLD_TIME",
    "DATETIME": "OLD_DATETIME",
    "TIMESTAMP": "OLD_TIMESTAMP",
}
_FRACTIONAL = {"TIME2": "TIME2", "DATETIME2": "DATETIME2", "TIMESTAMP2": "TIMESTAMP2"}
# Types of MariaDB before 10.1 with a fraction, and their sizes in bytes by the number of fraction digits.
_HIRES = {
    "TIME": ("HIRES_TIME", HIRES_TIME_BYTES),
    "DATETIME": ("HIRES_DATETIME", HIRES_DATETIME_BYTES),
    "TIMESTAMP": ("HIRES_TIMESTAMP", HIRES_TIMESTAMP_BYTES),
}
_LABEL_SLACK = 64


class ColumnPlan:
    """The plan of a table map: int64, shape (columns, 8), and the arrays that its addresses point at.

    Parameters
    ----------
    json_as_bytes
        Whether the text of a document is its binary form, as `0x` and digits.
    """

    def __init__(self, columns: tuple[Column, ...], *, json_as_bytes: bool = False) -> None:
        self.words: npt.NDArray[np.int64] = np.zeros((max(len(columns), 1), PLAN_WORDS), dtype=np.int64)
        self.json_columns = 0
        self._json_as_bytes = json_as_bytes
        self._kept: list[npt.NDArray[np.int64] | npt.NDArray[np.uint8]] = []
        for column, words in zip(columns, self.words, strict=False):
            words[PLAN_OP] = OPS["UNSUPPORTED"]
            self._plan(column, words)

    @property
    def address(self) -> int:
        return address_of(self.words)

    def _plan(self, column: Column, words: npt.NDArray[np.int64]) -> None:
        kind, metadata = column.type, column.metadata
        if kind in _INTEGERS:
            words[PLAN_OP] = OPS["INTEGER"]
            words[PLAN_A], words[PLAN_B] = _INTEGERS[kind], 64 - 8 * _INTEGERS[kind]
            words[PLAN_SIGNED] = not column.is_unsigned
        elif kind in _HIRES and metadata:
            op, sizes = _HIRES[kind]
            words[PLAN_OP] = OPS[op]
            words[PLAN_A], words[PLAN_B] = sizes[metadata], metadata
        elif kind in _FIXED:
            words[PLAN_OP] = OPS[_FIXED[kind]]
        elif kind in _FRACTIONAL and metadata <= 6:
            words[PLAN_OP] = OPS[_FRACTIONAL[kind]]
            words[PLAN_A] = metadata
        elif kind == "NEWDECIMAL" and 0 < metadata >> 8 <= 65 and metadata & 0xFF <= min(metadata >> 8, 38):
            words[PLAN_OP] = OPS["DECIMAL"]
            words[PLAN_A], words[PLAN_B] = metadata >> 8, metadata & 0xFF
        elif kind == "BIT" and 0 < metadata <= 64:
            words[PLAN_OP] = OPS["BIT"]
            words[PLAN_A] = (metadata + 7) // 8
        elif kind in ("ENUM", "SET") and 1 <= metadata <= (2 if kind == "ENUM" else 8):
            words[PLAN_OP] = OPS[kind]
            words[PLAN_A] = metadata
            if column.members is not None:
                words[PLAN_TABLE], words[PLAN_B] = self._labels(column.members, all_at_once=kind == "SET")
        elif kind in ("VARCHAR", "STRING", "VAR_STRING"):
            self._string(column, words, 1 if metadata < 256 else 2)
        elif kind == "VARCHAR_COMPRESSED":
            self._string(column, words, 1 if metadata < 256 else 2, op="COMPRESSED")
        elif kind == "BLOB_COMPRESSED" and 1 <= metadata <= 4:
            self._string(column, words, metadata, op="COMPRESSED")
        elif kind in FIXED_BINARY:
            words[PLAN_OP] = OPS[kind]
        elif kind == "BLOB" and 1 <= metadata <= 4:
            self._string(column, words, metadata)
        elif kind in ("GEOMETRY", "VECTOR") and 1 <= metadata <= 4:
            words[PLAN_OP] = OPS["BINARY"]
            words[PLAN_A] = metadata
        elif kind == "TYPED_ARRAY":
            # `hidden_arrays.py` leaves the value out.
            words[PLAN_OP], words[PLAN_A] = OPS["BINARY"], 4
        elif kind == "JSON" and 1 <= metadata <= 4:
            words[PLAN_OP] = OPS["BINARY" if self._json_as_bytes else "JSON"]
            words[PLAN_A], words[PLAN_B] = metadata, 0 if self._json_as_bytes else self.json_columns
            self.json_columns += 1

    def _string(self, column: Column, words: npt.NDArray[np.int64], length_bytes: int, op: str = "STRING") -> None:
        if column.charset == BINARY and column.type == "STRING":
            # The wire drops a BINARY's trailing zero bytes.
            words[PLAN_OP] = OPS["BINARY"]
            words[PLAN_A], words[PLAN_B] = length_bytes, column.metadata
            return
        found = (CHARSET_UNKNOWN, None) if column.charset is None else conversion(column.charset)
        if found is None:
            return
        charset, table = found
        words[PLAN_OP] = OPS["BINARY"] if charset == CHARSET_BINARY and op == "STRING" else OPS[op]
        words[PLAN_A], words[PLAN_CHARSET] = length_bytes, charset
        words[PLAN_TABLE] = 0 if table is None else address_of(table)

    def _labels(self, members: tuple[str, ...], *, all_at_once: bool) -> tuple[int, int]:
        """Return the address of the label table, and the most bytes that a value may need.

        `layout.LABELS_COUNT` describes the table.
        """
        encoded = [member.encode() for member in members]
        data = np.frombuffer(b"".join(encoded) + bytes(_LABEL_SLACK), dtype=np.uint8)
        table = np.zeros(LABELS_FIRST + LABEL_WORDS * len(members), dtype=np.int64)
        table[LABELS_COUNT] = len(members)
        at = address_of(data)
        for label, entry in zip(encoded, table[LABELS_FIRST:].reshape(-1, LABEL_WORDS), strict=True):
            entry[LABEL_ADDRESS], entry[LABEL_SIZE] = at, len(label)
            at += len(label)
        self._kept += [data, table]
        sizes = [len(label) + 1 for label in encoded]
        longest = sum(sizes) if all_at_once else max(sizes, default=0)
        return address_of(table), longest + _LABEL_SLACK
