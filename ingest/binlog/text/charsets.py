"""Character sets of the servers by collation id, and their conversion tables for the kernel."""

import zlib
from bisect import bisect_right
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Final

import numpy as np
import numpy.typing as npt

from ingest.binlog.kernel import layout

BEYOND_BMP: Final = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
"""Character sets with signs beyond the Basic Multilingual Plane, which utf8mb3 has as question marks."""

# First collation id of each run, and the character sets of the ids from there on, as both servers number them
# (information_schema.collations of MySQL 9.7 and MariaDB 10.11; they agree where both have an id).
_RUNS: Final = (
    (1, "big5 latin2 dec8 cp850 latin1 hp8 koi8r latin1 latin2 swe7 ascii ujis sjis cp1251 latin1 hebrew"),
    (18, "tis620 euckr latin7 latin2 koi8u cp1251 gb2312 greek cp1250 latin2 gbk cp1257 latin5 latin1 armscii8"),
    (33, "utf8mb3 cp1250 ucs2 cp866 keybcs2 macce macroman cp852 latin7 latin7 macce cp1250 utf8mb4 utf8mb4"),
    (47, "latin1 latin1 latin1 cp1251 cp1251 cp1251 macroman utf16 utf16 utf16le cp1256 cp1257 cp1257 utf32 utf32"),
    (62, "utf16le binary armscii8 ascii cp1250 cp1256 cp866 dec8 greek hebrew hp8 keybcs2 koi8r koi8u utf8mb3"),
    (77, "latin2 latin5 latin7 cp850 cp852 swe7 utf8mb3 big5 euckr gb2312 gbk sjis tis620 ucs2 ujis geostd8 geostd8"),
    (94, "latin1 cp932 cp932 eucjpms eucjpms cp1250"),
)
_BLOCKS: Final = (
    (101, "utf16"),
    (128, "ucs2"),
    (160, "utf32"),
    (192, "utf8mb3"),
    (224, "utf8mb4"),
    (248, "gb18030"),
    (251, None),
    (255, "utf8mb4"),
    (324, None),
    # From here on only MariaDB's collations. Their NO PAD twins have ids + 1024 (see `charset_of`), then UCA 14
    # blocks of 256 ids follow.
    (576, "utf8mb3"),
    (608, "utf8mb4"),
    (640, "ucs2"),
    (672, "utf16"),
    (736, "utf32"),
    (768, None),
    (2048, "utf8mb3"),
    (2304, "utf8mb4"),
    (2560, "ucs2"),
    (2816, "utf16"),
    (3072, "utf32"),
    (3328, None),
)
_BY_ID: Final = {first + i: name for first, names in _RUNS for i, name in enumerate(names.split())}
_BLOCK_STARTS: Final = [first for first, _ in _BLOCKS]

BINARY: Final = "binary"

_ALIASES: Final = {"utf8": "utf8mb3"}
_WIDE: Final = {
    "utf8mb4": layout.CHARSET_UTF8,
    "utf8mb3": layout.CHARSET_UTF8,
    "ucs2": layout.CHARSET_UTF16,
    "utf16": layout.CHARSET_UTF16,
    "utf16le": layout.CHARSET_UTF16LE,
    "utf32": layout.CHARSET_UTF32,
    BINARY: layout.CHARSET_BINARY,
}
_TABLES: Final = files("ingest.binlog.text") / "charset_tables"

# Python's codecs for short texts. Where they differ from the servers' tables, `decode_text` uses the tables.
_CODECS: Final = {
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    BINARY: "utf-8",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}
_OF_THE_BMP: Final = frozenset({"utf8mb3", "ucs2"})


def charset_of(collation: int) -> str | None:
    """Return the character set of a collation id; None for an id that no server has."""
    if 1024 < collation < 2048:
        # The id of a MariaDB NO PAD collation is its twin's id + 1024.
        collation -= 1024
    if collation in _BY_ID:
        return _BY_ID[collation]
    block = bisect_right(_BLOCK_STARTS, collation) - 1
    return _BLOCKS[block][1] if block >= 0 else None


def canonical(charset: str) -> str:
    """Return the name that this package uses for a character set: `utf8` is `utf8mb3`."""
    charset = charset.lower()
    return _ALIASES.get(charset, charset)


def decode_text(data: bytes, charset: str | None) -> str:
    """Decode a short text (a label, a statement, a name) from a character set; invalid bytes become `\\xNN`."""
    charset = canonical(charset or "utf8mb4")
    kind, table = conversion(charset) or (layout.CHARSET_UNKNOWN, None)
    if table is None:
        return data.decode(_CODECS.get(charset, "utf-8"), "backslashreplace")
    return "".join(sign if isinstance(sign, str) else f"\\x{sign:02x}" for sign in _signs(data, kind, table))


def as_text(data: bytes, charset: str) -> str | None:
    """Decode a short text from a character set; None if some bytes are no character of it."""
    charset = canonical(charset)
    kind, table = conversion(charset) or (layout.CHARSET_UNKNOWN, None)
    if table is None:
        try:
            return data.decode(_CODECS.get(charset, "utf-8"))
        except UnicodeDecodeError:
            return None
    signs = [*_signs(data, kind, table)]
    return "".join(map(str, signs)) if all(isinstance(sign, str) for sign in signs) else None


