"""Events that contain other events: each defect is reported, and decoding continues after it."""

import struct
from functools import partial
from pathlib import Path

import pytest
import zstandard

import ingest.binlog.walking
from ingest.binlog import open_binlog, scan_binlog
from tests.python.binlog.test_decoder import everything, gtid_body, one_table
from tests.support.binlog import forge
from tests.support.binlog.forge import FileMaker, packed

ZSTD, NONE = 0, 255


def inside(first: int = 0, rows: int = 1, schema: bytes = b"s") -> bytes:
    """Return the events of a transaction without checksums, as they are in a payload."""
    maker = FileMaker(checksum=False)
    head = len(maker.data)
    one_table(maker, rows, first)
    return bytes(maker.data[head:])


def payload(events: bytes, compression: int = ZSTD, size: int | None = None, data: bytes | None = None) -> bytes:
    """Return the body of a TRANSACTION_PAYLOAD event."""
    if data is None:
        data = zstandard.compress(events) if compression == ZSTD else events
    fields = ((2, packed(compression)), (3, packed(len(events) if size is None else size)), (1, packed(len(data))))
    return b"".join(packed(kind) + packed(len(value)) + value for kind, value in fields) + b"\0" + data


def in_a_log(folder: Path, body: bytes) -> tuple[Path, int]:
    """Write a log with a payload between two plain transactions; also return the position of its GTID event."""
    maker = FileMaker()
    one_table(maker, first=100)
    position = maker.event(33, gtid_body(1))
    maker.event(40, body)
    maker.event(33, gtid_body(2))
    one_table(maker, first=200)
    return maker.write(folder), position


