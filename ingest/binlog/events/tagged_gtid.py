"""GTID_TAGGED events (MySQL 8.3), the only type in the servers' serialization format: fields with ids.

Sources: server, libs/mysql/serialization/readme.md and variable_length_integers.h; libs/mysql/binlog/event/
control_events.h, `Gtid_event::define_fields`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ingest.binlog.events.reader import MalformedEventError, Reader

_FORMAT_VERSION: Final = 1
_UUID_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class TaggedGtid:
    """The fields of a GTID_TAGGED event.

    Timestamps are microseconds since 1970, server versions numbers such as 90704, as in GTID events. A field that
    is missing because it equals another field (`original_…` equals `immediate_…`) gets the value of that field.
    """

    flags: int
    uuid: bytes
    tag: str
    number: int
    last_committed: int
    sequence_number: int
    immediate_commit_timestamp: int
    original_commit_timestamp: int
    transaction_length: int
    immediate_server_version: int
    original_server_version: int
    commit_group_ticket: int = 0


def parse_tagged_gtid(body: bytes) -> TaggedGtid:
    """Parse the body of a GTID_TAGGED event.

    The body is a version, the size of the whole message, the last field id that must be understood, then ids and
    values.

    Raises
    ------
    MalformedEventError
        When the fields do not fit into the body or do not ascend, a field is missing, or an unknown field must be
        understood.
    """
    reader = Reader(body)
    if (version := varlen(reader)) != _FORMAT_VERSION:
        raise MalformedEventError(f"serialization format {version} is unknown")
    end = varlen(reader)
    if end > len(body):
        raise MalformedEventError(f"a message of {end} bytes ends behind the event")
    last_required = varlen(reader)
    fields: dict[str, Any] = {}
    latest = -1
    while reader.at < end:
        number = varlen(reader)
        if number <= latest:
            raise MalformedEventError(f"field {number} comes behind field {latest}")
        latest = number
        if number >= len(_FIELDS):
            if number <= last_required:
                raise MalformedEventError(f"field {number} is unknown and must be understood")
            break
        name, read = _FIELDS[number]
        fields[name] = read(reader)
    for name, same in _SAME_AS.items():
        if name not in fields and same in fields:
            fields[name] = fields[same]
    try:
        return TaggedGtid(**fields)
    except TypeError:
        raise MalformedEventError("a field is missing") from None


def varlen(reader: Reader) -> int:
    """Return an unsigned integer of 1 to 9 bytes. The ones at the low end of the first byte count the further bytes."""
    first = reader.byte()
    more = (first ^ 0xFF) & -(first ^ 0xFF)
    further = more.bit_length() - 1 if more else 8
    value = reader.number(further)
    # Eight further bytes contain the whole number. With fewer, the rest of the first byte is its low end.
    return value if further == 8 else value << (7 - further) | first >> (further + 1)


def signed_varlen(reader: Reader) -> int:
    """Return a signed integer from a `varlen`: the lowest bit is the sign, a negative number is its complement."""
    value = varlen(reader)
    return ~(value >> 1) if value & 1 else value >> 1


def _uuid(reader: Reader) -> bytes:
    """Return the 16 bytes of a UUID. Each is stored as a number of its own: one byte below 128, else two."""
    numbers = [varlen(reader) for _ in range(_UUID_BYTES)]
    if max(numbers) > 0xFF:
        raise MalformedEventError("a UUID has a byte above 255")
    return bytes(numbers)


def _tag(reader: Reader) -> str:
    return reader.take(varlen(reader)).decode("ascii", "backslashreplace")


_FIELDS: Final[tuple[tuple[str, Callable[[Reader], Any]], ...]] = (
    ("flags", varlen),
    ("uuid", _uuid),
    ("number", signed_varlen),
    ("tag", _tag),
    ("last_committed", signed_varlen),
    ("sequence_number", signed_varlen),
    ("immediate_commit_timestamp", varlen),
    ("original_commit_timestamp", varlen),
    ("transaction_length", varlen),
    ("immediate_server_version", varlen),
    ("original_server_version", varlen),
    ("commit_group_ticket", varlen),
)
_SAME_AS: Final = {
    "original_commit_timestamp": "immediate_commit_timestamp",
    "original_server_version": "immediate_server_version",
}
