"""Triggers of the tables of an undo: they run again when somebody runs the script."""

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from recover.timeline.reach import trigger_of
from recover.undo.prove.against import LiveServer
from recover.undo.select.selected import Selected
from recover.undo.tables.table import TableName

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


def trigger_warnings(
    connection: "DuckDBPyConnection", selected: Selected, server: LiveServer | None = None
) -> Iterator[str]:
    """Yield what the triggers of the selected tables do, or that nothing shows whether there are any.

    A warning has no last full stop. The log knows the triggers of a table that it created, a server those that its
    user may see.
    """
    tables = [*selected.tables]
    live = None if server is None else server.tables_with_triggers(tables)
    known, is_certain = triggers_in_log(connection, selected.source_id, tables) if live is None else (live, True)
    if known:
        names = ", ".join(".".join(name) for name in tables if name in known)
        yield (
            f"the effects of triggers. Triggers of {names} run again when you run the script. The log contains the rows"
            " that triggers wrote to other tables"
        )
    elif not is_certain:
        yield "the effects of triggers, if these tables have any; nothing given here shows that"


def triggers_in_log(
    connection: "DuckDBPyConnection", source_id: str, tables: Collection[TableName]
) -> tuple[set[TableName], bool]:
    """Return the tables of which the log shows a trigger, and whether it shows the triggers of all tables."""
    by_text = {".".join(name).lower(): name for name in tables}
    triggers: dict[TableName, set[str]] = {}
    found = connection.execute(
        "select statement_type, list_transform(tables, lambda one: lower(one)), coalesce(sql_text, '')"
        " from binloom.schema_changes where source_id = ?"
        " and statement_type in ('CREATE TABLE', 'CREATE TRIGGER', 'DROP TRIGGER')"
        " order by epoch, file_sequence, start_pos",
        [source_id],
    ).fetchall()
    for kind, names, text in found:
        trigger = {trigger_of(text)} if kind != "CREATE TABLE" else set()
        for name in names or ():
            if name in by_text:
                triggers.setdefault(by_text[name], set()).update(trigger)
        if kind == "DROP TRIGGER":
            for ones in triggers.values():
                ones -= trigger
    return {name for name, ones in triggers.items() if ones}, len(triggers) == len(by_text)
