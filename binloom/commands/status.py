"""`binloom status`: print the progress of receiving and landing sources, in words and rows."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from binloom.commands.output import Format, human_bytes, print_line, print_rows, print_table
from ingest.errors import EXIT_CHECK_FAILED, EXIT_DONE, empty_home
from ingest.warehouse.broken_off import ADVICE
from ingest.warehouse.home import binloom_home
from ingest.words import counted

if TYPE_CHECKING:
    from ingest.follow.overview import FileStatus, SourceStatus
    from ingest.warehouse.record import Row

FILE_COLUMNS = (
    "source_id",
    "epoch",
    "binlog_file",
    "state",
    "file_size",
    "bytes_landed",
    "segments",
    "transactions",
    "row_events",
    "last_event_at",
    "is_in_use",
    "error",
)

SOURCE_COLUMNS = (
    "source_id",
    "epoch",
    "flavor",
    "server_version",
    "server_id",
    "server_uuid",
    "host",
    "port",
    "files",
    "segments",
    "transactions",
    "row_events",
    "snapshots",
    "last_landed_file",
    "last_landed_pos",
    "last_event_at",
    "lag_seconds",
    "quarantined_rows",
    "gaps",
)

# Columns of followed sources only.
FOLLOW_COLUMNS = (
    "lag_bytes",
    "lag_transactions",
    "lag_as_of",
    "landed_gtids",
    "received_file",
    "received_pos",
    "received_at",
    "spool_files",
    "spool_bytes",
)


# A source with more files than this shows its latest files, and those that are not landed.
MANY_FILES = 50
LATEST_FILES = 20
_DONE = ("landed", "left out")


def print_status(source: str | None, format: Format, only_sources: bool = False) -> int:
    """Print sources, and their files unless `only_sources` is set.

    Returns
    -------
    int
        1 when a part of a file failed, or a gap has stopped the following of a server.
    """
    from ingest.follow.overview import status

    sources = status(source)
    if format is Format.TEXT:
        _print_sources(sources, only_sources)
    elif only_sources:
        print_rows((*SOURCE_COLUMNS, *FOLLOW_COLUMNS), [_source_row(one) for one in sources], format)
    else:
        rows = [[one.source_id, *_file_row(file)] for one in sources for file in one.files]
        print_rows(FILE_COLUMNS, rows, format)
    has_failed = any(file.state == "failed" for one in sources for file in one.files)
    has_stopped = any(gap["status"] == "found" for one in sources for gap in one.gaps)
    return EXIT_CHECK_FAILED if has_failed or has_stopped else EXIT_DONE


def _file_row(file: "FileStatus") -> list[object]:
    return [getattr(file, name) for name in FILE_COLUMNS[1:]]


def _source_row(one: "SourceStatus") -> list[object]:
    facts = {name: getattr(one, name) for name in SOURCE_COLUMNS}
    facts |= {"files": len(one.files), "gaps": Counter(gap["status"] for gap in one.gaps)}
    return [*facts.values(), *(getattr(one.following, name, None) for name in FOLLOW_COLUMNS)]


def _print_sources(sources: "Sequence[SourceStatus]", only_sources: bool) -> None:
    if not sources:
        print_line(empty_home(binloom_home()))
    for one in sources:
        server = f"{one.flavor} {one.server_version}, server id {one.server_id}" if one.flavor else "no file landed yet"
        print_line(f"{one.source_id}  ({server}, epoch {one.epoch or 0})")
        segments = ", ".join(f"{number} {state.replace('_', ' ')}" for state, number in sorted(one.segments.items()))
        facts = {
            "landed": f"{counted(one.row_events, 'row change')} in {counted(one.transactions, 'transaction')}",
            "segments": segments or "none",
            "up to": _up_to(one),
            **_followed(one),
            "snapshots": str(one.snapshots) if one.snapshots else "none: binloom snapshot lands one",
            "quarantine": _quarantine(one.quarantined_rows),
            **({"masked": masked} if (masked := _masked(one.source_id)) else {}),
        }
        for label, text in facts.items():
            print_line(f"  {label + ':':<12}{text}")
        for gap in one.gaps:
            print_line(f"  {'gap:':<12}{_gap(gap)}")
        print_line()
        if only_sources:
            continue
        columns = ("epoch", "binlog_file", "state", "file_size", "bytes_landed", "transactions", "row_events")
        files = _shown(one.files)
        print_table(columns, [[getattr(file, name) for name in columns] for file in files])
        if len(files) < len(one.files):
            others = counted(len(one.files) - len(files), "earlier file")
            print_line(f"  {others}: all landed or left out. --format csv prints a line for each file.")
        if any(file.state == "broken off" for file in one.files):
            print_line(f"  A landing broke off: it was killed, or failed. {ADVICE}")
        for file in files:
            if file.error:
                print_line(f"  {file.binlog_file}: {file.error}")
        print_line()


def _shown(files: "Sequence[FileStatus]") -> "Sequence[FileStatus]":
    """Return the files that a person wants to see; files are in the order of the log."""
    if len(files) <= MANY_FILES:
        return files
    earlier, latest = files[:-LATEST_FILES], files[-LATEST_FILES:]
    return [*(file for file in earlier if file.state not in _DONE), *latest]


def _up_to(one: "SourceStatus") -> str:
    if one.last_landed_file is None:
        return "nothing landed"
    moment = ""
    if one.last_event_at:
        # For a followed source, the lag is shown instead, because it is more precise.
        behind = f", {_ago(one.lag_seconds)} ago" if one.lag_seconds is not None and not one.following else ""
        moment = f" at {_moment(one.last_event_at)}{behind}"
    return f"{one.last_landed_file}:{one.last_landed_pos}{moment}"


def _followed(one: "SourceStatus") -> dict[str, str]:
    """Return the status lines of a followed server, by label."""
    follow = one.following
    if follow is None:
        return {}
    uuid = f", uuid {one.server_uuid}" if one.server_uuid else ""
    as_of = f", as of {_moment(follow.lag_as_of)}" if follow.lag_as_of else ""
    return {
        "server": f"{one.host}:{one.port}{uuid}",
        "received": f"{follow.received_file}:{follow.received_pos} at {_moment(follow.received_at)}",
        "lag": (_lag(one) if follow.lag_bytes else "none") + as_of,
        **({"GTIDs": follow.landed_gtids} if follow.landed_gtids else {}),
        "spool": f"{human_bytes(follow.spool_bytes)} in {counted(follow.spool_files, 'file')}",
    }


def _lag(one: "SourceStatus") -> str:
    follow = one.following
    assert follow is not None
    parts = [human_bytes(follow.lag_bytes)]
    if one.lag_seconds is not None:
        parts.insert(0, _ago(one.lag_seconds))
    if follow.lag_transactions is not None:
        parts.append(counted(follow.lag_transactions, "transaction"))
    return ", ".join(parts)


def _gap(gap: "Row") -> str:
    missing = f", missing {gap['missing_gtids']}" if gap["missing_gtids"] else ""
    return (
        f"{gap['status']} ({gap['reason']}) from {gap['from_file']}:{gap['from_pos']}"
        f" to {gap['to_file']}:{gap['to_pos']}{missing}: {gap['detail']}"
    )


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def _ago(seconds: float) -> str:
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


def _masked(source_id: str) -> str:
    """Return the columns that are masked in landed rows; empty without any."""
    from ingest.warehouse.masks import recorded_masks

    tables = sorted(recorded_masks(source_id, binloom_home()).items())
    return ", ".join(
        f"{schema}.{table}.{name} ({method})"
        for (schema, table), columns in tables
        for name, method in sorted(columns.items())
    )


def _quarantine(rows: dict[str, int] | None) -> str:
    if rows is None:
        return "not known before the first `binloom build`"
    return ", ".join(f"{counted(number, 'row')} {reason}" for reason, number in sorted(rows.items())) or "empty"
