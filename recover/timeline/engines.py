"""Storage engines with which a table has other rows than the log shows, through the names that the table gets."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from ingest.ddl.actions import HOLDS_ROWS_OF_OTHERS, KEEPS_NO_ROWS, LOSES_ROWS_AT_START
from ingest.ddl.verbs import phrase
from recover.sources.home.marts import SERVER_STARTS
from recover.timeline.events import Effect, Place, Table, TableEvent
from recover.timeline.readings import readings_of

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

SERVER_START: Final = "a start of the server, which empties MEMORY tables,"
HIDING: Final = {f"other {KEEPS_NO_ROWS}": "BLACKHOLE", f"other {HOLDS_ROWS_OF_OTHERS}": "MERGE"}
"""Engines by the steps that give them: the log does not show which rows their tables have."""
MEMORY: Final = f"other {LOSES_ROWS_AT_START}"
OTHERS: Final = ("other engine", MEMORY)
"""Steps that give a table another engine."""

_STEPS: Final = {**HIDING, MEMORY: "MEMORY"}
_CARRYING: Final = ("rename_table ", "create_like ")
_CONDITIONAL: Final = phrase("if", "not", "exists")


class Turn(NamedTuple):
    """The engine of a table from a statement on: one of `_STEPS`; None for any other.

    `is_carried` is whether the table has it from the one that was renamed, or that it was made like.
    """

    engine: str | None
    is_carried: bool


class _Statement(NamedTuple):
    place: Place
    kind: str
    schema: str
    name: str
    actions: Sequence[str]
    tables: Sequence[str]
    text: str
    default_schema: str | None

    def renames(self) -> list[tuple[str, str]] | None:
        """Return the names before and after of each table that RENAME TABLE names; None if its text cannot be read."""
        if len(self.actions) == 1:
            return [(self.name, self.actions[0].partition(" ")[2].lower())]
        found = readings_of(self.text, self.default_schema, tuple(self.actions))
        return [
            (_name(step.schema_name, step.table_name), _name(step.other_schema_name, step.other_table_name))
            for step in (found[0] if found else ())
        ] or None


def turns_of(connection: "DuckDBPyConnection", table: Table, statements: Iterable[TableEvent]) -> dict[Place, Turn]:
    """Return the engines that statements gave a table, by their places; `statements` are all that name it.

    They are empty if the statements alone tell them: the others of the source are read only where a table has its name
    from another one, or has rows that the next start of the server takes.
    """
    actions = [action for one in statements for action in one.actions]
    if not any(action.startswith(_CARRYING) or action == MEMORY for action in actions):
        return {}
    turns: dict[Place, Turn] = {}
    engines: dict[str, str] = {}
    name = str(table).lower()
    for one in _statements(connection, table.source_id):
        is_touched = name in one.tables or "drop_database" in one.actions
        before = engines.get(name)
        carried = _follow(engines, one)
        if is_touched or engines.get(name) != before:
            turns[one.place] = Turn(engines.get(name), name in carried)
    return turns


def starts_of(connection: "DuckDBPyConnection", table: Table, turns: dict[Place, Turn]) -> Iterator[TableEvent]:
    """Yield the starts of the server while a table has the engine MEMORY: its rows are gone.

    A server logs that when the table is used for the first time, as a statement, and MariaDB at times not at all.
    """
    if not any(turn.engine == "MEMORY" for turn in turns.values()):
        return
    started = connection.execute(
        f"select epoch, file_sequence, binlog_file from {'.'.join(SERVER_STARTS)} where source_id = ?",
        [table.source_id],
    ).fetchall()
    for epoch, sequence, file in started:
        place = Place(epoch, sequence, 4)
        last = max((one for one in turns if one < place), default=None)
        if last is not None and turns[last].engine == "MEMORY":
            yield TableEvent(place, Effect.OBSCURES, SERVER_START, file)


def _statements(connection: "DuckDBPyConnection", source_id: str) -> Iterator[_Statement]:
    """Yield the statements of a source that may give a table another engine or name, in the order of the log."""
    rows = connection.execute(
        """select epoch, file_sequence, start_pos, statement_type, lower(coalesce(schema_name, '')),
            lower(concat_ws('.', schema_name, table_name)), actions, list_transform(tables, lambda one: lower(one)),
            coalesce(sql_text, ''), default_schema
        from binloom.schema_changes
        where source_id = $source and len(list_filter(actions, lambda one: regexp_matches(one, $steps))) > 0
        order by epoch, file_sequence, start_pos, payload_ordinal""",
        {"source": source_id, "steps": "^(rename_table|create_|drop_table|drop_database|other engine)"},
    ).fetchall()
    yield from (_Statement(Place(*row[:3]), *row[3:]) for row in rows)


def _follow(engines: dict[str, str], statement: _Statement) -> set[str]:
    """Take what a statement does to the engines of tables; return the tables that have theirs from another one."""
    if "drop_database" in statement.actions:
        for name in [one for one in engines if one.startswith(f"{statement.schema}.")]:
            del engines[name]
        return set()
    if statement.kind == "RENAME TABLE":
        return _rename(engines, statement)
    if statement.kind == "DROP TABLE":
        for name in statement.tables:
            engines.pop(name, None)
        return set()
    carried, name = set[str](), statement.name
    is_conditional = _CONDITIONAL.search(statement.text) is not None
    for action in statement.actions:
        kind, _, other = action.partition(" ")
        engine: str | None
        if action in _STEPS or action == "other engine":
            engine = _STEPS.get(action)
        elif kind == "create_like":
            engine = engines.get(other.lower())
            carried |= {name}
        elif kind == "rename_table":
            engine = engines.pop(name, None)
            name = other.lower()
            carried |= {name}
        elif kind in ("drop_table", "create_table", "create_select"):
            engine = None
        else:
            continue
        # With IF NOT EXISTS, the table may be one that was there before.
        if engine is not None:
            engines[name] = engine
        elif not (is_conditional and kind.startswith("create_")):
            engines.pop(name, None)
    return carried


def _rename(engines: dict[str, str], statement: _Statement) -> set[str]:
    """Rename tables one after the other, as a server does."""
    renames = statement.renames()
    if renames is None:
        # Each of the tables may have the engine of any other.
        engine = next((engines[name] for name in statement.tables if name in engines), None)
        engines |= {} if engine is None else dict.fromkeys(statement.tables, engine)
        return {*statement.tables}
    for former, name in renames:
        engine = engines.pop(former, None)
        engines |= {} if engine is None else {name: engine}
    return {name for _, name in renames}


def _name(schema: str | None, table: str | None) -> str:
    return ".".join(one for one in (schema, table) if one is not None).lower()
