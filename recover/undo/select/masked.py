"""Reasons why an undo of a table with masked columns is refused: the tables do not have the values of the server."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from recover.timeline.masked_columns import MaskedTables, in_words
from recover.undo.options import UndoOptions
from recover.undo.select.selected import Selected, is_selected
from recover.undo.tables.definitions import Definitions

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def masked_obstacles(
    connection: "DuckDBPyConnection",
    selected: Selected,
    definitions: Definitions,
    masks: MaskedTables,
    options: UndoOptions,
    *,
    is_compared: bool,
) -> Iterator[str]:
    """Yield each table of a selection whose masked columns the undo would need, as a sentence without its end.

    Most masks also hide whether a column was changed. So an undo of a table with masked columns is possible only if
    the options name other columns, and only for updates of rows whose key is neither masked nor changed.
    """
    for name in selected.tables:
        columns = masks.get(name)
        if not columns:
            continue
        text = ".".join(name)
        reason = f"{text} has masked columns, whose values nobody can restore from here: {in_words(columns)}"
        table = definitions.tables.get(name)
        key = table.row_key if table is not None else ()
        if options.columns is None or options.columns & columns.keys():
            yield (f"{reason}; name other columns with --columns, or give the original binlog files with --files")
        elif not key or columns.keys() & set(key):
            yield f"{reason}; they are needed to find the rows, so give the original binlog files with --files"
        elif _others_than_updates(connection, selected, name):
            yield f"{reason}; only updates can leave them out, so give the original binlog files with --files"
        elif is_compared:
            yield f"{reason}; leave out --against, which compares whole rows"


def _others_than_updates(connection: "DuckDBPyConnection", selected: Selected, name: tuple[str, str]) -> bool:
    found = connection.execute(
        f"select 1 from binloom.row_changes as changes where {is_selected(selected.is_whole)}"
        " and schema_name = ? and table_name = ? and (event_type != 'UPDATE' or pk_values_after is not null) limit 1",
        [*name],
    ).fetchone()
    return found is not None
