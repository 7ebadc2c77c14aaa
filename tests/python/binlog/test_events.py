"""Details of events: real logs against the servers' own tools, and hand-made bodies."""

import re
import struct
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.binlog import FormatDescription, open_binlog
from ingest.binlog.events.describe import describe
from ingest.binlog.events.types import EVENT_NAMES
from ingest.binlog.listing import Event
from tests.servers import Distribution, mariadb, mariadb118, mysql
from tests.support.binlog.replay import Decoded
from tests.support.places import FIXTURES

SOURCE = uuid.UUID("11111111-2222-3333-4444-555555555555")
ROWS_TYPES = ("WRITE_ROWS", "UPDATE_ROWS", "DELETE_ROWS", "PARTIAL_UPDATE_ROWS")


def listed(path: Path) -> list[Event]:
    return list(open_binlog(path).events())


def of_type(events: list[Event], *names: str) -> list[dict[str, Any]]:
    return [event.detail for event in events if event.type_name in names]


def micros(moment: datetime) -> int:
    return round((moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1_000_000)


# --- real servers ---


@pytest.fixture(scope="module")
def mysql_log(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Event], str]:
    """Return the events of a log with tags, XA and partitions, and mysqlbinlog's output for it."""
    with mysql.start(tmp_path_factory.mktemp("events")) as server:
        server.execute(
            "create database shop",
            "create table shop.t (a int primary key, b text) partition by range (a)"
            " (partition p0 values less than (10), partition p1 values less than (20))",
            "insert into shop.t values (1, 'one'), (12, 'two')",
            "update shop.t set a = 15 where a = 1",
            "set gtid_next = 'AUTOMATIC:orders'",
            "delete from shop.t where a = 12",
            f"set gtid_next = '{SOURCE}:a_tag_of_the_greatest_length_32_:9223372036854775806'",
            "insert into shop.t values (2, 'three')",
            "set gtid_next = 'AUTOMATIC'",
            "flush binary logs",
        )
        server.execute(
            "xa start 'global', 'branch', 7",
            "insert into shop.t values (3, 'four')",
            "xa end 'global', 'branch', 7",
            "xa prepare 'global', 'branch', 7",
            "xa commit 'global', 'branch', 7",
            "xa start X'00ff'",
            "insert into shop.t values (4, 'five')",
            "xa end X'00ff'",
            "xa commit X'00ff' one phase",
            "flush binary logs",
        )
        logs = server.binlogs()[:2]
        output = server.binlogtool("-vv", *map(str, logs)).stdout.decode()
        return [event for log in logs for event in listed(log)], output


@pytest.mark.mysql
def test_gtids_of_mysql(mysql_log: tuple[list[Event], str]) -> None:
    events, output = mysql_log
    details = of_type(events, "GTID", "GTID_TAGGED")
    printed = re.findall(
        r"\tGTID\tlast_committed=(\d+)\tsequence_number=(\d+)\trbr_only=(\w+)\toriginal_committed_timestamp=(\d+)"
        r"\timmediate_commit_timestamp=(\d+)\ttransaction_length=(\d+)",
        output,
    )
    assert len(of_type(events, "GTID_TAGGED")) == 2
    assert printed == [
        (
            str(detail["last_committed"]),
            str(detail["sequence_number"]),
            "yes" if detail["is_rows_only"] else "no",
            str(micros(detail["original_commit_at"])),
            str(micros(detail["immediate_commit_at"])),
            str(detail["transaction_length"]),
        )
        for detail in details
    ]
    named = re.findall(r"^SET @@SESSION.GTID_NEXT= '([^']+:\d+)'", output, re.MULTILINE)
    assert named == [detail["gtid"] for detail in details]
    versions = {detail[name] for detail in details for name in ("immediate_server_version", "original_server_version")}
    assert versions == {mysql.version}


