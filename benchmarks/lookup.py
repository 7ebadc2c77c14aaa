"""Finds the changes of one row: in a month of row changes in the marts' layout, and in files that are not landed.

    python -m benchmarks.lookup warehouse --work DIR --rows 100M --hours 720
    python -m benchmarks.lookup files --work DIR --copies 8
    python -m benchmarks.lookup indexed --work DIR --copies 1000

The warehouse is generated without Spark: Parquet files as Spark writes them for `row_changes`, with the options of
`lean_parquet_options`. Each key has three changes in the month, a third of it apart. The first `WRITTEN_HOURS` of each
third are written, and the keys that are looked up are from the first of these. All other hours are hard links of
written hours without these keys, so that a month of 100 million row changes takes minutes and a tenth of its space.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.measure import run

UNITS = {"K": 1_000, "M": 1_000_000}
FIRST_HOUR = datetime(2026, 10, 1, tzinfo=UTC)
SOURCE, FILE = "bench", "binlog.000001"
# See models/marts/row_changes.sql.
REPEATING = [
    *("file_sequence", "outcome", "event_type", "schema_name", "table_name", "table_version_id", "binding_confidence")
]
FILTERED = ["file_sequence", "start_pos", "transaction_pos", "event_timestamp", "schema_name", "table_name"]
CHANGES_OF_A_KEY = 3
WRITTEN_HOURS = 20
ROUNDS = 5
FILE_BYTES = 100 << 20
WITHOUT_INDEX = 5
# The columns of small marts that `binloom history` reads and that have no rows here.
EMPTY_MARTS = {
    "binloom.db/schema_changes": "source_id, schema_name, table_name, epoch: bigint, file_sequence: bigint,"
    " start_pos: bigint, binlog_file, statement_type, actions: varchar[], tables: varchar[], sql_text, default_schema,"
    " event_timestamp: timestamptz, gtid, thread_id: bigint, error_code: bigint, is_understood: boolean",
    "binloom.db/foreign_keys": "source_id",
    "binloom_quality.db/lost_events": "source_id, epoch: bigint, start_pos: bigint, binlog_file",
    "binloom_quality.db/stream_gaps": "source_id, from_epoch: bigint, from_pos: bigint, from_file, status",
    "binloom_quality.db/failed_segments": "source_id, epoch: bigint, segment_start: bigint, binlog_file",
    "binloom_quality.db/uncovered_bytes": "source_id, epoch: bigint, range_start: bigint, binlog_file, defect",
    "binloom_quality.db/file_breaks": "source_id, epoch: bigint, binlog_file, following_epoch: bigint,"
    " following_binlog_file, defect",
    "binloom_quality.db/statement_format_changes": "source_id, schema_name, table_name, first_epoch: bigint,"
    " first_pos: bigint, first_binlog_file, last_epoch: bigint, last_pos: bigint, last_binlog_file",
}

ROWS = """
    with numbered as (
        select
            range as number,
            ($hour::bigint * $rows + range) % $keys as id,
            ($hour::bigint * $rows + range) < $keys as is_new
        from range($rows)
    ),
    imaged as (
        select
            *,
            map(
                ['id', 'customer_id', 'status', 'total', 'email', 'updated_at'],
                [id::varchar, (hash(id) % 1000000)::varchar, 'new', (hash(id) % 100000 / 100)::decimal(12, 2)::varchar,
                    'person' || hash(id) % 1000000 || '@example.org', $at]
            ) as old,
            map(
                ['id', 'customer_id', 'status', 'total', 'email', 'updated_at'],
                [id::varchar, (hash(id) % 1000000)::varchar, 'paid', (hash(id) % 100000 / 100)::decimal(12, 2)::varchar,
                    'person' || hash(id) % 1000000 || '@example.org', $at]
            ) as new
        from numbered
    )
    select
        concat_ws('/', $source, 0, $file, $hour::bigint * 100000000 + number * 300, 0, 0) as change_id,
        1::bigint as file_sequence,
        $hour::bigint * 100000000 + number * 300 as start_pos,
        $hour::bigint * 100000000 + number * 300 + 250 as end_pos,
        0::integer as payload_ordinal,
        0::integer as row_ordinal,
        $hour::bigint * 100000000 + number // 20 * 6000 as transaction_pos,
        '5ca1ab1e-0000-4000-8000-0000b1d1003e:' || ($hour::bigint * $rows + number) // 20 as gtid,
        $at::timestamptz as event_timestamp,
        $at::timestamptz as committed_at,
        'commit' as outcome,
        if(is_new, 'INSERT', 'UPDATE') as event_type,
        'bench' as schema_name,
        'orders' as table_name,
        id::varchar as pk_values,
        sha256(id::varchar) as pk_hash,
        null::varchar as pk_values_after,
        if(is_new, null, ['status', 'updated_at']) as changed_columns,
        if(is_new, null, old) as row_before,
        new as row_after,
        null::varchar[] as undecoded_columns,
        null::struct(column_name varchar, operation varchar, path varchar, "value" varchar)[] as json_changes,
        'v1' as table_version_id,
        'in_force' as binding_confidence,
        9::bigint as thread_id,
        1::bigint as server_id
    from imaged"""


def generate(home: Path, rows: int, hours: int) -> None:
    """Write a month of `row_changes`, and the small marts that a look-up needs."""
    import duckdb
    import pyarrow.parquet as pq

    shutil.rmtree(home, ignore_errors=True)
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    third = hours // CHANGES_OF_A_KEY
    each = rows // hours
    for hour in range(third * CHANGES_OF_A_KEY):
        path = _file_of(home, hour)
        path.parent.mkdir(parents=True)
        number = hour % third
        if number >= WRITTEN_HOURS:
            path.hardlink_to(_file_of(home, hour - number + 1 + number % (WRITTEN_HOURS - 1)))
            continue
        at = f"{FIRST_HOUR + timedelta(hours=hour):%F %T}+00"
        values = {"hour": hour, "rows": each, "keys": each * third, "at": at, "source": SOURCE, "file": FILE}
        pq.write_table(
            connection.sql(ROWS, params=values).to_arrow_table(),
            path,
            compression="zstd",
            compression_level=1,
            use_dictionary=REPEATING,
            write_statistics=[*FILTERED, "pk_values_after"],
            bloom_filter_options={"pk_hash": {"ndv": each, "fpp": 0.01}},
            row_group_size=each,
        )
    for name, query in _small_marts():
        folder = home / "warehouse" / name
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(connection.sql(query).to_arrow_table(), folder / "part-00000.zstd.parquet")
        (folder / "_SUCCESS").touch()


def _file_of(home: Path, hour: int) -> Path:
    at = FIRST_HOUR + timedelta(hours=hour)
    folder = home / "warehouse" / "binloom.db" / "row_changes" / f"event_hour={at:%Y-%m-%d-%H}" / f"source_id={SOURCE}"
    return folder / "epoch=0" / f"binlog_file={FILE}" / f"file_part={hour}" / "part-00000.zstd.parquet"


def _small_marts() -> Iterator[tuple[str, str]]:
    columns = ", ".join(
        f"{{'ordinal': {ordinal}, 'name': '{name}', 'data_type': '{kind}', 'column_type': '{kind}',"
        f" 'character_set': null::varchar, 'is_nullable': false, 'is_primary_key': {str(name == 'id').lower()}}}"
        for ordinal, (name, kind) in enumerate((("id", "bigint"), ("status", "varchar")))
    )
    yield (
        "binloom.db/table_versions",
        f"""select 'v1' as table_version_id, '{SOURCE}' as source_id, 'bench' as schema_name, 'orders' as table_name,
        [{columns}] as columns, ['id', 'status'] as column_names, ['id'] as primary_key_columns,
        null::integer as valid_from_epoch, null::varchar as valid_from_binlog_file, null::bigint as valid_from_pos""",
    )
    yield (
        "binloom.db/transactions",
        f"""select '{SOURCE}' as source_id, 0 as epoch, '{FILE}' as binlog_file, 1 as file_sequence, 4 as start_pos,
        100 as end_pos, '{SOURCE}/0/{FILE}/4' as transaction_id, null::varchar as gtid, null::varchar as xa_xid,
        null::varchar as xa_end_transaction_id, null::timestamptz as committed_at, 'commit' as outcome,
        null::varchar[] as rolled_back_ranges""",
    )
    yield (
        "binloom.db/quarantined_row_events",
        """select '' as source_id, 0 as epoch, 0 as file_sequence, '' as binlog_file, 4 as start_pos,
        4 as transaction_pos, '' as event_hour, now() as event_timestamp, '' as schema_name, '' as table_name,
        '' as reason, '' as event_type where false""",
    )
    for name in ("binlog_raw.db/statements", "binloom_intermediate.db/int_completed_segments"):
        yield (
            name,
            f"""select '{SOURCE}' as source_id, 0 as epoch, '{FILE}' as binlog_file, 4 as segment_start,
            4 as start_pos, 0 as payload_ordinal, 4 as transaction_pos, 'QUERY' as kind, '' as sql_text,
            null::varchar as sql_mode""",
        )
    for name, names in EMPTY_MARTS.items():
        typed = (column.partition(":") for column in names.split(","))
        values = (f"null::{kind or 'varchar'} as {column}" for column, _, kind in typed)
        yield name, f"select {', '.join(values)} where false"


def ask(home: Path, key: str, command: str) -> dict[str, float]:
    """Look up one key in this process; return seconds to the first row, rows, and bytes read."""
    from recover.selection.filters import Filters
    from recover.sources.log import VIEWS, Log
    from recover.timeline.history import history_of
    from recover.timeline.named_table import find_table
    from recover.timeline.table_log import MARTS

    before, started, used = _bytes_read(), perf_counter(), process_time()
    if command == "query":
        log = Log.of_warehouse(home)
        found = log.rows(log.select(Filters.of(tables=["bench.orders"], keys=[key])).query())
        count = 1 if next(found, None) else 0
    else:
        log = Log.of_warehouse(home, dict.fromkeys((*VIEWS, *MARTS)))
        found = iter(history_of(log.connection, find_table(log, "bench.orders", None), key))
        count = 1 if next(found, None) else 0
    figures = {"seconds": perf_counter() - started, "cpu": process_time() - used}
    return {**figures, "rows": count + sum(1 for _ in found), "bytes": _bytes_read() - before}


def _bytes_read() -> int:
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def warehouse(work: Path, rows: int, hours: int) -> None:
    """Measure the look-up of one key by `query` and by `history`."""
    home = work / f"{rows}-rows"
    if not (home / "warehouse").is_dir():
        started = perf_counter()
        generate(home, rows, hours)
        print(f"generated {home} in {perf_counter() - started:.0f} s", file=sys.stderr)
    size = sum(path.stat().st_size for path in (home / "warehouse" / "binloom.db" / "row_changes").rglob("*.parquet"))
    for command in ("query", "history"):
        results, whole = [], []
        for number in range(ROUNDS):
            key = str(rows // hours * (2 * number + 1) // (2 * ROUNDS))
            asking = ["ask", "--home", str(home), "--key", key, "--command", command]
            asked = run([sys.executable, "-m", "benchmarks.lookup", *asking], capture=True)
            results.append(json.loads(asked.output))
            whole.append(asked)
        assert all(result["rows"] == CHANGES_OF_A_KEY for result in results), results
        seconds = sorted(result["seconds"] for result in results)
        used = sorted(result["cpu"] for result in results)
        read = max(result["bytes"] for result in results)
        print(
            f"{command}: {rows:,} row changes in {hours} hours, {size / 1e9:.2f} GB; first row after"
            f" {seconds[0]:.2f} to {seconds[-1]:.2f} s, {used[0]:.2f} to {used[-1]:.2f} s of processor time; process"
            f" {min(one.seconds for one in whole):.2f} to {max(one.seconds for one in whole):.2f} s;"
            f" {read / 1e6:.1f} MB read, {100 * read / size:.2f} %"
        )


def files(work: Path, copies: int) -> None:
    """Measure `binloom query --files` for one key beside `mysqlbinlog -v | grep`, in turn."""
    from benchmarks.run import BINLOOM, prepare, several_names
    from tests.servers import DISTRIBUTIONS

    folder = prepare("mysql", 128 << 20, work)
    paths = sorted(map(str, several_names(folder, copies, work / "binlogs").glob("binlog.*")))
    size = sum(Path(path).stat().st_size for path in paths)
    options = ["--snapshot-dir", str(folder / "schema"), "--table", "bench.orders", "--key", "4711", "--format", "json"]
    tool = DISTRIBUTIONS["mysql"].binlogtool_command("-v", "--base64-output=decode-rows", *paths)
    quoted = " ".join(f"'{word}'" for word in tool)
    for _ in range(3):
        ours = run([BINLOOM, "query", *options, "--files", *paths])
        theirs = run(["sh", "-c", f"{quoted} | grep -c '@1=4711$'"], environment={"TZ": "UTC"})
        print(
            f"{size / 1e9:.2f} GB, one table and key: binloom {ours.seconds:.1f} s ({ours.processor_seconds:.1f} s of"
            f" processor time, {ours.peak_bytes / 1e6:.0f} MB), mysqlbinlog | grep {theirs.seconds:.1f} s"
            f" ({theirs.processor_seconds:.1f} s); {ours.seconds / theirs.seconds:.2f} of its time"
        )


def indexed(work: Path, copies: int) -> None:
    """Measure `binloom query --files` for one key in many indexed files, and in fewer of them without the index.

    Two files of 100 MB of one server are written. The key is only in the first, which deletes it again. All other
    names are links to the second, also those of the sidecars.
    """
    from benchmarks.generate import generate as generate_binlogs
    from benchmarks.run import BINLOOM

    written = work / "mysql-2x100M"
    if not (written / "binlog.000002").exists():
        generate_binlogs("mysql", FILE_BYTES, written, last=FILE_BYTES)
    for old in written.glob("*.binloom-index"):
        old.unlink()
    made = run([BINLOOM, "index", str(written)])
    sizes = [path.stat().st_size for path in sorted(written.glob("binlog.*"))]
    print(
        f"index: {(sizes[0] + sizes[2]) / 1e6:,.0f} MB in {made.seconds:.1f} s ({made.processor_seconds:.1f} s of"
        f" processor time); {100 * (sizes[1] + sizes[3]) / (sizes[0] + sizes[2]):.2f} % of the bytes"
    )
    options = ["--snapshot-dir", str(written / "schema"), "--table", "bench.orders", "--key", "9", "--format", "json"]
    for count, has_index in ((copies, True), (WITHOUT_INDEX, True), (WITHOUT_INDEX, False)):
        paths = _linked(written, work / "indexed", count, has_index)
        size = sum(Path(path).stat().st_size for path in paths)
        for _ in range(2 if count == copies else 1):
            asked = run([BINLOOM, "query", *options, "--files", *paths], capture=True)
            print(
                f"{count} files, {size / 1e9:.1f} GB, {'with' if has_index else 'without'} the index:"
                f" {asked.output.count('change_id')} changes in {asked.seconds:.2f} s"
                f" ({asked.processor_seconds:.2f} s of processor time, {asked.peak_bytes / 1e6:.0f} MB)"
            )


def _linked(written: Path, folder: Path, count: int, has_index: bool) -> list[str]:
    """Give the files many names; return them. All but the first are names of the second file."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    paths = []
    for number in range(1, count + 1):
        name = f"binlog.{min(number, 2):06}"
        paths.append(folder / f"binlog.{number:06}")
        paths[-1].hardlink_to(written / name)
        if has_index:
            (folder / f"{paths[-1].name}.binloom-index").hardlink_to(written / f"{name}.binloom-index")
    return [*map(str, paths)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=["warehouse", "files", "indexed", "ask"])
    parser.add_argument("--work", type=Path, default=Path("/tmp/binloom-bench"))
    parser.add_argument("--rows", default="100M", help="row changes in the month")
    parser.add_argument("--hours", type=int, default=720)
    parser.add_argument("--copies", type=int, help="number of files: 8 of 128 MB, or 1000 indexed ones of 100 MB")
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--key", help=argparse.SUPPRESS)
    parser.add_argument("--command", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.section == "ask":
        print(json.dumps(ask(arguments.home, arguments.key, arguments.command)))
    elif arguments.section == "warehouse":
        number, unit = arguments.rows[:-1], arguments.rows[-1]
        warehouse(arguments.work, int(number) * UNITS[unit], arguments.hours)
    elif arguments.section == "indexed":
        indexed(arguments.work, arguments.copies or 1000)
    else:
        files(arguments.work, arguments.copies or 8)


if __name__ == "__main__":
    main()
