"""The rows of a file that mysqldump or mariadb-dump has written, at the position that it names.

The file is read twice: once for the definitions and for the places of the INSERT statements, once for the rows. Only
some megabytes of it are in memory. Every value is converted by the type of its column; what cannot be the value of the
column is refused with its line.
"""

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.binlog import TableFilter
from ingest.binlog.byte_files import Bytes, LogPath, open_bytes
from ingest.errors import BinlogError, SnapshotInputError, UsageError
from ingest.sources.baseline_tables import BINARY_TYPES, BaselineTable
from ingest.sources.compressed import Sequential
from ingest.sources.named import recognised
from ingest.sources.snapshot import SchemaSnapshot
from ingest.sources.snapshot_ddl import snapshot_of_ddl
from ingest.sources.spill import DamagedStreamError

if TYPE_CHECKING:
    import pyarrow as pa

TableName = tuple[str, str]

_NAME: Final = rb"(`(?:[^`]|``)+`|[^\s`.(]+)"
_INSERT: Final = re.compile(
    rb"(?i)(?:INSERT|REPLACE)\s+(?:IGNORE\s+)?INTO\s+" + _NAME + rb"(?:\." + _NAME + rb")?\s*(\([^()]*\))?\s*VALUES\s*"
)
_COLUMN: Final = re.compile(rb"\s*" + _NAME + rb"\s*[,)]")
_USE: Final = re.compile(rb"(?i)USE\s+" + _NAME + rb"\s*;")
_NAMES: Final = re.compile(rb"(?i)SET\s+NAMES\s+'?(\w+)")
_UTC: Final = re.compile(rb"(?i)TIME_ZONE\s*=\s*'\+00:00'")
_WHERE: Final = re.compile(rb"-- WHERE:\s")
_HEAD: Final = re.compile(rb"-- (?:MySQL|MariaDB) dump|/\*M!")
_GTIDS: Final = re.compile(
    r"GTID_PURGED\s*=\s*(?:/\*.*?\*/\s*)?'([^']*)'|gtid_slave_pos\s*=\s*'([^']*)'", re.IGNORECASE
)
_CREATE: Final = re.compile(rb"(?i)CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?" + _NAME + rb"(?:\." + _NAME + rb")?")
_ENGINE: Final = re.compile(rb"(?i)\).*?\bENGINE\s*=\s*(\w+)")
_DATA: Final = re.compile(
    rb"(?:-- Dumping data for table |LOCK TABLES |/\*!40000 ALTER TABLE )"
    + _NAME
    + rb"(?: WRITE;| DISABLE KEYS \*/;|\s*$)"
)
_DELIMITER: Final = re.compile(rb"(?i)DELIMITER\s+(\S+)")
_SQL_MODE: Final = re.compile(rb"(?i)SQL_MODE\s*=\s*'?([\w,@]*)")
_VERSION: Final = re.compile(r"(?m)^-- Server version\s+(?:5\.5\.5-(?=\d+\.))?(\S+)")
_HEAD_BYTES: Final = 4096
_BLOCK: Final = 1 << 20
_UNICODE: Final = frozenset({"names utf8mb4", "names utf8", "names utf8mb3"})
# A dump without comments has no other end.
_COMPLETED: Final = re.compile(rb"-- Dump completed|/\*!40111 SET SQL_NOTES=@OLD_|/\*M!100616 SET NOTE_VERBOSITY=@OLD_")
# No statement, and no `;` ends it.
_SANDBOX: Final = b"/*M!999999"
_NUMBERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double", "year"})
_BEYOND_BMP: Final = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
"""Character sets with characters that a dump in utf8mb3 has as question marks."""


@dataclass
class _Inserts:
    """The INSERT statements of a table: ranges of lines of the file, and the columns that they name."""

    columns: tuple[str, ...] | None
    ranges: list[list[int]] = field(default_factory=list)

    def add(self, start: int, end: int, line: int) -> None:
        if self.ranges and self.ranges[-1][1] == start:
            self.ranges[-1][1] = end
        else:
            self.ranges.append([start, end, line])


