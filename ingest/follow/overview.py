"""Overview of sources: files, segments, lag, and rows that could not be bound. Needs no Spark."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ingest.errors import unknown_source
from ingest.follow.lag import Lag, find_lag, landed_gtids, last_landed_at
from ingest.follow.spool import Spool
from ingest.warehouse.broken_off import Key, broken_off
from ingest.warehouse.files import BUILD_ANEW, data_files, read_errors, read_rows
from ingest.warehouse.gaps import latest_gaps
from ingest.warehouse.home import binloom_home, model_dirs
from ingest.warehouse.record import Row, SourceRecord
from ingest.warehouse.segments import STATE_COLUMNS, SegmentState, done_upto
from ingest.warehouse.tables import BINLOG_FILES, SCHEMA_SNAPSHOTS, SEGMENTS, SOURCES, STREAM_GAPS

_TABLES = (SOURCES, BINLOG_FILES, SEGMENTS, SCHEMA_SNAPSHOTS, STREAM_GAPS)


@dataclass(frozen=True)
class FileStatus:
    """A binlog file of a source.

    Attributes
    ----------
    epoch, binlog_file, file_sequence
        Identity of the file.
    file_size
        Size in bytes when it was last scanned.
    bytes_landed
        Number of landed bytes.
    is_in_use
        Whether the server was still writing to the file, or did not close it.
    segments, row_events, transactions
        Numbers of landed segments, row events and transactions.
    last_event_at
        Latest timestamp in the file, UTC.
    state
        `landed`, `partly landed`, `failed`, `in progress`, `broken off` when the command that landed it does not run
        any more, or `left out` when the whole file is skipped.
    error
        Reason why a part of the file failed.
    """

    epoch: int
    binlog_file: str
    file_sequence: int | None
    file_size: int
    bytes_landed: int
    is_in_use: bool
    segments: int
    row_events: int
    transactions: int
    last_event_at: datetime | None
    state: str
    error: str | None


@dataclass(frozen=True)
class FollowStatus:
    """Progress of receiving and landing a followed server.

    Attributes
    ----------
    received_file, received_pos, received_at
        Position up to which the log is durable in the spool, and when its last byte arrived, UTC.
    landed_gtids
        GTIDs that are landed, as a set; None without any.
    lag_bytes, lag_transactions, lag_as_of
        Unlanded part of the log, as of the time when the server was last asked; transactions are None without GTIDs.
    spool_files, spool_bytes
        Number of files in the spool, and their size.
    """

    received_file: str
    received_pos: int
    received_at: datetime
    landed_gtids: str | None
    lag_bytes: int
    lag_transactions: int | None
    lag_as_of: datetime | None
    spool_files: int
    spool_bytes: int


@dataclass(frozen=True)
class SourceStatus:
    """A source: its server, its files, and their landing progress.

    Attributes
    ----------
    source_id, epoch, server_id, server_uuid, host, port, flavor, server_version
        The source and the server of its current epoch.
    files
        Files in the order of their epochs and sequence numbers.
    segments
        Number of segments in each state.
    row_events, transactions
        Numbers of landed row events and transactions.
    last_landed_file, last_landed_pos
        End of the landed part of the newest file.
    last_event_at
        Latest timestamp landed, UTC.
    lag_seconds
        Seconds since `last_event_at`, None when nothing is landed. For a followed server, 0 when everything that it is
        known to have logged is landed.
    snapshots
        Number of schema snapshots.
    quarantined_rows
        Rows that could not be bound, by reason; None when the models have not been built.
    gaps
        Latest state of each gap in what was read from a live server, as rows of `stream_gaps`.
    following
        Progress of following a live server, None when no server is followed.
    """

    source_id: str
    epoch: int | None
    server_id: int | None
    server_uuid: str | None
    host: str | None
    port: int | None
    flavor: str | None
    server_version: str | None
    files: list[FileStatus]
    segments: dict[str, int]
    row_events: int
    transactions: int
    last_landed_file: str | None
    last_landed_pos: int | None
    last_event_at: datetime | None
    lag_seconds: float | None
    snapshots: int
    quarantined_rows: dict[str, int] | None
    gaps: list[dict[str, Any]]
    following: FollowStatus | None


def status(source_id: str | None = None, home: Path | None = None) -> list[SourceStatus]:
    """Return the state of one source, or of all, ordered by name.

    Raises
    ------
    UnknownSourceError
        Nothing was landed under that name.
    """
    home = (home or binloom_home()).absolute()
    tables = {table.name: read_rows(table, home, STATE_COLUMNS if table is SEGMENTS else None) for table in _TABLES}
    known = sorted({row["source_id"] for rows in tables.values() for row in rows})
    if source_id is not None and source_id not in known:
        raise unknown_source(source_id, known, home)
    quarantined, broken = _quarantined(home), broken_off(home, tables[SEGMENTS.name])
    return [
        _source_status(name, tables, None if quarantined is None else quarantined.get(name, Counter()), broken, home)
        for name in known
        if source_id in (None, name)
    ]


def _source_status(
    source_id: str,
    tables: dict[str, list[dict[str, Any]]],
    quarantined: Counter[str] | None,
    broken: Collection[Key],
    home: Path,
) -> SourceStatus:
    mine = {name: [row for row in rows if row["source_id"] == source_id] for name, rows in tables.items()}
    recorded = [SegmentState.of_row(row) for row in mine[SEGMENTS.name]]
    record = SourceRecord.of(source_id, mine[SOURCES.name], mine[BINLOG_FILES.name], recorded)
    files = sorted(
        (_file_status(row, record.states.get(key, []), broken) for key, row in record.files.items()),
        key=lambda file: (file.epoch, file.file_sequence or 0, file.binlog_file),
    )
    states = [state for of_file in record.states.values() for state in of_file]
    completed = [state for state in states if state.status == "completed"]
    last_event_at = last_landed_at(record)
    newest = next((file for file in reversed(files) if file.bytes_landed), None)
    identity = record.identities[-1] if record.identities else {}
    now = datetime.now(UTC)
    spool = Spool(source_id, home)
    lag = find_lag(spool, record, now)
    return SourceStatus(
        source_id=source_id,
        epoch=identity.get("epoch"),
        server_id=identity.get("server_id"),
        server_uuid=identity.get("server_uuid"),
        host=identity.get("host"),
        port=identity.get("port"),
        flavor=identity.get("flavor"),
        server_version=identity.get("server_version"),
        files=files,
        segments=dict(Counter("broken_off" if state.key in broken else state.status for state in states)),
        row_events=sum(state.row_events or 0 for state in completed),
        transactions=sum(state.transactions or 0 for state in completed),
        last_landed_file=newest.binlog_file if newest else None,
        last_landed_pos=newest.bytes_landed if newest else None,
        last_event_at=last_event_at,
        lag_seconds=lag.seconds if lag else (now - last_event_at).total_seconds() if last_event_at else None,
        snapshots=len(mine[SCHEMA_SNAPSHOTS.name]),
        quarantined_rows=None if quarantined is None else dict(quarantined),
        gaps=latest_gaps(mine[STREAM_GAPS.name]),
        following=_follow_status(spool, record, lag) if lag else None,
    )


def _follow_status(spool: Spool, record: SourceRecord, lag: Lag) -> FollowStatus | None:
    checkpoint = spool.checkpoint
    if checkpoint is None:
        return None
    spool_files, spool_bytes = spool.size()
    return FollowStatus(
        received_file=checkpoint.binlog_file,
        received_pos=checkpoint.position,
        received_at=checkpoint.received_at,
        landed_gtids=str(landed_gtids(record)) or None,
        lag_bytes=lag.bytes,
        lag_transactions=lag.transactions,
        lag_as_of=checkpoint.server.observed_at if checkpoint.server else None,
        spool_files=spool_files,
        spool_bytes=spool_bytes,
    )


def _file_status(row: Row, states: list[SegmentState], broken: Collection[Key]) -> FileStatus:
    completed = [state for state in states if state.status == "completed"]
    # The magic number does not belong to any segment.
    landed = max((state.segment_end for state in completed), default=0)
    failed = [state for state in states if state.status == "failed"]
    if failed:
        state = "failed"
    elif begun := {state.key for state in states if state.status == "in_progress"}:
        state = "broken off" if begun <= {*broken} else "in progress"
    else:
        is_whole = done_upto(states) == row["file_size"]
        state = "partly landed" if not is_whole else "landed" if completed else "left out"
    return FileStatus(
        epoch=row["epoch"],
        binlog_file=row["binlog_file"],
        file_sequence=row["file_sequence"],
        file_size=row["file_size"],
        bytes_landed=landed,
        is_in_use=bool(row["is_in_use"]),
        segments=len(completed),
        row_events=sum(one.row_events or 0 for one in completed),
        transactions=sum(one.transactions or 0 for one in completed),
        last_event_at=row["last_event_at"],
        state=state,
        error=failed[0].error if failed else None,
    )


def _quarantined(home: Path) -> dict[str, Counter[str]] | None:
    """Count the rows of mart `quarantined_row_events` by source and reason, in all schemas that dbt built it in."""
    folders = model_dirs("quarantined_row_events", home)
    if not folders:
        return None
    counts: dict[str, Counter[str]] = {}
    for folder in folders:
        for path in [*data_files(folder), *folder.glob("*=*/**/*.parquet")]:
            with read_errors(path, BUILD_ANEW):
                part = pq.ParquetFile(path)
                is_ours = {"source_id", "reason"} <= set(part.schema_arrow.names)
                rows = part.read(columns=["source_id", "reason"]).to_pylist() if is_ours else []
            for row in rows:
                counts.setdefault(row["source_id"], Counter())[row["reason"]] += 1
    return counts
