"""`binloom history`: one row through time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from binloom.commands.open_log import report_beginning, report_end, report_problems
from binloom.commands.output import Format, print_rows, say
from ingest.errors import EXIT_CHECK_FAILED, EXIT_DONE
from recover.sources.log import Log
from recover.timeline.as_of import Moment, moment_of
from recover.timeline.copied import copy_row
from recover.timeline.events import Change, Image, Table, TableEvent
from recover.timeline.history import history_of
from recover.timeline.logged_statements import statements_of
from recover.timeline.masked_columns import masked_in_words
from recover.timeline.named_table import find_table
from recover.timeline.names import later_name, periods_of
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
_COLUMNS: Final = (
    *("source_id", "schema_name", "table_name", "line", "version", "operation", "key", "valid_from", "valid_to"),
    *("valid_from_position", "valid_to_position", "gtid", "transaction_id", "thread_id", "change_id"),
    *("statement", "changed_columns", "row", "remarks"),
)


def print_history(log: Log, table_name: str, key: str, source_id: str | None, as_of: str | None, format: Format) -> int:
    """Print all versions of a row, or the row as it was at a moment; `log` has the marts of `table_log`."""
    connection = log.connection
    table = find_table(log, table_name, source_id)
    if log.copies is not None:
        copy_row(log.copies, table, key, as_of)
    if (sentence := masked_in_words(log, table)) is not None:
        say(sentence)
    moment = moment_of(connection, table.source_id, as_of) if as_of is not None else None
    report_beginning(log, (table.source_id,))
    found = history_of(connection, table, key)
    if moment is not None:
        return max(_print_row(found, moment, f"{table} {key}", format), report_problems(log))
    report_end(log)
    _report_names(log, table)
    changes = (version.change for version in found if version.change is not None)
    statements = statements_of(connection, table.source_id, changes)
    if format is Format.TEXT:
        print_rows(_TEXT_COLUMNS, _text_rows(found, statements), format, title=f"{table} {key} in {table.source_id}")
        return report_problems(log)
    names = (table.source_id, table.schema_name, table.table_name)
    print_rows(_COLUMNS, ((*names, *_facts(version, statements)) for version in found), format)
    return report_problems(log)


def _report_names(log: Log, table: Table) -> None:
    """Tell under which names the row is followed, and under which it is not."""
    for period in periods_of(log.connection, table)[1:]:
        assert period.until is not None
        say(f"before {period.binlog_file}:{period.until.pos}, the table had the name {period.table}.")
    if (later := later_name(log.connection, table)) is not None:
        name, position = later
        say(f"the RENAME TABLE at {position} gave {table} the name {name}: its rows continue under that name.")


def _print_row(found: Sequence[Version], moment: Moment, name: str, format: Format) -> int:
    """Print the values of a row at a moment. A row that is not known then is a sentence on stderr."""
    for remark in moment.remarks:
        say(remark)
    here = [version for version in found if version.is_at(moment.place)]
    living = [version for version in here if version.row is not None]
    say(f"{name} as of {moment}:" if living else _absence(found, name, moment))
    for version in living:
        for remark in _remarks(version, until=moment):
            say(remark)
        assert version.row is not None
        if format is Format.TEXT:
            print_rows(("column", "value"), [(name, _shown(value)) for name, value in version.row.items()], format)
        else:
            print_rows(tuple(version.row), [tuple(version.row.values())], format)
    return EXIT_DONE if living else EXIT_CHECK_FAILED


def _absence(found: Sequence[Version], name: str, moment: Moment) -> str:
    gone = next((version for version in found if version.is_at(moment.place)), None)
    if gone is not None:
        maker = gone.change or gone.event
        place = f" at {_position(maker)}" if maker is not None else ""
        if gone.joins is not None:
            return f"{name} cannot be told apart from equal rows as of {moment}: {_operation(gone)}{place}."
        return f"{name} did not exist as of {moment}: {_operation(gone)}{place}."
    first = found[0]
    is_insert = first.change is not None and first.change.event_type == "INSERT"
    was_absent = is_insert and (first.since is None or first.since.place < moment.place)
    if was_absent and first.change is not None:
        return f"{name} did not exist as of {moment}: its first change is the INSERT at {_position(first.change)}."
    return f"The log does not show whether {name} existed as of {moment}: its first known version is later."


def _text_rows(found: Sequence[Version], statements: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
    lines = list(dict.fromkeys(version.line for version in found))
    for version in found:
        maker = version.change or version.event
        number = version.number if len(lines) == 1 else f"{lines.index(version.line) + 1}.{version.number}"
        yield (
            number,
            _operation(version),
            _at(maker),
            version.key,
            _changes(version),
            maker.thread_id if maker else None,
            maker.gtid if maker else None,
            _position(maker) if maker else None,
            statements.get(version.change.change_id) if version.change else None,
            list(_remarks(version)) or None,
        )


def _facts(version: Version, statements: Mapping[str, str]) -> tuple[Any, ...]:
    maker, end = version.change or version.event, version.ended_by
    return (
        version.line,
        version.number,
        _operation(version),
        version.key,
        _at(maker),
        _at(end),
        _position(maker) if maker else None,
        _position(end) if end else None,
        maker.gtid if maker else None,
        version.change.transaction_id if version.change else None,
        maker.thread_id if maker else None,
        version.change.change_id if version.change else None,
        statements.get(version.change.change_id) if version.change else None,
        _changed_columns(version),
        version.row,
        list(_remarks(version)),
    )


def _operation(version: Version) -> str:
    if version.change is not None:
        return version.change.event_type
    return version.event.reason if version.event is not None else "existed before"


def _at(maker: Change | TableEvent | None) -> Any:
    if isinstance(maker, Change):
        return maker.committed_at
    return maker.at if maker is not None else None


def _position(maker: Change | TableEvent) -> str:
    return f"{maker.binlog_file}:{maker.start_pos if isinstance(maker, Change) else maker.place.pos}"


def _changed_columns(version: Version) -> list[str] | None:
    """Return the columns with another value than before, and those whose value is not known any more."""
    if version.before is None or version.row is None:
        return None
    before, row = version.before, version.row
    return [
        name for name in {**before, **row} if (name in before) != (name in row) or before.get(name) != row.get(name)
    ]


def _changes(version: Version) -> str | None:
    if version.row is None:
        return None
    if version.before is None:
        return ", ".join(f"{name} {_shown(value)}" for name, value in version.row.items() if value is not None)
    names = _changed_columns(version) or []
    return ", ".join(f"{name} {_value(version.before, name)} → {_value(version.row, name)}" for name in names)


def _value(image: Image, name: str) -> str:
    return _shown(image[name]) if name in image else "(unknown)"


def _shown(value: str | None) -> str:
    return "NULL" if value is None else value


def _remarks(version: Version, until: Moment | None = None) -> Iterator[str]:
    if version.defect == "values_differ":
        yield f"chain break: {', '.join(version.differing)} had other values before this change"
    elif version.defect == "not_inserted":
        yield "chain break: the row did not exist before this change"
    elif version.defect == "not_deleted":
        yield "chain break: another row had this key before this change"
    for doubt in version.doubts:
        if until is None or doubt.place < until.place:
            yield f"uncertain after {doubt}"
    if version.since is not None and version.change is None:
        yield f"known since {version.since}"
    if version.change is not None and (lost := set(version.change.undecoded_columns) - set(version.row or {})):
        yield f"unknown: {', '.join(sorted(lost))} (the log has only the changes of the document)"
    if version.joins is not None:
        yield "one of several equal rows from here on, which cannot be told apart"
    if version.copies > 1:
        yield f"{version.copies} equal rows"