@pytest.fixture(params=["the kernel decompresses", "Python decompresses"])
def decompression(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run with the C library called by the kernel, and with the fallback for machines without it."""
    if request.param.startswith("Python"):
        monkeypatch.setattr(ingest.binlog.walking, "zstd_decompression", lambda owner: (0, 0))
    else:
        assert all(ingest.binlog.walking.zstd_decompression(request))


@pytest.mark.usefixtures("decompression")
@pytest.mark.parametrize("compression", [ZSTD, NONE])
def test_a_payload_is_one_transaction(compression: int, tmp_path: Path) -> None:
    events = inside(5, rows=2) + inside(7)
    path, position = in_a_log(tmp_path, payload(events, compression))
    found = everything(path)
    assert [row["after_values"] for row in found["row_events"]] == [["100"], ["5"], ["6"], ["7"], ["200"]]
    numbered = [(row["payload_ordinal"], row["row_ordinal"]) for row in found["row_events"]]
    assert numbered == [(0, 0), (3, 0), (3, 1), (7, 0), (0, 0)]
    _, first, *_ = found["row_events"]
    assert first["transaction_pos"] == position < first["start_pos"]
    assert first["gtid"] and found["unsupported_events"] == []
    assert [row["payload_ordinal"] for row in found["statements"]] == [0, 1, 5, 0]
    scan = scan_binlog(path)
    assert scan.defect is None and scan.event_counts["TRANSACTION_PAYLOAD"] == 1 and scan.event_counts["XID"] == 2
    last = found["transactions"][1]
    assert (last["start_pos"], last["outcome"]) == (position, "commit")


@pytest.mark.usefixtures("decompression")
def test_payloads_larger_than_the_room_for_them(tmp_path: Path) -> None:
    maker = FileMaker()
    for number in range(4):
        maker.event(33, gtid_body(number))
        maker.event(40, payload(inside(number * 1_000_000, rows=(100, 600_000, 500_000, 3)[number])))
    path = maker.write(tmp_path)
    counts = [batch.num_rows for batch in open_binlog(path).row_batches()]
    assert sum(counts) == 1_100_103
    transactions = [batch for kind, batch in open_binlog(path).batches() if kind == "transactions"]
    rows = [count for batch in transactions for count in batch.column("row_events").to_pylist()]
    assert rows == [100, 600_000, 500_000, 3]


GOOD = inside(5)


@pytest.mark.usefixtures("decompression")
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(payload(GOOD, data=b"\x28\xb5\x2f\xfd" + bytes(30)), id="no zstd"),
        pytest.param(payload(GOOD, size=len(GOOD) - 1), id="more than it says"),
        pytest.param(payload(GOOD, size=len(GOOD) + 1), id="less than it says"),
        pytest.param(payload(GOOD, size=1 << 62), id="an impossible size"),
        pytest.param(payload(GOOD, compression=7, data=b"abc"), id="unknown compression"),
        pytest.param(payload(GOOD[:-3]), id="an event cut off inside"),
        pytest.param(payload(b"\0" * 40), id="an event of no bytes inside"),
        pytest.param(payload(GOOD)[:7], id="cut off in its fields"),
        pytest.param(b"", id="empty"),
        pytest.param(b"\2\xff\xff", id="a field that ends behind it"),
    ],
)
def test_a_broken_payload_is_named_and_the_log_goes_on(body: bytes, tmp_path: Path) -> None:
    path, position = in_a_log(tmp_path, body)
    found = everything(path)
    (problem,) = found["unsupported_events"]
    assert (problem["event_type"], problem["reason"]) == ("TRANSACTION_PAYLOAD", "malformed_payload")
    assert problem["start_pos"] > position
    assert [row["after_values"] for row in found["row_events"] if row["payload_ordinal"] == 0] == [["100"], ["200"]]


def test_events_that_belong_in_no_payload_are_named(tmp_path: Path) -> None:
    maker = FileMaker(checksum=False)
    head = len(maker.data)
    maker.event(40, payload(GOOD))
    maker.event(15, bytes(60))
    path, _ = in_a_log(tmp_path, payload(bytes(maker.data[head:]) + GOOD))
    found = everything(path)
    reasons = [(row["event_type"], row["reason"]) for row in found["unsupported_events"]]
    assert reasons == [("TRANSACTION_PAYLOAD", "misplaced_event"), ("FORMAT_DESCRIPTION", "misplaced_event")]
    assert [row["after_values"] for row in found["row_events"]] == [["100"], ["5"], ["200"]]


# --- MariaDB's compressed events ---


def mariadb() -> FileMaker:
    return FileMaker(version=b"10.11.18-MariaDB-log", post_headers=forge.MARIADB_POST_HEADERS)


block = partial(forge.compressed, raw=False)


def compressed_rows(maker: FileMaker, data: bytes, code: int = 166, *, ends_statement: bool = True) -> int:
    bitmaps = b"\xff\xff" if code == 167 else b"\xff"
    return maker.event(code, struct.pack("<IHH", 1, 0, ends_statement) + b"\1" + bitmaps + data)


def mariadb_log(folder: Path, data: bytes) -> Path:
    maker = mariadb()
    maker.begin()
    maker.table_map([forge.LONG], b"", forge.signedness(False))
    compressed_rows(maker, data)
    maker.commit()
    one_table(maker, first=9)
    return maker.write(folder)


def test_compressed_rows_and_statements(tmp_path: Path) -> None:
    maker = mariadb()
    maker.begin()
    text = struct.pack("<IIBHH", 7, 0, 1, 0, 0) + b"s\0" + block(b"insert into t select 1")
    maker.event(165, text)
    maker.table_map([forge.LONG], b"", forge.signedness(False))
    one, two = b"\0" + struct.pack("<i", 1), b"\0" + struct.pack("<i", 2)
    compressed_rows(maker, block(one + two), ends_statement=False)
    compressed_rows(maker, block(one + two), code=167, ends_statement=False)
    compressed_rows(maker, block(two), code=168)
    maker.commit()
    path = maker.write(tmp_path)
    found = everything(path)
    assert [(row["event_type"], row["before_values"], row["after_values"]) for row in found["row_events"]] == [
        ("INSERT", [None], ["1"]),
        ("INSERT", [None], ["2"]),
        ("UPDATE", ["1"], ["2"]),
        ("DELETE", ["2"], [None]),
    ]
    assert {row["payload_ordinal"] for row in found["row_events"]} == {0}
    assert [row["sql_text"] for row in found["statements"]] == ["BEGIN", "insert into t select 1"]
    assert [(row["outcome"], row["row_events"]) for row in found["transactions"]] == [("commit", 4)]
    assert found["unsupported_events"] == []


ROW = b"\0" + struct.pack("<i", 5)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(block(ROW, size=4), id="more than it says"),
        pytest.param(block(ROW, size=6), id="less than it says"),
        pytest.param(b"\x02" + block(ROW)[1:], id="other flags"),
        pytest.param(block(ROW)[:8], id="cut off"),
        pytest.param(block(ROW) + b"\0", id="more than one stream"),
        pytest.param(b"\x82\0\5" + bytes(9), id="no zlib"),
    ],
)
def test_a_broken_compressed_event_is_named_and_the_log_goes_on(data: bytes, tmp_path: Path) -> None:
    found = everything(mariadb_log(tmp_path, data))
    (problem,) = found["unsupported_events"]
    assert (problem["event_type"], problem["reason"]) == ("WRITE_ROWS_COMPRESSED_V1", "malformed_payload")
    assert [row["after_values"] for row in found["row_events"]] == [["9"]]


def test_a_row_that_cannot_be_decoded_is_of_the_type_in_the_file(tmp_path: Path) -> None:
    found = everything(mariadb_log(tmp_path, block(ROW[:3])))
    (problem,) = found["unsupported_events"]
    assert (problem["event_type"], problem["reason"]) == ("WRITE_ROWS_COMPRESSED_V1", "malformed_row")
