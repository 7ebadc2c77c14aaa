"""Simulates the metadata of years: many files, hours and tables with hardly any rows in them.

`status` has the records of files that were landed hour by hour. `query` has a `row_changes` whose files are mostly hard
links of a few. `metastore` registers the partitions of the same table, and plans and writes with them.
"""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, Final

from benchmarks import lookup
from benchmarks.measure import Measured, processor_seconds, run

BINLOOM: Final = str(Path(sys.executable).with_name("binloom"))
SOURCE: Final = lookup.SOURCE
FILE_BYTES: Final = 100 << 20
# Rows of a file of row_changes: few, because only their metadata matter.
ROWS: Final = 100
LOOKED_UP: Final = 3


def metadata(work: Path, files: int, hours: int, tables: int, parts: list[str]) -> Iterator[dict[str, Any]]:
    """Simulate and measure; yield the figures of each measurement."""
    for part in parts:
        home = work / f"{part}-{files}"
        shutil.rmtree(home, ignore_errors=True)
        yield from PARTS[part](home, files, hours, tables)
        shutil.rmtree(home)


def _status(home: Path, files: int, hours: int, tables: int) -> Iterator[dict[str, Any]]:
    from ingest.warehouse.raw_state import raw_states

    _record_landings(home, files, hours)
    facts = {"binlog_files": files, "landings": hours}
    started, used = perf_counter(), process_time()
    raw_states(home)
    what = "whether something has landed"
    yield {**facts, "what": what, "seconds": perf_counter() - started, "processor_seconds": process_time() - used}
    yield {**facts, "what": "binloom status", **_told(_binloom(home, "status", "--format", "json"))}