class Dump:
    """A dump: definitions and position, tables, and their rows.

    Parameters
    ----------
    path
        The file.
    schema
        Schema of tables that are named without a schema before any USE.
    wanted
        Filter of the tables; None for all.
    position
        File and position of the binlog that the dump was taken at; None: the dump names it.
    with_rounded
        Whether the values of a FLOAT, and of a DOUBLE(M,D), are taken with the few digits that a dump has of them.

    Raises
    ------
    SnapshotInputError
        The file cannot be read, does not name a position, is cut short, or has rows in a form that does not show their
        values.
    """

    def __init__(
        self,
        path: Path,
        schema: str | None = None,
        wanted: TableFilter | None = None,
        *,
        position: tuple[str, int] | None = None,
        with_rounded: bool = False,
    ) -> None:
        self._path = path
        self._wanted = wanted
        self._with_rounded = with_rounded
        self._facts: set[str] = set()
        self._inserts: dict[TableName, _Inserts] = {}
        self._has_end = False
        self._with_data: set[TableName] = set()
        self.engines: dict[TableName, str] = {}
        """By table, the engine that its CREATE TABLE names, in upper case."""
        try:
            self._file = _dump_file(path)
            script = self._read(schema)
            written_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except (OSError, BinlogError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else error
            raise SnapshotInputError(
                f"{path} cannot be read: {str(reason).rstrip('.')}.",
                hint="Give a file that mysqldump has written.",
                path=str(path),
            ) from error
        self._assert_usable()
        named_file, named_pos = position or (None, None)
        found = snapshot_of_ddl(path, script, schema, named_file, named_pos)
        gtids = _GTIDS.search(script)
        executed = (gtids[1] or gtids[2] or "").replace("\n", "") if gtids else ""
        self.snapshot: SchemaSnapshot = replace(found, taken_at=written_at, gtid_executed=executed or None)
        self.server_version = version[1] if (version := _VERSION.search(script, 0, _HEAD_BYTES)) else None
        if found.binlog_file is None:
            raise self._failure(
                "it does not name its position in the binlog",
                "Write the dump with --source-data=2 (--master-data=2 before MySQL 8.0.26 and on MariaDB).",
            )
        self._columns = self._columns_by_table(found.columns)
        self.names = tuple(self._columns)
        """Schema and name of all tables."""

    @cached_property
    def tables(self) -> tuple[BaselineTable, ...]:
        """The tables that the filter takes. Raises like `table`, and if there is none."""
        taken = (name for name in self.names if self._wanted is None or self._wanted.takes(*name))
        found = tuple(map(self.table, taken))
        if not found:
            known = ", ".join(".".join(name) for name in islice(self.names, 5))
            raise UsageError(f"No table of {self._path} is selected.", hint=f"It has {known}.")
        return found

    @property
    def content(self) -> str:
        """Hash of the file."""
        digest, at = sha256(), 0
        with open_bytes(self._file) as source:
            while block := source.read(_BLOCK, at):
                digest.update(block)
                at += len(block)
        return digest.hexdigest()

    @property
    def is_whole(self) -> bool:
        """Whether it has the end that mysqldump writes; without one, nobody can tell whether it is cut off."""
        return self._has_end

    def has_data(self, table: BaselineTable) -> bool:
        """Return whether the rows of a table were dumped: an empty table looks like one of --no-data."""
        name = (table.schema_name, table.table_name)
        return name in self._inserts or name in self._with_data

    def rounded_columns(self, table: BaselineTable) -> tuple[str, ...]:
        """Return the columns of a table that a dump has only with fewer digits than the server."""
        rows = self._columns[table.schema_name, table.table_name]
        return tuple(row["column_name"] for row in rows if not _is_exact(row))

    # --- the first reading ---

    def _read(self, schema: str | None) -> str:
        """Find the INSERT statements; return all other lines, each at its number."""
        others: list[bytes] = []
        current, created = schema, None
        at, inserts = 0, None
        # Bodies of triggers and routines have INSERT statements that are none of the dump.
        is_body, is_open = False, False
        try:
            with io.BufferedReader(Sequential(open_bytes(self._file)), _BLOCK) as file:
                for number, line in enumerate(file, 1):
                    # A newline in a value is written as `\n`, so a line that does not end the statement ends a row.
                    if inserts is not None:
                        inserts.ranges[-1][1] += len(line)
                        others.append(b"\n")
                    elif not (is_body or is_open) and line[:7].upper() in (b"INSERT ", b"REPLACE"):
                        name, columns = self._insert(line, number, current)
                        inserts = self._inserts.setdefault(name, _Inserts(columns))
                        if inserts.columns != columns:
                            raise self._failure(
                                "its INSERT statements name other columns than those before", line=number
                            )
                        inserts.add(at, at + len(line), number)
                        others.append(b"\n")
                        self._has_end = False
                    else:
                        if used := _USE.match(line):
                            current = _unquoted(used[1])
                        if delimiter := _DELIMITER.match(line):
                            is_body = delimiter[1] != b";"
                        created = self._note_table(line, created, current)
                        self._note(line)
                        others.append(line)
                        is_open = _stays_open(line, is_open)
                    at += len(line)
                    if inserts is not None and _is_end(line):
                        inserts = None
        except DamagedStreamError as error:
            raise self._failure(str(error), "Copy the file again, or write the dump again.") from None
        return b"".join(others).decode("utf-8", "replace")

    def _note_table(self, line: bytes, created: TableName | None, schema: str | None) -> TableName | None:
        """Note the engine of a table; return the table whose CREATE TABLE goes on."""
        if data := _DATA.match(line):
            self._with_data.add((schema or "", _unquoted(data[1])))
        if begun := _CREATE.match(line):
            return _unquoted(begun[1]) if begun[2] else schema or "", _unquoted(begun[2] or begun[1])
        if created is not None and (engine := _ENGINE.match(line)):
            self.engines[created] = engine[1].decode().upper()
            return None
        return created

    def _insert(self, line: bytes, number: int, schema: str | None) -> tuple[TableName, tuple[str, ...] | None]:
        found = _INSERT.match(line)
        if found is None:
            raise self._failure("an INSERT statement is not in the form of mysqldump", line=number)
        table = _unquoted(found[2] or found[1])
        owner = _unquoted(found[1]) if found[2] else schema
        if owner is None:
            raise self._failure(f"table {table} has no schema", "Give it with --schema.", line=number)
        columns = tuple(_unquoted(one) for one in _COLUMN.findall(found[3][1:])) if found[3] else None
        return (owner, table), columns

    def _note(self, line: bytes) -> None:
        if names := _NAMES.search(line):
            self._facts.add(f"names {names[1].decode().lower()}")
        if mode := _SQL_MODE.search(line):
            self._facts.discard("no escapes")
            if b"NO_BACKSLASH_ESCAPES" in mode[1].upper():
                self._facts.add("no escapes")
        if line.strip():
            self._has_end = _COMPLETED.match(line) is not None or (self._has_end and line.startswith(b"--"))
        for fact, pattern in (("utc", _UTC), ("where", _WHERE), ("head", _HEAD)):
            if pattern.search(line):
                self._facts.add(fact)

    def _assert_usable(self) -> None:
        if not (self._facts or self._inserts or self.engines):
            raise self._failure("it is not a dump", "Give a file that mysqldump or mariadb-dump has written.")
        if "head" in self._facts and not self._has_end:
            raise self._failure("it has no end: the line `-- Dump completed` is missing", "Write it again.")
        if "where" in self._facts:
            raise self._failure("it has only some rows of its tables (--where)", "Write it without --where.")
        if self._facts.isdisjoint(_UNICODE) or any(one.startswith("names ") for one in self._facts - {*_UNICODE}):
            raise self._failure(
                "its text is not known to be utf8mb4", "Write it with --default-character-set=utf8mb4 --set-charset."
            )

    def _columns_by_table(self, rows: list[dict[str, Any]]) -> dict[TableName, list[dict[str, Any]]]:
        columns: dict[TableName, list[dict[str, Any]]] = {}
        for row in rows:
            columns.setdefault((row["schema_name"], row["table_name"]), []).append(row)
        for name in self._inserts:
            if name not in columns:
                raise self._failure(f"it has rows of {'.'.join(name)}, but no CREATE TABLE", "Write it anew.")
        return columns

    def table(self, name: TableName) -> BaselineTable:
        """Return a table, with the columns whose values the dump has.

        Raises
        ------
        SnapshotInputError
            The dump does not tell what the values of the table mean.
        """
        known = [row for row in self._read_columns(name) if self._is_taken(row)]
        names = [row["column_name"] for row in known]
        keys = [row["column_name"] for row in self._columns[name] if row["primary_key_ordinal"]]
        if "utc" not in self._facts and any(row["data_type"] == "timestamp" for row in known):
            raise self._failure(f"the time zone of {'.'.join(name)} is unknown", "Write it with --tz-utc.")
        if "names utf8mb4" not in self._facts and (odd := [row for row in known if _has_any_character(row)]):
            raise self._failure(
                f"its text is utf8mb3, which has not all characters of column {odd[0]['column_name']} of"
                f" {'.'.join(name)}",
                "Write it with --default-character-set=utf8mb4.",
            )
        has_key = bool(keys) and all(key in names for key in keys)
        return BaselineTable(
            *name,
            column_names=tuple(names),
            data_types=tuple(row["data_type"] for row in known),
            primary_key_ordinals=tuple(sorted(names.index(key) for key in keys)) if has_key else None,
        )

    def _is_taken(self, column: dict[str, Any]) -> bool:
        return self._with_rounded or _is_exact(column)

    def _read_columns(self, name: TableName) -> list[dict[str, Any]]:
        """Return the definitions of the columns of a table that its INSERT statements have, in their order."""
        columns = self._columns[name]
        named = self._inserts[name].columns if name in self._inserts else None
        if named is None:
            return columns
        by_name = {row["column_name"]: row for row in columns}
        if unknown := [one for one in named if one not in by_name]:
            raise self._failure(f"table {'.'.join(name)} has no column {unknown[0]}", "Write it anew.")
        return [by_name[one] for one in named]

    # --- the second reading ---

    def rows(self, table: BaselineTable) -> "Iterator[pa.ListArray]":
        """Yield the rows of a table, each a list of texts.

        Raises
        ------
        SnapshotInputError
            A statement cannot be read; the message names its line.
        """
        from ingest.binlog.dump_rows import DumpRowError, DumpRows

        name = (table.schema_name, table.table_name)
        columns = self._read_columns(name)
        places = [at for at, row in enumerate(columns) if self._is_taken(row)]
        kinds = [_kind(row["data_type"]) for row in columns]
        is_plain = len(places) == len(columns) and not any(_is_filled(row) for row in columns)
        with open_bytes(self._file) as source:
            for start, end, number in self._inserts[name].ranges if name in self._inserts else ():
                part = _Part(source, start, end)
                try:
                    for rows in DumpRows(kinds, part.read_into, _head_size).batches():
                        yield rows if is_plain else _lists([_column(rows, at, columns) for at in places])
                except DumpRowError as error:
                    line = number + source.read(error.offset, start).count(b"\n")
                    raise self._failure(str(error), line=line) from None

    def _failure(self, message: str, hint: str | None = None, *, line: int | None = None) -> SnapshotInputError:
        where = f"{self._path}, line {line}" if line is not None else str(self._path)
        return SnapshotInputError(
            f"{where}: {message}.",
            hint=hint or "Write the dump with mysqldump or mariadb-dump, and their own options.",
            path=str(self._path),
        )


def _is_exact(column: dict[str, Any]) -> bool:
    """Return whether a dump shows the exact value of a column: it has six digits of a FLOAT, and rounds DOUBLE(M,D)."""
    data_type, column_type = column["data_type"], column["column_type"].lower()
    return not (data_type == "float" or (data_type == "double" and "(" in column_type))


def _is_end(line: bytes) -> bool:
    return line.rstrip().endswith(b";")


def _stays_open(line: bytes, is_open: bool) -> bool:
    """Return whether a statement goes on in the next line."""
    text = line.strip()
    if not text or text.startswith((b"--", _SANDBOX)):
        return is_open
    return not text.endswith(b";") and _DELIMITER.match(line) is None


def _unquoted(name: bytes) -> str:
    text = name.decode()
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def _dump_file(path: Path) -> LogPath:
    """Return the file with the text of a dump, which may be compressed."""
    found = recognised(path)
    if len(found) != 1:
        raise UsageError(f"{path} has {len(found)} files.", hint="Unpack it, and give the file of mysqldump.")
    return found[0]


def _has_any_character(column: dict[str, Any]) -> bool:
    """Return whether a column may have characters that utf8mb3 lacks."""
    return column["data_type"] == "json" or column["character_set"] in _BEYOND_BMP


def _kind(data_type: str) -> int:
    """Return how values of a type are written in a dump."""
    from ingest.binlog.kernel import dump_row_layout as kernel

    if data_type in _NUMBERS:
        return kernel.NUMBER
    if data_type == "bit":
        return kernel.BITS
    return kernel.BINARY if data_type in BINARY_TYPES else kernel.TEXT


def _head_size(statement: bytes) -> int | None:
    """Return the size of an INSERT statement up to its first row."""
    found = _INSERT.match(statement)
    return None if found is None else found.end()


def _is_filled(column: dict[str, Any]) -> bool:
    """Return whether a server writes zeros before the number of a column, which the log does not have."""
    return "zerofill" in column["column_type"].lower()


def _column(rows: "pa.ListArray", at: int, columns: list[dict[str, Any]]) -> "pa.StringArray":
    """Return the values of a column."""
    import pyarrow as pa
    import pyarrow.compute as pc

    size = len(columns)
    values = rows.values.take(pa.array(range(at, len(rows) * size, size), pa.int64()))
    return pc.replace_substring_regex(values, r"^(-?)0+([0-9])", r"\1\2") if _is_filled(columns[at]) else values


def _lists(columns: "list[pa.StringArray]") -> "pa.ListArray":
    """Return columns as rows, each a list of its values."""
    import numpy as np
    import pyarrow as pa

    rows, size = len(columns[0]), len(columns)
    values = pa.concat_arrays(columns).take(pa.array(np.arange(rows * size).reshape(size, rows).T.ravel()))
    return pa.ListArray.from_arrays(np.arange(0, rows * size + 1, size, dtype=np.int32), values)


class _Part:
    """Reads a range of a file once."""

    def __init__(self, source: Bytes, start: int, end: int) -> None:
        self._source, self._at, self._end = source, start, end

    def read_into(self, view: memoryview) -> int:
        """Write the next bytes; return their number."""
        count = self._source.read_into(view[: self._end - self._at], self._at)
        self._at += count
        return count
