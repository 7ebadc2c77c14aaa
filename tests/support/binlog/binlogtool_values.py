"""Compares decoded values with the tool's output.

`agrees(column, decoded, printed, flavor)` compares one value. Where the tool prints less than the value, it compares
only the printed part, and a comment says so; other tests compare the rest with `SELECT`.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime

import numpy as np

from tests.support.binlog.binlogtool_output import unescaped
from tests.support.binlog.replay import Absent, Value
from tests.support.binlog.workload import Column

# Python's codecs of these character sets map every character that the workload stores as the servers do.
CODECS = {
    "utf8mb4": "utf-8",
    "utf8mb3": "utf-8",
    "ascii": "ascii",
    "latin1": "cp1252",
    "latin2": "iso8859-2",
    "latin5": "iso8859-9",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1257": "cp1257",
    "koi8r": "koi8-r",
    "greek": "iso8859-7",
    "hebrew": "iso8859-8",
    "ucs2": "utf-16-be",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
    "gbk": "gbk",
    "big5": "big5",
    "euckr": "euc-kr",
}


def agrees(column: Column, decoded: Value, printed: bytes | Absent | None, flavor: str) -> bool:
    """Whether a decoded value equals the value that the tool of a flavor printed."""
    if not isinstance(decoded, str) or not isinstance(printed, bytes):
        return decoded is printed
    if column.kind == "json" and is_differences(printed):
        return True
    match column.kind:
        case "text" | "json" | "binary":
            return _string_agrees(column, decoded, unescaped(printed, flavor))
        case "float":
            # The tool prints only six digits of a FLOAT.
            return f"{float(np.float32(decoded)):g}" == f"{float(printed):g}"
        case "double":
            return float(decoded) == float(printed)
        case _:
            return decoded == _canonical(column, printed.decode())


def is_differences(printed: bytes) -> bool:
    """Whether a document is printed as partial changes, because it is logged as such: SELECT has the whole document."""
    return re.match(rb"JSON_[A-Z_]+\(|@\d+$", printed) is not None


def _string_agrees(column: Column, decoded: str, raw: bytes) -> bool:
    if column.kind == "binary":
        # The tool prints the wire bytes, from which BINARY and CHAR lose their trailing zeros.
        plain = bytes.fromhex(decoded.removeprefix("0x"))
        return plain.rstrip(b"\0") == raw.rstrip(b"\0") if column.ddl.startswith(("binary", "char")) else plain == raw
    if column.kind == "json":
        # The tool prints a document that is a string without its quotes and escapes.
        return decoded.encode() == raw or (decoded.startswith('"') and json.loads(decoded).encode() == raw)
    codec = CODECS.get(column.charset or "")
    return codec is None or decoded.encode(codec) == raw


def _canonical(column: Column, printed: str) -> str:
    """Return binloom's text form of a printed value."""
    match column.kind:
        case "integer":
            # The tool prints -1 (255): signed, and unsigned when the sign bit is set.
            signed, _, unsigned = printed.partition(" (")
            return unsigned.rstrip(")") if column.is_unsigned and unsigned else signed
        case "bit":
            return str(int(printed[2:-1], 2))
        case "year":
            # The tool adds 1900 to the year 0000, too.
            return "0000" if printed == "1900" else printed
        case "date":
            return printed.strip("'").replace(":", "-")
        case "time" | "datetime":
            return printed.strip("'")
        case "timestamp":
            seconds, point, fraction = printed.partition(".")
            if int(seconds) == 0:
                return "0000-00-00 00:00:00" + (point + "0" * len(fraction))
            return f"{datetime.fromtimestamp(int(seconds), UTC):%Y-%m-%d %H:%M:%S}{point}{fraction}"
        case "enum":
            return ("", *column.members)[int(printed)]
        case "set":
            # The tool prints the wire bytes, the lowest first.
            digits = printed[2:-1]
            wire = bytes(int(digits[at : at + 8], 2) for at in range(0, len(digits), 8))
            bits = int.from_bytes(wire, "little")
            return ",".join(member for number, member in enumerate(column.members) if bits >> number & 1)
        case _:
            return printed
