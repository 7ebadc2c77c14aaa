"""The rows of a file that mysqldump or mariadb-dump has written, at the position that it names.

The file is read twice: once for the definitions and for the places of the INSERT statements, once for the rows. Only
some megabytes of it are in memory. Every value is converted by the type of its column; what cannot be the value of the
column is refused with its line.
"""

import io
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.binlog import TableFilter
from ingest.binlog.byte_files import Bytes, LogPath, open_bytes
from ingest.errors import BinlogError, SnapshotInputError
from ingest.sources.baselines.baseline_tables import BaselineTable
from ingest.sources.dumps.dump import Dump, TableName
from ingest.sources.dumps.dump_folder import hash_file
from ingest.sources.dumps.dump_statements import (
    created,
    engine,
    insert_of,
    names_charset,
    sets_utc,
    unquoted,
    used_schema,
)
from ingest.sources.dumps.dump_values import kind, taken_columns
from ingest.sources.dumps.triggers import triggered_tables
from ingest.sources.files.compressed import Sequential
from ingest.sources.files.named import uncompressed
from ingest.sources.files.spill import DamagedStreamError
from ingest.sources.snapshots.snapshot_ddl import snapshot_of_ddl

if TYPE_CHECKING:
    import pyarrow as pa

_NAME: Final = rb"(`(?:[^`]|``)+`|[^\s`.(]+)"
_WHERE: Final = re.compile(rb"-- WHERE:\s")
_HEAD: Final = re.compile(rb"-- (?:MySQL|MariaDB) dump|/\*M!")
_GTIDS: Final = re.compile(
    r"GTID_PURGED\s*=\s*(?:/\*.*?\*/\s*)?'([^']*)'|gtid_slave_pos\s*=\s*'([^']*)'", re.IGNORECASE
)
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


