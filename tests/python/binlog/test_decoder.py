"""Decoding a file's bytes to batches: transactions, positions, full buffers, events that cannot be decoded."""

import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numba import njit

from ingest.binlog import SchemaHints, TableFilter, open_binlog, scan_binlog
from ingest.binlog.batches import SCHEMAS
from ingest.binlog.buffers import ROW_CAPACITY
from ingest.binlog.kernel import crc
from ingest.binlog.kernel.tables import slicing_tables
from ingest.errors import CorruptBinlogError, TruncatedBinlogError
from tests.support.binlog import forge
from tests.support.binlog.forge import FileMaker
from tests.support.places import FIXTURES, SAMPLES

UUID = bytes(range(16))
UUID_TEXT = "00010203-0405-0607-0809-0a0b0c0d0e0f"


def everything(path: Path, **options: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of all batches by kind; check the schema of each batch."""
    found: dict[str, list[dict[str, Any]]] = {kind: [] for kind in SCHEMAS}
    for kind, batch in open_binlog(path, **options).batches():
        assert batch.schema == SCHEMAS[kind]
        batch.validate(full=True)
        found[kind] += batch.to_pylist()
    return found


def one_table(maker: FileMaker, rows: int = 1, first: int = 0) -> None:
    """Return a transaction that inserts numbers from `first` on into a table of one INT."""
    maker.begin()
    maker.table_map([forge.LONG], b"", forge.signedness(False))
    maker.rows(30, 1, b"".join(b"\0" + struct.pack("<i", first + row) for row in range(rows)))
    maker.commit()


def gtid_body(number: int, tail: bytes = b"") -> bytes:
    return b"\0" + UUID + struct.pack("<q", number) + tail


def test_checksums_are_zlibs() -> None:
    tables, scratch = slicing_tables(), np.zeros(32, dtype=np.uint8)

    @njit
    def checksum(address: int, size: int, tables: int, scratch: int) -> int:
        return crc.crc_update(0xFFFFFFFF, address, size, tables, scratch) ^ 0xFFFFFFFF

    data = np.random.default_rng(1).integers(0, 256, 5000, dtype=np.uint8)
    for size in [*range(200), 1000, 4096, 4990]:
        for start in (0, 3):
            found = checksum(data.ctypes.data + start, size, tables.ctypes.data, scratch.ctypes.data)
            assert found == zlib.crc32(data[start : start + size].tobytes())


def test_rows_know_their_transaction_and_their_place(tmp_path: Path) -> None:
    maker = FileMaker()
    gtid = maker.event(33, gtid_body(7))
    begin = maker.begin()
    maker.table_map([forge.LONG], b"", forge.signedness(False))
    images = b"\0" + struct.pack("<i", 1) + b"\0" + struct.pack("<i", 2)
    rows = maker.rows(30, 1, images, ends_statement=False)
    update = maker.rows(31, 1, b"\0" + struct.pack("<i", 1) + b"\x01")
    xid = maker.commit(99)
    found = everything(maker.write(tmp_path))
    first, second, third = found["row_events"]
    assert (first["start_pos"], first["end_pos"], first["row_ordinal"]) == (rows, update, 0)
    assert (second["start_pos"], second["row_ordinal"]) == (rows, 1)
    assert (third["start_pos"], third["end_pos"], third["row_ordinal"]) == (update, xid, 0)
    assert {row["transaction_pos"] for row in found["row_events"]} == {gtid}
    assert {row["gtid"] for row in found["row_events"]} == {f"{UUID_TEXT}:7"}
    assert (first["event_type"], first["before_values"], first["after_values"]) == ("INSERT", [None], ["1"])
    assert (third["event_type"], third["before_values"], third["after_values"]) == ("UPDATE", ["1"], [None])
    (transaction,) = found["transactions"]
    assert (transaction["start_pos"], transaction["end_pos"], transaction["xid"]) == (gtid, len(maker.data), 99)
    assert (transaction["outcome"], transaction["events"], transaction["thread_id"]) == ("commit", 6, 7)
    assert [transaction[name] for name in ("row_events", "inserts", "updates", "deletes")] == [3, 2, 1, 0]
    assert [statement["sql_text"] for statement in found["statements"]] == ["BEGIN"]
    assert found["statements"][0]["start_pos"] == begin


@pytest.mark.parametrize(
    ("flags", "fields", "thread"),
    [
        (0, bytes(6), None),
        (0, b"\x10" + struct.pack("<I", 21) + bytes(1), 21),
        (2 | 4, struct.pack("<Q", 99) + b"\x11\x02" + struct.pack("<I", 1 << 31), 1 << 31),
        (0x40, struct.pack("<IBB", 7, 2, 1) + b"abc" + b"\x10" + struct.pack("<I", 5), 5),
        (0x20, b"\x18" + struct.pack("<Q", 3) + struct.pack("<I", 6), 6),
        (2, struct.pack("<Q", 99), None),
        # The event is too short for what its flags announce.
        (0x40, b"\x10\0\0", None),
        (0, b"\x10\1", None),
    ],
)
def test_mariadb_logs_the_thread_with_the_gtid(flags: int, fields: bytes, thread: int | None, tmp_path: Path) -> None:
    maker = FileMaker(version=b"11.8.9-MariaDB-log")
    maker.event(162, struct.pack("<QIB", 7, 0, flags) + fields)
    maker.table_map([forge.LONG], b"", forge.signedness(False))
    maker.rows(30, 1, b"\0" + struct.pack("<i", 1))
    maker.commit()
    (transaction,) = everything(maker.write(tmp_path))["transactions"]
    assert (transaction["gtid"], transaction["thread_id"]) == ("0-1-7", thread)


def test_commit_times_have_microseconds_where_the_server_logs_them(tmp_path: Path) -> None:
    maker = FileMaker()
    immediate, original = 1_700_000_000_123_456, 1_600_000_000_654_321
    clock = b"\x02" + bytes(16)
    maker.event(33, gtid_body(1, clock + struct.pack("<Q", immediate | 1 << 55)[:7] + struct.pack("<Q", original)[:7]))
    maker.begin()
    maker.commit()
    maker.event(33, gtid_body(2, clock + struct.pack("<Q", immediate)[:7]))
    maker.begin()
    maker.commit()
    maker.event(33, gtid_body(3))
    maker.begin()
    maker.commit()
    times = [
        (row["committed_at"].timestamp(), row["original_committed_at"] and row["original_committed_at"].timestamp())
        for row in everything(maker.write(tmp_path))["transactions"]
    ]
    assert times == [
        (immediate / 1e6, original / 1e6),
        (immediate / 1e6, immediate / 1e6),
        (float(forge.TIMESTAMP), None),
    ]


def test_statements_outside_of_transactions_are_their_own(tmp_path: Path) -> None:
    maker = FileMaker()
    maker.event(34, gtid_body(0))
    query = struct.pack("<IIBHH", 3, 0, 4, 0, 0) + b"shop\0" + b"/* nightly */ alter table t add c int"
    maker.event(2, query)
    maker.event(34, gtid_body(0))
    maker.begin()
    maker.event(2, struct.pack("<IIBHH", 3, 0, 0, 0, 0) + b"\0ROLLBACK")
    found = everything(maker.write(tmp_path))
    ddl, rolled_back = found["transactions"]
    assert (ddl["is_ddl"], ddl["outcome"], ddl["gtid"], ddl["events"]) == (True, "commit", None, 2)
    assert (rolled_back["is_ddl"], rolled_back["outcome"]) == (False, "rollback")
    assert found["statements"][0]["default_schema"] == "shop"


def test_a_statement_is_read_in_its_clients_character_set(tmp_path: Path) -> None:
    maker = FileMaker()
    status = b"\x04" + struct.pack("<HHH", 8, 8, 8)
    body = struct.pack("<IIBHH", 1, 0, 0, 0, len(status)) + status + b"\0"
    maker.event(2, body + "insert into t values ('é€')".encode("cp1252"))
    assert everything(maker.write(tmp_path))["statements"][0]["sql_text"] == "insert into t values ('é€')"


def test_a_statement_has_the_collation_that_a_new_database_gets(tmp_path: Path) -> None:
    maker = FileMaker()
    for status in (b"", *(b"\x04" + struct.pack("<HHH", 8, 8, collation) for collation in (47, 2304, 60_000))):
        maker.event(2, struct.pack("<IIBHH", 1, 0, 0, 0, len(status)) + status + b"\0create database d")
    found = everything(maker.write(tmp_path))["statements"]
    assert [row["collation_server"] for row in found] == [None, "latin1_bin", "utf8mb4_uca1400_ai_ci", None]


def test_rows_that_fill_many_batches_all_come_out(tmp_path: Path) -> None:
    maker = FileMaker()
    for start in range(0, 100_000, 2000):
        one_table(maker, 2000, start)
    path = maker.write(tmp_path)
    batches = list(open_binlog(path).row_batches())
    assert max(batch.num_rows for batch in batches) <= ROW_CAPACITY
    # All batches are still referenced here: if buffers had been reused too early, values would repeat.
    values = [row[0] for batch in batches for row in batch.column("after_values").to_pylist()]
    assert values == [str(number) for number in range(100_000)]


def test_one_rows_event_larger_than_a_batch(tmp_path: Path) -> None:
    maker = FileMaker()
    one_table(maker, 50_000)
    rows = everything(maker.write(tmp_path))["row_events"]
    assert [row["row_ordinal"] for row in rows] == list(range(50_000))
    assert rows[-1]["after_values"] == ["49999"]


def test_values_of_many_megabytes(tmp_path: Path) -> None:
    maker = FileMaker()
    maker.begin()
    maker.table_map([forge.BLOB, forge.LONG], b"\x04", forge.signedness(False) + forge.charset(forge.BINARY_COLLATION))
    sizes = [10, 30_000_000, 20]
    for size in sizes:
        maker.rows(
            30, 2, b"\0" + struct.pack("<I", size) + b"\xab" * size + struct.pack("<i", size), ends_statement=size == 20
        )
    maker.commit()
    rows = everything(maker.write(tmp_path))["row_events"]
    assert [row["after_values"] == ["0x" + "AB" * size, str(size)] for row, size in zip(rows, sizes, strict=True)] == [
        True,
        True,
        True,
    ]


def test_a_statement_of_many_megabytes(tmp_path: Path) -> None:
    maker = FileMaker()
    text = b"insert into t values ('" + b"x" * 5_000_000 + b"')"
    maker.event(2, struct.pack("<IIBHH", 1, 0, 0, 0, 0) + b"\0" + text)
    maker.event(2, struct.pack("<IIBHH", 1, 0, 0, 0, 0) + b"\0drop table t")
    statements = everything(maker.write(tmp_path))["statements"]
    assert [statement["sql_text"].encode() for statement in statements] == [text, b"drop table t"]


def test_thousands_of_columns(tmp_path: Path) -> None:
    maker = FileMaker()
    width = 4096
    maker.begin()
    maker.table_map([forge.TINY] * width, b"", forge.signedness(*[False] * width))
    image = bytes(512) + bytes(number & 0x7F for number in range(width))
    nulls = b"\xff" * 512
    maker.rows(31, width, (image + nulls) * 100)
    maker.commit()
    rows = everything(maker.write(tmp_path))["row_events"]
    assert len(rows) == 100
    for row in rows:
        assert row["before_values"] == [str(number & 0x7F) for number in range(width)]
        assert row["after_values"] == [None] * width


def test_columns_absent_from_an_image_are_named(tmp_path: Path) -> None:
    maker = FileMaker()
    maker.begin()
    maker.table_map([forge.LONG] * 3, b"", forge.signedness(False, False, False))
    images = b"\0" + struct.pack("<i", 1) + b"\x01" + struct.pack("<i", 9)
    maker.rows(31, 3, images, bitmaps=b"\x01\x06", ends_statement=False)
    maker.rows(30, 3, b"\0" + struct.pack("<iii", 1, 2, 3))
    maker.commit()
    partial, full = everything(maker.write(tmp_path))["row_events"]
    assert (partial["before_values"], partial["before_columns"]) == (["1", None, None], [0])
    assert (partial["after_values"], partial["after_columns"]) == ([None, None, "9"], [1, 2])
    assert (full["after_values"], full["before_columns"], full["after_columns"]) == (["1", "2", "3"], None, None)


def test_a_range_of_a_file_gives_its_part_of_the_whole(tmp_path: Path) -> None:
    maker = FileMaker()
    for number in range(50):
        one_table(maker, 10, 10 * number)
    maker.rotate()
    path = maker.write(tmp_path)
    whole = everything(path)
    scan = scan_binlog(path, segment_bytes=1000)
    assert len(scan.segments) > 5
    assert scan.segments[0].start == 4 and scan.segments[-1].end == scan.file_size == scan.bytes_covered
    parts: dict[str, list[dict[str, Any]]] = {kind: [] for kind in SCHEMAS}
    for segment in scan.segments:
        for kind, rows in everything(path, start=segment.start, end=segment.end).items():
            parts[kind] += rows
    assert {kind: parts[kind] for kind in parts if kind != "table_maps"} == {
        kind: whole[kind] for kind in whole if kind != "table_maps"
    }


def test_tables_left_out_leave_no_row_but_their_transaction(tmp_path: Path) -> None:
    maker = FileMaker()
    one_table(maker)
    found = everything(maker.write(tmp_path), tables=TableFilter.of(exclude_tables=["s.*"]))
    assert not found["row_events"] and not found["unsupported_events"] and not found["table_maps"]
    assert len(found["transactions"]) == 1


def test_a_snapshot_is_in_force_from_its_position_on(tmp_path: Path) -> None:
    maker = FileMaker()
    types, metadata = [forge.ENUM], bytes([forge.ENUM, 1])
    positions = []
    for _ in range(3):
        positions.append(maker.begin())
        maker.table_map(types, metadata)
        maker.rows(30, 1, b"\0\x01")
        maker.commit()
    path = maker.write(tmp_path)

    def column(labels: str, file: str | None, position: int | None) -> dict[str, Any]:
        return {
            "schema_name": "s",
            "table_name": "t",
            "column_name": "c",
            "ordinal_position": 1,
            "data_type": "enum",
            "column_type": labels,
            "character_set": "utf8mb4",
            "binlog_file": file,
            "binlog_pos": position,
        }

    hints = SchemaHints.from_columns(
        [column("enum('old')", None, None), column("enum('new')", "binlog.000001", positions[1])]
    )
    found = everything(path, hints=hints)
    assert [row["after_values"] for row in found["row_events"]] == [["old"], ["new"], ["new"]]
    assert len({row["table_map_id"] for row in found["row_events"]}) == 2
    assert {table_map["hint"] for table_map in found["table_maps"]} == {"snapshot"}


def test_an_incident_says_what_the_server_wrote(tmp_path: Path) -> None:
    maker = FileMaker()
    maker.event(26, b"\x01\0\x09lost some")
    (problem,) = everything(maker.write(tmp_path))["unsupported_events"]
    assert problem["reason"] == "incident" and problem["detail"].endswith("the server says: lost some")


@pytest.mark.parametrize(
    ("make", "event_type", "reason"),
    [
        (lambda maker: maker.event(200, b"x"), "200", "unknown_event_type"),
        (lambda maker: maker.event(26, b"\x01\0\0"), "INCIDENT", "incident"),
        (lambda maker: maker.rows(30, 1, b"\0abcd", table_id=9), "WRITE_ROWS", "no_table_map"),
        (lambda maker: maker.rows(30, 0, b"", table_id=9, bitmaps=b""), "WRITE_ROWS", "no_table_map"),
        (lambda maker: maker.rows(30, 2, b"\0abcdefgh"), "WRITE_ROWS", "column_count_mismatch"),
        (lambda maker: maker.rows(30, 1, b"\0abc"), "WRITE_ROWS", "malformed_row"),
        (lambda maker: maker.event(19, b"\x05\0\0\0\0\0\x01\0\x09abc"), "TABLE_MAP", "malformed_table_map"),
        (lambda maker: maker.event(2, b"\0\0\0"), "QUERY", "malformed_event"),
    ],
)
def test_what_cannot_be_decoded_is_named_and_the_rest_goes_on(
    tmp_path: Path, make: Any, event_type: str, reason: str
) -> None:
    maker = FileMaker()
    one_table(maker)
    maker.begin()
    maker.table_map([forge.LONG], b"", forge.signedness(False))
    position = make(maker)
    maker.commit()
    one_table(maker)
    found = everything(maker.write(tmp_path))
    (problem,) = found["unsupported_events"]
    assert (problem["event_type"], problem["reason"], problem["start_pos"]) == (event_type, reason, position)
    assert problem["detail"]
    assert len(found["row_events"]) == 2 and len(found["transactions"]) == 3


def test_a_bad_value_costs_its_row_only(tmp_path: Path) -> None:
    maker = FileMaker()
    maker.begin()
    maker.table_map([forge.VARCHAR], b"\xff\x00", forge.charset(forge.UTF8MB4))
    maker.rows(30, 1, b"\0\x01a\0\x01\xff\0\x01b")
    maker.commit()
    found = everything(maker.write(tmp_path))
    assert [(row["row_ordinal"], row["after_values"]) for row in found["row_events"]] == [(0, ["a"]), (2, ["b"])]
    (problem,) = found["unsupported_events"]
    assert problem["reason"] == "undecodable_value" and "row 1, column 0" in problem["detail"]


def test_a_flipped_bit_is_found_and_everything_before_it_is_good(tmp_path: Path) -> None:
    maker = FileMaker()
    one_table(maker)
    middle = len(maker.data)
    one_table(maker)
    last = len(maker.data)
    maker.data[middle + 30] ^= 4
    path = maker.write(tmp_path)
    rows = []
    with pytest.raises(CorruptBinlogError) as raised:
        for kind, batch in open_binlog(path).batches():
            rows += batch.to_pylist() if kind == "row_events" else []
    assert raised.value.position == middle and len(rows) == 1
    scan = scan_binlog(path)
    assert scan.defect is not None and (scan.defect.position, scan.defect.is_cut) == (middle, False)
    assert (scan.checksum_failures, scan.complete_end) == (1, middle)
    assert scan.file_size == last > scan.bytes_covered


def test_a_file_cut_anywhere_keeps_its_complete_transactions(tmp_path: Path) -> None:
    source = FIXTURES / "mysql-defaults.binlog"
    whole = source.read_bytes()
    transactions = [(row["start_pos"], row["end_pos"]) for row in everything(source)["transactions"]]
    cut = tmp_path / "binlog.000001"
    for size in range(200, len(whole), 97):
        cut.write_bytes(whole[:size])
        scan = scan_binlog(cut)
        complete = [end for _, end in transactions if end <= size]
        assert scan.complete_end >= max(complete, default=4)
        assert not any(start < scan.complete_end < end for start, end in transactions)
        if scan.defect is not None:
            assert scan.defect.is_cut
            with pytest.raises(TruncatedBinlogError) as raised:
                list(open_binlog(cut).batches())
            assert raised.value.position == scan.defect.position


def test_batches_go_through_arrows_own_writers(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = SAMPLES / "shop-mysql" / "binlog.000001"
    table = pa.Table.from_batches(list(open_binlog(path).row_batches()))
    pq.write_table(table, tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == table.num_rows > 100
