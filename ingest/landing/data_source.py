"""Binlog files as a Spark data source: read rows in a notebook without landing anything.

>>> from ingest.landing.data_source import register
>>> register(spark)  # doctest: +SKIP
>>> changes = spark.read.format("mysql_binlog").load("/var/lib/mysql")  # doctest: +SKIP

It reads the same batches of the same segments that `ingest` would land, each file up to the end of its last complete
transaction. Each segment is one Spark partition.
"""

import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from ingest.binlog.byte_files import LogPath
from ingest.errors import BinloomError, UsageError
from ingest.landing.plan import SEGMENT_BYTES, damage
from ingest.sources.files.directory import PlainBinlog, binlog_path, find_binlogs
from ingest.warehouse.catalog import spark_type
from ingest.warehouse.landed import LANDED_SCHEMAS, LandedKind, landed_batches
from ingest.warehouse.tables import SEGMENT_PARTITION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from ingest.binlog import Scan, SchemaHints, TableFilter
    from ingest.sources.snapshots.snapshot import SchemaSnapshot

FORMAT = "mysql_binlog"
_OPTIONS = {
    "path",
    "paths",
    "what",
    "schemas",
    "tables",
    "excludetables",
    "snapshotdir",
    "segmentbytes",
    "skipbadchecksum",
}


def register(session: "SparkSession") -> None:
    """Register the format `mysql_binlog` in a session."""
    session.dataSource.register(BinlogSource)


@dataclass(frozen=True)
class SegmentPartition(InputPartition):
    """A segment of a file, which one task reads."""

    path: LogPath
    start: int
    end: int
    hints: "SchemaHints | None"


