"""`binloom inspect`: describe a binlog file, its content and whether it is complete. Prints no rows."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Any

from binloom.commands.output import (
    Format,
    human,
    human_bytes,
    print_line,
    print_rows,
    print_table,
    say,
    waiting,
)
from binloom.commands.report import Report, report_on
from ingest.errors import (
    EXIT_CHECK_FAILED,
    EXIT_DONE,
    EXIT_SOURCE,
    BinloomError,
    CorruptBinlogError,
    UsageError,
)

if TYPE_CHECKING:
    from ingest.binlog.byte_files import LogPath

EVENT_COLUMNS = (
    *("file", "position", "end_position", "payload_ordinal"),
    *("event_timestamp", "server_id", "event_type", "size", "checksum"),
)


def inspect_files(files: "Sequence[LogPath]", format: Format, verbose: bool) -> int:
    """Print a report for each file; return 1 if a file is damaged, or the error's code if a file cannot be read."""
    exit_code = EXIT_DONE
    reports = []
    for path in files:
        try:
            with waiting(f"reading {path}"):
                report = report_on(path)
        except BinloomError as error:
            say(str(error))
            exit_code = max(exit_code, error.exit_code)
            continue
        if report.defect is not None:
            exit_code = max(exit_code, EXIT_CHECK_FAILED)
        if format is Format.TEXT:
            _print_report(report, verbose)
        else:
            reports.append(report)
        if report.refusal is not None:
            say(report.refusal)
            exit_code = max(exit_code, EXIT_SOURCE)
    columns = [field.name for field in fields(Report)]
    if reports:
        print_rows(columns, [[getattr(report, column) for column in columns] for report in reports], format)
    return exit_code


def list_events(
    files: "Sequence[LogPath]", format: Format, limit: int | None, types: Sequence[str], verbose: bool
) -> int:
    """Print the events of files one by one, at most `limit` of them; return the exit code.

    Raises
    ------
    UsageError
        `types` contains an event type that no server has.
    """
    columns = (*EVENT_COLUMNS, "flags", "detail") if verbose else EVENT_COLUMNS
    problems: list[BinloomError] = []
    rows = islice(_events(files, _event_types(types), verbose, problems), limit)
    if format is Format.TEXT:
        _print_events(columns, rows)
    else:
        print_rows(columns, rows, format)
    sys.stdout.flush()
    for error in problems:
        say(str(error))
    if any(isinstance(error, CorruptBinlogError) for error in problems):
        return EXIT_CHECK_FAILED
    return max((error.exit_code for error in problems), default=EXIT_DONE)


def _event_types(types: Sequence[str]) -> set[str]:
    """Return the requested type names; a number means the type with that code."""
    from ingest.binlog.events.types import EVENT_NAMES, event_name

    wanted = set()
    for name in (part.strip().upper() for names in types for part in names.split(",") if part.strip()):
        if not name.isdigit() and name not in EVENT_NAMES.values():
            near = get_close_matches(name, EVENT_NAMES.values(), 3, 0.5) or sorted(EVENT_NAMES.values())[:3]
            raise UsageError(f"There is no event type {name}.", hint=f"Did you mean {' or '.join(near)}?")
        wanted.add(event_name(int(name)) if name.isdigit() else name)
    return wanted