@pytest.mark.mysql
def test_sets_with_tags(mysql_log: tuple[list[Event], str]) -> None:
    events, output = mysql_log
    printed = re.findall(r"\tPrevious-GTIDs\n((?:# .*\n)+?)# at", output)
    sets = [re.sub(r"\n?# |\n", "", text).replace("[empty]", "") for text in printed]
    assert sets == [detail["gtids"] for detail in of_type(events, "PREVIOUS_GTIDS")]
    assert ":a_tag_of_the_greatest_length_32_:9223372036854775806" in sets[1]


@pytest.mark.mysql
def test_rows_events_of_mysql(mysql_log: tuple[list[Event], str]) -> None:
    events, output = mysql_log
    printed = re.findall(r"_rows: table id (\d+)(?: flags:((?: \w+)+))?", output)
    details = of_type(events, *ROWS_TYPES)
    assert printed == [(str(detail["table_id"]), "".join(f" {flag}" for flag in detail["flags"])) for detail in details]
    partitions = re.findall(r"partitioning: (?:source_partition: (\d+) target_)?partition: (\d+)", output)
    assert partitions == [(str(detail.get("source_partition", "")), str(detail["partition"])) for detail in details]
    maps = re.findall(r"Table_map: `(\w+)`.`(\w+)` mapped to number (\d+)", output)
    assert maps == [(*detail["table"].split("."), str(detail["table_id"])) for detail in of_type(events, "TABLE_MAP")]
    assert of_type(events, "TABLE_MAP")[0]["columns"] == ["LONG", "BLOB"]


@pytest.mark.mysql
def test_ends_of_transactions_of_mysql(mysql_log: tuple[list[Event], str]) -> None:
    events, output = mysql_log
    assert [int(xid) for xid in re.findall(r"\tXid = (\d+)\nCOMMIT", output)] == [
        detail["xid"] for detail in of_type(events, "XID")
    ]
    prepared = re.findall(r"^XA (PREPARE|COMMIT) (X'.*?',X'.*?',\d+)(?: ONE PHASE)?\n/\*", output, re.MULTILINE)
    details = of_type(events, "XA_PREPARE")
    assert {("COMMIT" if detail["is_one_phase"] else "PREPARE", detail["xid"]) for detail in details} <= set(prepared)
    assert [detail["is_one_phase"] for detail in details] == [False, True]
    assert details[0]["xid"] == "X'676c6f62616c',X'6272616e6368',7"
    rotations = re.findall(r"\tRotate to (\S+)  pos: (\d+)", output)
    assert rotations == [(d["next_binlog_file"], str(d["position"])) for d in of_type(events, "ROTATE")]


MARIADB_TAGS = {"trans": "transactional", "ddl": "ddl", "waited": "waited"}


