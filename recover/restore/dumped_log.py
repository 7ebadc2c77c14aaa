"""The log after a dump: binlog files, with the rows of the dump as what is known before them.

A dump without its own log would give rows that no server ever had. So its position must be a place between two
transactions of these files, and what the dump tells about its server must fit them.
"""

import re
import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ingest.binlog.byte_files import open_bytes
from ingest.sources.dumps.dump import Dump
from recover.restore.refusal import RestoreRefusedError
from recover.selection.filters import Filters
from recover.sources.engine import insert_row
from recover.sources.files.file_log import SOURCE, decode, placed
from recover.sources.files.missing_parts import positions_of
from recover.sources.log import Log
from recover.timeline.baselines import sequence_of_file
from recover.timeline.events import Place
from recover.undo.tables.table import TableName

if TYPE_CHECKING:
    from ingest.binlog import Scan
    from ingest.binlog.byte_files import LogPath
    from recover.sources.files.file_log import DecodedFiles

BASELINE: Final = "dump"
"""The identifier of the rows of the dump among baselines."""

# Files that are decoded on the spot know no end of a missing part, and no triggers from before.
_TABLES: Final = """
alter table binloom_quality.stream_gaps add column to_epoch integer;
alter table binloom_quality.stream_gaps add column to_file varchar;
alter table binloom_quality.stream_gaps add column to_pos bigint;
alter table binloom_quality.failed_segments add column segment_end bigint;
create table binloom_staging.triggered_tables (source_id varchar, schema_name varchar, table_name varchar);
create table binloom.baselines (
    baseline_id varchar, source_id varchar, epoch integer, binlog_file varchar, file_sequence bigint, binlog_pos bigint,
    schema_name varchar, table_name varchar, taken_at timestamptz, is_complete boolean, column_names varchar[],
    table_version_id varchar
);
create table dump_rows (
    schema_name varchar, table_name varchar, row_number bigint, pk_values varchar, digest ubigint, row_values varchar[]
);
create view binloom.baseline_rows as
select
    baselines.* exclude (taken_at, is_complete, column_names), dump_rows.row_number, dump_rows.pk_values,
    map(baselines.column_names, dump_rows.row_values) as "row"
from dump_rows inner join binloom.baselines as baselines using (schema_name, table_name);
"""
# Its length and the position of the next event, without the rest.
_EVENT_HEAD: Final = struct.Struct("<9xII2x")
_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)*")


@dataclass(frozen=True)
class DumpedLog:
    """A log, and the place of a dump in it; `tables` are those whose rows were read, none: all."""

    log: Log
    dump: Dump
    place: Place
    binlog_file: str
    tables: frozenset[str] = frozenset()

    def has_read(self, name: TableName) -> bool:
        """Return whether the log has the changes of a table."""
        return not self.tables or ".".join(name) in self.tables


def log_after(
    dump: Dump, paths: "Sequence[LogPath]", tables: Collection[str], spill: Path, *, is_position_given: bool
) -> DumpedLog:
    """Return the log of binlog files from a dump on.

    Parameters
    ----------
    dump
        The dump.
    paths
        Binlog files; those before the position of the dump are not read.
    tables
        The tables whose rows are needed.
    spill
        Folder for what does not fit into memory.
    is_position_given
        Whether a person vouches for the position, and not the dump.

    Raises
    ------
    RestoreRefusedError
        The position of the dump is not in the files, or they are of another server.
    """
    binlog_file, pos = dump.snapshot.binlog_file, dump.snapshot.binlog_pos
    assert binlog_file is not None and pos is not None
    files = placed(paths)
    names = [file.name for file in files]
    if binlog_file not in names:
        raise RestoreRefusedError(
            f"The dump was taken at {binlog_file}:{pos}, but the given files ({_range(names)}) do not contain this"
            " position.",
            hint=f"Give {binlog_file} and all files after it, of the server that the dump was taken from.",
        )
    found = decode(
        [file.path for file in files[names.index(binlog_file) :]],
        Filters(),
        source_id=SOURCE,
        snapshot=dump.snapshot,
        tables=tables,
        with_facts=True,
        spill=spill,
    )
    path, scan = next((file.path, scan) for file, scan in found.scans.items() if file.name == binlog_file)
    _assert_position(found, path, scan, pos)
    if dump.snapshot.gtid_executed is not None:
        _assert_same_transactions(found, scan, dump, binlog_file, pos)
    elif not is_position_given:
        _assert_same_version(scan, dump, binlog_file)
    # An array of texts holds 2 GiB at most, which a batch of rows with long texts exceeds.
    found.connection.execute("set arrow_large_buffer_size = true")
    found.connection.execute(_TABLES)
    for name in sorted(dump.triggered):
        insert_row(found.connection, "binloom_staging.triggered_tables", SOURCE, *name)
    place = Place(0, sequence_of_file(binlog_file), pos)
    return DumpedLog(Log.of_decoded(found, dump.snapshot), dump, place, binlog_file, frozenset(tables))


