"""Files of every format: versions 1, 3 and 4, renumbered types, several formats in one file, encrypted, beyond 4 GiB.

No file of version 1 is available: this test makes its few bytes from the layout in the MySQL internals pages.
"""

import os
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from ingest.binlog import open_binlog, scan_binlog
from ingest.errors import CorruptBinlogError, EncryptedBinlogError, NotABinlogError
from tests.python.binlog.test_decoder import everything, one_table
from tests.support.archives import COMPRESS
from tests.support.binlog import forge
from tests.support.binlog.forge import TIMESTAMP, FileMaker

MAGIC = b"\xfebin"


def event(code: int, body: bytes, *, header: int = 19, at: int = 0, flags: int = 0) -> bytes:
    """Return an event of version 1 (13 bytes of header) or 3 (19)."""
    size = header + len(body)
    head = struct.pack("<IBII", TIMESTAMP, code, 3, size)
    return head + (struct.pack("<IH", at + size, flags) if header == 19 else b"") + body


def start(version: int, server: bytes) -> bytes:
    return struct.pack("<H50sI", version, server, TIMESTAMP)


def query(schema: bytes, text: bytes) -> bytes:
    """Return a QUERY event's body as before MySQL 5.0: without status variables."""
    return struct.pack("<IIBH", 5, 0, len(schema), 0) + schema + b"\0" + text


def write(folder: Path, *events: bytes) -> Path:
    path = folder / "log.001"
    path.write_bytes(MAGIC + b"".join(events))
    return path


def statements(path: Path) -> list[tuple[Any, ...]]:
    columns = ("kind", "default_schema", "sql_text", "start_pos")
    return [tuple(row[column] for column in columns) for row in everything(path)["statements"]]


@pytest.mark.parametrize(("version", "header", "server"), [(1, 13, "3.23.58-log"), (3, 19, "4.1.24-debug-log")])
def test_statements_of_a_server_before_5_0(version: int, header: int, server: str, tmp_path: Path) -> None:
    first = event(1, start(version, server.encode()), header=header)
    second = event(5, b"\2" + struct.pack("<Q", 9), header=header)
    third = event(2, query(b"shop", b"insert into t values (last_insert_id())"), header=header)
    rotate = event(4, (b"" if version == 1 else struct.pack("<Q", 4)) + b"log.002", header=header)
    path = write(tmp_path, first, second, third, rotate)
    scan = scan_binlog(path)
    assert (scan.format.format_version, scan.format.server_version, scan.format.flavor) == (version, server, "mysql")
    assert scan.format.checksum_algorithm is None
    assert scan.event_counts == {"START_V3": 1, "INTVAR": 1, "QUERY": 1, "ROTATE": 1}
    assert (scan.defect, scan.is_closed, scan.next_binlog_file) == (None, True, "log.002")
    assert scan.bytes_covered == scan.file_size == path.stat().st_size
    at = 4 + len(first)
    assert statements(path) == [
        ("INTVAR", None, "SET INSERT_ID=9", at),
        ("QUERY", "shop", "insert into t values (last_insert_id())", at + len(second)),
    ]
    found = everything(path)
    assert found["unsupported_events"] == found["row_events"] == []
    # The variable and the statement that uses it are one transaction, so no segment ends between them.
    (transaction,) = found["transactions"]
    assert (transaction["start_pos"], transaction["events"]) == (at, 2)


def test_a_file_of_4_0_without_a_start_event(tmp_path: Path) -> None:
    path = write(tmp_path, event(2, query(b"d", b"drop table t")), event(3, b""))
    scan = scan_binlog(path)
    assert (scan.format.format_version, scan.format.server_version) == (3, None)
    assert scan.event_counts == {"QUERY": 1, "STOP": 1}
    assert [row["is_ddl"] for row in everything(path)["transactions"]] == [True]


def test_a_relay_log_of_4_1_that_goes_on_in_version_4(tmp_path: Path) -> None:
    """MySQL 5.0 began its relay logs with a ROTATE before the format description of the source came."""
    maker = FileMaker()
    one_table(maker)
    path = write(tmp_path, event(4, struct.pack("<Q", 4) + b"log.000007", flags=0x20), bytes(maker.data[4:]))
    scan = scan_binlog(path)
    assert [format.format_version for format in scan.formats] == [3, 4]
    assert scan.defect is None and scan.checksum_failures == 0
    found = everything(path)
    assert [row["after_values"] for row in found["row_events"]] == [["0"]]
    assert everything(path, start=scan.segments[0].end - 31, end=scan.file_size)["unsupported_events"] == []


