"""`binloom inspect`: the report and the listing of events."""

import csv
import io
import json
import re
import struct
import zlib
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ingest.binlog import open_binlog
from tests.support.binlog.forge import TIMESTAMP, FileMaker
from tests.support.command_line import assert_sentence, binloom
from tests.support.in_process import binloom_here
from tests.support.places import FIXTURES, SAMPLES

MYSQL = SAMPLES / "shop-mysql" / "binlog.000001"
MARIADB = SAMPLES / "shop-mariadb" / "binlog.000001"


def test_the_report_of_a_whole_file() -> None:
    result = binloom("inspect", MYSQL, MARIADB, "--format", "json")
    assert (result.returncode, result.stderr) == (0, "")
    mysql, mariadb = (json.loads(line) for line in result.stdout.splitlines())
    for report in (mysql, mariadb):
        assert report["format_version"] == 4 and report["checksum_algorithm"] == "CRC32"
        assert report["checksum_failures"] == 0 and report["defect"] is None
        assert report["is_closed"] and report["next_binlog_file"] == "binlog.000002"
        assert report["events"] == sum(report["event_counts"].values())
        rows = Counter({table["table_name"]: table["inserts"] for table in report["tables"]})
        assert rows == {"customers": 24, "orders": 42, "order_items": 113}
    assert mysql["flavor"] == "mysql" and mysql["server_version"].startswith("9.7")
    assert mysql["gtids"].endswith(f":1-{mysql['transactions']}")
    assert mariadb["flavor"] == "mariadb"
    assert mariadb["gtids"] == f"0-1-1 to 0-1-{mariadb['transactions']}"


def test_the_report_in_words() -> None:
    result = binloom_here("inspect", MYSQL, "-v")
    for words in ("written by mysql 9.7", "closed, binlog.000002 follows", "473 of 473 events verified", "shop.orders"):
        assert words in result.stdout


def test_the_listing_has_every_event_once() -> None:
    report = json.loads(binloom_here("inspect", MYSQL, "--format", "json").stdout)
    listed = [
        json.loads(line) for line in binloom_here("inspect", MYSQL, "--events", "--format", "json").stdout.splitlines()
    ]
    assert Counter(event["event_type"] for event in listed) == report["event_counts"]
    assert listed[0]["position"] == 4
    assert all(one["end_position"] == two["position"] for one, two in pairwise(listed))
    assert listed[-1]["end_position"] == MYSQL.stat().st_size
    assert {event["checksum"] for event in listed} == {"good"}


def test_the_listing_can_be_narrowed() -> None:
    result = binloom_here("inspect", MYSQL, "--filter-type", "xid,33", "--limit", "20", "--format", "csv", "-v")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 20
    assert {row["event_type"] for row in rows} == {"XID", "GTID"}
    assert "gtid" in json.loads(rows[0]["detail"])


def test_an_unknown_event_type_suggests_the_known_ones() -> None:
    assert_sentence(binloom_here("inspect", MYSQL, "--filter-type", "WRITE_ROW"), 2, "WRITE_ROW", "WRITE_ROWS")


def reports(*files: Path) -> list[dict[str, Any]]:
    result = binloom_here("inspect", *files, "--format", "json")
    assert result.returncode in (0, 1, 3)
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_csv_has_what_json_has() -> None:
    (report,) = reports(MYSQL)
    (row,) = csv.DictReader(io.StringIO(binloom_here("inspect", MYSQL, "--format", "csv").stdout))
    assert list(row) == list(report)
    assert json.loads(row["largest_transactions"]) == report["largest_transactions"]
    assert row["transactions"] == str(report["transactions"])


@pytest.mark.parametrize("file", [MYSQL, FIXTURES / "mysql-transaction-payload.binlog"], ids=["plain", "payloads"])
def test_the_largest_transactions_are_as_large_as_their_gtid_events_say(file: Path) -> None:
    (report,) = reports(file)
    lengths = {
        event.detail["gtid"]: (event.detail["transaction_length"], event.position)
        for event in open_binlog(file).events()
        if event.type_name == "GTID"
    }
    largest = sorted(lengths.items(), key=lambda item: -item[1][0])[:5]
    assert [(each["gtid"], (each["bytes"], each["start_pos"])) for each in report["largest_transactions"]] == largest
    rows = Counter(row["gtid"] for batch in open_binlog(file).row_batches() for row in batch.to_pylist())
    assert [each["rows"] for each in report["largest_transactions"]] == [rows[gtid] for gtid, _ in largest]


