"""Dumps of mydumper: a folder with a file of definitions for each table, and files of INSERT statements.

`metadata` has the position, and since mydumper 0.12 the number of rows of each table. Texts have the bytes that the
server stores (`SET NAMES binary`). Source: mydumper's `mydumper_start_dump.c` and `mydumper_write.c`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from ingest.binlog import TableFilter
from ingest.sources.baselines.baseline_tables import BaselineTable
from ingest.sources.dumps.dump import Dump, TableName
from ingest.sources.dumps.dump_folder import DumpFolder, after
from ingest.sources.dumps.dump_statements import insert_of, names_charset, sets_utc, table_of
from ingest.sources.dumps.dump_values import UnknownCharacterError, kind, taken_columns
from ingest.sources.snapshots.snapshot_ddl import snapshot_of_ddl

if TYPE_CHECKING:
    import pyarrow as pa

METADATA: Final = "metadata"
_SCHEMA: Final = "-schema.sql"
_DATABASE: Final = "-schema-create.sql"
_CREATED: Final = re.compile(r"(?i)CREATE\s+DATABASE\s+(?:/\*.*?\*/\s*)?(?:IF\s+NOT\s+EXISTS\s+)?`((?:[^`]|``)+)`")
_CHUNK: Final = re.compile(r"\.(?:(\d+)\.(?:\d+\.)?)?(sql|dat)")
_OLD_POSITION: Final = re.compile(
    r"SHOW MASTER STATUS:\s+Log: (\S+)\s+Pos: (\d+)\s+GTID:[ \t]*((?:[^\n]*,\n)*[^\n]*)", re.MULTILINE
)
_SECTION: Final = re.compile(r"(?m)^\[(.+)\]\s*$")
_SETTING: Final = re.compile(r"(?m)^(?:# )?(\w[\w-]*) *= *\"?(.*?)\"?\s*$")
_FILES: Final = ("source_log_file", "master_log_file", "file")
_POSITIONS: Final = ("source_log_pos", "master_log_pos", "position")
_FINISHED: Final = re.compile(r"Finished dump at: ([0-9: -]+)")
_OF_MARIADB: Final = re.compile(r"\d+-\d+-\d+")
_LONGEST_HEAD: Final = 1 << 20
_ANEW: Final = "Write the dump again with mydumper, with its --format INSERT."


@dataclass(frozen=True)
class _Files:
    """The files of a table, without chunks that had no rows; `is_split`: whether there may be others."""

    data: tuple[str, ...]
    is_split: bool


@dataclass(frozen=True)
class _Head:
    """The first lines of a file of rows."""

    charset: str | None
    is_utc: bool
    columns: tuple[str, ...] | None
    rest: bytes


class MydumperDump(Dump):
    """A dump of mydumper.

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
        if METADATA not in folder:
            raise self._failure("the dump did not end: there is no file metadata", "Write it again.")
        self._metadata = folder.text(METADATA)
        ended = _FINISHED.search(self._metadata)
        if ended is None:
            raise self._failure("the dump did not end: metadata does not tell when it finished", "Write it again.")
        self._sections = _sections(self._metadata)
        if self._sections.get("config", {}).get("quote-character", "BACKTICK") != "BACKTICK":
            raise self._failure("its names are in double quotes", "Write it without ANSI_QUOTES.")
        binlog_file, pos, gtids = self._position()
        if position is not None:
            binlog_file, pos = position
        self._stems: dict[TableName, str] = {}
        engines: dict[TableName, str] = {}
        # The dialect of the definitions: only MariaDB has such GTIDs.
        script = "-- MariaDB dump\n" if gtids is not None and _OF_MARIADB.match(gtids) else ""
        script += "".join(self._definitions(engines))
        found = snapshot_of_ddl(self.place, script, None, binlog_file, pos)
        # The zone of the time is not written.
        taken_at = datetime.strptime(ended[1].strip(), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        snapshot = replace(found, taken_at=taken_at, gtid_executed=gtids)
        super().__init__(self.place, snapshot, engines, None, wanted, with_rounded=with_rounded)
        self._heads: dict[TableName, _Head | None] = {}

    @property
    def _position_hint(self) -> str:
        return "Give --from-position FILE:POSITION, or write it as a user who may read the position of the log."

    @property
    def content(self) -> str:
        """Hash of the files."""
        return self._folder.content

    def has_data(self, table: BaselineTable) -> bool:
        """Return whether the rows of a table were dumped."""
        name = (table.schema_name, table.table_name)
        return bool(self._files(name).data) or self._counted(name) == 0

    # --- metadata ---

    def _position(self) -> tuple[str | None, int | None, str | None]:
        """Return the file, the position and the GTIDs of the dump, as far as it names them."""
        if found := _OLD_POSITION.search(self._metadata):
            return found[1], int(found[2]), found[3].replace("\n", "").strip() or None
        for section in ("source", "master"):
            settings = self._sections.get(section, {})
            file = next((settings[key] for key in _FILES if settings.get(key)), None)
            pos = next((settings[key] for key in _POSITIONS if settings.get(key, "").isdigit()), None)
            if file is not None and pos is not None:
                return file, int(pos), settings.get("executed_gtid_set") or None
        return None, None, None

    def _counted(self, name: TableName) -> int | None:
        """Return the number of rows of a table as the dump counted them; None if it did not."""
        database, _, table = self._stems[name].partition(".")
        rows = self._sections.get(f"`{database}`.`{table}`", {}).get("rows", "")
        return int(rows) if rows.isdigit() else None

    # --- definitions ---

    def _definitions(self, engines: dict[TableName, str]) -> Iterator[str]:
        """Yield the statements of all files of definitions, and note the tables."""
        schemas: dict[str, str] = {}
        for name in self._folder.names:
            if name.endswith(_DATABASE):
                text = self._folder.text(name)
                if found := _CREATED.search(text):
                    schemas[name.removesuffix(_DATABASE)] = found[1].replace("``", "`")
                    yield text
        for name in self._folder.names:
            if not name.endswith(_SCHEMA) or f"{name.removesuffix(_SCHEMA)}-schema-view.sql" in self._folder:
                continue
            stem, text = name.removesuffix(_SCHEMA), self._folder.text(name)
            prefix = max((one for one in schemas if stem.startswith(f"{one}.")), key=len, default=stem.split(".")[0])
            if prefix not in schemas and prefix.startswith("mydumper_"):
                raise self._failure(f"{name} does not tell its schema", f"Copy {prefix}{_DATABASE}, too.")
            if made := table_of(text):
                table = (schemas.get(prefix, prefix), made[0])
                self._stems[table] = stem
                if made[1] is not None:
                    engines[table] = made[1]
                if not text.rstrip().endswith(";"):
                    raise self._failure(f"{name} is cut off", "Copy the dump again, or write it again.")
                quoted = table[0].replace("`", "``")
                yield f"USE `{quoted}`;\n{text}\n"

    # --- rows ---

    def _files(self, name: TableName) -> _Files:
        """Return the files with the rows of a table."""
        stem = self._stems[name]
        others = [one for one in self._stems.values() if one != stem and one.startswith(f"{stem}.")]
        found: list[tuple[str, bool]] = []
        for one in self._folder.names:
            if not one.startswith(f"{stem}.") or any(one.startswith(f"{other}.") for other in others):
                continue
            chunk = _CHUNK.fullmatch(one.removeprefix(stem))
            if chunk is not None and chunk[2] == "dat":
                raise self._failure(f"{one} is not a file of INSERT statements", _ANEW)
            if chunk is not None:
                found.append((one, chunk[1] is not None))
        return _Files(tuple(one for one, _ in found), any(is_chunk for _, is_chunk in found))

    def _named_columns(self, name: TableName) -> Sequence[str] | None:
        head = self._head(name)
        return head.columns if head is not None else None

    def _head(self, name: TableName) -> _Head | None:
        """Return the head of the first file with rows of a table."""
        if name not in self._heads:
            found = None
            for file in self._files(name).data[:1]:
                with self._folder.open(file) as opened:
                    found = self._read_head(name, file, opened)
            self._heads[name] = found
        return self._heads[name]

    def _read_head(self, name: TableName, file: str, opened: Any) -> _Head:
        charset, is_utc = None, False
        while line := opened.readline(_LONGEST_HEAD):
            if line[:7].upper() in (b"INSERT ", b"REPLACE"):
                # The first row may begin in the next line.
                rest = line + opened.readline(_LONGEST_HEAD)
                insert = insert_of(rest)
                if insert is None or insert.table != name[1] or insert.schema not in (None, name[0]):
                    raise self._failure(f"{file} does not begin with rows of {'.'.join(name)}", _ANEW)
                return _Head(charset, is_utc, insert.columns, rest)
            charset, is_utc = names_charset(line) or charset, is_utc or sets_utc(line)
            if b"NO_BACKSLASH_ESCAPES" in line:
                raise self._failure(f"{file} has texts without escapes (NO_BACKSLASH_ESCAPES)", _ANEW)
            if line[:9].upper() == b"LOAD DATA":
                raise self._failure(f"{file} is not a file of INSERT statements", _ANEW)
        raise self._failure(f"{file} has no rows: it is cut off", "Copy the dump again, or write it again.")

    def _assert_meaning(self, name: TableName, columns: Sequence[dict[str, Any]]) -> None:
        head = self._head(name)
        if head is None:
            return
        if not head.is_utc:
            self._assert_time_zone(name, columns, "Write it without --skip-tz-utc.")
        if head.charset in ("utf8", "utf8mb3"):
            self._assert_no_question_marks(name, columns, "Write it without --set-names.")
        elif head.charset not in ("binary", "utf8mb4"):
            raise self._failure(f"its text is in {head.charset}", "Write it without --set-names.")

    def rows(self, table: BaselineTable) -> "Iterator[pa.ListArray]":
        """Yield the rows of a table, each a list of texts."""
        name = (table.schema_name, table.table_name)
        files, counted, rows = self._files(name), self._counted(name), 0
        if counted is None and files.is_split:
            raise self._failure(
                f"the rows of {table} are in several files, and this version of mydumper does not tell how many rows"
                " there are, so that a missing file would not be noticed",
                "Write the dump without --rows and --chunk-filesize, or with a later mydumper, which counts rows.",
            )
        for file in files.data:
            for batch in self._rows_of(name, file):
                rows += len(batch)
                yield batch
        if counted is not None and counted != rows:
            raise self._failure(
                f"{table} has {rows:,} rows in {len(files.data)} files, and had {counted:,} when the dump was written:"
                " a file is missing or cut off",
                "Copy the dump again, or write it again.",
            )

    def _rows_of(self, name: TableName, file: str) -> "Iterator[pa.ListArray]":
        from ingest.binlog.rows.dump_rows import DumpRowError, DumpRows

        first = self._head(name)
        assert first is not None
        columns, is_raw = self._read_columns(name), first.charset == "binary"
        places = [at for at, row in enumerate(columns) if self._is_taken(row)]
        kinds = [kind(row, is_raw=is_raw) for row in columns]

        def head_size(statement: bytes) -> int | None:
            insert = insert_of(statement)
            fits = insert is not None and (insert.table, insert.columns) == (name[1], first.columns)
            return insert.size if insert is not None and fits else None

        with self._folder.open(file) as opened:
            head = self._read_head(name, file, opened)
            if replace(head, rest=b"") != replace(first, rest=b""):
                raise self._failure(f"{file} begins otherwise than the other files of {'.'.join(name)}", _ANEW)
            try:
                for rows in DumpRows(kinds, after(head.rest, opened), head_size).batches():
                    yield taken_columns(rows, columns, places, is_raw=is_raw)
            except (DumpRowError, UnknownCharacterError) as error:
                at = f", in byte {error.offset:,} of its statements" if isinstance(error, DumpRowError) else ""
                raise self._failure(f"{error}{at}", _ANEW, where=f"{self.place}/{file}") from None


def _sections(metadata: str) -> dict[str, dict[str, str]]:
    """Return the settings by section, with keys in lower case; comments with settings count, too."""
    found: dict[str, dict[str, str]] = {}
    parts = _SECTION.split(metadata)
    for section, text in zip(parts[1::2], parts[2::2], strict=True):
        settings = found.setdefault(section, {})
        for key, value in _SETTING.findall(text):
            settings.setdefault(key.lower(), value)
    return found
