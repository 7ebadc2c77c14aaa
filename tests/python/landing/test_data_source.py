"""The data source in a real session: the same rows and the same boundaries as `ingest`, and binloom's own errors."""

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import AnalysisException

from binloom import register
from ingest.binlog import scan_binlog
from ingest.landing import ingest
from ingest.sources.files.directory import find_binlogs
from ingest.warehouse.tables import SEGMENT_TABLES
from tests.support.landing.binlogs import SHOP, SHOP_MARIADB, flip_bit, in_use, transaction_ends
from tests.support.places import PROJECT

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module", autouse=True)
def registered(session: Any) -> None:
    register(session)


def load(session: Any, *paths: Path, **options: Any) -> Any:
    """Load the data source's rows."""
    return session.read.format("mysql_binlog").options(**options).load([str(path) for path in paths])


def rows(frame: Any) -> list[Any]:
    """Return the rows in a fixed order."""
    return sorted((tuple(row) for row in frame.collect()), key=repr)


def failure(session: Any, path: Path, **options: Any) -> str:
    """Return the error message that a user reads when a file cannot be read."""
    with pytest.raises(AnalysisException) as caught:
        load(session, path, **options).count()
    return str(caught.value)


def test_rows_are_those_that_ingest_lands(session: Any, home: Path) -> None:
    for source, folder in (("mysql", SHOP), ("mariadb", SHOP_MARIADB)):
        ingest(source, find_binlogs(folder), home=home)
        for kind, table in SEGMENT_TABLES.items():
            read = load(session, folder, what=kind)
            session.catalog.refreshTable(table.qualified_name)
            landed = session.table(table.qualified_name).where(f"source_id = '{source}'").select(read.columns)
            assert rows(read) == rows(landed)
        maps = load(session, folder, what="table_maps").drop("binlog_file").distinct()
        landed = session.table("binlog_raw.table_maps").where(f"source_id = '{source}'").select(maps.columns)
        assert rows(maps) == rows(landed)


@pytest.mark.parametrize("page", ["README.md", "docs/analytics.md"])
def test_the_documented_lines_run(session: Any, page: str) -> None:
    (lines,) = re.findall(r"```python\n(.*?)```", (PROJECT / page).read_text(), re.DOTALL)
    assert '"/var/lib/mysql"' in lines
    names: dict[str, Any] = {"spark": session}
    exec(lines.replace('"/var/lib/mysql"', repr(str(SHOP))), names)
    wanted = load(session, SHOP, **({"tables": "shop.orders"} if "shop.orders" in lines else {}))
    assert rows(names["changes"]) == rows(wanted)


def test_one_partition_is_one_segment(session: Any) -> None:
    whole, cut = load(session, SHOP), load(session, SHOP, segmentBytes=8000)
    segments = [len(scan_binlog(file.path, segment_bytes=8000).segments) for file in find_binlogs(SHOP)]
    assert cut.rdd.getNumPartitions() == sum(segments) > whole.rdd.getNumPartitions() == len(segments) == 2
    assert rows(cut) == rows(whole)
    # The rows are in the order of the log without sorting.
    places = [(row.binlog_file, row.start_pos, row.row_ordinal) for row in cut.collect()]
    assert places == sorted(places)


def test_files_and_folders_by_their_paths(session: Any) -> None:
    first, second = SHOP / "binlog.000001", SHOP / "binlog.000002"
    assert {row.binlog_file for row in load(session, first).select("binlog_file").distinct().collect()} == {first.name}
    assert rows(load(session, first, second)) == rows(load(session, SHOP))
    assert rows(session.read.format("mysql_binlog").load(str(first))) == rows(load(session, first))


def test_filters_take_the_tables_that_ingest_takes(session: Any) -> None:
    everything = load(session, SHOP)
    orders = load(session, SHOP, tables="shop.orders")
    others = load(session, SHOP, schemas="shop", excludeTables="orders")
    assert rows(orders) == rows(everything.where("table_name = 'orders'")) != []
    assert rows(others) == rows(everything.where("table_name <> 'orders'")) != []
    assert load(session, SHOP, schemas="elsewhere").count() == 0


def test_a_snapshot_gives_the_labels_that_the_log_lacks(session: Any) -> None:
    # The statements that create its tables are in the first file.
    second = SHOP_MARIADB / "binlog.000002"
    told = load(session, second, tables="orders", snapshotDir=SHOP_MARIADB / "schema")
    untold = load(session, second, tables="orders")
    whole = load(session, SHOP_MARIADB, tables="orders").where("binlog_file = 'binlog.000002'")
    labels = {row[0] for row in told.selectExpr("explode(after_values)").collect()}
    assert "shipped" in labels
    assert "shipped" not in {row[0] for row in untold.selectExpr("explode(after_values)").collect()}
    assert labels == {row[0] for row in whole.selectExpr("explode(after_values)").collect()}


def test_a_file_that_grows_is_read_to_its_last_complete_transaction(session: Any, tmp_path: Path) -> None:
    path = SHOP / "binlog.000001"
    end = transaction_ends(path)[10]
    growing = tmp_path / path.name
    growing.write_bytes(in_use(path.read_bytes()[: end + 50]))
    assert rows(load(session, growing)) == rows(load(session, path).where(f"end_pos <= {end}"))


def test_a_damaged_file_is_an_error_that_names_file_and_position(session: Any, tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(flip_bit((SHOP / path.name).read_bytes(), 9000))
    text = failure(session, path)
    assert f"CorruptBinlogError: {path} is broken at position 8796: the checksum does not match." in text
    assert text.count('File "') == 1
    passed_over = load(session, path, skipBadChecksum="true", what="unsupported_events").collect()
    assert [(row.start_pos, row.reason, row.binlog_file) for row in passed_over] == [(8796, "bad_checksum", path.name)]
    assert load(session, path, skipBadChecksum="TRUE").count() < load(session, SHOP / path.name).count()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"what": "everything"}, "what='everything' is not in a binlog."),
        ({"excludetable": "a"}, "has no option excludetable."),
        ({"segmentBytes": "many"}, "segmentBytes='many' is not a number of bytes."),
        ({"snapshotDir": "/nowhere"}, "/nowhere"),
        ({"skipBadChecksum": "maybe"}, "skipBadChecksum='maybe' is neither true nor false."),
    ],
)
def test_options_that_make_no_sense(session: Any, options: dict[str, str], said: str) -> None:
    assert said in failure(session, SHOP, **options)


def test_a_path_that_is_not_there(session: Any, tmp_path: Path) -> None:
    assert f"BinlogNotFoundError: {tmp_path / 'binlog.000009'}" in failure(session, tmp_path / "binlog.000009")
    assert f"BinlogNotFoundError: {tmp_path} holds no binlog" in failure(session, tmp_path)
