"""Bloom filters of the segments of a file. A look-up reads one page of 1 KiB, which has a checksum of its own.

The filters are split block filters, as those of Parquet: `recover.sources.home.bloom`.
"""

import hashlib
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from recover.sources.engine import registered
from recover.sources.home.bloom import BLOCK_BYTES, SALTS, may_contain

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

PAGE_BYTES: Final = 1024
_BLOCKS_OF_PAGE: Final = PAGE_BYTES // BLOCK_BYTES - 1
# With 16 bits for a value, one of 800 other values seems to be there.
_BITS: Final = 16

Hashes = npt.NDArray[np.uint64]


def name_of_column(schema: str, table: str, ordinal: int) -> str:
    """Return the text that stands before a value of a column in its hash."""
    return f"{schema}\0{table}\0{ordinal}\0"


XA_NAME: Final = "\0xa\0"
"""The text that stands before the identifier of a prepared transaction; no schema is without a name."""


def hash_of(name: str, text: str) -> int:
    """Return the hash of a value of a column."""
    digest = hashlib.md5(f"{name}{text}".encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[8:], "little")


def hashes_of(connection: "DuckDBPyConnection", name: str, texts: pa.ChunkedArray) -> Hashes:
    """Return the hashes of values of a column, without NULL."""
    with registered(connection, "batch", pa.table({"text": texts})):
        # MD5 is the hash that DuckDB and Python have in common, and it stays as it is.
        query = "select distinct md5_number_lower($name || text) as hash from batch where text is not null"
        found: Hashes = connection.execute(query, {"name": name}).fetchnumpy()["hash"]
    return np.asarray(found, dtype=np.uint64)


def filter_of(hashes: Iterable[Hashes], most_bytes: int) -> tuple[int, bytes]:
    """Return the filter of hashes: the number of its blocks, and its pages.

    Parameters
    ----------
    hashes
        The hashes.
    most_bytes
        The filter gets no larger, though it then lets more through.
    """
    every = np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *hashes]))
    if not len(every):
        return 0, b""
    count = max(1, min(-(-len(every) * _BITS // (8 * BLOCK_BYTES)), most_bytes // BLOCK_BYTES))
    words = np.zeros((count, 8), dtype=np.uint32)
    block = ((every >> np.uint64(32)) * np.uint64(count)) >> np.uint64(32)
    low = every & np.uint64(0xFFFFFFFF)
    for lane, salt in enumerate(SALTS):
        bit = ((low * np.uint64(salt)) & np.uint64(0xFFFFFFFF)) >> np.uint64(27)
        np.bitwise_or.at(words[:, lane], block, np.uint32(1) << bit.astype(np.uint32))
    data = words.astype("<u4").tobytes()
    size = _BLOCKS_OF_PAGE * BLOCK_BYTES
    return count, b"".join(_page(data[start : start + size].ljust(size, b"\0")) for start in range(0, len(data), size))


def page_of(hashed: int, count: int) -> int:
    """Return the number of the page that has the block of a hash, in a filter of `count` blocks."""
    return _block_of(hashed, count) // _BLOCKS_OF_PAGE


def is_whole(page: bytes) -> bool:
    """Return whether the checksum of a page is right."""
    return len(page) == PAGE_BYTES and _page(page[:-BLOCK_BYTES]) == page


def is_in(page: bytes, hashed: int, count: int) -> bool:
    """Return whether a filter of `count` blocks may contain a hash, by the page of the hash."""
    start = _block_of(hashed, count) % _BLOCKS_OF_PAGE * BLOCK_BYTES
    return may_contain(page[start : start + BLOCK_BYTES], hashed)


def _block_of(hashed: int, count: int) -> int:
    return (hashed >> 32) * count >> 32


def _page(blocks: bytes) -> bytes:
    return blocks + zlib.crc32(blocks).to_bytes(4, "little").ljust(BLOCK_BYTES, b"\0")