@pytest.mark.parametrize(
    "distribution",
    [
        pytest.param(mariadb, id="mariadb", marks=pytest.mark.mariadb),
        pytest.param(mariadb118, id="mariadb118", marks=pytest.mark.mariadb118),
    ],
)
def test_gtids_of_mariadb(distribution: Distribution, tmp_path: Path) -> None:
    with distribution.start(tmp_path, ["--binlog-format=ROW", "--binlog-alter-two-phase=ON"]) as server:
        server.execute(
            "create database shop",
            "create table shop.t (a int primary key) engine = innodb",
            "set gtid_domain_id = 3",
            "insert into shop.t values (1)",
            "set gtid_domain_id = 0",
            "xa start 'global', 'branch', 7",
            "insert into shop.t values (3)",
            "xa end 'global', 'branch', 7",
            "xa prepare 'global', 'branch', 7",
            "xa commit 'global', 'branch', 7",
            "alter table shop.t add column b int",
            "flush binary logs",
            "flush binary logs",
        )
        logs = server.binlogs()[:2]
        output = server.binlogtool("-vv", *map(str, logs)).stdout.decode()
        events = [event for log in logs for event in listed(log)]
    details = of_type(events, "MARIA_GTID")
    printed = re.findall(r"\tGTID (\d+-\d+-\d+)(.*)", output)
    assert [gtid for gtid, _ in printed] == [detail["gtid"] for detail in details]
    for (_, text), detail in zip(printed, details, strict=True):
        words = text.split()
        assert {flag for word, flag in MARIADB_TAGS.items() if word in words} == set(detail["flags"]) & set(
            MARIADB_TAGS.values()
        )
        thread = re.search(r"thread_id=(\d+)", text)
        assert detail.get("thread_id") == (int(thread[1]) if thread else None)
        commit = re.search(r"cid=(\d+)", text)
        assert detail.get("commit_id") == (int(commit[1]) if commit else None)
        alter = re.search(r"COMMIT ALTER id= (\d+)", text)
        assert detail.get("start_alter_gtid_number") == (int(alter[1]) if alter else None)
        assert ("START ALTER" in text) == ("start_alter" in detail.get("flags_extra", []))
    threads = {detail["gtid"]: detail["thread_id"] for detail in details if "thread_id" in detail}
    assert bool(threads) == (distribution is mariadb118)
    decoded = {row["gtid"]: row["thread_id"] for log in logs for row in Decoded.of(log).transactions}
    assert threads.items() <= decoded.items()
    xids = {detail.get("xid") for detail in details if {"xa_prepared", "xa_completed"} & set(detail["flags"])}
    assert xids == {"X'676c6f62616c',X'6272616e6368',7"}
    lists = re.findall(r"Gtid list \[([^]]*)\]", output)
    # The tool sorts by domain; the server writes them in the order of its hash table.
    assert [sorted(text.replace("\n# ", "").split(",")) for text in lists] == [
        sorted(detail["gtids"].split(",")) for detail in of_type(events, "MARIA_GTID_LIST")
    ]
    checkpoints = re.findall(r"Binlog checkpoint (\S+)", output)
    assert checkpoints == [detail["binlog_file"] for detail in of_type(events, "BINLOG_CHECKPOINT")]


# --- recorded files ---


@pytest.mark.mysql
def test_payloads_say_what_is_inside() -> None:
    path = FIXTURES / "mysql-transaction-payload.binlog"
    details = of_type(listed(path), "TRANSACTION_PAYLOAD")
    output = mysql.binlogtool(str(path)).stdout.decode(errors="replace")
    printed = re.findall(r"payload_size=(\d+)\tcompression_type=(\w+)\tuncompressed_size=(\d+)", output)
    assert printed == [
        (str(detail["payload_bytes"]), detail["compression"], str(detail["uncompressed_bytes"])) for detail in details
    ]
    assert [sum(detail["events"].values()) for detail in details] == [4] * 4
    assert details[0]["events"] == {"QUERY": 1, "TABLE_MAP": 1, "WRITE_ROWS": 1, "XID": 1}
    inside = [event for event in listed(path) if event.payload_ordinal]
    assert [event.payload_ordinal for event in inside] == [1, 2, 3, 4] * 4
    assert [event.type_name for event in inside[:4]] == ["QUERY", "TABLE_MAP", "WRITE_ROWS", "XID"]
    assert [str(event.detail["xid"]) for event in inside[3::4]] == re.findall(r"\tXid = (\d+)\nCOMMIT", output)
    assert {event.checksum_ok for event in inside} == {None}
    assert {event.position for event in inside} == {
        event.position for event in listed(path) if event.type_name == "TRANSACTION_PAYLOAD"
    }


@pytest.mark.mariadb
def test_compressed_events_say_what_is_inside() -> None:
    path = FIXTURES / "mariadb-compressed-queries.binlog"
    events = listed(path)
    output = mariadb.binlogtool("-v", str(path)).stdout.decode(errors="replace")
    for detail in of_type(events, "QUERY_COMPRESSED"):
        assert detail["sql"] in output
        assert detail["uncompressed_bytes"] > len(detail["sql"]) and detail["compressed_bytes"] < 200
    printed = re.findall(r"(Write|Update|Delete)_compressed_rows: table id (\d+)(?: flags:((?: \w+)+))?", output)
    assert printed == [
        (event.type_name.split("_")[0].capitalize(), str(detail["table_id"]), "".join(f" {f}" for f in detail["flags"]))
        for event in events
        if "_ROWS_COMPRESSED" in event.type_name and (detail := event.detail)
    ]


