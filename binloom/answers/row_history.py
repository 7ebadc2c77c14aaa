"""One row through time, or as it was at a moment."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from binloom.answers import lacks
from binloom.answers.answer import Answer, Cells, known_fields
from binloom.answers.table_state import cascades_in
from ingest.words import capitalized
from recover.notes import Kind, Note
from recover.selection.filters import Filters
from recover.sources.log import Log
from recover.timeline.as_of import Moment, moment_of
from recover.timeline.cascades import Cascades
from recover.timeline.copied import copy_row
from recover.timeline.events import Change, Image, Table, TableEvent
from recover.timeline.history import UnchangedRowError, UnknownRowError, history_of
from recover.timeline.logged_statements import statements_of
from recover.timeline.masked_columns import masked_in_words
from recover.timeline.named_table import find_table
from recover.timeline.names import later_name, periods_of
from recover.timeline.rows import Version


@dataclass(frozen=True, slots=True, kw_only=True)
class RowVersion:
    """A row from one change to the next.

    Attributes
    ----------
    line
        Equal for all versions of one row, different for others: a key may belong to several rows in turn.
    version
        1 for the first version of a line.
    operation
        INSERT, UPDATE or DELETE, another statement such as TRUNCATE TABLE, or `existed before`.
    valid_from, valid_to
        Times in UTC at which the version began and ended; None if that is not known, or not yet.
    valid_from_position, valid_to_position
        `file:position` of these.
    changed_columns
        Columns with another value than before; None for a row that is new, gone, or first seen.
    row
        All known values as text; None if the row does not exist in this version. A column without an entry is unknown.
    remarks
        What is not certain about the version.
    """

    source_id: str
    schema_name: str
    table_name: str
    line: int
    version: int
    operation: str
    key: str
    valid_from: datetime | None
    valid_to: datetime | None
    valid_from_position: str | None
    valid_to_position: str | None
    gtid: str | None
    transaction_id: str | None
    thread_id: int | None
    change_id: str | None
    statement: str | None
    changed_columns: list[str] | None
    row: Image | None
    remarks: list[str]


COLUMNS = tuple(one.name for one in fields(RowVersion))


@dataclass(frozen=True, kw_only=True)
class RowHistory(Answer[RowVersion]):
    """The versions of the rows that had a key at some time, in their order.

    Attributes
    ----------
    table
        The table, under the name that was asked for.
    versions
        The versions with all that is known of them.
    statements
        Text of the statement of a change, by `change_id`, where it is logged.
    """

    table: Table
    versions: Sequence[Version]
    statements: Mapping[str, str]


def row_history_of(log: Log, table_name: str, key: str, source_id: str | None = None) -> RowHistory:
    """Return all versions of a row.

    Parameters
    ----------
    log
        It has the marts of `table_log`.
    key
        Values of the primary key: VALUE, VALUE|VALUE for several columns, or COLUMN=VALUE.

    Raises
    ------
    UsageError
        There is no such table, or neither the log nor a baseline has the row.
    """
    table = find_table(log, table_name, source_id)
    if log.copies is not None:
        copy_row(log.copies, table, key, None)
    notes = [*_masked(log, table), *lacks.beginning(log, (table.source_id,))]
    cascades = cascades_in(log, table)
    found = _versions(log, table, key, cascades)
    notes += (Note(remark, Kind.UNCERTAIN) for remark in cascades.remarks)
    notes += [*lacks.end(log), *_names(log, table), *lacks.damage(log)]
    changes = (version.change for version in found if version.change is not None)
    statements = statements_of(log, {change.change_id: change.transaction_id for change in changes})

    def read() -> Iterator[Cells]:
        names = (table.source_id, table.schema_name, table.table_name)
        return ((*names, *_facts(version, statements)) for version in found)

    return RowHistory(
        columns=COLUMNS,
        notes=tuple(notes),
        read=read,
        as_row=known_fields(RowVersion),
        table=table,
        versions=found,
        statements=statements,
    )


@dataclass(frozen=True)
class RowThen:
    """A row at a moment.

    Attributes
    ----------
    rows
        The values of the row; several where equal rows cannot be told apart. Empty if it did not exist, or if that is
        not known.
    absence
        Why there is no row; empty if there is one.
    notes
        What is not certain.
    """

    table: Table
    moment: Moment
    rows: tuple[Image, ...]
    absence: str
    notes: tuple[Note, ...]


def row_then(log: Log, table_name: str, key: str, as_of: str, source_id: str | None = None) -> RowThen:
    """Return a row as it was at a moment; parameters and errors are those of `row_history_of`."""
    table = find_table(log, table_name, source_id)
    if log.copies is not None:
        copy_row(log.copies, table, key, as_of)
    notes = [*_masked(log, table)]
    moment = moment_of(log.connection, table.source_id, as_of)
    notes += lacks.beginning(log, (table.source_id,))
    cascades = cascades_in(log, table, moment.place)
    found = _versions(log, table, key, cascades)
    notes += (Note(remark, Kind.END) for remark in moment.remarks)
    notes += lacks.behind(log, table.source_id, moment)
    here = [version for version in found if version.is_at(moment.place)]
    living = [version for version in here if version.row is not None]
    notes += (Note(remark, Kind.UNCERTAIN) for version in living for remark in remarks_on(version, until=moment))
    # No foreign key brings a row back.
    if living and cascades.remarks:
        notes += (Note(remark, Kind.UNCERTAIN) for remark in cascades.remarks)
        notes.append(Note("The log does not show whether the row had these values at that moment.", Kind.UNCERTAIN))
    notes += lacks.end_at(log, moment)
    notes += lacks.damage(log)
    rows = tuple(version.row for version in living if version.row is not None)
    absence = "" if living else _absence(found, f"{table} {key}", moment)
    return RowThen(table, moment, rows, absence, tuple(notes))


def _versions(log: Log, table: Table, key: str, cascades: Cascades) -> list[Version]:
    try:
        return [*cascades.mark(history_of(log.connection, table, key))]
    except UnknownRowError as error:
        # Rows without names are another reason than a key that does not exist.
        query = "select 1 from binloom.row_changes where source_id = $source and schema_name = $schema"
        query += " and table_name = $table limit 1"
        if not log.connection.execute(query, table.parameters).fetchone():
            log.assert_not_quarantined(Filters(schemas=(table.schema_name,), tables=(table.table_name,)))
        if isinstance(error, UnchangedRowError):
            raise _with_lacks(log, table, error) from error
        raise


def _with_lacks(log: Log, table: Table, error: UnchangedRowError) -> UnchangedRowError:
    """Return the error with the parts of the log that are not known: a change of the row may be there."""
    source = (table.source_id,)
    notes = (*lacks.beginning(log, source), *lacks.missing(log, Filters(sources=source)))
    return UnchangedRowError(" ".join([error.message, *map(capitalized, notes)]), hint=error.hint)


def operation_of(version: Version) -> str:
    """Return what made a version."""
    if version.change is not None:
        return version.change.event_type
    return version.event.reason if version.event is not None else "existed before"


def position_of(maker: Change | TableEvent) -> str:
    """Return where a change or an event is."""
    return f"{maker.binlog_file}:{maker.start_pos if isinstance(maker, Change) else maker.place.pos}"


def time_of(maker: Change | TableEvent | None) -> datetime | None:
    """Return when a change was committed, or an event happened."""
    if isinstance(maker, Change):
        return maker.committed_at
    return maker.at if maker is not None else None


def changed_columns_of(version: Version) -> list[str] | None:
    """Return the columns with another value than before, and those whose value is not known any more."""
    if version.before is None or version.row is None:
        return None
    before, row = version.before, version.row
    return [
        name for name in {**before, **row} if (name in before) != (name in row) or before.get(name) != row.get(name)
    ]


def remarks_on(version: Version, until: Moment | None = None) -> Iterator[str]:
    """Yield what is not certain about a version, or about it up to a moment."""
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


def _masked(log: Log, table: Table) -> Iterator[Note]:
    if (sentence := masked_in_words(log, table)) is not None:
        yield Note(sentence, Kind.MASKED)


def _names(log: Log, table: Table) -> Iterator[Note]:
    """Yield under which names the row is followed, and under which it is not."""
    for period in periods_of(log.connection, table)[1:]:
        assert period.until is not None
        yield Note(f"before {period.binlog_file}:{period.until.pos}, the table had the name {period.table}.")
    if (later := later_name(log.connection, table)) is not None:
        name, position = later
        yield Note(
            f"the RENAME TABLE at {position} gave {table} the name {name}: its rows continue under that name.", Kind.END
        )


def _absence(found: Sequence[Version], name: str, moment: Moment) -> str:
    gone = next((version for version in found if version.is_at(moment.place)), None)
    if gone is not None:
        maker = gone.change or gone.event
        place = f" at {position_of(maker)}" if maker is not None else ""
        if gone.joins is not None:
            return f"{name} cannot be told apart from equal rows as of {moment}: {operation_of(gone)}{place}."
        return f"{name} did not exist as of {moment}: {operation_of(gone)}{place}."
    first = found[0]
    is_insert = first.change is not None and first.change.event_type == "INSERT"
    was_absent = is_insert and (first.since is None or first.since.place < moment.place)
    if was_absent and first.change is not None:
        return f"{name} did not exist as of {moment}: its first change is the INSERT at {position_of(first.change)}."
    return f"The log does not show whether {name} existed as of {moment}: its first known version is later."


def _facts(version: Version, statements: Mapping[str, str]) -> Cells:
    maker, end = version.change or version.event, version.ended_by
    change = version.change
    return (
        version.line,
        version.number,
        operation_of(version),
        version.key,
        time_of(maker),
        time_of(end),
        position_of(maker) if maker else None,
        position_of(end) if end else None,
        maker.gtid if maker else None,
        change.transaction_id if change else None,
        maker.thread_id if maker else None,
        change.change_id if change else None,
        statements.get(change.change_id) if change else None,
        changed_columns_of(version),
        version.row,
        list(remarks_on(version)),
    )