@pytest.mark.parametrize(
    "first", [event(0, b""), event(200, b""), event(2, b"")[:9] + struct.pack("<I", 18), b"\0" * 40]
)
def test_what_is_no_binlog_behind_its_magic_is_refused(first: bytes, tmp_path: Path) -> None:
    with pytest.raises(NotABinlogError, match="position 4"):
        scan_binlog(write(tmp_path, first + bytes(40)))


@pytest.mark.parametrize("suffix", COMPRESS)
def test_the_decoder_names_a_compressed_file_as_one(suffix: str, tmp_path: Path) -> None:
    maker = FileMaker()
    one_table(maker)
    path = tmp_path / "binlog.000001"
    path.write_bytes(COMPRESS[suffix](bytes(maker.data)))
    with pytest.raises(NotABinlogError, match="is a compressed file"):
        scan_binlog(path)


def test_type_codes_of_early_5_1_are_renumbered(tmp_path: Path) -> None:
    """5.1.2-a_drop5p5 wrote TABLE_MAP as 16 and XID as 20; its 22 fixed parts are in its own order, too."""
    fixed_parts = bytes([56, 13, 0, 8, 0, 18, 0, 4, 4, 4, 4, 18, 0, 0, 57 + 22, 8, 6, 6, 6, 0, 4, 26])
    head = struct.pack("<H50sIB", 4, b"5.1.2-a_drop5p5-log", TIMESTAMP, 19) + fixed_parts
    begin = struct.pack("<IIBHH", 7, 0, 0, 0, 0) + b"\0BEGIN"
    table_map = struct.pack("<IHH", 1, 0, 1) + b"\x01s\0\x01t\0\x01\x03"
    path = write(
        tmp_path, event(15, head), event(2, begin), event(16, table_map), event(20, struct.pack("<Q", 8)), event(3, b"")
    )
    scan = scan_binlog(path)
    assert scan.event_counts == {"FORMAT_DESCRIPTION": 1, "QUERY": 1, "TABLE_MAP": 1, "XID": 1, "STOP": 1}
    found = everything(path)
    assert [(row["xid"], row["outcome"]) for row in found["transactions"]] == [(8, "commit")]
    assert [row["columns"][0]["type"] for row in found["table_maps"]] == ["LONG"]


def test_a_format_description_in_the_middle_changes_checksums(tmp_path: Path) -> None:
    """A relay log: its own description first, then a source's description without checksums, then one with them."""
    maker = FileMaker()
    one_table(maker)
    for checksum in (False, True):
        maker.checksum = True
        maker.event(4, struct.pack("<Q", 4) + b"source.000002")
        other = FileMaker(checksum=checksum)
        maker.data += other.data[4:]
        maker.checksum = checksum
        one_table(maker, first=1 + checksum)
    path = maker.write(tmp_path)
    scan = scan_binlog(path)
    assert scan.defect is None and scan.checksum_failures == 0 and scan.bytes_covered == scan.file_size
    assert [format.checksum_algorithm for format in scan.formats] == ["CRC32", "NONE", "CRC32"]
    assert [row["after_values"] for row in everything(path)["row_events"]] == [["0"], ["1"], ["2"]]
    kinds = [each.checksum_ok for each in open_binlog(path).events()]
    assert None in kinds and True in kinds and False not in kinds


def test_a_relay_log_goes_on_inside_a_transaction_after_a_lost_connection(tmp_path: Path) -> None:
    """A replica that asks again by position gets an artificial ROTATE and a format description, then the next event."""
    maker = FileMaker()
    begin = maker.begin()
    maker.table_map([forge.LONG], b"")
    maker.rows(30, 1, b"\x00\x01\0\0\0", ends_statement=False)
    again = event(4, struct.pack("<Q", 400) + b"source.000001" + bytes(4), flags=0x20)
    again = again[:-4] + struct.pack("<I", zlib.crc32(again[:-4]))
    maker.data += again + FileMaker().data[4:]
    maker.rows(30, 1, b"\x00\x02\0\0\0")
    maker.commit()
    maker.data += again
    found = everything(path := maker.write(tmp_path))
    assert [row["after_values"] for row in found["row_events"]] == [["1"], ["2"]]
    assert [(row["start_pos"], row["events"], row["outcome"]) for row in found["transactions"]] == [
        (begin, 5, "commit")
    ]
    assert found["unsupported_events"] == []
    assert scan_binlog(path).is_closed is False