def test_a_statement_is_shown_in_the_character_set_of_its_client(format_description: FormatDescription) -> None:
    status = b"\x04" + struct.pack("<HHH", 8, 8, 8)
    head = struct.pack("<IIBHH", 7, 0, 0, 0, len(status)) + status + b"\0"
    assert detail_of(2, head + "insert into t values ('Zürich')".encode("cp1252"), format_description) == {
        "thread_id": 7,
        "seconds": 0,
        "error_code": 0,
        "schema": "",
        "sql": "insert into t values ('Zürich')",
        "status": {"character_set_client": "latin1", "collation_connection": 8, "collation_server": 8},
    }


# --- made by hand ---


@pytest.fixture(scope="module")
def format_description() -> FormatDescription:
    return open_binlog(FIXTURES / "mysql-defaults.binlog").format


def detail_of(code: int, body: bytes, format: FormatDescription, **changes: Any) -> dict[str, Any]:
    """Return the details of an event of server 5 with this body, in a file without checksums."""
    format = replace(format, checksum_algorithm="NONE", **changes)
    header = struct.pack("<IBIIIH", 0, code, 5, 19 + len(body), 0, 0)[: format.header_size]
    return describe(code, header + body, format)


GTID_5_6 = b"\1" + SOURCE.bytes + struct.pack("<q", 7)
GTID_5_7 = b"\0" + GTID_5_6[1:] + b"\2" + struct.pack("<qq", 3, 4)
ORIGINAL, IMMEDIATE = 1_700_000_000_123_456, 1_700_000_009_654_321


def seven_bytes(number: int) -> bytes:
    return number.to_bytes(7, "little")


def test_gtids_of_each_generation(format_description: FormatDescription) -> None:
    gtid = {"gtid": f"{SOURCE}:7", "is_rows_only": False}
    assert detail_of(33, GTID_5_6, format_description) == gtid
    # 5.7.4 and earlier had another clock, which is ignored.
    assert detail_of(33, GTID_5_6 + b"\1" + bytes(16), format_description) == gtid
    clock = {**gtid, "is_rows_only": True, "last_committed": 3, "sequence_number": 4}
    assert detail_of(33, GTID_5_7, format_description) == clock
    times = {
        "immediate_commit_at": datetime(2023, 11, 14, 22, 13, 29, 654321, UTC),
        "original_commit_at": datetime(2023, 11, 14, 22, 13, 20, 123456, UTC),
        "transaction_length": 1000,
    }
    replicated = GTID_5_7 + seven_bytes(IMMEDIATE | 1 << 55) + seven_bytes(ORIGINAL) + b"\xfc\xe8\x03"
    assert detail_of(33, replicated, format_description) == clock | times
    versions = {"immediate_server_version": "8.4.3", "original_server_version": "8.0.40"}
    replicated += struct.pack("<II", 80403 | 1 << 31, 80040)
    assert detail_of(33, replicated, format_description) == clock | times | versions
    ticket = {"commit_group_ticket": 9}
    assert detail_of(33, replicated + struct.pack("<Q", 9), format_description) == clock | times | versions | ticket
    of_this_server = GTID_5_7 + seven_bytes(ORIGINAL) + b"\xc8" + struct.pack("<I", 999999)
    assert detail_of(33, of_this_server, format_description) == clock | {
        "immediate_commit_at": times["original_commit_at"],
        "original_commit_at": times["original_commit_at"],
        "transaction_length": 200,
        "immediate_server_version": None,
        "original_server_version": None,
    }


