"""`binloom inspect`: what a binlog file is, what is in it, and whether it is whole. Prints no row."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import Any

from ingest.commands.output import Format, console, human, human_bytes, print_rows, print_table, say
from ingest.errors import EXIT_CHECK_FAILED, EXIT_DONE, BinloomError, CorruptBinlogError, UsageError

EVENT_COLUMNS = ("file", "position", "end_position", "event_timestamp", "server_id", "event_type", "size", "checksum")


def inspect_files(files: Sequence[Path], format: Format, verbose: bool) -> int:
    """Print a report per file; return 1 when one of them is damaged, the error's code when one cannot be read."""
    exit_code = EXIT_DONE
    reports = []
    for path in files:
        try:
            with _waiting(f"reading {path}"):
                report = report_on(path)
        except BinloomError as error:
            say(str(error))
            exit_code = max(exit_code, error.exit_code)
            continue
        if report["defect"] is not None:
            exit_code = max(exit_code, EXIT_CHECK_FAILED)
        if format is Format.TEXT:
            _print_report(report, verbose)
        else:
            reports.append(report)
    if reports:
        columns = list(reports[0])
        print_rows(columns, [[report[column] for column in columns] for report in reports], format)
    return exit_code


def list_events(files: Sequence[Path], format: Format, limit: int | None, types: Sequence[str], verbose: bool) -> int:
    """Print the events of files one by one, at most `limit` of them; return the exit code.

    Raises
    ------
    UsageError
        A type in `types` is none that a server has.
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
    """Return the names asked for; a number stands for the type with that code."""
    from ingest.binlog.events import EVENT_NAMES, event_name

    wanted = set()
    for name in (part.strip().upper() for names in types for part in names.split(",") if part.strip()):
        if not name.isdigit() and name not in EVENT_NAMES.values():
            near = get_close_matches(name, EVENT_NAMES.values(), 3, 0.5) or sorted(EVENT_NAMES.values())[:3]
            raise UsageError(f"There is no event type {name}.", hint=f"Did you mean {' or '.join(near)}?")
        wanted.add(event_name(int(name)) if name.isdigit() else name)
    return wanted


def _print_events(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print events as they come, however many: widths are fixed, and a file's name stands once above its events."""
    widths = (12, 12, 19, 10, 25, 10, 8, 6, 0)
    path = None
    for row in rows:
        if row[0] != path:
            path = row[0]
            sys.stdout.write(f"{path}\n")
            names = [name.replace("_", " ") for name in columns[1:]]
            sys.stdout.write(_event_line(names, widths))
        sys.stdout.write(_event_line([human(value) for value in row[1:]], widths))


def _event_line(texts: Sequence[str], widths: Sequence[int]) -> str:
    # Numbers stand to the right: positions, the server id, the size.
    cells = (
        f"{text:>{width}}" if column in (0, 1, 3, 5) else f"{text:<{width}}"
        for column, (text, width) in enumerate(zip(texts, widths, strict=False))
    )
    return "  ".join(cells).rstrip() + "\n"


def report_on(path: Path) -> dict[str, Any]:
    """Everything that `inspect` knows of one file.

    The file is read twice: a walk over all headers that verifies every checksum and goes on to the end of the
    file as far as it can, then the decoder, which stops at the first broken event.
    """
    from ingest.binlog import open_binlog, scan_binlog

    scan = scan_binlog(path)
    format = scan.format
    content = _Content()
    try:
        for kind, batch in open_binlog(path).batches():
            content.add(kind, batch)
    except CorruptBinlogError:
        pass  # The scan has met it too and says where it is.
    defect = scan.defect
    return {
        "file": str(path),
        "size": scan.file_size,
        "format_version": format.format_version,
        "server_version": format.server_version,
        "flavor": format.flavor,
        "server_id": format.server_id,
        "created_at": format.created_at,
        "is_in_use": format.is_in_use,
        "is_relay_log": format.is_relay_log,
        "is_closed": scan.is_closed,
        "next_binlog_file": scan.next_binlog_file,
        "checksum_algorithm": format.checksum_algorithm,
        "events": scan.events,
        "checksum_failures": scan.checksum_failures,
        "first_event_at": scan.first_event_at,
        "last_event_at": scan.last_event_at,
        "previous_gtids": scan.previous_gtids,
        "gtids": str(content.gtids) or None,
        "transactions": content.transactions,
        "event_counts": dict(sorted(scan.event_counts.items(), key=lambda item: (-item[1], item[0]))),
        "tables": content.tables(),
        "not_decoded": dict(content.unsupported),
        "complete_end": scan.complete_end,
        "defect": None if defect is None else {"position": defect.position, "reason": defect.reason},
    }


