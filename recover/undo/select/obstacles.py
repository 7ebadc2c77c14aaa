"""Reasons why the log cannot show what an undo would do: statements, gaps, other definitions."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ingest.ddl.hashed_keys import may_be_hash
from ingest.warehouse.tokens import TOKEN
from ingest.words import counted
from recover.selection.catalog import TableVersion
from recover.timeline import hiding
from recover.timeline.baselines import baseline_of
from recover.timeline.events import Effect, Place, TableEvent
from recover.timeline.events import Table as LoggedTable
from recover.timeline.table_log import events_of, events_since, shows_all_rows
from recover.undo.options import Direction, UndoOptions
from recover.undo.select.altered import Altered
from recover.undo.select.cascade_rules import UNLESS_LOGGED, Changed, rows_of_cascade
from recover.undo.select.selected import Selected, first_place, first_selected, is_selected
from recover.undo.tables.definitions import Definitions
from recover.undo.tables.stale import changed_since_snapshot
from recover.undo.tables.table import ForeignKey, Table, TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_IS_ERASED: Final = f"regexp_matches(coalesce(pk_values, ''), '{TOKEN.pattern}')"
_ACTIONS_WITHOUT_HARM: Final = ("add_column", "convert_character_set")


def obstacles(
    connection: "DuckDBPyConnection",
    selected: Selected,
    definitions: Definitions,
    versions: Sequence[TableVersion],
    altered: Altered,
) -> Iterator[str]:
    """Yield each reason why the selection cannot be undone, as a sentence without its end."""
    for name in selected.tables:
        table = definitions.tables.get(name)
        text = ".".join(name)
        first = Place(*first_selected(connection, selected, name)[:3])
        events = events_of(connection, LoggedTable(selected.source_id, *name))
        since = hiding.since(events, first)
        if table is None:
            emptied = [one for one in since if one.effect is Effect.EMPTIES]
            if emptied and emptied[-1].reason.startswith("DROP "):
                yield f"{text} was dropped since by {emptied[-1]}{_way_out(connection, selected, name, emptied[-1])}"
                continue
            yield (
                f"nothing describes {text} as it is now, so its generated columns and keys are unknown: neither the"
                " statements of the log since its CREATE TABLE, nor a schema snapshot. Name the server with --against,"
                " land a snapshot with `binloom snapshot`; with --files, give --against, --ddl or --snapshot-dir"
            )
            yield from (
                f"{text} was emptied since by {one}{_way_out(connection, selected, name, one)}" for one in emptied[:1]
            )
            continue
        if table.is_versioned:
            yield f"{text} is system-versioned: its history is on the server, so use SELECT … FOR SYSTEM_TIME"
        since = [one for one in since if harms(one) and not altered.are_carried_over(table, one.place)]
        yield from (_reason(table, one) + _way_out(connection, selected, name, one) for one in since)
        yield from changed_since_snapshot(connection, selected.source_id, table, definitions)
        yield from _other_columns(connection, selected, table, versions)
        yield from _prepared(connection, selected, table)
        yield from _erased(connection, selected, table)
    yield from _other_labels(selected, definitions)


def _other_labels(selected: Selected, definitions: Definitions) -> Iterator[str]:
    """Yield the foreign keys between labels that differ: a server compares their numbers."""
    for key in definitions.foreign_keys:
        child, parent = definitions.tables.get(key.table), definitions.tables.get(key.parent)
        if child is None or parent is None or not {key.table, key.parent} & selected.tables.keys():
            continue
        for name, referenced in zip(key.columns, key.parent_columns, strict=True):
            labels = [table.by_name[one].labels for table, one in ((child, name), (parent, referenced))]
            if labels[0] != labels[1]:
                yield (
                    f"foreign key {key.name} compares the numbers of labels, and {name} of {child.text} has other"
                    f" labels than {referenced} of {parent.text}"
                )


def warnings(
    connection: "DuckDBPyConnection", selected: Selected, keys: Sequence[ForeignKey], options: UndoOptions
) -> Iterator[str]:
    """Yield what a script does not contain, each with its explanation and without the last full stop.

    Parameters
    ----------
    keys
        All foreign keys, also those that were dropped since.
    """
    found = Changed.by_selection(connection, selected).through(keys)
    if not found:
        return
    first = first_place(connection, selected)
    for key, rules in found.items():
        if options.with_cascades and _shows_all_rows(connection, LoggedTable(selected.source_id, *key.table), first):
            continue
        which = UNLESS_LOGGED
        if options.with_cascades:
            which = ", and that the log had not shown before: `binloom restore` gives these from a dump"
        elif options.direction is Direction.UNDO:
            which += ": --with-cascades adds those that the log has shown before"
        yield f"{rows_of_cascade(key, rules)}{which}"


def _shows_all_rows(connection: "DuckDBPyConnection", table: LoggedTable, until: Place) -> bool:
    """Return whether the log has all rows of a table up to a place, since it was empty or since a baseline."""
    baseline = baseline_of(connection, table, until)
    events = events_since(connection, table, events_of(connection, table, until), baseline, until)
    return shows_all_rows(events)


def harms(event: TableEvent) -> bool:
    """Return whether earlier images of a table may no longer show its rows after an event."""
    if event.effect is not Effect.ALTERS:
        return True
    return not all(action.startswith(_ACTIONS_WITHOUT_HARM) for action in event.actions)


def _reason(table: Table, event: TableEvent) -> str:
    if event.effect is Effect.EMPTIES:
        return f"{table.text} was emptied since by {event}: an undo cannot bring back the rows that this took"
    if event.effect is Effect.REPLACES:
        return f"{table.text} is another table since {event}: only a backup helps"
    if event.effect is Effect.ALTERS:
        return f"{table.text} was altered since by {event}: undo it on a copy of the table as it was before"
    return f"rows of {table.text} may have changed unseen since: {event}"


def _way_out(connection: "DuckDBPyConnection", selected: Selected, name: TableName, event: TableEvent) -> str:
    """Return what brings back the rows of a table that was emptied: its state before that or the selection, as SQL."""
    if event.effect is not Effect.EMPTIES:
        return ""
    row = connection.execute(
        "select binlog_file, transaction_pos from binloom.row_changes as changes"
        f" where {is_selected(selected.is_whole)} and schema_name = ? and table_name = ?"
        " order by epoch, file_sequence, start_pos limit 1",
        [*name],
    ).fetchone()
    assert row is not None
    return (
        f". `binloom state {'.'.join(name)} --format sql` prints the rows that the log knows: with --as-of"
        f" {event.binlog_file}:{event.place.pos} those from before this statement, with --as-of {row[0]}:{row[1]} those"
        " from before the selection. Give it the same --files or --source; other rows need a backup"
    )


def _other_columns(
    connection: "DuckDBPyConnection", selected: Selected, table: Table, versions: Sequence[TableVersion]
) -> Iterator[str]:
    """Yield a reason for each version of the selected rows that has other columns than the table has now."""
    rows: list[Any] = connection.execute(
        f"select distinct table_version_id from binloom.row_changes as changes where {is_selected(selected.is_whole)}"
        " and schema_name = ? and table_name = ?",
        [*table.name],
    ).fetchall()
    used = {row[0] for row in rows}
    for version in versions:
        if version.table_version_id not in used:
            continue
        for column in version.columns:
            now = table.by_name.get(column.name)
            if now is None:
                # The server made the hash of a unique key that is gone.
                if not may_be_hash(column.name):
                    yield f"column {column.name} of {table.text} is gone since: its values have no place"
            elif not _is_same_type(column.data_type, column.column_type, now.data_type, now.column_type):
                yield (
                    f"column {column.name} of {table.text} was {column.shown_type} and is {now.column_type} now:"
                    " its values may not fit"
                )
        # A table map has the columns of a key in the order of the table; a server takes a unique key for a missing one.
        keys = [table.primary_key] if table.primary_key else table.unique_keys
        if version.primary_key and {*version.primary_key} not in map(set, keys):
            has = " or ".join(f"({', '.join(key)})" for key in keys if key) or "no key"
            yield (
                f"the rows of {table.text} were logged with the primary key ({', '.join(version.primary_key)}), and its"
                f" definition has {has}: give its present definition with --against, --ddl or --snapshot-dir; if the"
                " key changed since, undo them on a copy of the table with the former key"
            )


def _is_same_type(old_type: str | None, old: str | None, new_type: str, new: str) -> bool:
    """Compare types of information_schema. A table map has types of the wire format, which the decoder checked."""
    if old is None or old_type is None or old_type.lower() != new_type.lower():
        # `varchar(20)` has its type before the parenthesis; a table map has `varchar 80`, or another name.
        return old is None or "(" not in old
    return plain_type(old) == plain_type(new) or "(" not in old


def plain_type(column_type: str) -> str:
    """Return a type without the display width that some versions of servers print."""
    text = column_type.lower().split("/*")[0].strip()
    return re.sub(r"^((?:tiny|small|medium|big)?int|year)\(\d+\)", r"\1", text)


def _erased(connection: "DuckDBPyConnection", selected: Selected, table: Table) -> Iterator[str]:
    row = connection.execute(
        f"select count(*) from binloom.row_changes as changes where {is_selected(selected.is_whole)}"
        f" and schema_name = ? and table_name = ? and {_IS_ERASED}",
        [*table.name],
    ).fetchone()
    if row is not None and row[0]:
        count = counted(row[0], "selected change")
        yield f"the values of {count} of {table.text} were erased: select transactions without them"


def _prepared(connection: "DuckDBPyConnection", selected: Selected, table: Table) -> Iterator[str]:
    row = connection.execute(
        "select count(*) from binloom.row_changes where source_id = ? and schema_name = ? and table_name = ?"
        " and outcome = 'xa_prepare'",
        [selected.source_id, *table.name],
    ).fetchone()
    if row is not None and row[0]:
        held = counted(row[0], "row change")
        yield f"a prepared XA transaction holds {held} of {table.text}: commit it or roll it back first"