def test_an_anonymous_gtid_has_no_number(format_description: FormatDescription) -> None:
    assert detail_of(34, b"\1" + bytes(24), format_description) == {"gtid": None, "is_rows_only": False}


def text16(text: bytes) -> bytes:
    return struct.pack("<H", len(text)) + text


SET_OF_ONE = struct.pack("<Q", 1) + SOURCE.bytes + struct.pack("<QQQ", 1, 1, 6)
BODIES: list[tuple[int, bytes, dict[str, Any]]] = [
    (3, b"", {}),
    (4, struct.pack("<Q", 4) + b"binlog.000002", {"next_binlog_file": "binlog.000002", "position": 4}),
    (
        7,
        struct.pack("<QH", 99, 3306) + b"db1\0binlog.000007",
        {"host": "db1", "port": 3306, "binlog_file": "binlog.000007", "position": 99},
    ),
    (9, struct.pack("<I", 3) + b"data", {"file_id": 3, "block_size": 4}),
    (10, struct.pack("<I", 3), {"file_id": 3, "block_size": 0}),
    (11, struct.pack("<I", 3), {"file_id": 3, "block_size": 0}),
    (16, struct.pack("<Q", 1 << 63), {"xid": 1 << 63}),
    (26, b"\1\0\5oh no", {"incident": 1, "meaning": "lost events", "message": "oh no"}),
    (26, b"\1\0", {"incident": 1, "meaning": "lost events", "message": ""}),
    (27, b"binlog.000003", {"binlog_file": "binlog.000003"}),
    (28, b"whatever", {}),
    (29, b"\x08select 1", {"sql": "select 1"}),
    (35, SET_OF_ONE, {"gtids": f"{SOURCE}:1-5"}),
    (
        36,
        struct.pack("<BIBIII", 36, 12, 1, len(SET_OF_ONE), 2, 1)
        + str(SOURCE).encode()
        + SET_OF_ONE
        + text16(b"hash1")
        + text16(b"hash2")
        + text16(b"read"),
        {
            "server_uuid": str(SOURCE),
            "thread_id": 12,
            "is_gtid_specified": True,
            "snapshot": f"{SOURCE}:1-5",
            "write_set": 2,
            "read_set": 1,
        },
    ),
    (
        37,
        b"15005:3".ljust(40, b"\0") + struct.pack("<QI", 8, 1) + text16(b"key") + struct.pack("<I", 2) + b"ab",
        {"view_id": "15005:3", "sequence_number": 8, "certified_rows": 1},
    ),
    (38, b"\1" + struct.pack("<III", 1, 2, 1) + b"\x00\xffa", {"xid": "X'00ff',X'61',1", "is_one_phase": True}),
    (41, b"\1\5bin.9\2\3\xfc\x00\x04\0", {"binlog_file": "bin.9", "position": 1024}),
    (41, b"\1\5bin.9\7\2??\2\1\x04\0", {"binlog_file": "bin.9", "position": 4}),
    (160, b"insert into t values (1)", {"sql": "insert into t values (1)"}),
    (161, struct.pack("<I", 5) + b"bin.9", {"binlog_file": "bin.9"}),
    (162, struct.pack("<QIB", 7, 2, 0) + bytes(6), {"gtid": "2-5-7", "flags": []}),
    (
        162,
        struct.pack("<QIBQ", 7, 2, 2 | 4, 99) + b"\x11\x02" + struct.pack("<I", 21),
        {
            "gtid": "2-5-7",
            "flags": ["group_commit", "transactional"],
            "commit_id": 99,
            "flags_extra": ["several_engines", "thread_id"],
            "further_engines": 2,
            "thread_id": 21,
        },
    ),
    (163, struct.pack("<IIIQ", 1 | 1 << 29, 0, 5, 7), {"gtids": "0-5-7", "flags": ["ignore_gtids"]}),
    (
        164,
        b"\1" + struct.pack("<I", 2) + bytes(range(12)),
        {"scheme": 1, "key_version": 2, "nonce": bytes(range(12)).hex()},
    ),
]