def _range(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def _assert_position(found: "DecodedFiles", path: "LogPath", scan: "Scan", pos: int) -> None:
    inside = found.connection.execute(
        "select 1 from decoded_transactions where binlog_file = ? and start_pos < ? and end_pos > ?",
        [path.name, pos, pos],
    ).fetchall()
    if pos <= scan.complete_end and not inside and (pos == scan.complete_end or _is_begin_of_event(path, pos)):
        return
    reason = (
        f"{path} ends at {scan.complete_end}"
        if pos > scan.complete_end
        else f"no transaction of {path} begins or ends there"
    )
    raise RestoreRefusedError(
        f"The dump was taken at {path.name}:{pos}, but {reason}.",
        hint="Give the binlog files of the server that the dump was taken from.",
    )


def _is_begin_of_event(path: "LogPath", pos: int) -> bool:
    """Return whether an event begins at a position: its head has its length and the position behind it."""
    with open_bytes(path) as source:
        head = source.read(_EVENT_HEAD.size, pos)
    if len(head) < _EVENT_HEAD.size:
        return False
    length, following = _EVENT_HEAD.unpack(head)
    return bool(length >= _EVENT_HEAD.size and (pos + length) & 0xFFFFFFFF == following)


def _assert_same_transactions(found: "DecodedFiles", scan: "Scan", dump: Dump, binlog_file: str, pos: int) -> None:
    """Refuse a dump with other transactions than the log has up to its position."""
    import pyarrow as pa

    from ingest.binlog.gtid_sets import GtidSet

    rows = found.connection.execute(
        "select gtid, binlog_file = $file and start_pos < $pos from decoded_transactions where gtid is not null",
        {"file": binlog_file, "pos": pos},
    ).fetchall()
    before = [gtid for gtid, is_before in rows if is_before]
    executed = dump.snapshot.gtid_executed or ""
    if scan.previous_gtids is None:
        return
    if scan.format.flavor == "mariadb":
        had = positions_of(scan.previous_gtids, before)
        has = positions_of(executed)
        missing = ", ".join(f"{stem}-{number}" for stem, number in has.items() if had.get(stem) != number)
        if missing:
            raise _other_server(f"the dump has {missing} as a last transaction, and the log another", binlog_file, pos)
        return
    logged, dumped = GtidSet.parse(scan.previous_gtids), GtidSet.parse(executed)
    logged.add_all(pa.array(before, pa.string()))
    if lacking := str(logged - dumped):
        raise _other_server(f"the log has {lacking} before it, and the dump does not", binlog_file, pos)
    # Before MySQL 8.0.32, mysqldump asks for the GTIDs when others may commit again.
    since = GtidSet()
    since.add_all(pa.array([gtid for gtid, is_before in rows if not is_before], pa.string()))
    if unknown := str((dumped - logged) - since):
        raise _other_server(f"the dump has {unknown}, and the log does not", binlog_file, pos)


def _other_server(reason: str, binlog_file: str, pos: int) -> RestoreRefusedError:
    return RestoreRefusedError(
        f"The dump is of another server than the log, or {binlog_file} was begun anew since: at {binlog_file}:{pos},"
        f" {reason}.",
        hint="Give the binlog files of the server that the dump was taken from.",
    )


def _assert_same_version(scan: "Scan", dump: Dump, binlog_file: str) -> None:
    """Refuse a dump of a server of another version than the one that wrote the file; there are no GTIDs to compare."""
    versions = [_NUMBERS.match(text or "") for text in (dump.server_version, scan.format.server_version)]
    dumped, logged = (found[0] if found else None for found in versions)
    if dumped is not None and dumped != logged:
        raise RestoreRefusedError(
            f"The dump is of a server of version {dumped}, and {binlog_file} of one of version {logged}.",
            hint="Give the binlog files of the server that the dump was taken from. If they are, confirm the position"
            f" with --from-position {binlog_file}:{dump.snapshot.binlog_pos}.",
        )