class GtidSet:
    """GTIDs as a set, written the way their server does; small however many there are, as long as few are missing.

    MySQL's `uuid:n` and `uuid:tag:n` become intervals per uuid and tag, MariaDB's `domain-server-n` the first and
    last of each domain and server.
    """

    def __init__(self) -> None:
        self._intervals: dict[str, list[list[int]]] = {}

    def add(self, gtid: str) -> None:
        """Take one more GTID."""
        stem, separator, text = gtid.rpartition(":" if ":" in gtid else "-")
        number = int(text)
        intervals = self._intervals.setdefault(stem + separator, [])
        # In commit order nearly every one follows the one before.
        if intervals and intervals[-1][0] <= number <= intervals[-1][1] + 1:
            intervals[-1][1] = max(intervals[-1][1], number)
        else:
            intervals.append([number, number])

    def __str__(self) -> str:
        return ",".join(
            _range_of(stem, intervals) if stem.endswith("-") else _intervals_of(stem, intervals)
            for stem, intervals in self._intervals.items()
        )


def _range_of(stem: str, intervals: list[list[int]]) -> str:
    first, last = min(low for low, _ in intervals), max(high for _, high in intervals)
    return f"{stem}{first}" if first == last else f"{stem}{first} to {stem}{last}"


def _intervals_of(stem: str, intervals: list[list[int]]) -> str:
    merged: list[list[int]] = []
    for low, high in sorted(intervals):
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return stem + ":".join(str(low) if low == high else f"{low}-{high}" for low, high in merged)


class _Content:
    """Sums over the batches of one file."""

    def __init__(self) -> None:
        self.transactions = 0
        self.gtids = GtidSet()
        self.unsupported: Counter[str] = Counter()
        self._maps: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self._rows: Counter[tuple[str, str, str]] = Counter()

    def add(self, kind: str, batch: Any) -> None:
        match kind:
            case "row_events":
                self._count_rows(batch)
            case "transactions":
                self.transactions += batch.num_rows
                for gtid in batch.column("gtid").to_pylist():
                    if gtid is not None:
                        self.gtids.add(gtid)
            case "table_maps":
                for table in batch.to_pylist():
                    self._maps.setdefault((table["schema_name"], table["table_name"]), []).append(table)
            case "unsupported_events":
                self.unsupported.update(f"{row['event_type']}: {row['reason']}" for row in batch.to_pylist())

    def _count_rows(self, batch: Any) -> None:
        import pyarrow as pa

        keys = ["schema_name", "table_name", "event_type"]
        table = pa.table({key: batch.column(key).cast(pa.string()) for key in keys})
        for row in table.group_by(keys).aggregate([([], "count_all")]).to_pylist():
            self._rows[row["schema_name"], row["table_name"], row["event_type"]] += row["count_all"]

    def tables(self) -> list[dict[str, Any]]:
        """One entry a table, with what its latest table map says of it."""
        names = sorted(self._maps.keys() | {key[:2] for key in self._rows})
        return [
            {
                "schema_name": schema,
                "table_name": table,
                "inserts": self._rows[schema, table, "INSERT"],
                "updates": self._rows[schema, table, "UPDATE"],
                "deletes": self._rows[schema, table, "DELETE"],
                "table_maps": len(maps := self._maps.get((schema, table), [])),
                "columns": [
                    {
                        "name": column["name"],
                        "type": column["type"],
                        "is_nullable": column["is_nullable"],
                        "is_unsigned": column["is_unsigned"],
                        "charset": column["charset"],
                        "is_primary_key": column["is_primary_key"],
                    }
                    for column in (maps[-1]["columns"] if maps else [])
                ],
            }
            for schema, table in names
        ]