def _print_events(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print events one by one, without a limit: widths are fixed, and the file's name is printed above its events."""
    widths = (12, 12, 15, 19, 10, 25, 10, 8, 6, 0)
    path = None
    for row in rows:
        if row[0] != path:
            path = row[0]
            print_line(path)
            names = [name.replace("_", " ") for name in columns[1:]]
            print_line(_event_line(names, widths))
        print_line(_event_line([human(value) for value in row[1:]], widths))


def _event_line(texts: Sequence[str], widths: Sequence[int]) -> str:
    # Align numbers to the right: positions, the server id, the size.
    cells = (
        f"{text:>{width}}" if column in (0, 1, 2, 4, 6) else f"{text:<{width}}"
        for column, (text, width) in enumerate(zip(texts, widths, strict=False))
    )
    return "  ".join(cells).rstrip()


def _print_report(report: Report, verbose: bool) -> None:
    print_line(report.file)
    for label, text in _facts(report):
        print_line(f"  {label + ':':<14}{text}")
    if report.tables:
        print_line()
        columns = ("table", "columns", "table_maps", "inserts", "updates", "deletes")
        print_table(
            columns,
            ([_table_name(table), len(table["columns"]), *[table[c] for c in columns[2:]]] for table in report.tables),
        )
    if verbose:
        for table in report.tables:
            print_line()
            print_table(
                ("column", "type", "charset", "key", "null"),
                map(_column_row, enumerate(table["columns"])),
                _table_name(table),
            )
    if report.largest_transactions:
        print_line()
        columns = ("start_pos", "bytes", "rows", "seconds", "started_at", "gtid")
        rows = [[transaction[column] for column in columns] for transaction in report.largest_transactions]
        print_table(columns, rows, "largest transactions")
    if report.statement_changes:
        print_line()
        rows = [[_changed_table(change), change["verb"], change["statements"]] for change in report.statement_changes]
        print_table(("table", "verb", "statements"), rows, "changes logged as statements: there are no rows of them")
    for incident in report.incidents:
        message = f" ({incident['message']})" if incident.get("message") else ""
        print_line()
        print_line(f"  events were lost before position {incident['position']}{message}")
    for problem, times in report.not_decoded.items():
        print_line(f"  not decoded:  {problem} ({times} times)")
    if report.defect is not None and report.encryption is None:
        print_line()
        print_line(f"  damaged at position {report.defect['position']}: {report.defect['reason']}")
        print_line(
            f"  Whole transactions end at position {report.complete_end}; binloom lands and decodes only the "
            "events before it."
        )
        print_line("  Copy the file again from the server, or fetch it with mysqlbinlog --raw, to get the rest.")
    if report.open_transaction is not None:
        print_line()
        print_line(
            f"  The transaction at position {report.open_transaction} has no end in the file: the server was still"
            " writing it, or the file is cut."
        )
        print_line("  binloom lands and decodes only the events before it.")
    print_line()


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    yield "size", human_bytes(report.size)
    if report.encryption is not None:
        yield "encrypted", _encryption(report.encryption)
    if report.format_version is None:
        return
    yield (
        "format",
        f"version {report.format_version}, {_writer(report.server_version, report.flavor, report.server_id)}",
    )
    for format in report.formats[1:]:
        writer = _writer(format["server_version"], None, format["server_id"])
        yield "then", f"version {format['format_version']}, {writer}, checksums {format['checksum_algorithm']}"
    yield "created", human(report.created_at) or "not recorded (the server was already running)"
    yield "state", _state(report)
    yield "checksums", _checksums(report)
    first, last = human(report.first_event_at), human(report.last_event_at)
    yield "time range", f"{first} to {last} UTC" if first else "no event with a time"
    yield "gtids before", report.previous_gtids or "none"
    yield "gtids", report.gtids or "none"
    yield "transactions", str(report.transactions)
    yield "events", f"{report.events}: {_counted(report.event_counts)}"
    if report.payload_event_counts:
        yield "compressed", f"{sum(report.payload_event_counts.values())}: {_counted(report.payload_event_counts)}"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())


def _writer(server_version: str | None, flavor: str | None, server_id: int | None) -> str:
    server = " ".join(filter(None, (flavor, server_version))) or "a server that it does not name"
    return f"written by {server} (server id {server_id})"


def _encryption(encryption: Mapping[str, Any]) -> str:
    by, *facts = encryption.items()
    named = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in facts)
    return f"by {by[1]} ({named})"


def _state(report: Report) -> str:
    kind = "a relay log, " if report.is_relay_log else ""
    if report.is_closed:
        following = report.next_binlog_file
        return kind + (f"closed, {following} follows" if following else "closed when the server stopped")
    if report.is_in_use:
        return kind + "still being written, or the server did not close it"
    return kind + "not closed: it ends without a ROTATE or STOP event"


def _checksums(report: Report) -> str:
    algorithms = list(dict.fromkeys(format["checksum_algorithm"] or "none" for format in report.formats))
    if len(algorithms) > 1:
        return f"{', then '.join(algorithms)}; {report.checksum_failures} wrong"
    match report.checksum_algorithm:
        case None:
            return "none (the server is older than checksums)"
        case "NONE":
            return "none (binlog_checksum=NONE), lengths verified"
        case algorithm:
            good = (report.events or 0) - (report.checksum_failures or 0)
            return f"{algorithm}, {good} of {report.events} events verified"


def _table_name(table: Mapping[str, Any]) -> str:
    return f"{table['schema_name']}.{table['table_name']}"


def _changed_table(change: Mapping[str, Any]) -> str:
    """Return the table that a statement changes: the text may name none, or one of a schema that is not known."""
    return ".".join(filter(None, (change["schema_name"], change["table_name"]))) or "unknown"


def _column_row(numbered: tuple[int, dict[str, Any]]) -> list[Any]:
    ordinal, column = numbered
    return [
        column["name"] or f"@{ordinal + 1}",
        column["type"] + (" unsigned" if column["is_unsigned"] else ""),
        column["charset"],
        "primary" if column["is_primary_key"] else "",
        column["is_nullable"],
    ]


def _events(
    files: "Sequence[LogPath]", wanted: set[str], verbose: bool, problems: list[BinloomError]
) -> Iterator[list[Any]]:
    from ingest.binlog import open_binlog

    for path in files:
        is_sound = True
        try:
            for event in open_binlog(path).events():
                if event.checksum_ok is False and is_sound:
                    is_sound = False
                    problems.append(_wrong_checksum(path, event.position))
                if wanted and event.type_name not in wanted:
                    continue
                checksum = {True: "good", False: "wrong", None: None}[event.checksum_ok]
                row = [str(path), event.position, event.end_position, event.payload_ordinal, event.timestamp]
                row += [event.server_id, event.type_name, event.size, checksum]
                yield [*row, f"0x{event.flags:04x}", event.detail] if verbose else row
        except BinloomError as error:
            problems.append(error)


def _wrong_checksum(path: "LogPath", position: int) -> CorruptBinlogError:
    return CorruptBinlogError(
        f"{path}: the event at position {position} has a wrong checksum, as the first one in the file.",
        hint="Copy the file again from the server.",
        path=str(path),
        position=position,
    )
