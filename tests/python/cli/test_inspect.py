"""`binloom inspect`: the report and the listing of events."""

import csv
import io
import json
from collections import Counter
from itertools import pairwise

import pytest

from ingest.commands.gtid_sets import GtidSet
from tests.python.cli.running import SAMPLES, assert_sentence, binloom

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
    result = binloom("inspect", MYSQL, "-v")
    for words in ("written by mysql 9.7", "closed, binlog.000002 follows", "473 of 473 events verified", "shop.orders"):
        assert words in result.stdout


def test_the_listing_has_every_event_once() -> None:
    report = json.loads(binloom("inspect", MYSQL, "--format", "json").stdout)
    listed = [
        json.loads(line) for line in binloom("inspect", MYSQL, "--events", "--format", "json").stdout.splitlines()
    ]
    assert Counter(event["event_type"] for event in listed) == report["event_counts"]
    assert listed[0]["position"] == 4
    assert all(one["end_position"] == two["position"] for one, two in pairwise(listed))
    assert listed[-1]["end_position"] == MYSQL.stat().st_size
    assert {event["checksum"] for event in listed} == {"good"}


def test_the_listing_can_be_narrowed() -> None:
    result = binloom("inspect", MYSQL, "--filter-type", "xid,33", "--limit", "20", "--format", "csv", "-v")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 20
    assert {row["event_type"] for row in rows} == {"XID", "GTID"}
    assert "gtid" in json.loads(rows[0]["detail"])


def test_an_unknown_event_type_suggests_the_known_ones() -> None:
    assert_sentence(binloom("inspect", MYSQL, "--filter-type", "WRITE_ROW"), 2, "WRITE_ROW", "WRITE_ROWS")


@pytest.mark.parametrize(
    ("gtids", "expected"),
    [
        (["a:1", "a:2", "a:3"], "a:1-3"),
        (["a:3", "a:1", "a:2", "a:9"], "a:1-3:9"),
        (["a:1", "a:tag:1", "b:7", "a:2", "a:tag:2"], "a:1-2,a:tag:1-2,b:7"),
        (["0-1-5", "0-1-6", "0-2-7", "0-1-9"], "0-1-5 to 0-1-9,0-2-7"),
        ([], ""),
    ],
)
def test_gtid_sets(gtids: list[str], expected: str) -> None:
    found = GtidSet()
    for gtid in gtids:
        found.add(gtid)
    assert str(found) == expected