def _print_report(report: dict[str, Any], verbose: bool) -> None:
    sys.stdout.write(f"{report['file']}\n")
    facts = {
        "size": human_bytes(report["size"]),
        "format": f"version {report['format_version']}, written by {report['flavor']} {report['server_version']}"
        f" (server id {report['server_id']})",
        "created": human(report["created_at"]) or "not recorded (the server was already running)",
        "state": _state(report),
        "checksums": _checksums(report),
        "time range": f"{human(report['first_event_at'])} to {human(report['last_event_at'])} UTC"
        if report["first_event_at"]
        else "no event with a time",
        "gtids before": report["previous_gtids"] or "none",
        "gtids": report["gtids"] or "none",
        "transactions": str(report["transactions"]),
        "events": f"{report['events']}: " + ", ".join(f"{n} {name}" for name, n in report["event_counts"].items()),
    }
    for label, text in facts.items():
        sys.stdout.write(f"  {label + ':':<14}{text}\n")
    if report["tables"]:
        sys.stdout.write("\n")
        columns = ("table", "columns", "table_maps", "inserts", "updates", "deletes")
        print_table(
            columns,
            (
                [_table_name(table), len(table["columns"]), *[table[c] for c in columns[2:]]]
                for table in report["tables"]
            ),
        )
    if verbose:
        for table in report["tables"]:
            sys.stdout.write("\n")
            print_table(
                ("column", "type", "charset", "key", "null"),
                map(_column_row, enumerate(table["columns"])),
                _table_name(table),
            )
    for problem, times in report["not_decoded"].items():
        sys.stdout.write(f"  not decoded:  {problem} ({times} times)\n")
    if report["defect"] is not None:
        sys.stdout.write(
            f"\n  damaged at position {report['defect']['position']}: {report['defect']['reason']}\n"
            f"  Whole transactions end at position {report['complete_end']}; binloom lands and decodes what stands"
            " before.\n  Copy the file again from the server, or fetch it with mysqlbinlog --raw, to get the rest.\n"
        )
    sys.stdout.write("\n")


def _state(report: dict[str, Any]) -> str:
    if report["is_closed"]:
        following = report["next_binlog_file"]
        return f"closed, {following} follows" if following else "closed when the server stopped"
    if report["is_in_use"]:
        return "still being written, or the server did not close it"
    return "not closed: it ends without a ROTATE or STOP event"


def _checksums(report: dict[str, Any]) -> str:
    match report["checksum_algorithm"]:
        case None:
            return "none (the server is older than checksums)"
        case "NONE":
            return "none (binlog_checksum=NONE), lengths verified"
        case algorithm:
            good = report["events"] - report["checksum_failures"]
            return f"{algorithm}, {good} of {report['events']} events verified"


def _table_name(table: dict[str, Any]) -> str:
    return f"{table['schema_name']}.{table['table_name']}"


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
    files: Sequence[Path], wanted: set[str], verbose: bool, problems: list[BinloomError]
) -> Iterator[list[Any]]:
    from ingest.binlog import open_binlog

    for path in files:
        try:
            for event in open_binlog(path).events():
                if wanted and event.type_name not in wanted:
                    continue
                checksum = {True: "good", False: "wrong", None: None}[event.checksum_ok]
                row = [str(path), event.position, event.end_position, event.timestamp, event.server_id]
                row += [event.type_name, event.size, checksum]
                yield [*row, f"0x{event.flags:04x}", event.detail] if verbose else row
        except BinloomError as error:
            problems.append(error)


def _waiting(label: str) -> AbstractContextManager[Any]:
    """Show that something goes on while a person watches."""
    if not sys.stderr.isatty():
        return nullcontext()
    status: AbstractContextManager[Any] = console(stderr=True).status(label)
    return status
