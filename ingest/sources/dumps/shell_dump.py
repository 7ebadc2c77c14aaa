"""Dumps of MySQL Shell (`util.dumpInstance`, `dumpSchemas`, `dumpTables`): a folder that JSON files describe.

`@.json` has the position, `@.done.json` the number of bytes in each file of rows. Source: MySQL Shell's `dumper.cc`,
`dump_writer.cc` and `text_dump_writer.cc`.
"""

import json
import re
from binascii import Error as Base64Error
from binascii import a2b_base64
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ingest.binlog import TableFilter
from ingest.sources.baselines.baseline_tables import BINARY_TYPES, BaselineTable
from ingest.sources.dumps.dump import Dump, TableName
from ingest.sources.dumps.dump_folder import DumpFolder
from ingest.sources.dumps.dump_statements import table_of
from ingest.sources.dumps.dump_values import NUMBERS, as_lists, without_zeros
from ingest.sources.dumps.tab_rows import TabRowError, tab_rows
from ingest.sources.files.compressed import without_suffix
from ingest.sources.snapshots.snapshot_ddl import snapshot_of_ddl

if TYPE_CHECKING:
    import pyarrow as pa

DESCRIPTION: Final = "@.json"
_DONE: Final = "@.done.json"
_DIALECT: Final = {
    "fieldsTerminatedBy": "\t",
    "fieldsEnclosedBy": "",
    "fieldsEscapedBy": "\\",
    "linesTerminatedBy": "\n",
}
_NUMBER: Final = r"^-?[0-9]*\.?[0-9]+(?:e[-+]?[0-9]+)?$"
_CAPABILITIES: Final = frozenset({"partition_awareness"})
"""What a reader of a dump may need, as a dump tells it."""
_COPY: Final = "Copy the dump again, or write it again."


