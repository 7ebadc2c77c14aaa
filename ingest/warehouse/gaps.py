"""Gaps in the log that was read from a live server. Each gap is recorded, so that no gap is skipped silently.

Needs no Spark.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from ingest.warehouse.files import append_rows, read_rows
from ingest.warehouse.names import source_stem
from ingest.warehouse.tables import STREAM_GAPS

GapReason = Literal["purged", "reset", "diverged"]
GapStatus = Literal["found", "accepted", "unproven", "filled"]


@dataclass(frozen=True)
class Gap:
    """A part of a server's log that cannot be read any more, or that cannot be proven complete.

    Attributes
    ----------
    from_epoch, from_file, from_pos, from_gtids
        Start of the gap: just after the last transaction that was read.
    to_epoch, to_file, to_pos, to_gtids
        End of the gap: the first event that can be read.
    missing_gtids
        GTIDs inside the gap, None when they are unknown.
    reason
        `purged`: the server deleted logs that were not read; `reset`: its logs started over; `diverged`: an earlier
        server had transactions that this server does not have.
    detail
        A sentence that describes the finding.
    server_uuid
        server_uuid of the server that has the gap, None when the server has none.
    """

    from_epoch: int | None
    from_file: str | None
    from_pos: int | None
    from_gtids: str | None
    to_epoch: int
    to_file: str
    to_pos: int
    to_gtids: str | None
    missing_gtids: str | None
    reason: GapReason
    detail: str
    server_uuid: str | None = None

    def gap_id(self, source_id: str) -> str:
        """Return the identifier of the gap, a hash of its start.

        A server that purges more logs, or is reset, moves the end of the gap. It is still the same gap.
        """
        place = json.dumps([source_id, self.from_epoch, self.from_file, self.from_pos])
        return hashlib.sha256(place.encode()).hexdigest()[:32]


def record_gap(source_id: str, gap: Gap, status: GapStatus, home: Path) -> bool:
    """Record a gap or its new status; recording the same again changes nothing.

    Returns
    -------
    bool
        Whether anything new was recorded.

    Raises
    ------
    StoreError
        The warehouse cannot be written.
    """
    identifier = gap.gap_id(source_id)
    row = {"gap_id": identifier, "source_id": source_id, **asdict(gap), "status": status}
    known = next((one for one in gaps(source_id, home) if one["gap_id"] == identifier), None)
    if known is not None and all(known[name] == value for name, value in row.items()):
        return False
    now = datetime.now(UTC)
    name = f"{source_stem(source_id)}-{identifier[:8]}-{now:%Y%m%dT%H%M%S%f}"
    append_rows(STREAM_GAPS, [{**row, "recorded_at": now}], name, home)
    return True


def gaps(source_id: str, home: Path) -> list[dict[str, Any]]:
    """Return the latest state of each gap of a source, as rows of `stream_gaps` in the order they were first found."""
    return latest_gaps(read_rows(STREAM_GAPS, home, source_id=source_id))


def latest_gaps(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Keep the latest row of each gap, in the order in which the gaps were first found."""
    latest: dict[str, dict[str, Any]] = {}
    # Two rows may have the same time: `found` comes before any other status.
    for row in sorted(rows, key=lambda row: (row["recorded_at"], row["status"] != "found")):
        latest[row["gap_id"]] = dict(row)
    return list(latest.values())
