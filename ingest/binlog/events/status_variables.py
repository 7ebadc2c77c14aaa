"""The status variables of a QUERY event: settings of the session that ran the statement.

Sources: server, libs/mysql/binlog/event/statement_events.cpp, `Query_event::Query_event`; MariaDB,
sql/log_event.cc, `Query_log_event::Query_log_event`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from ingest.binlog.events.reader import MalformedEventError, Reader
from ingest.binlog.text.charsets import charset_of, decode_text

_SQL_MODES: Final = (
    *("REAL_AS_FLOAT", "PIPES_AS_CONCAT", "ANSI_QUOTES", "IGNORE_SPACE", "NOT_USED", "ONLY_FULL_GROUP_BY"),
    *("NO_UNSIGNED_SUBTRACTION", "NO_DIR_IN_CREATE", "POSTGRESQL", "ORACLE", "MSSQL", "DB2", "MAXDB"),
    *("NO_KEY_OPTIONS", "NO_TABLE_OPTIONS", "NO_FIELD_OPTIONS", "MYSQL323", "MYSQL40", "ANSI"),
    *("NO_AUTO_VALUE_ON_ZERO", "NO_BACKSLASH_ESCAPES", "STRICT_TRANS_TABLES", "STRICT_ALL_TABLES"),
    *("NO_ZERO_IN_DATE", "NO_ZERO_DATE", "ALLOW_INVALID_DATES", "ERROR_FOR_DIVISION_BY_ZERO", "TRADITIONAL"),
    *("NO_AUTO_CREATE_USER", "HIGH_NOT_PRECEDENCE", "NO_ENGINE_SUBSTITUTION", "PAD_CHAR_TO_FULL_LENGTH"),
)
"""Names of bits 0 to 31, on which the servers agree (MySQL 8 no longer has bits 8 to 17 and 28)."""

_SQL_MODES_OF: Final = {
    "mysql": {32: "TIME_TRUNCATE_FRACTIONAL", 33: "INTERPRET_UTF8_AS_UTF8MB4"},
    "mariadb": {
        4: "IGNORE_BAD_TABLE_OPTIONS",
        32: "EMPTY_STRING_IS_NULL",
        33: "SIMULTANEOUS_ASSIGNMENT",
        34: "TIME_ROUND_FRACTIONAL",
    },
}

_MICROSECONDS: Final = {"mysql": 13, "mariadb": 128}
_MICROSECONDS_SIZE: Final = 3
_MOST_KNOWN: Final = 64

_OVER_MAX_SCHEMAS: Final = 254
"""Replaces the count when the statement changed more schemas than the event can name."""


@dataclass(frozen=True, slots=True)
class Status:
    """The values of the status variables; None for variables that are not in the event.

    `sql_mode` is written as `@@sql_mode`, `invoker` as `user@host`. Collations are the servers' ids, and
    `lc_time_names` is a locale's number. `flags2` contains the session options as bits. `updated_schemas` is also
    None when there were more schemas than the event can name. `is_complete` is false when the block ends in a
    variable that is unknown or cut off: nothing after it can be read.
    """

    flags2: int | None = None
    sql_mode: str | None = None
    catalog: str | None = None
    auto_increment_increment: int | None = None
    auto_increment_offset: int | None = None
    character_set_client: str | None = None
    collation_connection: int | None = None
    collation_server: int | None = None
    time_zone: str | None = None
    lc_time_names: int | None = None
    collation_database: int | None = None
    table_map_for_update: int | None = None
    original_size: int | None = None
    invoker: str | None = None
    updated_schemas: tuple[str, ...] | None = None
    microseconds: int | None = None
    explicit_defaults_for_timestamp: bool | None = None
    xid: int | None = None
    default_collation_for_utf8mb4: int | None = None
    sql_require_primary_key: bool | None = None
    default_table_encryption: bool | None = None
    enable_cascade_triggers: bool | None = None
    gtid_flags_extra: int | None = None
    start_alter_gtid_number: int | None = None
    character_set_collations: tuple[tuple[int, int], ...] | None = None
    is_complete: bool = True


Facts = dict[str, Any]


def parse_status(block: bytes, flavor: str) -> Status:
    """Parse a QUERY event's block of status variables, for a server of a flavor (`mysql`, `mariadb`).

    A variable is a key of one byte and a value whose size follows from the key. Hence the first unknown key ends
    the parse, as it does in the servers. The size of the whole block is known, so the statement is still found.
    """
    return _parse(block, flavor)[0]


class SessionReader:
    """Parses the blocks of a log for the settings of the sessions; `microseconds` are those of an earlier block.

    Most servers log the microseconds of each statement among its variables, so nearly every block is another one.
    Blocks that differ only there are parsed once: the bytes before the microseconds decide where these are.
    """

    def __init__(self, flavor: str) -> None:
        self._flavor = flavor
        self._known: dict[tuple[int, int, bytes], Status] = {}
        self._places: set[int] = set()

    def status(self, block: bytes) -> Status:
        """Return the values of a block's variables, except the microseconds."""
        # Threads share a reader: another one may add a place meanwhile.
        for place in tuple(self._places):
            known = self._known.get(_without_microseconds(block, place))
            if known is not None:
                return known
        status, place = _parse(block, self._flavor)
        if len(self._known) == _MOST_KNOWN:
            self._known.clear()
            self._places.clear()
        self._known[_without_microseconds(block, place)] = status
        self._places.add(place)
        return status


