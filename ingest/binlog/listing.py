"""List the events of a file one by one, for human readers."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from ingest.binlog.buffers import ControlBuffers, IndexBuffer
from ingest.binlog.events.describe import describe, describe_payload, events_inside
from ingest.binlog.events.format import FormatDescription
from ingest.binlog.events.moments import moment_of_seconds
from ingest.binlog.events.reader import MalformedEventError
from ingest.binlog.events.types import TRANSACTION_PAYLOAD, event_name
from ingest.binlog.kernel import layout
from ingest.binlog.walking import Walk


@dataclass(frozen=True, slots=True)
class Event:
    """An event's header, physical offsets, and body fields (`detail`, see `control.describe`).

    An event inside a transaction payload has the offsets of the payload. `payload_ordinal` is its number there, from
    1 on, and 0 outside a payload. `checksum_ok` is None when the file has no checksums. `timestamp` is None when the
    header has no timestamp.
    """

    position: int
    end_position: int
    payload_ordinal: int
    type_name: str
    type_code: int
    timestamp: datetime | None
    server_id: int
    flags: int
    size: int
    checksum_ok: bool | None
    detail: dict[str, Any]


def list_events(walk: Walk) -> Iterator[Event]:
    """Yield the events of a walk. A payload is followed by the events in it.

    A bad checksum is recorded in the event; a bad size ends the listing.
    """
    index, control, context = IndexBuffer(), ControlBuffers(), walk.context
    index.attach(context)
    control.attach(context)
    while True:
        status = walk.step()
        count, context["INDEX_COUNT"] = context["INDEX_COUNT"], 0
        context["PROBLEM_COUNT"] = 0
        for position, size, code, seconds, server_id, flags, _, good in index.records[:count].tolist():
            format, bytes_of_event = walk.format_at(position), walk.window.bytes_at(position, size)
            if code == TRANSACTION_PAYLOAD:
                detail, inside = describe_payload(bytes_of_event, format)
            else:
                detail, inside = describe(code, bytes_of_event, format), b""
            event = Event(
                position=position,
                end_position=position + size,
                payload_ordinal=0,
                type_name=event_name(code),
                type_code=code,
                timestamp=moment_of_seconds(seconds),
                server_id=server_id,
                flags=flags,
                size=size,
                checksum_ok=bool(good) if format.has_checksums else None,
                detail=detail,
            )
            yield event
            yield from _events_inside(event, inside, format)
        if status != layout.FULL and not (status == layout.NEED_BYTES and walk.advance()):
            return


def _events_inside(payload: Event, inside: bytes, format: FormatDescription) -> Iterator[Event]:
    """Yield the events in a payload, up to an event that does not fit into it."""
    unchecked = replace(format, checksum_algorithm=None)
    with suppress(MalformedEventError):
        for ordinal, (code, event) in enumerate(events_inside(inside, format), 1):
            seconds = int.from_bytes(event[:4], "little")
            yield replace(
                payload,
                payload_ordinal=ordinal,
                type_name=event_name(code),
                type_code=code,
                timestamp=moment_of_seconds(seconds),
                server_id=int.from_bytes(event[5:9], "little"),
                flags=int.from_bytes(event[17:19], "little"),
                size=len(event),
                checksum_ok=None,
                detail=describe(code, event, unchecked),
            )
