"""`binloom history`: one row through time."""

from collections.abc import Iterator
from typing import Any, Final

from binloom.answers.row_history import (
    RowHistory,
    RowThen,
    changed_columns_of,
    operation_of,
    position_of,
    remarks_on,
    row_history_of,
    row_then,
    time_of,
)
from binloom.commands.open_log import report_notes, report_problems
from binloom.commands.output import Format, print_rows, say
from ingest.errors import EXIT_CHECK_FAILED, EXIT_DONE
from ingest.words import counted
from recover.notes import Kind
from recover.sources.log import Log
from recover.timeline.events import Image
from recover.timeline.rows import Version

_TEXT_COLUMNS: Final = (
    "version",
    "operation",
    "committed_at",
    "key",
    "changes",
    "thread_id",
    "gtid",
    "position",
    "statement",
    "remarks",
)


_UNKNOWN: Final = "(unknown)"
_LONGEST_STATEMENT: Final = 500


def print_history(log: Log, table_name: str, key: str, source_id: str | None, as_of: str | None, format: Format) -> int:
    """Print all versions of a row, or the row as it was at a moment; `log` has the marts of `table_log`."""
    if as_of is not None:
        return max(_print_row(row_then(log, table_name, key, as_of, source_id), key, format), report_problems(log))
    found = row_history_of(log, table_name, key, source_id)
    report_notes(found.notes)
    if format is Format.TEXT:
        title = f"{found.table} {key} in {found.table.source_id}"
        print_rows(_TEXT_COLUMNS, _text_rows(found), format, title=title)
    else:
        print_rows(found.columns, found.read(), format)
    return report_problems(log)


def _print_row(found: RowThen, key: str, format: Format) -> int:
    """Print the values of a row at a moment. A row that is not known then is a sentence on stderr."""
    about_row = [note for note in found.notes if note.kind is Kind.UNCERTAIN]
    report_notes(note for note in found.notes if note.kind is not Kind.UNCERTAIN)
    say(found.absence or f"{found.table} {key} as of {found.moment}:")
    report_notes(about_row)
    for row in found.rows:
        if format is Format.TEXT:
            print_rows(("column", "value"), [(name, _shown(value)) for name, value in row.items()], format)
        else:
            print_rows(tuple(row), [tuple(row.values())], format)
    return EXIT_CHECK_FAILED if found.absence else EXIT_DONE


def _text_rows(found: RowHistory) -> Iterator[tuple[Any, ...]]:
    lines = list(dict.fromkeys(version.line for version in found.versions))
    for version in found.versions:
        maker = version.change or version.event
        number = version.number if len(lines) == 1 else f"{lines.index(version.line) + 1}.{version.number}"
        yield (
            number,
            operation_of(version),
            time_of(maker),
            version.key,
            _changes(version),
            maker.thread_id if maker else None,
            maker.gtid if maker else None,
            position_of(maker) if maker else None,
            _statement(found, version),
            list(remarks_on(version)) or None,
        )


def _statement(found: RowHistory, version: Version) -> str | None:
    text = version.event.statement or None if version.event is not None else None
    if version.change is not None:
        text = found.statements.get(version.change.change_id)
    # A statement may insert thousands of rows.
    if text is None or len(text) <= _LONGEST_STATEMENT:
        return text
    return f"{text[:_LONGEST_STATEMENT]}… ({counted(len(text), 'character')}; --format json has all of them)"


def _changes(version: Version) -> str | None:
    if version.row is None:
        return None
    if version.before is None:
        return ", ".join(f"{name} {_shown(value)}" for name, value in version.row.items() if value is not None)
    names = changed_columns_of(version) or []
    dropped = {action.lower() for action in version.event.actions} if version.event is not None else set()
    absent = {name: "(dropped)" for name in names if f"drop_column {name}".lower() in dropped}
    return ", ".join(
        f"{name} {_value(version.before, name)} → {_value(version.row, name, absent.get(name, _UNKNOWN))}"
        for name in names
    )


def _value(image: Image, name: str, absent: str = _UNKNOWN) -> str:
    return _shown(image[name]) if name in image else absent


def _shown(value: str | None) -> str:
    return "NULL" if value is None else value
