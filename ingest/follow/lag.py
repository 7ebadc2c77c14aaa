"""How far the landed tables are behind a followed server."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ingest.binlog.gtid_sets import GtidSet, gtid_union
from ingest.follow.checkpoint import Checkpoint
from ingest.follow.spool import Spool
from ingest.sources.directory import binlog_path
from ingest.warehouse.record import Row, SourceRecord
from ingest.warehouse.segments import FIRST_EVENT, is_done

# Intervals of a MySQL set; domain and number of MariaDB's GTIDs.
_INTERVAL = re.compile(r":(\d+)(?:-(\d+))?(?=[:,]|$)")
_OF_DOMAIN = re.compile(r"(\d+)-\d+-(\d+)")


@dataclass(frozen=True)
class Lag:
    """How far the landed tables are behind the end of a server's log.

    Attributes
    ----------
    seconds
        0 when all that the server is known to have logged is landed; else seconds since the last landed transaction
        committed, None when none is landed.
    bytes
        Bytes of the log that are not landed: those of the spool, and those that the server has not sent yet.
    transactions
        Transactions that are not landed, None where the server has no GTIDs to count.
    """

    seconds: float | None
    bytes: int
    transactions: int | None


def find_lag(spool: Spool, record: SourceRecord, now: datetime) -> Lag | None:
    """Find out how far the tables are behind what a spool's checkpoint says of its server.

    Parameters
    ----------
    spool
        Spool of the source.
    record
        What is landed of the source.
    now
        The time that seconds are counted to.

    Returns
    -------
    Lag or None
        None when nothing was received yet.
    """
    checkpoint = spool.checkpoint
    if checkpoint is None:
        return None
    behind = sum(_bytes_waiting(spool, record, checkpoint)) + _bytes_ahead(checkpoint)
    last = last_landed_at(record)
    seconds = max(0.0, (now - last).total_seconds()) if last else None
    return Lag(seconds if behind else 0.0, behind, _transactions_behind(record, checkpoint, behind))


def last_landed_at(record: SourceRecord) -> datetime | None:
    """Return when the last landed transaction committed, as the server says."""
    moments = (
        state["max_event_at"]
        for states in record.states.values()
        for state in states
        if state["status"] == "completed" and state["max_event_at"]
    )
    return max(moments, default=None)


def landed_gtids(record: SourceRecord) -> GtidSet:
    """Return the GTIDs that are landed or left out on purpose, as far as the last file with any of them says."""
    epoch, name = max(
        (key for key, states in record.states.items() if done_upto(states)),
        key=lambda key: (key[0], _sequence(key[1])),
        default=(0, ""),
    )
    texts = [row.get("gtids_before") for row in record.identities if row["epoch"] == epoch]
    texts.append(record.files.get((epoch, name), {}).get("previous_gtids"))
    texts += [state.get("gtids") for state in record.states.get((epoch, name), []) if is_done(state)]
    return gtid_union(texts)


def done_upto(states: Iterable[Row]) -> int:
    """Return the offset in a file that it is landed up to, or left out on purpose; 0 for none of it."""
    return max((state["segment_end"] for state in states if is_done(state)), default=0)


def _bytes_waiting(spool: Spool, record: SourceRecord, checkpoint: Checkpoint) -> Iterator[int]:
    """Bytes of each file of the spool that are durable and not landed."""
    current = checkpoint.binlog_file
    for epoch in range(checkpoint.epoch + 1):
        for file in spool.files(epoch):
            if epoch == checkpoint.epoch and _sequence(file.name) > _sequence(current):
                continue
            is_current = epoch == checkpoint.epoch and file.name == current
            received = checkpoint.position if is_current else file.path.stat().st_size
            done = done_upto(record.states.get((epoch, file.name), []))
            yield max(0, received - max(done, FIRST_EVENT))


def _bytes_ahead(checkpoint: Checkpoint) -> int:
    """Bytes that the server has not sent; what came since it was asked for its end is not among them."""
    end = checkpoint.server
    if end is None:
        return 0
    if end.binlog_file == checkpoint.binlog_file:
        return max(0, end.position - checkpoint.position)
    return end.bytes_ahead if _sequence(end.binlog_file) > _sequence(checkpoint.binlog_file) else 0


def _sequence(name: str) -> int:
    return binlog_path(Path(name)).sequence or 0


def _transactions_behind(record: SourceRecord, checkpoint: Checkpoint, bytes_behind: int) -> int | None:
    """How many of the server's GTIDs are not landed."""
    if checkpoint.server is None or checkpoint.server.gtids is None:
        return None
    if not bytes_behind:  # a part that was left out by its position has GTIDs that nobody knows
        return 0
    landed = landed_gtids(record)
    if checkpoint.flavor == "mariadb":
        lasts, landed_lasts = _lasts(checkpoint.server.gtids), _lasts(str(landed))
        # Numbers rise by one within a domain, whichever server writes.
        return sum(max(0, last - landed_lasts.get(domain, 0)) for domain, last in lasts.items())
    missing = str(GtidSet.parse(checkpoint.server.gtids) - landed)
    return sum(int(last or first) - int(first) + 1 for first, last in _INTERVAL.findall(missing))


def _lasts(gtids: str) -> dict[str, int]:
    """The highest number of each domain."""
    lasts: dict[str, int] = {}
    for domain, number in _OF_DOMAIN.findall(gtids):
        lasts[domain] = max(int(number), lasts.get(domain, 0))
    return lasts
