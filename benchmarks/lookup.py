"""Finds the changes of one row: in a month of row changes in the marts' layout, and in files that are not landed.

    python -m benchmarks.lookup warehouse --work DIR --rows 100M --hours 720
    python -m benchmarks.lookup files --work DIR --copies 8

The warehouse is generated without Spark: Parquet files as Spark writes them for `row_changes`, with the options of
`lean_parquet_options`, once without and once with a bloom filter on `pk_hash`. Each key has three changes in the month.
"""

import argparse
import json
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import perf_counter

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
ROUNDS = 5

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


def generate(home: Path, rows: int, hours: int, *, has_bloom: bool) -> None:
    """Write a month of `row_changes`, and the small marts that a look-up needs."""
    import duckdb
    import pyarrow.parquet as pq

    shutil.rmtree(home, ignore_errors=True)
    connection = duckdb.connect()
    connection.execute("set timezone = 'UTC'")
    marts = home / "warehouse" / "binloom.db"
    each = rows // hours
    for hour in range(hours):
        at = FIRST_HOUR + timedelta(hours=hour)
        values = {"hour": hour, "rows": each, "keys": each * hours // CHANGES_OF_A_KEY, "at": f"{at:%F %T}+00"}
        table = connection.sql(ROWS, params=values | {"source": SOURCE, "file": FILE}).to_arrow_table()
        folder = marts / "row_changes" / f"event_hour={at:%Y-%m-%d-%H}" / f"source_id={SOURCE}" / "epoch=0"
        folder = folder / f"binlog_file={FILE}" / f"file_part={hour}"
        folder.mkdir(parents=True)
        pq.write_table(
            table,
            folder / "part-00000.zstd.parquet",
            compression="zstd",
            compression_level=1,
            use_dictionary=REPEATING,
            write_statistics=[*FILTERED, *(["pk_values_after"] if has_bloom else [])],
            bloom_filter_options={"pk_hash": {"ndv": each, "fpp": 0.01}} if has_bloom else None,
            row_group_size=each,
        )
    for name, query in _small_marts():
        folder = marts / name
        folder.mkdir(parents=True, exist_ok=True)
        pq.write_table(connection.sql(query).to_arrow_table(), folder / "part-00000.zstd.parquet")
        (folder / "_SUCCESS").touch()
    for folder in ("binlog_raw.db/statements", "binloom_intermediate.db/int_completed_segments"):
        path = home / "warehouse" / folder
        path.mkdir(parents=True)
        pq.write_table(
            connection.sql(
                f"select '{SOURCE}' as source_id, 0 as epoch, '{FILE}' as binlog_file, 4 as segment_start"
            ).to_arrow_table(),
            path / "part-0.parquet",
        )
        (path / "_SUCCESS").touch()


def _small_marts() -> Iterator[tuple[str, str]]:
    columns = ", ".join(
        f"{{'ordinal': {ordinal}, 'name': '{name}', 'data_type': '{kind}', 'column_type': '{kind}',"
        f" 'character_set': null::varchar, 'is_nullable': false, 'is_primary_key': {str(name == 'id').lower()}}}"
        for ordinal, (name, kind) in enumerate((("id", "bigint"), ("status", "varchar")))
    )
    yield (
        "table_versions",
        f"""select 'v1' as table_version_id, '{SOURCE}' as source_id, 'bench' as schema_name, 'orders' as table_name,
        [{columns}] as columns, ['id', 'status'] as column_names, ['id'] as primary_key_columns""",
    )
    yield "transactions", f"select '{SOURCE}' as source_id, 0 as epoch, '{FILE}' as binlog_file, 4 as start_pos"
    yield (
        "quarantined_row_events",
        """select '' as source_id, '' as schema_name, '' as table_name, '' as reason, '' as event_type where false""",
    )


def ask(home: Path, key: str) -> dict[str, float]:
    """Look up one key in this process; return seconds to the first row, rows, and bytes read."""
    from recover.selection.filters import Filters
    from recover.sources.log import Log

    before, started = _bytes_read(), perf_counter()
    log = Log.of_warehouse(home)
    rows = log.rows(log.select(Filters.of(tables=["bench.orders"], keys=[key])).query())
    found = next(rows, None)
    seconds = perf_counter() - started
    count = (found is not None) + sum(1 for _ in rows)
    return {"seconds": seconds, "rows": count, "bytes": _bytes_read() - before}


def _bytes_read() -> int:
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"])


def warehouse(work: Path, rows: int, hours: int) -> None:
    """Measure the look-up of one key, with and without bloom filters."""
    keys = rows // hours * hours // CHANGES_OF_A_KEY
    for has_bloom in (False, True):
        home = work / f"{rows}-rows-{'bloom' if has_bloom else 'plain'}"
        if not (home / "warehouse").is_dir():
            started = perf_counter()
            generate(home, rows, hours, has_bloom=has_bloom)
            print(f"generated {home} in {perf_counter() - started:.0f} s", file=sys.stderr)
        size = sum(
            path.stat().st_size for path in (home / "warehouse" / "binloom.db" / "row_changes").rglob("*.parquet")
        )
        results, whole = [], []
        for number in range(ROUNDS):
            key = str(keys * (2 * number + 1) // (2 * ROUNDS))
            asked = run(
                [sys.executable, "-m", "benchmarks.lookup", "ask", "--home", str(home), "--key", key], capture=True
            )
            results.append(json.loads(asked.output))
            whole.append(asked.seconds)
        assert all(result["rows"] == CHANGES_OF_A_KEY for result in results), results
        worst = max(results, key=lambda result: result["seconds"])
        print(
            f"{'bloom filter on pk_hash' if has_bloom else 'no bloom filter'}: {rows:,} row changes in {hours} hours,"
            f" {size / 1e9:.2f} GB; first row after"
            f" {min(r['seconds'] for r in results):.2f} to {worst['seconds']:.2f} s,"
            f" process {min(whole):.2f} to {max(whole):.2f} s;"
            f" {max(r['bytes'] for r in results) / 1e6:.1f} MB read,"
            f" {100 * max(r['bytes'] for r in results) / size:.2f} %"
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("section", choices=["warehouse", "files", "ask"])
    parser.add_argument("--work", type=Path, default=Path("/tmp/binloom-bench"))
    parser.add_argument("--rows", default="100M", help="row changes in the month")
    parser.add_argument("--hours", type=int, default=720)
    parser.add_argument("--copies", type=int, default=8, help="how often the file of 128 MB is read")
    parser.add_argument("--home", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--key", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.section == "ask":
        print(json.dumps(ask(arguments.home, arguments.key)))
    elif arguments.section == "warehouse":
        number, unit = arguments.rows[:-1], arguments.rows[-1]
        warehouse(arguments.work, int(number) * UNITS[unit], arguments.hours)
    else:
        files(arguments.work, arguments.copies)


if __name__ == "__main__":
    main()