class ShellDump(Dump):
    """A dump of MySQL Shell.

    Parameters
    ----------
    folder
        Its files.
    wanted, position, with_rounded
        As for `SqlDump`.

    Raises
    ------
    SnapshotInputError
        A file is missing or damaged, the dump did not end, or it does not name its position.
    """

    def __init__(
        self,
        folder: DumpFolder,
        wanted: TableFilter | None = None,
        *,
        position: tuple[str, int] | None = None,
        with_rounded: bool = False,
    ) -> None:
        self.place = folder.place
        self._folder = folder
        self._about = self._json(DESCRIPTION)
        if _DONE not in folder:
            raise self._failure(f"the dump did not end: there is no file {_DONE}", "Write it again.")
        self._bytes = self._json(_DONE).get("chunkFileBytes")
        if not isinstance(self._bytes, dict):
            raise self._failure(
                f"{_DONE} does not have the number of bytes in each file", "Write it with a later MySQL Shell."
            )
        if self._about.get("consistent") is not True:
            raise self._failure("its tables are of different moments", "Write it with consistent: true.")
        needed = {one.get("id") for one in self._about.get("capabilities", ())} - _CAPABILITIES
        if needed:
            raise self._failure(f"to read it, a program needs {', '.join(map(str, needed))}", "Use another dump.")
        named: Any = position or (self._about.get("binlogFile") or None, self._about.get("binlogPosition"))
        self._tables: dict[TableName, dict[str, Any]] = {}
        engines: dict[TableName, str] = {}
        version = str(self._about.get("serverVersion") or "") or None
        script = f"-- Server version\t{version}\n" if version else ""
        script += "".join(self._definitions(engines))
        found = snapshot_of_ddl(self.place, script, None, *named)
        gtids = str(self._about.get("gtidExecuted") or "").replace("\n", "")
        snapshot = replace(found, taken_at=self._began(), gtid_executed=gtids or None)
        if "force_innodb" in self._about.get("compatibilityOptions", ()):
            # The definitions do not tell which engine the tables had.
            engines = {}
        super().__init__(self.place, snapshot, engines, version, wanted, with_rounded=with_rounded)

    @property
    def _position_hint(self) -> str:
        return "Give --from-position FILE:POSITION, or write it as a user with REPLICATION CLIENT."

    @property
    def content(self) -> str:
        """Hash of the files."""
        return self._folder.content

    def has_data(self, table: BaselineTable) -> bool:
        """Return whether the rows of a table were dumped."""
        return bool(self._tables[table.schema_name, table.table_name].get("includesData"))

    # --- descriptions ---

    def _json(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads(self._folder.text(name))
        except json.JSONDecodeError:
            found = None
        if not isinstance(found, dict):
            raise self._failure(f"{name} is cut off or damaged: it is not JSON", _COPY)
        return found

    def _began(self) -> datetime:
        text = str(self._about.get("begin", ""))
        try:
            # The zone of the time is not written.
            return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        except ValueError:
            return datetime.now(UTC)

    def _definitions(self, engines: dict[TableName, str]) -> Iterator[str]:
        """Yield the statements of all files of definitions, and note the tables."""
        basenames = self._about.get("basenames", {})
        for schema in self._about.get("schemas", ()):
            basename = basenames.get(schema, schema)
            about = self._json(f"{basename}.json")
            if f"{basename}.sql" in self._folder:
                yield _create_database(self._folder.text(f"{basename}.sql"))
            quoted = schema.replace("`", "``")
            for table in about.get("tables", ()):
                stem = about.get("basenames", {}).get(table, f"{basename}@{table}")
                self._tables[schema, table] = self._json(f"{stem}.json") | {"stem": stem}
                text = self._folder.text(f"{stem}.sql")
                if not text.rstrip().endswith(";"):
                    raise self._failure(f"{stem}.sql is cut off", _COPY)
                if (made := table_of(text)) and made[1] is not None:
                    engines[schema, table] = made[1]
                yield f"USE `{quoted}`;\n{text}\n"

    def _options(self, name: TableName) -> dict[str, Any]:
        found = self._tables[name].get("options")
        return found if isinstance(found, dict) else {}

    def _named_columns(self, name: TableName) -> Sequence[str] | None:
        columns = self._options(name).get("columns")
        return list(map(str, columns)) if columns else None

    def _assert_meaning(self, name: TableName, columns: Sequence[dict[str, Any]]) -> None:
        options, table = self._options(name), ".".join(name)
        if self._tables[name].get("where"):
            raise self._failure(f"it has only some rows of {table} (where)", "Write it without the option where.")
        if odd := next((key for key, value in _DIALECT.items() if options.get(key) != value), None):
            raise self._failure(f"the rows of {table} have another {odd}", "Write it with the dialect `default`.")
        if not self._about.get("tzUtc"):
            self._assert_time_zone(name, columns, "Write it with tzUtc: true.")
        charset = options.get("defaultCharacterSet")
        if charset in ("utf8", "utf8mb3"):
            self._assert_no_question_marks(name, columns, "Write it with defaultCharacterSet: 'utf8mb4'.")
        elif charset != "utf8mb4":
            raise self._failure(f"its text is in {charset}", "Write it with defaultCharacterSet: 'utf8mb4'.")
        decoded = options.get("decodeColumns", {})
        for row in columns:
            is_binary = row["data_type"] == "bit" or row["data_type"] in BINARY_TYPES
            if is_binary and decoded.get(row["column_name"]) not in ("FROM_BASE64", "UNHEX"):
                raise self._failure(
                    f"the bytes of column {row['column_name']} of {table} are not written as base64 or hex",
                    "Write it with a MySQL Shell as new as the server.",
                )

    # --- rows ---

    def _files(self, name: TableName) -> list[str]:
        """Return the files with the rows of a table, all of them."""
        about = self._tables[name]
        if not about.get("includesData"):
            return []
        of_partitions = about.get("basenames", {})
        stems = [of_partitions.get(one, one) for one in about.get("partitions", ())] or [about["stem"]]
        return [file for stem in stems for file in self._chunks(stem, without_suffix(f".{about.get('extension')}"))]

    def _chunks(self, stem: str, suffix: str) -> list[str]:
        if f"{stem}{suffix}" in self._folder:
            return [f"{stem}{suffix}"]
        last = re.compile(rf"{re.escape(stem)}@@(\d+){re.escape(suffix)}")
        found = next((match for one in self._folder.names if (match := last.fullmatch(one))), None)
        if found is None:
            raise self._failure(f"the last file of {stem} is missing ({stem}@@…{suffix})", _COPY)
        names = [*(f"{stem}@{number}{suffix}" for number in range(int(found[1]))), found[0]]
        if missing := next((one for one in names if one not in self._folder), None):
            raise self._failure(f"{missing} is missing, with rows of the dump", _COPY)
        return names

    def rows(self, table: BaselineTable) -> "Iterator[pa.ListArray]":
        """Yield the rows of a table, each a list of texts."""
        name = (table.schema_name, table.table_name)
        columns = self._read_columns(name)
        places = [at for at, row in enumerate(columns) if self._is_taken(row)]
        decoded = self._options(name).get("decodeColumns", {})
        assert self._bytes is not None
        sizes = {without_suffix(file): size for file, size in self._bytes.items()}
        for file in self._files(name):
            with self._folder.open(file) as opened:
                try:
                    for found in tab_rows(opened.read, [row["column_name"] for row in columns]):
                        yield as_lists(
                            [_text(found[at], columns[at], decoded.get(columns[at]["column_name"])) for at in places]
                        )
                except TabRowError as error:
                    raise self._failure(str(error), _COPY, where=f"{self.place}/{file}") from None
                size = opened.tell()
            if sizes.get(file) != size:
                raise self._failure(
                    f"{file} has {size:,} bytes of rows, and {_DONE} has {sizes.get(file)}: it is cut off or of another"
                    " dump",
                    _COPY,
                )


def _create_database(script: str) -> str:
    """Return the statement that creates the schema; events and routines follow it."""
    found = re.search(r"(?is)CREATE\s+DATABASE\s.*?;", script)
    return f"{found[0]}\n" if found is not None else ""


def _text(values: "pa.StringArray", column: dict[str, Any], decoder: str | None) -> "pa.StringArray":
    """Return values in the text form of the decoder."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if decoder is None:
        if (
            column["data_type"] in NUMBERS
            and not pc.all(pc.match_substring_regex(values, _NUMBER), min_count=0).as_py()
        ):
            raise TabRowError(f"a value of column {column['column_name']} is not a number")
        return without_zeros(values, column)
    decode = a2b_base64 if decoder == "FROM_BASE64" else _unhex
    try:
        found = [None if value is None else decode(value) for value in values.to_pylist()]
    except (Base64Error, ValueError):
        raise TabRowError(f"a value of column {column['column_name']} is not {decoder}'s") from None
    if column["data_type"] == "bit":
        return pa.array([None if one is None else str(int.from_bytes(one)) for one in found], pa.string())
    return pa.array([None if one is None else f"0x{one.hex().upper()}" for one in found], pa.string())


def _unhex(text: str) -> bytes:
    """Return the bytes of hex digits; HEX of a BIT may have an odd number of them."""
    return bytes.fromhex(text.zfill(len(text) + len(text) % 2))
