"""Classifies how mysqlbinlog, mysql-replication and binloom handle a specimen, in one word.

- decoded: it gives the content of the event, or the value.
- named: it gives the event's type, but not all of its content.
- dropped: it gives nothing and continues.
- wrong: it gives a wrong value.
- refused: it stops with an error.
"""

from __future__ import annotations

import contextlib
import json
import re
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pymysqlreplication.row_event import RowsEvent

from ingest.binlog import open_binlog
from ingest.binlog.listing import Event
from ingest.errors import BinloomError
from tests.servers import mysql
from tests.support.binlog import binlogtool_output, mysql_replication
from tests.support.binlog.binlogtool_output import unescaped
from tests.support.binlog.binlogtool_values import agrees
from tests.support.binlog.format_specimens import ColumnSpecimen, EventSpecimen

DECODED, NAMED, DROPPED, WRONG, REFUSED = "decoded", "named", "dropped", "wrong", "refused"


class RefusedError(Exception):
    """A program stops at an event."""


def positions(specimen: EventSpecimen, path: Path) -> list[int]:
    """Return the positions of the events of the specimen's type."""
    if specimen.code == 1 or path.parent.name != "fixtures":
        return [_position(path.read_bytes(), specimen.code)]
    return [event.position for event in _until_refused(path).values() if event.type_code == specimen.code]


def _position(data: bytes, code: int) -> int:
    at = 4
    while data[at + 4] != code:
        at += int.from_bytes(data[at + 9 : at + 13], "little")
    return at


# --- binloom ---


def binloom_event(specimen: EventSpecimen, path: Path) -> str:
    wanted, events = positions(specimen, path), _until_refused(path)
    if not set(wanted) <= events.keys():
        return REFUSED
    details = [events[position].detail for position in wanted]
    is_rows = "ROWS" in specimen.name and "QUERY" not in specimen.name and "ANNOTATE" not in specimen.name
    if is_rows or specimen.name in ("TRANSACTION_PAYLOAD", "PARTIAL_ROW_DATA"):
        log = open_binlog(path, hints=specimen.hints)
        rows = [row for batch in log.row_batches() for row in batch.to_pylist()]
        details = [[row["before_values"], row["after_values"]] for row in rows if row["start_pos"] in wanted]
    text = json.dumps(details, default=str, ensure_ascii=False)
    return _word(specimen, text if '"malformed"' not in text else "", is_named=True)


def _until_refused(path: Path) -> dict[int, Event]:
    """Yield the events that binloom lists outside of payloads, by position, up to an event at which it stops."""
    found = {}
    with contextlib.suppress(BinloomError):
        for event in open_binlog(path).events():
            found.setdefault(event.position, event)
    return found


def binloom_column(specimen: ColumnSpecimen, path: Path) -> str:
    found = [row["after_values"][0] for batch in open_binlog(path).row_batches() for row in batch.to_pylist()]
    if not found:
        return DROPPED
    return DECODED if found == list(specimen.texts) else WRONG


# --- mysqlbinlog ---


def mysqlbinlog_event(specimen: EventSpecimen, path: Path) -> str:
    wanted = positions(specimen, path)
    done = mysql.binlogtool("-vv", "--base64-output=decode-rows", str(path), check=False)
    pieces = re.split(rb"^# at (\d+)\n", done.stdout, flags=re.MULTILINE)
    texts = [text for at, text in zip(pieces[1::2], pieces[2::2], strict=True) if int(at) in wanted]
    if done.returncode and (not texts or int(pieces[-2]) in wanted):
        return REFUSED
    everything = (done.stdout if specimen.name in _PRINTED_LATER else b"".join(texts)).decode(errors="replace")
    is_named = bool(re.search(r"CRC32 0x\w+\s*\S", everything)) and "Unknown event" not in everything
    return _word(specimen, everything, is_named=is_named)


# mysqlbinlog prints these with the statement they belong to, or (events of a payload) under another position.
_PRINTED_LATER = frozenset(
    {"BEGIN_LOAD_QUERY", "APPEND_BLOCK", "DELETE_FILE", "EXECUTE_LOAD_QUERY", "INTVAR", "RAND", "USER_VAR"}
    | {"TRANSACTION_PAYLOAD"}
)


def mysqlbinlog_column(specimen: ColumnSpecimen, path: Path) -> str:
    done = mysql.binlogtool("-vv", "--base64-output=decode-rows", str(path), check=False)
    try:
        changes = binlogtool_output.parse(done.stdout).changes
    except AssertionError:
        return REFUSED
    printed = [value for change in changes for value in change.after or ()]
    if done.returncode or len(printed) < len(specimen.texts):
        return REFUSED
    return DECODED if all(map(_prints(specimen), specimen.texts, printed)) else WRONG