def encode_text(text: str, charset: str) -> bytes:
    """Encode a short text in a character set; a character that it lacks becomes `?`, as in the servers."""
    charset = canonical(charset)
    _, table = conversion(charset) or (layout.CHARSET_UNKNOWN, None)
    if table is None:
        if charset in _OF_THE_BMP:
            text = "".join(sign if ord(sign) < 0x10000 else "?" for sign in text)
        return text.encode(_CODECS.get(charset, "utf-8"), "replace")
    if charset == "gb18030":
        return text.encode(charset, "replace")
    known = _bytes_of_signs(charset)
    return b"".join(known.get(sign, b"?") for sign in text)


@cache
def _bytes_of_signs(charset: str) -> dict[str, bytes]:
    """Return the bytes of each character of a set with a table."""
    kind, table = conversion(charset) or (layout.CHARSET_UNKNOWN, None)
    assert table is not None
    known: dict[str, bytes] = {}
    sequences = [bytes([first]) for first in range(256)]
    if kind == layout.CHARSET_MULTI_BYTE:
        sequences += [int(pair).to_bytes(2, "big") for pair in np.flatnonzero(table[:65536])]
        sequences += [b"\x8f" + int(pair).to_bytes(2, "big") for pair in np.flatnonzero(table[65792:])]
    for sequence in sequences:
        signs = [*_signs(sequence, kind, table)]
        if len(signs) == 1 and isinstance(signs[0], str):
            known.setdefault(signs[0], sequence)
    return known


def _signs(data: bytes, kind: int, table: npt.NDArray[np.uint32]) -> Iterator[str | int]:
    """Yield the characters of a text, and each byte that begins none as a number; `table` has the kernel's layout."""
    at = 0
    while at < len(data):
        code, size = _next_character(data, at, kind, table)
        yield chr(code) if code or data[at] == 0 else data[at]
        at += size


def _next_character(data: bytes, at: int, kind: int, table: npt.NDArray[np.uint32]) -> tuple[int, int]:
    """Return code point (0 for none) and byte count of the character at `at`; `table` has the kernel's layout."""
    first = data[at]
    if kind in (layout.CHARSET_SINGLE_BYTE, layout.CHARSET_NOT_ASCII):
        entry = int(table[first])
        encoded = (entry & 0xFFFFFF).to_bytes(3, "little")[: entry >> 24]
        return (ord(encoded.decode()) if entry else 0), 1
    single = int(table[65536 + first])
    if single or first == 0:
        return single, 1
    pair = data[at : at + 2]
    code = int(table[int.from_bytes(pair, "big")]) if len(pair) == 2 else 0
    if code:
        return code, 2
    if kind == layout.CHARSET_GB18030:
        code = _gb18030_code(data[at : at + 4], table)
        return code, 4 if code else 1
    triple = data[at + 1 : at + 3]
    code = int(table[65792 + int.from_bytes(triple, "big")]) if first == 0x8F and len(triple) == 2 else 0
    return code, 3 if code else 1


def _gb18030_code(sequence: bytes, table: npt.NDArray[np.uint32]) -> int:
    """Return the code point of four gb18030 bytes, 0 when they are no character; see the kernel's `_write_gb18030`."""
    if len(sequence) < 4 or any(not 0x81 <= sequence[i] <= 0xFE or not 0x30 <= sequence[i + 1] <= 0x39 for i in (0, 2)):
        return 0
    first, second, third, fourth = sequence
    number = (((first - 0x81) * 10 + second - 0x30) * 126 + third - 0x81) * 10 + fourth - 0x30
    if number < layout.GB18030_BMP:
        return int(table[65792 + number])
    number -= layout.GB18030_SUPPLEMENT
    return 0x10000 + number if 0 <= number < 0x100000 else ord("?")


@cache
def conversion(charset: str) -> tuple[int, npt.NDArray[np.uint32] | None] | None:
    """Return the kernel's code for a character set and its table, or None when it cannot be converted.

    The tables are the servers' own: MySQL 9.7 and MariaDB 10.11 converted each character set
    (`tools/record_charsets.py`). This function's cache keeps each table alive, so its address may be kept.
    """
    charset = canonical(charset)
    if charset in _WIDE:
        return _WIDE[charset], None
    path = _TABLES / f"{charset}.bin"
    if not path.is_file():
        return None
    points = np.frombuffer(zlib.decompress(path.read_bytes()), dtype="<u2").astype(np.uint32)
    if len(points) == 256:
        keeps_ascii = np.array_equal(points[:128], np.arange(128))
        kind = layout.CHARSET_SINGLE_BYTE if keeps_ascii else layout.CHARSET_NOT_ASCII
        return kind, _utf8_entries(points)
    if charset == "gb18030":
        return layout.CHARSET_GB18030, points
    if len(points) == 65792:
        # The kernel looks up three-byte characters in every multi-byte set.
        points = np.concatenate([points, np.zeros(65536, dtype=np.uint32)])
    return layout.CHARSET_MULTI_BYTE, points


def _utf8_entries(points: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]:
    """Return the UTF-8 bytes of 256 code points, with their count in the top byte; 0 where no character exists."""
    entries = np.zeros(256, dtype=np.uint32)
    for byte, point in enumerate(points.tolist()):
        if point or byte == 0:
            encoded = chr(point).encode()
            entries[byte] = len(encoded) << 24 | int.from_bytes(encoded, "little")
    return entries
