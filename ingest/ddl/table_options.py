"""Options of tables, which CREATE TABLE and ALTER TABLE have behind the columns."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from ingest.ddl.actions import HOLDS_ROWS_OF_OTHERS, KEEPS_NO_ROWS, LOSES_ROWS_AT_START, ROWS_ARE_IN_ANOTHER, Action
from ingest.ddl.names import Names
from ingest.ddl.tokens import Cursor

_ENGINES: Final = {
    "BLACKHOLE": KEEPS_NO_ROWS,
    "MEMORY": LOSES_ROWS_AT_START,
    "HEAP": LOSES_ROWS_AT_START,
    "MERGE": HOLDS_ROWS_OF_OTHERS,
    "MRG_MYISAM": HOLDS_ROWS_OF_OTHERS,
}

OPTIONS: Final = frozenset(
    {
        *("ENGINE", "TYPE", "AUTO_INCREMENT", "AUTOEXTEND_SIZE", "AVG_ROW_LENGTH", "CHECKSUM", "TABLE_CHECKSUM"),
        *("COMMENT", "COMPRESSION", "CONNECTION", "DELAY_KEY_WRITE", "ENCRYPTION", "ENGINE_ATTRIBUTE", "INSERT_METHOD"),
        *("KEY_BLOCK_SIZE", "MAX_ROWS", "MIN_ROWS", "PACK_KEYS", "PAGE_CHECKSUM", "PASSWORD", "ROW_FORMAT"),
        *("SECONDARY_ENGINE", "SECONDARY_ENGINE_ATTRIBUTE", "SEQUENCE", "STATS_AUTO_RECALC", "STATS_PERSISTENT"),
        *("STATS_SAMPLE_PAGES", "STORAGE", "TABLESPACE", "TRANSACTIONAL", "UNION", "ALGORITHM", "LOCK"),
    }
)
"""Options that a value follows, with or without `=` between."""


def read_option(cursor: Cursor, names: Names, action: Callable[..., Action]) -> Iterator[Action]:
    """Read the name and the value of an option; yield what it does to the table.

    Parameters
    ----------
    cursor
        At the name.
    names
        Name reader of the statement.
    action
        Makes an action on the table.
    """
    name = cursor.name().lower()
    cursor.take_sign("=")
    detail = _ENGINES.get(cursor.value().upper(), name) if name == "engine" else name
    if detail == KEEPS_NO_ROWS:
        yield action("truncate_table")
    yield action("other", detail=detail)
    if name == "union":
        yield from (
            action("other", schema_name=schema, table_name=table, detail=ROWS_ARE_IN_ANOTHER)
            for schema, table in _tables(cursor, names)
        )
    elif name != "engine":
        cursor.skip()


def hiding_options(options: Sequence[Action]) -> list[Action]:
    """Return the options of a new table after which the log does not show which rows it has, or others have."""
    engine = next((one.detail for one in reversed(options) if (one.detail or "").startswith("engine")), None)
    if engine == HOLDS_ROWS_OF_OTHERS:
        return [one for one in options if one.detail in (engine, ROWS_ARE_IN_ANOTHER)]
    has_other_rows = engine in (KEEPS_NO_ROWS, LOSES_ROWS_AT_START)
    return [one for one in options if has_other_rows and one.detail == engine and one.action == "other"]


def _tables(cursor: Cursor, names: Names) -> list[tuple[str | None, str]]:
    """Read the tables of a MERGE table, which may be none."""
    if cursor.is_sign(")", 1):
        cursor.skip()
        return []
    return cursor.list_of(lambda: names.table(cursor))