def _prints(specimen: ColumnSpecimen) -> Callable[[str, bytes | None], bool]:
    def is_same(text: str, printed: bytes | None) -> bool:
        if specimen.column.kind == "bytes":
            return printed is not None and unescaped(printed, "mysql") == bytes.fromhex(text[2:])
        if specimen.name == "VECTOR":
            floats = struct.unpack("<ff", bytes.fromhex(text[2:]))
            return printed is not None and [float(each) for each in printed.strip(b"[]").split(b",")] == list(floats)
        if specimen.name.startswith("YEAR"):
            return printed is not None and printed.decode() == text
        return agrees(specimen.column, text, printed, "mysql")

    return is_same


# --- mysql-replication ---


def mysql_replication_event(specimen: EventSpecimen, path: Path) -> str:
    wanted = positions(specimen, path)
    try:
        found = list(_their_events(path, wanted))
    except Exception:
        return REFUSED
    if not found:
        return DROPPED
    return _word(specimen, " ".join(found), is_named=True)


def _their_events(path: Path, wanted: list[int]) -> Iterator[str]:
    data = path.read_bytes()
    flavor = "mariadb" if b"MariaDB" in data[:80] else "mysql"
    has_checksums = data[8] == 15 and data[4 + int.from_bytes(data[13:17], "little") - 5] == 1
    maps = [event.detail for event in _until_refused(path).values() if event.type_name == "TABLE_MAP"]
    has_names = any(" " in column for detail in maps for column in detail.get("columns", ()))
    for position, event in mysql_replication.events(path, flavor, has_checksums=has_checksums, full_metadata=has_names):
        if position in wanted and event is not None:
            yield repr([event.rows if isinstance(event, RowsEvent) else None, _facts(event)])


def _facts(thing: Any) -> Any:
    """Return the texts of an event's attributes and properties; bytes as text and as hex."""
    if isinstance(thing, bytes):
        return thing.decode(errors="replace"), thing.hex()
    if isinstance(thing, list | tuple | set):
        return [_facts(each) for each in thing]
    if not hasattr(thing, "__dict__"):
        return thing
    own = {name: value for name, value in vars(thing).items() if name not in _INNARDS}
    kind = type(thing)
    given = {name: getattr(thing, name) for name in dir(kind) if isinstance(getattr(kind, name), property)}
    return {name: _facts(value) for name, value in (own | given).items()}


_INNARDS = ("packet", "_ctl_connection", "table_map", "_RowsEvent__rows")


def mysql_replication_column(specimen: ColumnSpecimen, path: Path) -> str:
    try:
        events = mysql_replication.row_events(path, "mysql", has_checksums=True, full_metadata=specimen.is_named)
        found = [value for event in events for row in event.rows for value in row["values"].values()]
    except Exception:
        return REFUSED
    if len(found) < len(specimen.texts):
        return DROPPED
    return DECODED if all(map(_gives(specimen), specimen.texts, found)) else WRONG


def _gives(specimen: ColumnSpecimen) -> Callable[[str, Any], bool]:
    def is_same(text: str, value: Any) -> bool:
        match specimen.column.kind:
            case "json":
                return repr(_json_of(value)) == repr(json.loads(text))
            case "bytes":
                return value == bytes.fromhex(text[2:])
            case _:
                return mysql_replication.is_same_value(specimen.column, text, value)

    return is_same


def _json_of(value: Any) -> Any:
    """Convert a document of mysql-replication, whose texts are bytes."""
    match value:
        case bytes():
            return value.decode()
        case dict():
            return {_json_of(key): _json_of(item) for key, item in value.items()}
        case list():
            return [_json_of(item) for item in value]
        case _:
            return value


def _word(specimen: EventSpecimen, text: str, *, is_named: bool) -> str:
    if not is_named:
        return DROPPED
    if all(said in text for said in specimen.says):
        return DECODED
    return WRONG if specimen.misreading is not None and specimen.misreading in text else NAMED


EVENT_PROGRAMS: dict[str, Callable[[EventSpecimen, Path], str]] = {
    "mysqlbinlog": mysqlbinlog_event,
    "mysql-replication": mysql_replication_event,
    "binloom": binloom_event,
}
COLUMN_PROGRAMS: dict[str, Callable[[ColumnSpecimen, Path], str]] = {
    "mysqlbinlog": mysqlbinlog_column,
    "mysql-replication": mysql_replication_column,
    "binloom": binloom_column,
}