def test_events_inside_compressed_ones_are_counted() -> None:
    payloads, compressed = reports(
        FIXTURES / "mysql-transaction-payload.binlog", FIXTURES / "mariadb-compressed-events.binlog"
    )
    plain, tables = payloads["payload_event_counts"], payloads["tables"]
    assert plain["TABLE_MAP"] == plain["QUERY"] == plain["XID"] == payloads["event_counts"]["TRANSACTION_PAYLOAD"]
    assert sum(table["inserts"] for table in tables) == 3 and plain["WRITE_ROWS"] == 1
    assert compressed["payload_event_counts"]["QUERY"] == compressed["event_counts"]["QUERY_COMPRESSED"]
    assert "compressed:   16:" in binloom_here("inspect", FIXTURES / "mysql-transaction-payload.binlog").stdout


def test_the_listing_goes_into_payloads() -> None:
    path = FIXTURES / "mysql-transaction-payload.binlog"
    (report,) = reports(path)
    lines = binloom_here("inspect", path, "--events", "--format", "json").stdout.splitlines()
    listed = [json.loads(line) for line in lines]
    inside = Counter(event["event_type"] for event in listed if event["payload_ordinal"])
    outside = Counter(event["event_type"] for event in listed if not event["payload_ordinal"])
    assert (inside, outside) == (report["payload_event_counts"], report["event_counts"])
    text = binloom_here("inspect", path, "--events", "-v").stdout.splitlines()
    assert len(text) == len(listed) + 2


def test_the_listing_of_a_file_with_wrong_checksums_says_so(tmp_path: Path) -> None:
    maker = FileMaker()
    wrong = maker.begin()
    for end in (maker.commit(), len(maker.data)):
        maker.data[end - 1] ^= 1
    path = maker.write(tmp_path)
    for words in ((), ("--filter-type", "FORMAT_DESCRIPTION"), ("--limit", "2")):
        listing = binloom_here("inspect", "--events", path, *words)
        assert_sentence(listing, 1, f"{path}: the event at position {wrong} has a wrong checksum")
        assert len(listing.stderr.splitlines()) == 1
    assert binloom_here("inspect", "--events", path, "--limit", "1").returncode == 0


def query(sql: bytes, schema: bytes = b"shop") -> bytes:
    return struct.pack("<IIBHH", 7, 0, len(schema), 0, 0) + schema + b"\0" + sql


def test_changes_logged_as_statements_are_counted_by_table_and_verb(tmp_path: Path) -> None:
    maker = FileMaker()
    maker.begin()
    for sql in (
        b"insert into orders values (1)",
        b"INSERT INTO `orders` (a) values (2)",
        b"/* who: me */ update low_priority crm.`odd ``name` set a = 1",
        b"delete from orders where a = 1",
        b"update orders o join items i set o.a = 1, i.b = 2",
        b"insert into log select * from orders",
        b"select `shop`.`spend`(1)",
        b"flush tables",
    ):
        maker.event(2, query(sql))
    maker.event(29, b"\x08insert into orders values (3)")
    maker.commit()
    maker.rotate()
    path = maker.write(tmp_path)
    (report,) = reports(path)
    assert [tuple(change.values()) for change in report["statement_changes"]] == [
        (None, None, "SELECT", 1),
        ("crm", "odd `name", "UPDATE", 1),
        ("shop", "items", "UPDATE", 1),
        ("shop", "log", "INSERT", 1),
        ("shop", "orders", "DELETE", 1),
        ("shop", "orders", "INSERT", 2),
        ("shop", "orders", "UPDATE", 1),
    ]
    text = binloom_here("inspect", path).stdout
    assert "changes logged as statements" in text
    assert [line.split() for line in text.splitlines() if "SELECT" in line] == [["unknown", "SELECT", "1"]]


def test_an_incident_is_told_with_its_message(tmp_path: Path) -> None:
    maker = FileMaker()
    position = maker.event(26, b"\1\0\x0fdisk quota full")
    maker.rotate()
    path = maker.write(tmp_path)
    (report,) = reports(path)
    assert report["incidents"] == [
        {"position": position, "incident": 1, "meaning": "lost events", "message": "disk quota full"}
    ]
    assert f"events were lost before position {position} (disk quota full)" in binloom_here("inspect", path).stdout


