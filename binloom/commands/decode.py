"""`binloom decode`: print the row changes of files to stdout, and problems to stderr."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from binloom.commands.output import Format, iso, progress, say
from ingest.errors import EXIT_DONE, EXIT_SOURCE, BinloomError, CorruptBinlogError
from ingest.escapes import visible
from ingest.words import counted

if TYPE_CHECKING:
    from ingest.binlog import SchemaHints, TableFilter
    from ingest.binlog.byte_files import LogPath
    from ingest.binlog.decoder import Binlog
    from ingest.sources.snapshots.snapshot import SchemaSnapshot

# With a start position, decoding begins at the last segment boundary before it. Boundaries are this far apart.
_CUT_BYTES = 16 << 20
# Limit the messages: a file full of one problem must not hide the problems of other files.
_PROBLEMS_SHOWN = 50


@dataclass
class _Found:
    """The number of printed rows, and all tables in the files, also those that are not wanted."""

    rows: int = 0
    tables: set[tuple[str, str]] = field(default_factory=set)

    def noting(self, wanted: "TableFilter | None") -> "TableFilter | None":
        """Return the same filter; it notes the tables that it is asked about."""
        from ingest.binlog import TableFilter

        if wanted is None:
            return None
        tables = self.tables

        class Noting(TableFilter):
            def takes(self, schema: str, table: str) -> bool:
                tables.add((schema, table))
                return TableFilter.takes(self, schema, table)

        return Noting(wanted.schemas, wanted.tables, wanted.exclude_tables)


def decode_files(
    files: "Sequence[LogPath]",
    format: Format,
    snapshot: "SchemaSnapshot | None",
    tables: "TableFilter | None",
    start_position: int | None,
    stop_position: int | None,
    skip_bad_checksum: bool = False,
) -> int:
    """Print the row changes of files in the order given; return the exit code.

    As in mysqlbinlog, `start_position` applies to the first file and `stop_position` to the last file. After a broken
    file, the next file is still read; the error is printed at once.
    """
    if format is Format.CSV:
        from binloom.commands.lines import CSV_COLUMNS

        _write((",".join(CSV_COLUMNS) + "\n").encode())
    exit_code = EXIT_DONE
    hints: dict[LogPath, SchemaHints | None] = {}
    if snapshot is not None:
        from ingest.landing.hints_of_files import hints_by_file

        hints = hints_by_file(snapshot, files, skip_bad_checksum)
    found = _Found()
    noting = found.noting(tables)
    for number, path in enumerate(files):
        start = start_position if number == 0 else None
        stop = stop_position if number == len(files) - 1 else None
        try:
            problems = _decode_file(path, format, hints.get(path), noting, start, stop, skip_bad_checksum, found)
            exit_code = max(exit_code, EXIT_SOURCE if problems else EXIT_DONE)
        except BinloomError as error:
            sys.stdout.flush()
            say(str(error))
            if isinstance(error, CorruptBinlogError):
                say(f"{path}: the row changes before position {error.position} are printed, but none after it.")
            exit_code = max(exit_code, error.exit_code)
    if not found.rows and (tables or start_position is not None or stop_position is not None):
        _report_nothing(found, tables)
    return exit_code


def _report_nothing(found: _Found, wanted: "TableFilter | None") -> None:
    """Tell that no row change fits the filters, and which of their names the files do not have."""
    from ingest.binlog import TableFilter
    from recover.selection.catalog import unknown_name, unknown_table

    say("no row change fits the filters.")
    if wanted is None or not found.tables:
        return
    for name in wanted.schemas:
        if not any(TableFilter(schemas=(name,)).takes(*table) for table in found.tables):
            schemas = {schema for schema, _ in found.tables}
            say(str(unknown_name(f"There is no schema {name!r} in the files.", name, schemas)))
    for name in wanted.tables:
        if not any(TableFilter(tables=(name,)).takes(*table) for table in found.tables):
            say(str(unknown_table(name, found.tables)))


def _decode_file(
    path: "LogPath",
    format: Format,
    hints: "SchemaHints | None",
    tables: "TableFilter | None",
    start: int | None,
    stop: int | None,
    skip_bad_checksum: bool,
    found: _Found,
) -> int:
    """Print the row changes of a file; return the number of events and values that could not be decoded."""
    from ingest.binlog import open_binlog

    cut = _cut_before(path, start, skip_bad_checksum)
    log = open_binlog(path, hints=hints, tables=tables, start=cut, skip_bad_checksum=skip_bad_checksum)
    problems = 0
    rolled_back: list[int] = []
    last: dict[str, Any] | None = None
    broken_at: int | None = None
    # Rows that scroll over a terminal need no progress bar.
    watched = not sys.stdout.isatty()
    try:
        with progress(f"decoding {path.name}", _known_size(path)) if watched else nullcontext() as advance:
            for kind, batch in log.batches():
                if kind == "unsupported_events":
                    problems = _report(path, batch, problems, start, stop)
                elif kind == "transactions":
                    rolled_back += _with_rolled_back(batch, start, stop)
                    last = batch.slice(batch.num_rows - 1).to_pylist()[0] if batch.num_rows else last
                if kind != "row_events":
                    continue
                kept = batch if start is stop is None else _between(batch, start, stop)
                found.rows += kept.num_rows
                for block in _lines(kept, log, format, path):
                    _write(block)
                reached = batch.column("start_pos")[-1].as_py()
                if stop is not None and reached >= stop:
                    break
                if advance is not None:
                    advance(reached)
    except CorruptBinlogError as error:
        broken_at = error.position
        raise
    finally:
        if last is not None and _is_open(path, last, broken_at) and _is_shown(last, start, stop):
            say(
                f"{path}: the transaction at position {last['start_pos']} has no end in the file, but the output"
                " contains its rows: the server was still writing it, or the file is cut."
            )
        if rolled_back:
            say(
                f"{path}: the output contains rows that ROLLBACK TO SAVEPOINT took back, in"
                f" {counted(len(rolled_back), 'transaction')}, the first at position {rolled_back[0]}."
                " `binloom query --files` shows the outcome of each row."
            )
        if problems > _PROBLEMS_SHOWN:
            say(f"{path}: {problems - _PROBLEMS_SHOWN} more events or values could not be decoded.")
        if problems:
            what = "One event or value" if problems == 1 else f"{problems:,} events or values"
            say(f"{path}: {what} could not be decoded; the output is without {'it' if problems == 1 else 'them'}.")
    return problems


def _known_size(path: "LogPath") -> int | None:
    """Return the size of a file, for the progress bar; None if only reading the whole file would tell it."""
    return path.stat().st_size if isinstance(path, Path) else None


def _cut_before(path: "LogPath", position: int | None, skip_bad_checksum: bool) -> int | None:
    """Return a transaction start from which `position` can be decoded: rows need the table maps before them."""
    if position is None or position <= 4:
        return None
    from ingest.binlog import scan_binlog

    scan = scan_binlog(path, segment_bytes=_CUT_BYTES, skip_bad_checksum=skip_bad_checksum)
    return max((segment.start for segment in scan.segments if segment.start <= position), default=None)


def _between(batch: Any, start: int | None, stop: int | None) -> Any:
    """Keep rows of events that begin in [start, stop)."""
    import pyarrow.compute as pc

    positions = batch.column("start_pos")
    kept = pc.greater_equal(positions, start or 0)
    return batch.filter(kept if stop is None else pc.and_(kept, pc.less(positions, stop)))


def _lines(batch: Any, log: "Binlog", format: Format, path: "LogPath") -> Iterator[Any]:
    from binloom.commands import lines

    match format:
        case Format.JSON:
            return lines.json_lines(batch, log.column_names, log.unknown_hints)
        case Format.CSV:
            return lines.csv_lines(batch, log.column_names, log.unknown_hints)
        case Format.TEXT:
            return (_paragraph(row, log, path) for row in batch.to_pylist())


def _paragraph(row: dict[str, Any], log: "Binlog", path: "LogPath") -> bytes:
    """Return one row change as text: a head line, then a line for each column, with an arrow if it changed."""
    names = log.column_names(row["table_map_id"])
    unknown = {one["ordinal"]: one["hint"] for one in log.unknown_hints(row["table_map_id"]) or ()}
    where = f"{path.name}:{row['start_pos']}"
    head = f"{iso(row['event_timestamp'])} {row['event_type']} {row['schema_name']}.{row['table_name']} at {where}"
    lines = [visible(head + (f" in {row['gtid']}" if row["gtid"] else ""))]
    before, after = row["before_values"], row["after_values"]
    labels = (
        [visible(name) for name in names] if names else [f"@{ordinal + 1}" for ordinal in range(row["column_count"])]
    )
    width = max(map(len, labels), default=0)
    for ordinal, label in enumerate(labels):
        old = _shown(before, row["before_columns"], ordinal)
        new = _shown_changes(row, ordinal) or _shown(after, row["after_columns"], ordinal)
        match row["event_type"]:
            case "INSERT":
                text = new
            case "DELETE":
                text = old
            case _ if new is None or old == new:
                text = old
            case _:
                text = f"{old if old is not None else '(not logged)'} → {new}"
        if text is not None:
            doubt = f"  (nothing tells its {unknown[ordinal]})" if ordinal in unknown else ""
            lines.append(f"    {label:<{width}}  {text}{doubt}")
    return ("\n".join(lines) + "\n\n").encode()


def _shown(values: list[str | None], present: list[int] | None, ordinal: int) -> str | None:
    """Return the text of one value, None when the row image does not contain the column."""
    if present is not None and ordinal not in present:
        return None
    value = values[ordinal]
    if value is None:
        return "NULL"
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{visible(quoted)}'"


def _shown_changes(row: dict[str, Any], ordinal: int) -> str | None:
    """Return the changes to a JSON document that the log does not contain in full; None if the value is known."""
    if ordinal not in (row["undecoded_columns"] or ()):
        return None
    changes = [change for change in row["json_changes"] if change["column_ordinal"] == ordinal]
    told = (" ".join(filter(None, (change["operation"], change["path"], change["value"]))) for change in changes)
    return f"(changed in part: {'; '.join(told)})"


def _report(path: "LogPath", batch: Any, already: int, start: int | None, stop: int | None) -> int:
    """Print a sentence to stderr for each event that could not be decoded; return the new number of such events."""
    for row in batch.to_pylist():
        if not (start or 0) <= row["start_pos"] < (stop if stop is not None else sys.maxsize):
            continue
        already += 1
        if already <= _PROBLEMS_SHOWN:
            table = f" of {row['schema_name']}.{row['table_name']}" if row["table_name"] else ""
            detail = f" ({row['detail']})" if row["detail"] else ""
            say(f"{path}: position {row['start_pos']}: {row['event_type']}{table} not decoded: {row['reason']}{detail}")
    return already


def _with_rolled_back(batch: Any, start: int | None, stop: int | None) -> list[int]:
    """Return the positions of transactions with printed rows that ROLLBACK TO SAVEPOINT took back."""
    found = batch.filter(batch.column("rolled_back_ranges").is_valid()).select(["start_pos", "end_pos"]).to_pylist()
    return [row["start_pos"] for row in found if _is_shown(row, start, stop)]


def _is_shown(transaction: dict[str, Any], start: int | None, stop: int | None) -> bool:
    return transaction["end_pos"] > (start or 0) and (stop is None or transaction["start_pos"] < stop)


def _is_open(path: "LogPath", last: dict[str, Any], broken_at: int | None) -> bool:
    """Return whether the file ends, or is broken, inside its last transaction, which has rows."""
    from ingest.binlog.byte_files import open_bytes

    if last["outcome"] != "none" or not last["row_events"]:
        return False
    end = last["end_pos"]
    if broken_at is not None:
        return bool(broken_at == end)
    with open_bytes(path) as source:
        return bool(source.wait_for(end + 1) == end)


def _write(block: memoryview | bytes) -> None:
    sys.stdout.buffer.write(block)