def test_a_damaged_format_description_in_the_middle_is_a_defect(tmp_path: Path) -> None:
    maker = FileMaker()
    one_table(maker)
    position = len(maker.data)
    maker.data += FileMaker().data[4:]
    maker.data[position + 30] ^= 1
    scan = scan_binlog(maker.write(tmp_path))
    assert scan.defect is not None and scan.defect.position == position


TYPE, SIZE, ALGORITHM = 8, 13, len(FileMaker().data) - 5


@pytest.mark.parametrize("checksum", [True, False], ids=["CRC32", "NONE"])
@pytest.mark.parametrize(("place", "value"), [(TYPE, 2), (SIZE, 103), (ALGORITHM, None)])
def test_damage_that_would_turn_checksums_off_is_found(
    tmp_path: Path, checksum: bool, place: int, value: int | None
) -> None:
    maker = FileMaker(checksum=checksum)
    one_table(maker)
    maker.data[place] = not checksum if value is None else value
    path = maker.write(tmp_path)
    with pytest.raises(CorruptBinlogError, match="format description at position 4 is damaged"):
        open_binlog(path)


def test_a_source_whose_checksums_were_turned_off_by_damage_is_a_defect(tmp_path: Path) -> None:
    maker = FileMaker(checksum=False)
    position = len(maker.data)
    maker.data += FileMaker().data[4:]
    maker.data[-5] = 0
    scan = scan_binlog(maker.write(tmp_path))
    assert scan.defect is not None and scan.defect.position == position


def test_mariadbs_encrypted_events_are_not_read(tmp_path: Path) -> None:
    maker = FileMaker(version=b"10.11.18-MariaDB-log")
    maker.event(164, b"\x01" + struct.pack("<I", 1) + bytes(12))
    position = len(maker.data)
    maker.data += os.urandom(9) + struct.pack("<I", 60) + os.urandom(47)
    path = maker.write(tmp_path)
    scan = scan_binlog(path)
    assert scan.is_encrypted
    assert scan.defect is not None and scan.defect.position == position
    assert scan.event_counts == {"FORMAT_DESCRIPTION": 1, "START_ENCRYPTION": 1}
    with pytest.raises(EncryptedBinlogError, match=f"position {position}"):
        list(open_binlog(path).batches())


@pytest.mark.slow
def test_events_beyond_4_gib(tmp_path: Path) -> None:
    """Positions in headers wrap at 4 GiB; the bytes between are a hole, so that the file uses no disk space."""
    maker = FileMaker(checksum=False)
    one_table(maker)
    path = tmp_path / "binlog.000001"
    filler = 96 << 20
    with path.open("wb") as file:
        file.write(maker.data)
        while file.tell() < (4 << 30) + 1000:
            file.write(struct.pack("<IBIIIH", TIMESTAMP, 28, 1, filler, (file.tell() + filler) & 0xFFFFFFFF, 0x80))
            file.seek(filler - 19, os.SEEK_CUR)
        position = file.tell()
        head = len(FileMaker(checksum=False).data)
        file.write(maker.data[head:])
    scan = scan_binlog(path)
    assert scan.defect is None and scan.bytes_covered == scan.file_size > 4 << 30
    *_, last = open_binlog(path).row_batches()
    assert last.column("start_pos").to_pylist()[-1] > position > 1 << 32
    cut = next(
        segment.start for segment in scan_binlog(path, segment_bytes=1 << 30).segments if segment.start > 3 << 30
    )
    assert everything(path, start=cut)["row_events"][-1]["after_values"] == ["0"]


def flipped(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x40
    path.write_bytes(data)


def test_bad_checksums_are_passed_over_when_asked(tmp_path: Path) -> None:
    maker = FileMaker()
    one_table(maker)
    maker.begin()
    maker.table_map([forge.LONG], b"", forge.signedness(False))
    bad = maker.rows(30, 1, b"\0" + struct.pack("<i", 5))
    maker.rows(30, 1, b"\0" + struct.pack("<i", 6))
    maker.commit()
    one_table(maker, first=7)
    path = maker.write(tmp_path)
    flipped(path, bad + 32)
    found = everything(path, skip_bad_checksum=True)
    assert [row["after_values"] for row in found["row_events"]] == [["0"], ["6"], ["7"]]
    (problem,) = found["unsupported_events"]
    assert (problem["start_pos"], problem["event_type"], problem["reason"]) == (bad, "WRITE_ROWS", "bad_checksum")
    assert [row["outcome"] for row in found["transactions"]] == ["commit"] * 3
    scan = scan_binlog(path, skip_bad_checksum=True)
    assert (scan.defect, scan.checksum_failures, scan.complete_end) == (None, 1, scan.file_size)
    assert scan_binlog(path).complete_end < bad
