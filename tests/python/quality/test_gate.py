"""The gate passes intact landed data, and names damaged data."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from ingest.errors import UnknownSourceError
from ingest.escapes import visible
from ingest.landing import IngestOptions, ingest, land_snapshot
from ingest.landing.compact import compact_closed_files
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.quality.gate import GateResult, _silence, _validate, run_gate
from ingest.sources.files.directory import find_binlogs
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.partitions import forget_lists_of_files
from tests.support.landing.binlogs import (
    SHOP,
    encrypted_by_mariadb,
    encrypted_by_mysql,
    flip_bit,
    in_use,
    transaction_ends,
)
from tests.support.landing.spark import without_session

pytestmark = [pytest.mark.spark]

DATA = (SHOP / "binlog.000001").read_bytes()


@pytest.fixture
def source(session: Any, home: Path, request: pytest.FixtureRequest) -> str:
    """A source for one test, with the sample landed."""
    name = request.node.name.partition("[")[0] + str(abs(hash(request.node.name)))
    with without_session():
        assert ingest(name, find_binlogs(SHOP), IngestOptions(segment_bytes=20_000), home=home).exit_code == 0
    # The check itself registers what landed.
    forget_lists_of_files(session)
    return name


def spoil(session: Any, home: Path, table: str, source: str, change: Callable[[pa.Table], pa.Table]) -> Path:
    """Rewrite the first data file of a source."""
    path = min(raw_table_dir(table, home).glob(f"source_id={source}/**/*.parquet"))
    data = pq.ParquetFile(path).read()
    pq.write_table(change(data), path)
    session.catalog.refreshTable(f"binlog_raw.{table}")
    return path


def put(table: pa.Table, name: str, values: Any) -> pa.Table:
    """Return the table with one column replaced."""
    return table.set_column(table.column_names.index(name), name, values)


def failed(result: GateResult) -> list[str]:
    """Return a short list of the failed checks."""
    return [one.check for one in result.results if not one.success]


def test_what_was_followed_skipped_and_compacted_passes(session: Any, home: Path) -> None:
    files = [SpoolFile(path, 0, path.stat().st_size) for path in sorted(SHOP.glob("binlog.*"))]
    with StreamLanding("followed", home, IngestOptions(segment_bytes=8_000)) as landing:
        # A part of the second file is skipped, so the file is not compacted.
        landing.open_epoch({"epoch": 0, "gtids_before": "5ca1ab1e-0000-4000-8000-0000b1d1003e:60-62"})
        landing.land(files)
        assert [segment.binlog_file for segment in compact_closed_files(landing)] == ["binlog.000001"]
        current = [state.status for states in landing.record.states.values() for state in states]
    result = run_gate("followed", session, home)
    assert failed(result) == []
    assert (result.segments, result.files) == (current.count("completed"), 2)
    assert "skipped" in current


def test_what_landed_as_it_was_passes(session: Any, home: Path, source: str) -> None:
    result = run_gate(source, session, home)
    assert failed(result) == []
    assert (result.success, result.exit_code, result.files) == (True, 0, 2)
    assert result.segments > 3
    assert len(result.results) == 11
    page = result.data_docs_path.read_text()
    assert "landed_segments" in page and "landed_files" in page


def first_event_deleted(rows: pa.Table) -> pa.Table:
    return rows.slice(1)


def value_missing(rows: pa.Table) -> pa.Table:
    values = rows["after_values"].to_pylist()
    values[0] = values[0][:-1]
    return put(rows, "after_values", pa.array(values, pa.list_(pa.string())))


def values_null(rows: pa.Table) -> pa.Table:
    values = rows["before_values"].to_pylist()
    values[0] = None
    return put(rows, "before_values", pa.array(values, pa.list_(pa.string())))


def count_wrong(rows: pa.Table) -> pa.Table:
    return put(rows, "column_count", pc.add(rows["column_count"], pa.scalar(1, pa.int32())))


def type_unknown(rows: pa.Table) -> pa.Table:
    return put(rows, "event_type", pa.array(["UPSERT", *rows["event_type"].to_pylist()[1:]]))


def position_missing(rows: pa.Table) -> pa.Table:
    return put(rows, "transaction_pos", pa.array([None, *rows["transaction_pos"].to_pylist()[1:]], pa.int64()))


def map_unknown(rows: pa.Table) -> pa.Table:
    return put(rows, "table_map_id", pa.array(["nowhere", *rows["table_map_id"].to_pylist()[1:]]))


def table_missing(rows: pa.Table) -> pa.Table:
    return put(rows, "table_name", pa.array([None, *rows["table_name"].to_pylist()[1:]], pa.string()))


def behind_the_segment(rows: pa.Table) -> pa.Table:
    return put(rows, "end_pos", pc.add(rows["end_pos"], 1 << 40))


SPOILT = {
    first_event_deleted: ["Every row that the decoder counted is in row_events"],
    value_missing: ["Both value arrays of every row have column_count elements"],
    values_null: ["Both value arrays of every row have column_count elements"],
    count_wrong: [
        "Both value arrays of every row have column_count elements",
        "Every row has the column count of its table map",
    ],
    type_unknown: ["Every row is an INSERT, UPDATE or DELETE"],
    position_missing: ["No row lacks a position"],
    map_unknown: ["Every row has the column count of its table map"],
    table_missing: ["No row lacks its table, table map, server or timestamp"],
    behind_the_segment: ["No row is after its segment"],
}
# Each run spoils rows in a few ways at once, and `make deep` also in one way at a time.
AT_ONCE = [
    (first_event_deleted, value_missing, type_unknown, map_unknown),
    (values_null, position_missing, table_missing, behind_the_segment),
    (count_wrong,),
]
ALONE = [pytest.param((change,), marks=pytest.mark.deep) for change in SPOILT if change is not count_wrong]


@pytest.mark.parametrize("ways", [*AT_ONCE, *ALONE])
def test_spoilt_rows_are_named(
    session: Any, home: Path, source: str, ways: Sequence[Callable[[pa.Table], pa.Table]]
) -> None:
    def change(rows: pa.Table) -> pa.Table:
        for way in ways:
            rows = way(rows)
        return rows

    path = spoil(session, home, "row_events", source, change)
    result = run_gate(source, session, home)
    assert {*failed(result)} == {check for way in ways for check in SPOILT[way]}
    assert (result.success, result.exit_code) == (False, 1)
    (first, *_) = (one for one in result.results if not one.success)
    assert first.violations == 1
    segment = path.parent.name.partition("=")[2]
    assert first.examples == [f"source_id {source}, epoch 0, binlog_file binlog.000001, segment_start {segment}"]


def test_transactions_that_are_missing(session: Any, home: Path, source: str) -> None:
    spoil(session, home, "transactions", source, lambda rows: rows.slice(2))
    assert failed(run_gate(source, session, home)) == ["Every transaction that the decoder counted is in transactions"]


def test_bytes_that_nobody_accounts_for(session: Any, home: Path, source: str) -> None:
    (path,) = raw_table_dir("binlog_files", home).glob(f"{source[:20]}*{'?' * 8}-*-00001.parquet")
    data = pq.ParquetFile(path).read()
    pq.write_table(put(data, "file_size", pc.add(data["file_size"], 10)), path)
    session.catalog.refreshTable("binlog_raw.binlog_files")
    assert failed(run_gate(source, session, home)) == [
        "Whole events cover every byte of a file, unless it is in use or a segment failed"
    ]


def column_lost(rows: pa.Table) -> pa.Table:
    columns = rows["columns"].to_pylist()
    columns[0] = columns[0][:-1]
    return put(rows, "columns", pa.array(columns, rows.schema.field("columns").type))


def column_hidden(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.not_equal(rows["ordinal_position"], 2))


def test_columns_that_nobody_describes(session: Any, home: Path, source: str) -> None:
    snapshot = land_snapshot(source, read_snapshot_dir(SHOP / "schema"), home)
    assert failed(run_gate(source, session, home)) == []
    columns = raw_table_dir("schema_columns", home) / f"{snapshot.snapshot_id}.parquet"
    (maps,) = (
        path
        for path in raw_table_dir("table_maps", home).glob("*.parquet")
        if source in pq.ParquetFile(path).read(["source_id"])["source_id"].to_pylist()
    )
    for path, change in ((columns, column_hidden), (maps, column_lost)):
        whole = pq.ParquetFile(path).read()
        pq.write_table(change(whole), path)
        assert failed(run_gate(source, session, home)) == ["Table maps and snapshots describe every column of a table"]
        pq.write_table(whole, path)


def test_files_in_use_and_broken_ones_are_explained(session: Any, home: Path, tmp_path: Path) -> None:
    ends = transaction_ends(SHOP / "binlog.000001")
    (tmp_path / "binlog.000001").write_bytes(DATA[: ends[8] + 30])
    (tmp_path / "binlog.000002").write_bytes(in_use(DATA[: ends[8] + 30]))
    assert ingest("explained", find_binlogs(tmp_path), home=home).exit_code == 3
    result = run_gate("explained", session, home)
    assert failed(result) == []
    assert result.files == 2


def test_events_that_were_passed_over_and_encrypted_files_are_explained(
    session: Any, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "binlog.000001").write_bytes(flip_bit(DATA, 9000))
    (tmp_path / "binlog.000002").write_bytes(encrypted_by_mysql(DATA))
    (tmp_path / "binlog.000003").write_bytes(encrypted_by_mariadb(DATA))
    options = IngestOptions(skip_bad_checksum=True)
    assert len(ingest("around", find_binlogs(tmp_path), options, home=home).problems) == 2
    result = run_gate("around", session, home)
    assert failed(result) == []
    assert result.files == 3


def test_names_are_no_html_in_data_docs(tmp_path: Path) -> None:
    import pandas as pd  # type: ignore[import-untyped]

    from ingest.quality.suites import DEFINITIONS_SUITE, FILES_SUITE, SEGMENTS_SUITE

    name = "<script>alert(1)</script>\x1b[2J'\"&$x{{ 1 }}"
    file = {"source_id": name, "epoch": 0, "binlog_file": name}
    counts = ("value_count_mismatches", "table_map_mismatches", "null_positions", "null_keys", "unknown_event_types")
    pairs = ("landed_row_events", "counted_row_events", "landed_transactions", "counted_transactions")
    places = {"segment_start": 4, "segment_end": 9, "first_start_pos": 4, "last_end_pos": 9}
    table = {"source_id": name, "schema_name": name, "table_name": name, "definition_id": "a"}
    facts = {
        SEGMENTS_SUITE: {**file, **dict.fromkeys(counts, 1), **dict.fromkeys(pairs, 1), **places},
        FILES_SUITE: {**file, "unexplained_uncovered_bytes": 1},
        DEFINITIONS_SUITE: {**table, "counted_columns": 1, "described_columns": 2},
    }
    _silence()
    result = _validate(tmp_path, {suite: pd.DataFrame([row]) for suite, row in facts.items()})
    shown = f"source_id {name}, epoch 0, binlog_file {name}"
    assert {one.examples[0] for one in result.results if not one.success} == {
        f"{shown}, segment_start 4",
        shown,
        f"source_id {name}, schema_name {name}, table_name {name}, definition_id a",
    }
    pages = [page.read_text() for page in (tmp_path / "gx").rglob("*.html")]
    assert sum("&lt;script&gt;alert(1)" in page for page in pages) == len(facts)
    for page in pages:
        assert "<script>alert" not in page
        assert visible(page, keep="\n\r\t") == page


def test_unknown_source(session: Any, home: Path) -> None:
    with pytest.raises(UnknownSourceError, match="no source 'nobody'"):
        run_gate("nobody", session, home)