@pytest.mark.parametrize(("code", "body", "expected"), BODIES)
def test_each_type(code: int, body: bytes, expected: dict[str, Any], format_description: FormatDescription) -> None:
    assert detail_of(code, body, format_description) == expected


TABLE_ID, STATEMENT_END = b"\x2a\0\0\0\0\0", b"\1\0"


def test_extra_row_info_of_ndb(format_description: FormatDescription) -> None:
    info = b"\0\x06\x00\x01\x02\x03\x04" + b"\1\x05\0"
    body = TABLE_ID + STATEMENT_END + struct.pack("<H", 2 + len(info)) + info + b"\2\3" + b"rows"
    assert detail_of(30, body, format_description) == {
        "table_id": 42,
        "flags": ["STMT_END_F"],
        "ndb_format": 0,
        "ndb_info": "0x01020304",
        "partition": 5,
        "columns": 2,
        "row_bytes": 4,
    }


def test_unknown_extra_row_info_is_shown(format_description: FormatDescription) -> None:
    body = TABLE_ID + STATEMENT_END + b"\5\0" + b"\7ab" + b"\1\1"
    assert detail_of(30, body, format_description)["unknown_info"] == "0x076162"


def test_columns_that_an_image_lacks_are_counted(format_description: FormatDescription) -> None:
    body = TABLE_ID + b"\0\0" + b"\2\0" + b"\x0a" + b"\x01\0" + b"\xff\x03"
    detail = detail_of(31, body, format_description)
    assert (detail["columns"], detail["columns_present"], detail["row_bytes"]) == (10, [1, 10], 0)


def test_table_ids_of_four_bytes(format_description: FormatDescription) -> None:
    sizes = bytearray(format_description.post_header_sizes)
    sizes[19 - 1] = sizes[20 - 1] = 6
    changes = {"post_header_sizes": bytes(sizes)}
    body = b"\x2a\0\0\0" + b"\0\0" + b"\1s\0\1t\0" + b"\2\3\xfe"
    assert detail_of(19, body, format_description, **changes) == {
        "table_id": 42,
        "flags": 0,
        "table": "s.t",
        "columns": ["LONG", "STRING"],
    }
    assert detail_of(20, b"\x2a\0\0\0" + b"\1\0" + b"\1\1" + b"row", format_description, **changes)["row_bytes"] == 3


def test_a_rotate_of_format_version_1_has_no_position(format_description: FormatDescription) -> None:
    sizes = bytearray(format_description.post_header_sizes)
    sizes[4 - 1] = 0
    detail = detail_of(4, b"binlog.002", format_description, header_size=13, post_header_sizes=bytes(sizes))
    assert detail == {"next_binlog_file": "binlog.002", "position": 4}


def test_a_start_event_of_old_servers(format_description: FormatDescription) -> None:
    body = struct.pack("<H50sI", 3, b"4.1.24-log", 1_700_000_000)
    assert detail_of(1, body, format_description) == {
        "format_version": 3,
        "server_version": "4.1.24-log",
        "created_at": datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
    }


def test_a_cut_body_is_malformed_and_says_why(format_description: FormatDescription) -> None:
    whole = {code: body for code, body, expected in BODIES if expected and code not in (27, 29, 160)}
    for code, body in whole.items():
        assert set(detail_of(code, body[:1], format_description)) == {"malformed"}, EVENT_NAMES[code]


@settings(max_examples=2000)
@given(
    st.sampled_from(sorted(EVENT_NAMES)),
    st.binary(max_size=120),
    st.sampled_from(
        [open_binlog(FIXTURES / f"{name}.binlog").format for name in ("mysql-defaults", "mariadb-defaults")]
    ),
)
def test_any_bytes_can_be_described(code: int, body: bytes, format: FormatDescription) -> None:
    assert isinstance(detail_of(code, body, format), dict)