def test_a_relay_log_shows_each_format_and_not_the_file_that_it_was_fetched_from(tmp_path: Path) -> None:
    maker, source = FileMaker(), FileMaker(checksum=False)
    artificial = struct.pack("<IBIIIH", 0, 4, 9, 19 + 21, 0, 0x20) + struct.pack("<Q", 4) + b"binlog.000007"
    size = 4 + len(artificial)
    maker.data += struct.pack("<I", len(artificial) + 4).join([artificial[:9], artificial[13:]])
    maker.data += struct.pack("<I", zlib.crc32(maker.data[-size + 4 :]))
    description = bytearray(source.data[4:])
    description[5:9] = struct.pack("<I", 9)
    maker.data += description[:-4] + struct.pack("<I", zlib.crc32(description[:-4]))
    maker.checksum = False
    maker.begin()
    maker.commit()
    maker.rotate(b"relay-bin.000002")
    path = maker.write(tmp_path)
    (report,) = reports(path)
    assert [(each["server_id"], each["checksum_algorithm"]) for each in report["formats"]] == [
        (1, "CRC32"),
        (9, "NONE"),
    ]
    assert report["next_binlog_file"] == "relay-bin.000002" and report["defect"] is None
    text = binloom_here("inspect", path).stdout
    assert "then:" in text and "CRC32, then NONE; 0 wrong" in text


@pytest.mark.parametrize(
    ("format_version", "header", "version"), [(1, "<IBII", b"3.23.58"), (3, "<IBIIIH", b"4.1.24-log")]
)
def test_formats_before_mysql_5_0(format_version: int, header: str, version: bytes, tmp_path: Path) -> None:
    def event(code: int, body: bytes) -> bytes:
        size = struct.calcsize(header) + len(body)
        return struct.pack(header, TIMESTAMP, code, 3, size, *([0, 0] if format_version == 3 else [])) + body

    sql = b"insert into t values (1)"
    data = b"\xfebin" + event(1, struct.pack("<H50sI", format_version, version, TIMESTAMP))
    data += event(2, struct.pack("<IIBH", 7, 0, 4, 0) + b"shop\0" + sql)
    data += event(4, b"binlog.002" if format_version == 1 else struct.pack("<Q", 4) + b"binlog.002")
    path = tmp_path / "binlog.001"
    path.write_bytes(data)
    (report,) = reports(path)
    assert (report["format_version"], report["server_version"], report["defect"]) == (
        format_version,
        version.decode(),
        None,
    )
    assert report["event_counts"] == {"QUERY": 1, "ROTATE": 1, "START_V3": 1}
    assert report["next_binlog_file"] == "binlog.002"
    assert report["statement_changes"] == [
        {"schema_name": "shop", "table_name": "t", "verb": "INSERT", "statements": 1}
    ]


def test_a_file_that_mysql_encrypted_names_its_key() -> None:
    path = FIXTURES / "encrypted" / "mysql-9.7.binlog"
    result = binloom_here("inspect", path)
    assert_sentence(result, 3, "encrypted by its server", "--read-from-remote-server")
    (report,) = reports(path)
    assert report["encryption"]["by"] == "mysql" and report["encryption"]["version"] == 1
    assert re.fullmatch(r"MySQLReplicationKey_[0-9a-f-]{36}_1", report["encryption"]["key_id"])
    assert f"by mysql (version 1, key id {report['encryption']['key_id']})" in result.stdout
    assert report["size"] == path.stat().st_size and report["events"] is None


@pytest.mark.parametrize("size", [4, 5, 6, 20])
def test_an_encrypted_file_that_is_cut_in_its_head_has_no_key(size: int, tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes((FIXTURES / "encrypted" / "mysql-9.7.binlog").read_bytes()[:size])
    (report,) = reports(path)
    assert report["encryption"] == {"by": "mysql", "version": None if size == 4 else 1, "key_id": None}


def test_a_file_that_mariadb_encrypts_from_its_second_event_on() -> None:
    path = FIXTURES / "encrypted" / "mariadb-10.5.binlog"
    result = binloom_here("inspect", path)
    assert_sentence(result, 3, "is encrypted by its server", "--read-from-remote-server")
    (report,) = reports(path)
    assert report["encryption"].items() >= {"by": "mariadb", "scheme": 1, "key_version": 1}.items()
    assert report["event_counts"] == {"FORMAT_DESCRIPTION": 1, "START_ENCRYPTION": 1}
    assert report["server_version"].startswith("10.5")
