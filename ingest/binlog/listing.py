"""The events of a file one by one, for people who want to look."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from ingest.binlog.buffers import Context, ControlBuffers, IndexBuffer, Window
from ingest.binlog.control import describe
from ingest.binlog.events import event_name
from ingest.binlog.kernel import layout, run

if TYPE_CHECKING:
    from ingest.binlog.format import FormatDescription


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


def list_events(window: Window, format: "FormatDescription", end: int, context: Context) -> Iterator[Event]:
    """Yields the events of a window up to offset `end`; a bad checksum is in the event, a bad size ends the walk."""
    index, control = IndexBuffer(), ControlBuffers()
    index.attach(context)
    control.attach(context)
    window.attach(context)
    context["END_POS"] = end
    tail = 4 if format.has_checksums else 0
    while True:
        status = run(context.address)
        count, context["INDEX_COUNT"] = context["INDEX_COUNT"], 0
        context["PROBLEM_COUNT"] = 0
        for position, size, code, seconds, server_id, flags, _, good in index.records[:count].tolist():
            yield Event(
                position=position,
                end_position=position + size,
                type_name=event_name(code),
                type_code=code,
                timestamp=datetime.fromtimestamp(seconds, UTC) if seconds else None,
                server_id=server_id,
                flags=flags,
                size=size,
                checksum_ok=bool(good) if tail else None,
                detail=describe(code, window.bytes_at(position, size), format),
            )
        if status == layout.FULL or (status == layout.NEED_BYTES and window.advance(context)):
            continue
        return
