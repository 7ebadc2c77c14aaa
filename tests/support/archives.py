"""Compresses binlog files as backups do."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import pyarrow as pa

COMPRESS: Final[dict[str, Callable[[bytes], bytes]]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": partial(pa.compress, codec="zstd", asbytes=True),
    ".lz4": partial(pa.compress, codec="lz4", asbytes=True),
}
"""Compressions by the suffix of their files."""

SKIPPABLE: Final = bytes.fromhex("502a4d18 05000000") + b"hello"
"""A frame that decompressors of zstd and lz4 skip."""


def compressed(file: Path, folder: Path, suffix: str) -> Path:
    """Write a compressed copy of a file into a folder, as two streams one after the other, as parallel tools do."""
    compress, data = COMPRESS[suffix], file.read_bytes()
    half = len(data) // 2
    path = folder / (file.name + suffix)
    path.write_bytes(compress(data[:half]) + compress(data[half:]))
    return path
