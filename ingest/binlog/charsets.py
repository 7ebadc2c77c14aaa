"""Character sets of the servers: by collation id, and their conversion tables for the kernel."""

from bisect import bisect_right
from functools import cache
from typing import Final

import numpy as np
import numpy.typing as npt

from ingest.binlog.kernel import strings

# First collation id of each run and its character set, as both servers number them
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
    # MariaDB's own, then its NO PAD twins at + 1024 (see `charset_of`) and its UCA 14 blocks of 256.
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
    "utf8mb4": strings.CHARSET_UTF8,
    "utf8mb3": strings.CHARSET_UTF8,
    "ucs2": strings.CHARSET_UTF16,
    "utf16": strings.CHARSET_UTF16,
    "utf16le": strings.CHARSET_UTF16LE,
    "utf32": strings.CHARSET_UTF32,
    BINARY: strings.CHARSET_BINARY,
}
_SINGLE_BYTE: Final = {
    "ascii": "ascii",
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "tis620": "tis_620",
    "hp8": "hp_roman8",
    "macce": "mac_latin2",
    "macroman": "mac_roman",
}
_MULTI_BYTE: Final = {
    "big5": "big5",
    "gb2312": "gb2312",
    "gbk": "gbk",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "euckr": "cp949",
    "ujis": "euc_jp",
    "eucjpms": "euc_jp",
}


def charset_of(collation: int) -> str | None:
    """The character set of a collation id; None for an id that no server has."""
    if 1024 < collation < 2048:
        # MariaDB's NO PAD collations stand 1024 behind the ones they are twins of.
        collation -= 1024
    if collation in _BY_ID:
        return _BY_ID[collation]
    block = bisect_right(_BLOCK_STARTS, collation) - 1
    return _BLOCKS[block][1] if block >= 0 else None


def canonical(charset: str) -> str:
    """The name a character set goes by here: `utf8` is `utf8mb3`."""
    charset = charset.lower()
    return _ALIASES.get(charset, charset)


def python_codec(charset: str) -> str | None:
    """The Python codec for short texts (labels, statements, names), or None."""
    charset = canonical(charset)
    if charset in ("utf8mb3", "utf8mb4", BINARY):
        return "utf-8"
    wide = {"ucs2": "utf-16-be", "utf16": "utf-16-be", "utf16le": "utf-16-le", "utf32": "utf-32-be"}
    return wide.get(charset) or _SINGLE_BYTE.get(charset) or _MULTI_BYTE.get(charset)


def decode_text(data: bytes, charset: str | None) -> str:
    """A short text in a character set; bytes that are not in it as `\\xNN`."""
    codec = python_codec(charset) if charset else "utf-8"
    return data.decode(codec or "utf-8", "backslashreplace")


@cache
def conversion(charset: str) -> tuple[int, npt.NDArray[np.uint32] | None] | None:
    """The kernel's code for a character set and its table, or None when it cannot be converted.

    The table stays alive in this function's cache, so that its address may be kept.
    """
    charset = canonical(charset)
    if charset in _WIDE:
        return _WIDE[charset], None
    if charset in _SINGLE_BYTE:
        return strings.CHARSET_SINGLE_BYTE, _single_byte_table(charset)
    if charset in _MULTI_BYTE:
        return strings.CHARSET_MULTI_BYTE, _multi_byte_table(_MULTI_BYTE[charset])
    return None


def _single_byte_table(charset: str) -> npt.NDArray[np.uint32]:
    table = np.zeros(256, dtype=np.uint32)
    for byte in range(256):
        try:
            text = bytes([byte]).decode(_SINGLE_BYTE[charset])
        except UnicodeDecodeError:
            if charset != "latin1":
                continue
            # The servers map the five bytes that cp1252 leaves undefined to the C1 controls.
            text = chr(byte)
        encoded = text.encode()
        table[byte] = len(encoded) << 24 | int.from_bytes(encoded, "little")
    return table


def _multi_byte_table(codec: str) -> npt.NDArray[np.uint32]:
    """Code points of two-byte, one-byte and 0x8F three-byte characters, in the layout of `strings`."""
    table = np.zeros(65536 + 256 + 65536, dtype=np.uint32)
    for byte in range(256):
        table[65536 + byte] = _code_point(bytes([byte]), codec)
    for first in range(0x80, 0x100):
        if table[65536 + first]:
            continue
        for second in range(0x30, 0x100):
            table[first << 8 | second] = _code_point(bytes([first, second]), codec)
    if codec == "euc_jp":
        for first in range(0xA1, 0xFF):
            for second in range(0xA1, 0xFF):
                table[65792 + (first << 8 | second)] = _code_point(bytes([0x8F, first, second]), codec)
    return table


def _code_point(data: bytes, codec: str) -> int:
    try:
        text = data.decode(codec)
    except UnicodeDecodeError:
        return 0
    return ord(text) if len(text) == 1 else 0
