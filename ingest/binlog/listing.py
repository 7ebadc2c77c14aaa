"""The events of a file one by one, for people who want to look."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ingest.binlog.buffers import ControlBuffers, IndexBuffer
from ingest.binlog.control import describe
from ingest.binlog.events import event_name
from ingest.binlog.kernel import layout
from ingest.binlog.walking import Walk


@dataclass(frozen=True, slots=True)
class Event:
    """An event's header, physical offsets, and what its body says (`detail`, see `control.describe`).

    `checksum_ok` is None in a file without checksums. `timestamp` is None where the header has none.
    """

    position: int
    end_position: int
    type_name: str
    type_code: int
    timestamp: datetime | None
    server_id: int
    flags: int
    size: int
    checksum_ok: bool | None
    detail: dict[str, Any]


def list_events(walk: Walk) -> Iterator[Event]:
    """Yields the events of a walk; a bad checksum is in the event, a bad size ends it."""
    index, control, context = IndexBuffer(), ControlBuffers(), walk.context
    index.attach(context)
    control.attach(context)
    while True:
        status = walk.step()
        count, context["INDEX_COUNT"] = context["INDEX_COUNT"], 0
        context["PROBLEM_COUNT"] = 0
        for position, size, code, seconds, server_id, flags, _, good in index.records[:count].tolist():
            format = walk.format_at(position)
            yield Event(
                position=position,
                end_position=position + size,
                type_name=event_name(code),
                type_code=code,
                timestamp=datetime.fromtimestamp(seconds, UTC) if seconds else None,
                server_id=server_id,
                flags=flags,
                size=size,
                checksum_ok=bool(good) if format.has_checksums else None,
                detail=describe(code, walk.window.bytes_at(position, size), format),
            )
        if status != layout.FULL and not (status == layout.NEED_BYTES and walk.advance()):
            return
