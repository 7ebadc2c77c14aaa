"""Values of compressed columns, which MariaDB logs as it stores them.

A value that is worth compressing has a byte of method and flags, the size of the original, and a zlib or raw deflate
stream. The flags give the number of size bytes; the high byte comes first. Source: server, sql/field_comp.cc,
`compress_zlib` and `uncompress_zlib`. The kernel reads all other values itself.
"""

import numpy as np

from ingest.binlog.events.inflate import inflate
from ingest.binlog.events.reader import MalformedEventError
from ingest.binlog.events.table_map import Column
from ingest.binlog.kernel import convert_string
from ingest.binlog.kernel.guard import address_of
from ingest.binlog.kernel.layout import CHARSET_UNKNOWN, PADDING, STRING_EXPANSION, STRING_ROOM
from ingest.binlog.text.charsets import conversion

_RAW_DEFLATE = 8


def text_of(value: bytes, column: Column) -> str:
    """Return the text of a compressed value. The kernel has already checked its head.

    Raises
    ------
    MalformedEventError
        When the value is not exactly one stream of the stated size, or is not in the column's character set.
    """
    original = inflate(value, is_raw=bool(value[0] & _RAW_DEFLATE))
    source = np.frombuffer(original + bytes(PADDING), dtype=np.uint8)
    target = np.empty(STRING_EXPANSION * len(original) + STRING_ROOM, dtype=np.uint8)
    found = conversion(column.charset) if column.charset else None
    charset, table = found or (CHARSET_UNKNOWN, None)
    start = address_of(target)
    table_at = 0 if table is None else address_of(table)
    end = convert_string(start, address_of(source), len(original), charset, table_at)
    if end < 0:
        raise MalformedEventError("a value is not in the column's character set")
    return target[: end - start].tobytes().decode()