def _record_landings(home: Path, files: int, hours: int) -> None:
    """Write the records of files that were landed hour by hour, as `binloom ingest` does: a file for each hour."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ingest.warehouse.files import writer_options
    from ingest.warehouse.home import raw_table_dir
    from ingest.warehouse.tables import BINLOG_FILES, SEGMENTS, SOURCES

    def write(table: Any, rows: list[dict[str, Any]], number: int) -> None:
        folder = raw_table_dir(table.name, home)
        folder.mkdir(parents=True, exist_ok=True)
        data = pa.Table.from_pylist(rows, schema=table.columns)
        pq.write_table(data, folder / f"bench-{number:06}.parquet", **writer_options(table.columns))

    source = {"source_id": SOURCE, "epoch": 0}
    write(SOURCES, [{**source, "flavor": "mysql", "server_id": 1, "observed_at": lookup.FIRST_HOUR}], 0)
    for hour in range(hours):
        at = lookup.FIRST_HOUR + timedelta(hours=hour)
        numbers = range(files * hour // hours, files * (hour + 1) // hours)
        named = [{**source, "binlog_file": f"binlog.{number:06}"} for number in numbers]
        scanned = {
            "file_size": FILE_BYTES,
            "is_in_use": False,
            "scanned_at": at,
            "last_event_at": at,
            "flavor": "mysql",
        }
        write(
            BINLOG_FILES,
            [{**each, **scanned, "file_sequence": n} for each, n in zip(named, numbers, strict=True)],
            hour,
        )
        landed = {
            "segment_start": 4,
            "segment_end": FILE_BYTES,
            "run_id": str(hour),
            "row_events": 1,
            "transactions": 1,
        }
        states = [{**each, **landed, "status": "in_progress", "recorded_at": at} for each in named]
        done = at + timedelta(minutes=1)
        states += [{**each, **landed, "status": "completed", "recorded_at": done, "max_event_at": at} for each in named]
        write(SEGMENTS, states, hour)


def _query(home: Path, files: int, hours: int, tables: int) -> Iterator[dict[str, Any]]:
    lookup.generate(home, ROWS * hours, hours)
    _add_files(home, files - hours, hours)
    _add_tables(home, tables)
    facts = {"files": files, "hours": hours, "tables": tables}
    for command in ("query", "history"):
        asking = ["-m", "benchmarks.lookup", "ask", "--home", str(home), "--key", "7", "--command", command]
        asked = run([sys.executable, *asking], capture=True)
        answer = json.loads(asked.output)
        assert answer["rows"] == LOOKED_UP, answer
        yield {**facts, "what": f"{command} of one key", **_told(asked), "bytes_read": answer["bytes"]}
    until = lookup.FIRST_HOUR + timedelta(hours=1)
    of_hour = ["--since", f"{lookup.FIRST_HOUR:%F %T}", "--until", f"{until:%F %T}"]
    yield {**facts, "what": "query of one hour", **_told(_binloom(home, "query", *of_hour, "--by", "table"))}
    hour = f"{lookup.FIRST_HOUR:%Y-%m-%d-%H}"
    sql = f"select count(*) from row_changes where event_hour = '{hour}'"
    yield {**facts, "what": "sql of one hour", **_told(_binloom(home, "sql", sql, "--format", "csv"))}


def _metastore(home: Path, files: int, hours: int, tables: int) -> Iterator[dict[str, Any]]:
    from ingest.warehouse.spark import SparkLaunch

    lookup.generate(home, ROWS * hours, hours)
    _add_files(home, files - hours, hours)
    table = home / "warehouse" / "binloom.db" / "row_changes"
    hour = f"event_hour = '{lookup.FIRST_HOUR:%Y-%m-%d-%H}'"
    parts = "event_hour, source_id, epoch, binlog_file, file_part"
    with SparkLaunch(home) as launch:
        session = launch.session()
        session.sql("create schema if not exists binloom")
        schema = session.read.parquet(str(next(table.rglob("*.parquet")))).schema
        columns = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in schema)
        partitioned = "event_hour string, source_id string, epoch int, binlog_file string, file_part int"
        session.sql(
            f"create table binloom.row_changes ({columns}, {partitioned}) using parquet partitioned by ({parts})"
            f" location '{table}'"
        )
        session.conf.set("spark.sql.sources.partitionOverwriteMode", "dynamic")
        statements = {
            "register all partitions": "msck repair table binloom.row_changes",
            "plan a query of one hour": f"explain select * from binloom.row_changes where {hour}",
            "count the rows of one hour": f"select count(*) from binloom.row_changes where {hour}",
            "plan a query of all hours": "explain select * from binloom.row_changes",
            "write the parts of one hour again": (
                f"insert overwrite table binloom.row_changes partition ({parts})"
                f" select * from binloom.row_changes where {hour} and binlog_file = '{lookup.FILE}'"
            ),
        }
        for what, statement in statements.items():
            started, used = perf_counter(), processor_seconds(os.getpid())
            session.sql(statement).collect()
            figures = {"seconds": perf_counter() - started, "processor_seconds": processor_seconds(os.getpid()) - used}
            yield {"partitions": files, "hours": hours, "what": what, **figures}
    stored = sum(path.stat().st_size for path in (home / "metastore").rglob("*") if path.is_file())
    yield {"partitions": files, "hours": hours, "what": "the metastore", "bytes": stored}


def _add_files(home: Path, files: int, hours: int) -> None:
    """Add files to the hours: links of files of other hours that do not have the keys that are looked up."""
    changes = home / "warehouse" / "binloom.db" / "row_changes"
    hour_folders = sorted(changes.iterdir())
    third = hours // lookup.CHANGES_OF_A_KEY
    for number in range(files):
        folder = hour_folders[number % len(hour_folders)] / f"source_id={SOURCE}" / "epoch=0"
        folder = folder / f"binlog_file=binlog.{number + 2:06}" / "file_part=0"
        folder.mkdir(parents=True)
        written = next(hour_folders[1 + number % min(lookup.WRITTEN_HOURS - 1, third - 1)].rglob("*.parquet"))
        os.link(written, folder / written.name)


def _add_tables(home: Path, tables: int) -> None:
    import pyarrow.parquet as pq

    path = home / "warehouse" / "binloom.db" / "table_versions" / "part-00000.zstd.parquet"
    one = pq.read_table(path).to_pylist()[0]
    others = [{**one, "table_version_id": f"v{n}", "table_name": f"table_{n}"} for n in range(2, tables + 1)]
    pq.write_table(pq.read_table(path).from_pylist([one, *others], schema=pq.read_schema(path)), path)


def _binloom(home: Path, *arguments: str) -> Measured:
    return run([BINLOOM, *arguments], environment={"BINLOOM_HOME": str(home)}, capture=True)


def _told(measured: Measured) -> dict[str, float]:
    figures = {"seconds": measured.seconds, "processor_seconds": measured.processor_seconds}
    return {**figures, "peak_bytes": measured.peak_bytes}


PARTS: Final = {"status": _status, "query": _query, "metastore": _metastore}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the section."""
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--files", type=int, default=100_000, help="binlog files, of which each has a part")
    parser.add_argument("--hours", type=int, default=8760, help="hours of changes, and landings")
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
