"""The rows of a file that mysqldump or mariadb-dump has written, at the position that it names.

The file is read twice: once for the definitions and for the places of the INSERT statements, once for the rows. Only
one statement at a time is in memory. Every value is converted by the type of its column; what cannot be the value of
the column is refused with its line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ingest.binlog import TableFilter
from ingest.errors import SnapshotInputError, UsageError
from ingest.sources.baseline_tables import BINARY_TYPES, BaselineTable
from ingest.sources.snapshot import SchemaSnapshot
from ingest.sources.snapshot_ddl import snapshot_of_ddl

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
_COMPLETED: Final = re.compile(rb"-- Dump completed")
_GTIDS: Final = re.compile(
    r"GTID_PURGED\s*=\s*(?:/\*.*?\*/\s*)?'([^']*)'|gtid_slave_pos\s*=\s*'([^']*)'", re.IGNORECASE
)
_VALUE: Final = re.compile(
    rb"\s*(?:(?P<null>NULL)|(?P<number>[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)(?![0-9xX'])|0[xX](?P<hex>[0-9A-Fa-f]*)"
    rb"|[bB]'(?P<bits>[01]*)'|(?:_[a-z0-9]+\s*)?'(?P<text>[^'\\]*(?:(?:\\.|'')[^'\\]*)*)')\s*(?P<end>[,)])",
    re.DOTALL,
)
_BETWEEN: Final = re.compile(rb"\s*([,;])\s*")
_OPENING: Final = re.compile(rb"\s*\(")
_ESCAPED: Final = re.compile(rb"\\(.)|''", re.DOTALL)
_ESCAPES: Final = {b"0": b"\0", b"b": b"\b", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"Z": b"\x1a"}
_NUMBERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "double", "year", "bit"})
_MOST_VALUES: Final = 1 << 18


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

    Raises
    ------
    SnapshotInputError
        The file cannot be read, does not name a position, is cut short, or has rows in a form that does not show their
        values.
    UsageError
        No table is selected.
    """

    def __init__(self, path: Path, schema: str | None = None, wanted: TableFilter | None = None) -> None:
        self._path = path
        self._facts: set[str] = set()
        self._inserts: dict[TableName, _Inserts] = {}
        self._digest = sha256()
        try:
            script = self._read(schema)
            written_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        except OSError as error:
            raise SnapshotInputError(
                f"{path} cannot be read: {error.strerror or error}.",
                hint="Give a file that mysqldump has written.",
                path=str(path),
            ) from error
        self._assert_usable()
        found = snapshot_of_ddl(path, script, schema)
        gtids = _GTIDS.search(script)
        executed = (gtids[1] or gtids[2] or "").replace("\n", "") if gtids else ""
        self.snapshot: SchemaSnapshot = replace(found, taken_at=written_at, gtid_executed=executed or None)
        if found.binlog_file is None:
            raise self._failure(
                "it does not name its position in the binlog",
                "Write the dump with --source-data=2 (--master-data=2 before MySQL 8.0.26 and on MariaDB).",
            )
        self._columns = self._columns_by_table(found.columns)
        self.tables = tuple(self._table(name) for name in self._columns if wanted is None or wanted.takes(*name))
        if not self.tables:
            known = ", ".join(".".join(name) for name in islice(self._columns, 5))
            raise UsageError(f"No table of {path} is selected.", hint=f"It has {known}.")

    @property
    def content(self) -> str:
        """Hash of the file."""
        return self._digest.hexdigest()

    # --- the first reading ---

    def _read(self, schema: str | None) -> str:
        """Find the INSERT statements; return all other lines, each at its number."""
        others: list[bytes] = []
        current = schema
        at, inserts = 0, None
        with self._path.open("rb") as file:
            for number, line in enumerate(file, 1):
                self._digest.update(line)
                # A newline in a value is written as `\n`, so a line that does not end the statement ends a row.
                if inserts is not None:
                    inserts.ranges[-1][1] += len(line)
                    others.append(b"\n")
                elif line[:7].upper() in (b"INSERT ", b"REPLACE"):
                    name, columns = self._insert(line, number, current)
                    inserts = self._inserts.setdefault(name, _Inserts(columns))
                    if inserts.columns != columns:
                        raise self._failure("its INSERT statements name other columns than those before", line=number)
                    inserts.add(at, at + len(line), number)
                    others.append(b"\n")
                else:
                    if used := _USE.match(line):
                        current = _unquoted(used[1])
                    self._note(line)
                    others.append(line)
                at += len(line)
                if inserts is not None and _is_end(line):
                    inserts = None
        return b"".join(others).decode("utf-8", "replace")

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
        for fact, pattern in (("utc", _UTC), ("where", _WHERE), ("head", _HEAD), ("end", _COMPLETED)):
            if pattern.search(line):
                self._facts.add(fact)

    def _assert_usable(self) -> None:
        if "head" in self._facts and "end" not in self._facts:
            raise self._failure("it has no end: the line `-- Dump completed` is missing", "Write it again.")
        if "where" in self._facts:
            raise self._failure("it has only some rows of its tables (--where)", "Write it without --where.")
        if "names utf8mb4" not in self._facts:
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

    def _table(self, name: TableName) -> BaselineTable:
        known = [row for row in self._read_columns(name) if _is_exact(row)]
        names = [row["column_name"] for row in known]
        keys = [row["column_name"] for row in self._columns[name] if row["primary_key_ordinal"]]
        if "utc" not in self._facts and any(row["data_type"] == "timestamp" for row in known):
            raise self._failure(f"the time zone of {'.'.join(name)} is unknown", "Write it with --tz-utc.")
        has_key = bool(keys) and all(key in names for key in keys)
        return BaselineTable(
            *name,
            column_names=tuple(names),
            data_types=tuple(row["data_type"] for row in known),
            primary_key_ordinals=tuple(sorted(names.index(key) for key in keys)) if has_key else None,
        )

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
        import pyarrow as pa

        name = (table.schema_name, table.table_name)
        columns = self._read_columns(name)
        types = [row["data_type"] for row in columns]
        places = [at for at, row in enumerate(columns) if _is_exact(row)]
        batch: list[list[str | None]] = []
        for statement, number in self._statements(name):
            for row in self._values(statement, number, types):
                batch.append([row[at] for at in places])
                if len(batch) * len(places) >= _MOST_VALUES:
                    yield pa.array(batch, pa.list_(pa.string()))
                    batch = []
        if batch:
            yield pa.array(batch, pa.list_(pa.string()))

    def _statements(self, name: TableName) -> Iterator[tuple[bytes, int]]:
        ranges = self._inserts[name].ranges if name in self._inserts else []
        with self._path.open("rb") as file:
            for start, end, number in ranges:
                file.seek(start)
                while file.tell() < end:
                    lines = [file.readline()]
                    while not _is_end(lines[-1]) and file.tell() < end:
                        lines.append(file.readline())
                    yield b"".join(lines), number
                    number += len(lines)

    def _values(self, line: bytes, number: int, types: list[str]) -> Iterator[list[str | None]]:
        head = _INSERT.match(line)
        assert head is not None
        at = head.end()
        while True:
            opening = _OPENING.match(line, at)
            if opening is None:
                raise self._failure("a row is not in the form of mysqldump", line=number)
            at = opening.end()
            row: list[str | None] = []
            for data_type in types:
                found = _VALUE.match(line, at)
                if found is None or (found["end"] == b")") != (len(row) == len(types) - 1):
                    raise self._failure("a row does not have the columns of its table", line=number)
                row.append(self._text(found, data_type, number))
                at = found.end()
            yield row
            between = _BETWEEN.match(line, at)
            if between is None:
                raise self._failure("a row is not in the form of mysqldump", line=number)
            at = between.end()
            if between[1] == b";":
                if line[at:].strip():
                    raise self._failure("a statement follows an INSERT in its line", line=number)
                return

    def _text(self, value: "re.Match[bytes]", data_type: str, number: int) -> str | None:
        """Return a value in the text form of the decoder."""
        if value["null"]:
            return None
        if value["number"] is not None:
            if data_type in _NUMBERS or data_type == "float":
                return value["number"].decode()
            raise self._failure(f"a column of type {data_type} has a number", line=number)
        if value["bits"] is not None and data_type == "bit":
            return str(int(value["bits"] or b"0", 2))
        content = bytes.fromhex(value["hex"].decode()) if value["hex"] is not None else None
        if value["text"] is not None:
            content = _ESCAPED.sub(_unescaped, value["text"])
        if content is None or (value["hex"] is not None and data_type not in (*BINARY_TYPES, "bit")):
            raise self._failure(f"a column of type {data_type} has bits or hex", line=number)
        if data_type == "bit":
            return str(int.from_bytes(content, "big"))
        if data_type in BINARY_TYPES:
            return f"0x{content.hex().upper()}"
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise self._failure(f"a column of type {data_type} has text that is not utf8mb4", line=number) from None

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


def _unescaped(found: "re.Match[bytes]") -> bytes:
    return b"'" if found[1] is None else _ESCAPES.get(found[1], found[1])


def _unquoted(name: bytes) -> str:
    text = name.decode()
    return text[1:-1].replace("``", "`") if text.startswith("`") else text