class BinlogSource(DataSource):
    """A data source that returns the decoded batches of binlog files as rows.

    Options, all of them optional:

    what
        Kind of rows: `row_events` (default), `transactions`, `statements`, `ddl_actions`, `table_maps`
        or `unsupported_events`. A table map is returned once for each segment that contains it.
    schemas, tables, excludeTables
        Tables whose rows are read, separated by commas, as in `binloom ingest`.
    snapshotDir
        Folder with a schema snapshot as files, for labels and character sets that the binlog files do not contain.
    segmentBytes
        Approximate number of bytes of a file that one task reads.
    skipBadChecksum
        `true` to skip events whose checksum is wrong; `unsupported_events` lists them.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return FORMAT

    def schema(self) -> str:
        """Return the columns of the raw table and the column with the file name."""
        return ", ".join(f"`{field.name}` {spark_type(field.type)}" for field in _columns(self._kind))

    def reader(self, schema: StructType) -> "BinlogReader":
        """Return the reader, which divides the files into segments and reads them."""
        wanted = _columns(self._kind).names
        if schema.fieldNames() != wanted:
            raise UsageError(
                f"The schema given is not that of {self._kind}, which has the columns {', '.join(wanted)}.",
                hint="Leave the schema out, and select columns afterwards.",
            )
        return BinlogReader(
            self._kind, self._paths, self._tables, self._snapshot, self._segment_bytes, self._skip_bad_checksum
        )

    @cached_property
    def _kind(self) -> LandedKind:
        unknown = sorted(name for name in self.options if name.lower() not in _OPTIONS)
        if unknown:
            raise UsageError(
                f"The format {FORMAT} has no option {', '.join(unknown)}.",
                hint="It has what, schemas, tables, excludeTables, snapshotDir, segmentBytes and skipBadChecksum.",
            )
        kind = self.options.get("what", "row_events")
        if kind not in LANDED_SCHEMAS:
            raise UsageError(f"what={kind!r} is not in a binlog.", hint=f"There are: {', '.join(LANDED_SCHEMAS)}.")
        return cast(LandedKind, kind)

    @property
    def _paths(self) -> list[Path]:
        paths = json.loads(self.options.get("paths", "[]"))
        paths += [self.options["path"]] if self.options.get("path") else []
        if not paths:
            raise UsageError("No file or folder is named.", hint="Give one to load().")
        return [Path(path.removeprefix("file:")) for path in paths]

    @property
    def _segment_bytes(self) -> int:
        given = self.options.get("segmentBytes", str(SEGMENT_BYTES))
        if not given.isdigit() or int(given) == 0:
            raise UsageError(f"segmentBytes={given!r} is not a number of bytes.", hint="The default is 128 MiB.")
        return int(given)

    @property
    def _skip_bad_checksum(self) -> bool:
        given = self.options.get("skipBadChecksum", "false").lower()
        if given not in ("true", "false"):
            raise UsageError(f"skipBadChecksum={given!r} is neither true nor false.", hint="The default is false.")
        return given == "true"

    @property
    def _tables(self) -> "TableFilter | None":
        from ingest.binlog import TableFilter

        return TableFilter.parse(*(self.options.get(name) for name in ("schemas", "tables", "excludeTables")))

    @property
    def _snapshot(self) -> "SchemaSnapshot | None":
        directory = self.options.get("snapshotDir")
        if directory is None:
            return None
        from ingest.sources.snapshots.snapshot_files import read_snapshot_dir

        return read_snapshot_dir(Path(directory))


class BinlogReader(DataSourceReader):
    """Divides files into segments on the driver, and reads one segment in a task. Is pickled for the workers."""

    def __init__(
        self,
        kind: LandedKind,
        paths: Sequence[Path],
        tables: "TableFilter | None",
        snapshot: "SchemaSnapshot | None",
        segment_bytes: int,
        skip_bad_checksum: bool,
    ) -> None:
        self._kind = kind
        self._paths = paths
        self._tables = tables
        self._snapshot = snapshot
        self._segment_bytes = segment_bytes
        self._skip_bad_checksum = skip_bad_checksum

    def partitions(self) -> Sequence[SegmentPartition]:
        """Return the segments of all files, in the order of the log.

        Raises
        ------
        BinlogError
            A file is not a binlog, cannot be read, or is damaged.
        """
        try:
            from ingest.landing.hints_of_files import hints_of_scans

            files: list[LogPath] = list(_files(self._paths))
            with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
                scans = dict(zip(files, pool.map(self._scan, files), strict=True))
            hints = hints_of_scans(self._snapshot, scans)
            return [
                SegmentPartition(path, segment.start, segment.end, hints[path])
                for path, scan in scans.items()
                for segment in scan.segments
            ]
        except BinloomError as error:
            # Show the message in the notebook, without binloom's internal traceback.
            raise error.with_traceback(None) from None

    def _scan(self, path: LogPath) -> "Scan":
        from ingest.binlog import scan_binlog

        scan = scan_binlog(path, segment_bytes=self._segment_bytes, skip_bad_checksum=self._skip_bad_checksum)
        error = damage(scan, self._skip_bad_checksum)
        if error is not None:
            raise error
        return scan

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the batches of a segment.

        Raises
        ------
        CorruptBinlogError
            An event is broken.
        """
        from ingest.binlog import open_binlog

        if not isinstance(partition, SegmentPartition):
            return  # Without any segment, Spark creates one partition that is None.
        columns = _columns(self._kind)
        file = pa.scalar(partition.path.name, columns.field("binlog_file").type)
        try:
            log = open_binlog(
                partition.path,
                hints=partition.hints,
                tables=self._tables,
                start=partition.start,
                end=partition.end,
                skip_bad_checksum=self._skip_bad_checksum,
            )
            for kind, batch in landed_batches(log):
                if kind == self._kind:
                    names = pa.repeat(file, batch.num_rows)
                    # Spark does not accept dictionary arrays.
                    yield pa.record_batch([*batch.columns, names], names=columns.names).cast(columns)
        except BinloomError as error:
            raise error.with_traceback(None) from None


def _columns(kind: LandedKind) -> pa.Schema:
    """Return the columns as Spark accepts them, without dictionary types."""
    plain = (
        field.with_type(field.type.value_type) if pa.types.is_dictionary(field.type) else field
        for field in LANDED_SCHEMAS[kind]
    )
    return pa.schema([*plain, SEGMENT_PARTITION.field("binlog_file")])


def _files(paths: Sequence[Path]) -> list[Path]:
    found = (one for path in paths for one in (find_binlogs(path) if path.is_dir() else [binlog_path(path)]))
    # Tasks run in other processes, and on other machines: they read plain files.
    return [file.path for file in found if isinstance(file, PlainBinlog)]
