"""Lag of the landed tables behind a followed server."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ingest.binlog.gtid_sets import GtidSet, gtid_union
from ingest.follow.checkpoint import Checkpoint
from ingest.follow.spool import Spool
from ingest.sources.files.directory import binlog_path
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import done_upto, has_done

# Intervals of a MySQL GTID set; domain and sequence number of MariaDB GTIDs.
_INTERVAL = re.compile(r":(\d+)(?:-(\d+))?(?=[:,]|$)")
_OF_DOMAIN = re.compile(r"(\d+)-\d+-(\d+)")


@dataclass(frozen=True)
class Lag:
    """Lag of the landed tables behind the end of a server's log.

    Attributes
    ----------
    seconds
        0 when everything that the server is known to have logged is landed. Otherwise seconds since the commit of the
        last landed transaction, None when no transaction is landed.
    bytes
        Bytes of the log that are not landed: unlanded bytes in the spool, and bytes that the server has not sent yet.
    transactions
        Number of transactions that are not landed, None when the server has no GTIDs to count.
    """

    seconds: float | None
    bytes: int
    transactions: int | None


def find_lag(spool: Spool, record: SourceRecord, now: datetime) -> Lag | None:
    """Compute the lag of the tables behind the server, as recorded in the spool's checkpoint.

    Parameters
    ----------
    spool
        Spool of the source.
    record
        Record of the source.
    now
        Time at which the lag is measured.

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
    """Return when the last landed transaction committed, by the server's clock."""
    moments = (
        state.max_event_at
        for states in record.states.values()
        for state in states
        if state.status == "completed" and state.max_event_at
    )
    return max(moments, default=None)


def last_landed(record: SourceRecord) -> tuple[int, str]:
    """Return epoch and name of the last file that has any landed bytes; without one, an epoch and no name."""
    return max(
        (key for key, states in record.states.items() if has_done(states)),
        key=lambda key: (key[0], _sequence(key[1])),
        default=(0, ""),
    )


def landed_gtids(record: SourceRecord) -> GtidSet:
    """Return the GTIDs that are landed or skipped, according to the last file that has any landed bytes."""
    epoch, name = last_landed(record)
    texts = [(record.opening(epoch) or {}).get("gtids_before")]
    texts.append(record.files.get((epoch, name), {}).get("previous_gtids"))
    texts += [state.gtids for state in record.states.get((epoch, name), []) if state.is_done]
    return gtid_union(texts)


def _bytes_waiting(spool: Spool, record: SourceRecord, checkpoint: Checkpoint) -> Iterator[int]:
    """Yield the number of durable, unlanded bytes of each file in the spool."""
    current = checkpoint.binlog_file
    for epoch in range(checkpoint.epoch + 1):
        for file in spool.files(epoch):
            if epoch == checkpoint.epoch and _sequence(file.name) > _sequence(current):
                continue
            is_current = epoch == checkpoint.epoch and file.name == current
            received = checkpoint.position if is_current else file.path.stat().st_size
            yield max(0, received - done_upto(record.states.get((epoch, file.name), [])))


def _bytes_ahead(checkpoint: Checkpoint) -> int:
    """Return the number of bytes that the server has not sent, without bytes received since it was last asked."""
    end = checkpoint.server
    if end is None:
        return 0
    if end.binlog_file == checkpoint.binlog_file:
        return max(0, end.position - checkpoint.position)
    return end.bytes_ahead if _sequence(end.binlog_file) > _sequence(checkpoint.binlog_file) else 0


def _sequence(name: str) -> int:
    return binlog_path(Path(name)).sequence or 0


def _transactions_behind(record: SourceRecord, checkpoint: Checkpoint, bytes_behind: int) -> int | None:
    """Return how many of the server's GTIDs are not landed."""
    if checkpoint.server is None or checkpoint.server.gtids is None:
        return None
    if not bytes_behind:  # a part that was skipped by position has unknown GTIDs, which must not count
        return 0
    landed = landed_gtids(record)
    if checkpoint.flavor == "mariadb":
        lasts, landed_lasts = _lasts(checkpoint.server.gtids), _lasts(str(landed))
        # Sequence numbers rise by one within a domain, whichever server writes.
        return sum(max(0, last - landed_lasts.get(domain, 0)) for domain, last in lasts.items())
    missing = str(GtidSet.parse(checkpoint.server.gtids) - landed)
    return sum(int(last or first) - int(first) + 1 for first, last in _INTERVAL.findall(missing))


def _lasts(gtids: str) -> dict[str, int]:
    """Return the highest sequence number of each domain."""
    lasts: dict[str, int] = {}
    for domain, number in _OF_DOMAIN.findall(gtids):
        lasts[domain] = max(int(number), lasts.get(domain, 0))
    return lasts