def _without_microseconds(block: bytes, place: int) -> tuple[int, int, bytes]:
    return place, len(block), block[:place] + block[place + _MICROSECONDS_SIZE :]


def _parse(block: bytes, flavor: str) -> tuple[Status, int]:
    """Return the values of a block, and the place of the microseconds: the block's end if it has none."""
    reader = Reader(block)
    variables = _COMMON | _OF_FLAVOR[flavor]
    facts: Facts = {}
    place = len(block)
    try:
        while reader.left:
            key = reader.byte()
            if key == _MICROSECONDS[flavor]:
                place = reader.at
            facts |= variables[key](reader)
    except (KeyError, MalformedEventError):
        facts["is_complete"] = False
    mode = facts.get("sql_mode")
    if mode is not None:
        facts["sql_mode"] = sql_mode_text(mode, flavor)
    return Status(**facts), place


def sql_mode_text(bits: int, flavor: str) -> str:
    """Return the bits of `sql_mode` as the server prints them: names in the order of the bits, joined by commas.

    A bit without a name here is written as its value in hex.
    """
    names = dict(enumerate(_SQL_MODES)) | _SQL_MODES_OF[flavor]
    return ",".join(names.get(bit, f"{1 << bit:#x}") for bit in range(64) if bits >> bit & 1)


def _number(name: str, size: int) -> Callable[[Reader], Facts]:
    return lambda reader: {name: reader.number(size)}


def _flag(name: str) -> Callable[[Reader], Facts]:
    return lambda reader: {name: bool(reader.byte())}


def _text(name: str) -> Callable[[Reader], Facts]:
    return lambda reader: {name: _sized_text(reader)}


def _sized_text(reader: Reader) -> str:
    return decode_text(reader.take(reader.byte()), None)


def _catalog_of_early_5_0(reader: Reader) -> Facts:
    """Read a catalog name and the zero byte that MySQL 5.0.0 to 5.0.3 wrote after it."""
    facts = {"catalog": _sized_text(reader)}
    reader.take(1)
    return facts


def _auto_increment(reader: Reader) -> Facts:
    return {"auto_increment_increment": reader.number(2), "auto_increment_offset": reader.number(2)}


def _charsets(reader: Reader) -> Facts:
    client, connection, server = reader.number(2), reader.number(2), reader.number(2)
    return {
        "character_set_client": charset_of(client) or str(client),
        "collation_connection": connection,
        "collation_server": server,
    }


def _invoker(reader: Reader) -> Facts:
    return {"invoker": f"{_sized_text(reader)}@{_sized_text(reader)}"}


def _updated_schemas(reader: Reader) -> Facts:
    count = reader.byte()
    if count == _OVER_MAX_SCHEMAS:
        return {}
    return {"updated_schemas": tuple(decode_text(reader.until_zero(), None) for _ in range(count))}


def _gtid_flags_extra(reader: Reader) -> Facts:
    """Read the flags of MariaDB's two-phase ALTER; its COMMIT (4) and ROLLBACK (8) contain the number of its START."""
    flags = reader.byte()
    facts = {"gtid_flags_extra": flags}
    return facts | {"start_alter_gtid_number": reader.number(8)} if flags & 12 else facts


def _character_set_collations(reader: Reader) -> Facts:
    pairs = tuple((reader.number(2), reader.number(2)) for _ in range(reader.byte()))
    return {"character_set_collations": pairs}


_COMMON: Final[dict[int, Callable[[Reader], Facts]]] = {
    0: _number("flags2", 4),
    1: _number("sql_mode", 8),
    2: _catalog_of_early_5_0,
    3: _auto_increment,
    4: _charsets,
    5: _text("time_zone"),
    6: _text("catalog"),
    7: _number("lc_time_names", 2),
    8: _number("collation_database", 2),
    9: _number("table_map_for_update", 8),
    10: _number("original_size", 4),
    11: _invoker,
}
_OF_FLAVOR: Final[dict[str, dict[int, Callable[[Reader], Facts]]]] = {
    "mysql": {
        12: _updated_schemas,
        _MICROSECONDS["mysql"]: _number("microseconds", _MICROSECONDS_SIZE),
        16: _flag("explicit_defaults_for_timestamp"),
        17: _number("xid", 8),
        18: _number("default_collation_for_utf8mb4", 2),
        19: _flag("sql_require_primary_key"),
        20: _flag("default_table_encryption"),
        21: _flag("enable_cascade_triggers"),
    },
    "mariadb": {
        _MICROSECONDS["mariadb"]: _number("microseconds", _MICROSECONDS_SIZE),
        129: _number("xid", 8),
        130: _gtid_flags_extra,
        131: _character_set_collations,
    },
}