class SqlDump(Dump):
    """A file of mysqldump or mariadb-dump.

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
        As for `Dump`.

    Raises
    ------
    SnapshotInputError
        The file cannot be read, does not name a position, is cut short, or has rows in a form that does not show their
        values.
    """

    def __init__(
        self,
        path: LogPath,
        schema: str | None = None,
        wanted: TableFilter | None = None,
        *,
        position: tuple[str, int] | None = None,
        with_rounded: bool = False,
    ) -> None:
        self.place = str(path)
        self._facts: set[str] = set()
        self._inserts: dict[TableName, _Inserts] = {}
        self._has_end = False
        self._with_data: set[TableName] = set()
        self._found_engines: dict[TableName, str] = {}
        try:
            self._file = uncompressed(path)
            script = self._read(schema)
            written_at = datetime.fromtimestamp(path.stat().st_mtime, UTC) if isinstance(path, Path) else None
        except (OSError, BinlogError) as error:
            text = error.message if isinstance(error, BinlogError) else error.strerror or str(error)
            raise SnapshotInputError(
                f"{path} cannot be read: {text.removeprefix(f'{path}: ').rstrip('.')}.",
                hint="Give a file that mysqldump has written.",
                path=str(path),
            ) from error
        self._assert_usable()
        named_file, named_pos = position or (None, None)
        found = snapshot_of_ddl(self.place, script, schema, named_file, named_pos)
        self.triggered = triggered_tables(script, schema)
        gtids = _GTIDS.search(script)
        executed = (gtids[1] or gtids[2] or "").replace("\n", "") if gtids else ""
        super().__init__(
            self.place,
            replace(found, taken_at=written_at or found.taken_at, gtid_executed=executed or None),
            self._found_engines,
            version[1] if (version := _VERSION.search(script, 0, _HEAD_BYTES)) else None,
            wanted,
            with_rounded=with_rounded,
        )
        for name in self._inserts:
            if name not in self._columns:
                raise self._failure(f"it has rows of {'.'.join(name)}, but no CREATE TABLE", "Write it anew.")

    @property
    def _position_hint(self) -> str:
        return "Write the dump with --source-data=2 (--master-data=2 before MySQL 8.0.26 and on MariaDB)."

    @property
    def content(self) -> str:
        """Hash of the file."""
        digest = sha256()
        hash_file(self._file, digest)
        return digest.hexdigest()

    @property
    def is_whole(self) -> bool:
        """Whether it has the end that mysqldump writes; without one, nobody can tell whether it is cut off."""
        return self._has_end

    def has_data(self, table: BaselineTable) -> bool:
        """Return whether the rows of a table were dumped: an empty table looks like one of --no-data."""
        name = (table.schema_name, table.table_name)
        return name in self._inserts or name in self._with_data

    # --- the first reading ---

    def _read(self, schema: str | None) -> str:
        """Find the INSERT statements; return all other lines, each at its number."""
        others: list[bytes] = []
        current, table = schema, None
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
                            raise self._bad("its INSERT statements name other columns than those before", line=number)
                        inserts.add(at, at + len(line), number)
                        others.append(b"\n")
                        self._has_end = False
                    else:
                        current = used_schema(line) or current
                        if delimiter := _DELIMITER.match(line):
                            is_body = delimiter[1] != b";"
                        table = self._note_table(line, table, current)
                        self._note(line)
                        others.append(line)
                        is_open = _stays_open(line, is_open)
                    at += len(line)
                    if inserts is not None and _is_end(line):
                        inserts = None
        except DamagedStreamError as error:
            raise self._bad(str(error), "Copy the file again, or write the dump again.") from None
        return b"".join(others).decode("utf-8", "replace")

    def _note_table(self, line: bytes, table: TableName | None, schema: str | None) -> TableName | None:
        """Note the engine of a table; return the table whose CREATE TABLE goes on."""
        if data := _DATA.match(line):
            self._with_data.add((schema or "", unquoted(data[1])))
        if begun := created(line):
            return begun[0] or schema or "", begun[1]
        if table is not None and (named := engine(line)):
            self._found_engines[table] = named
            return None
        return table

    def _insert(self, line: bytes, number: int, schema: str | None) -> tuple[TableName, tuple[str, ...] | None]:
        found = insert_of(line)
        if found is None:
            raise self._bad("an INSERT statement is not in the form of mysqldump", line=number)
        owner = found.schema or schema
        if owner is None:
            raise self._bad(f"table {found.table} has no schema", "Give it with --schema.", line=number)
        return (owner, found.table), found.columns

    def _note(self, line: bytes) -> None:
        if charset := names_charset(line):
            self._facts.add(f"names {charset}")
        if sets_utc(line):
            self._facts.add("utc")
        if mode := _SQL_MODE.search(line):
            self._facts.discard("no escapes")
            if b"NO_BACKSLASH_ESCAPES" in mode[1].upper():
                self._facts.add("no escapes")
        if line.strip():
            self._has_end = _COMPLETED.match(line) is not None or (self._has_end and line.startswith(b"--"))
        for fact, pattern in (("where", _WHERE), ("head", _HEAD)):
            if pattern.search(line):
                self._facts.add(fact)

    def _assert_usable(self) -> None:
        if not (self._facts or self._inserts or self._found_engines):
            raise self._bad("it is not a dump", "Give a file that mysqldump or mariadb-dump has written.")
        if "head" in self._facts and not self._has_end:
            raise self._bad("it has no end: the line `-- Dump completed` is missing", "Write it again.")
        if "where" in self._facts:
            raise self._bad("it has only some rows of its tables (--where)", "Write it without --where.")
        if self._facts.isdisjoint(_UNICODE) or any(one.startswith("names ") for one in self._facts - {*_UNICODE}):
            raise self._bad(
                "its text is not known to be utf8mb4", "Write it with --default-character-set=utf8mb4 --set-charset."
            )

    def _named_columns(self, name: TableName) -> Sequence[str] | None:
        return self._inserts[name].columns if name in self._inserts else None

    def _assert_meaning(self, name: TableName, columns: Sequence[dict[str, Any]]) -> None:
        if "utc" not in self._facts:
            self._assert_time_zone(name, columns, "Write it with --tz-utc.")
        if "names utf8mb4" not in self._facts:
            self._assert_no_question_marks(name, columns, "Write it with --default-character-set=utf8mb4.")

    # --- the second reading ---

    def rows(self, table: BaselineTable) -> "Iterator[pa.ListArray]":
        """Yield the rows of a table, each a list of texts.

        Raises
        ------
        SnapshotInputError
            A statement cannot be read; the message names its line.
        """
        from ingest.binlog.rows.dump_rows import DumpRowError, DumpRows

        name = (table.schema_name, table.table_name)
        columns = self._read_columns(name)
        places = [at for at, row in enumerate(columns) if self._is_taken(row)]
        kinds = [kind(row, is_raw=False) for row in columns]
        with open_bytes(self._file) as source:
            for start, end, number in self._inserts[name].ranges if name in self._inserts else ():
                part = _Part(source, start, end)
                try:
                    for rows in DumpRows(kinds, part.read_into, _head_size).batches():
                        yield taken_columns(rows, columns, places, is_raw=False)
                except DumpRowError as error:
                    line = number + source.read(error.offset, start).count(b"\n")
                    raise self._bad(str(error), line=line) from None

    def _bad(self, message: str, hint: str | None = None, *, line: int | None = None) -> SnapshotInputError:
        return self._failure(
            message,
            hint or "Write the dump with mysqldump or mariadb-dump, and their own options.",
            where=f"{self.place}, line {line}" if line is not None else None,
        )


def _is_end(line: bytes) -> bool:
    return line.rstrip().endswith(b";")


def _stays_open(line: bytes, is_open: bool) -> bool:
    """Return whether a statement goes on in the next line."""
    text = line.strip()
    if not text or text.startswith((b"--", _SANDBOX)):
        return is_open
    return not text.endswith(b";") and _DELIMITER.match(line) is None


def _head_size(statement: bytes) -> int | None:
    """Return the size of an INSERT statement up to its first row."""
    found = insert_of(statement)
    return None if found is None else found.size


class _Part:
    """Reads a range of a file once."""

    def __init__(self, source: Bytes, start: int, end: int) -> None:
        self._source, self._at, self._end = source, start, end

    def read_into(self, view: memoryview) -> int:
        """Write the next bytes; return their number."""
        count = self._source.read_into(view[: self._end - self._at], self._at)
        self._at += count
        return count
