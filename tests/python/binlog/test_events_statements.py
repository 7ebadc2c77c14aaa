"""Events that carry statements: real servers' events compared with the output of their own tools."""

import re
import struct
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.binlog import open_binlog
from ingest.binlog.events.reader import MalformedEventError
from ingest.binlog.events.statement_events import (
    CREATE_FILE,
    EXECUTE_LOAD_QUERY,
    INTVAR,
    LOAD,
    NEW_LOAD,
    RAND,
    USER_VAR,
    describe_load,
    describe_query,
    describe_user_var,
    statement_text,
)
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.binlog.forge import decimal

CODES = {INTVAR, RAND, USER_VAR, LOAD, NEW_LOAD, CREATE_FILE, EXECUTE_LOAD_QUERY}


@pytest.fixture(params=marked("mysql", "mariadb"))
def server(request: pytest.FixtureRequest) -> Server:
    running: Server = request.getfixturevalue(f"{request.param}_server")
    return running


def bodies(path: Path, codes: set[int]) -> list[tuple[int, bytes, int]]:
    """Yield type, body and size of the fixed part of each event of these types."""
    log, data = open_binlog(path), path.read_bytes()
    tail = 4 if log.format.has_checksums else 0
    return [
        (
            event.type_code,
            data[event.position + log.format.header_size : event.end_position - tail],
            log.format.post_header_size(event.type_code),
        )
        for event in log.events()
        if event.type_code in codes
    ]


VALUES = {
    "an integer": "-5",
    "unsigned": "18446744073709551615",
    "real": "0.1e0",
    "many_digits": "cast(1 as double) / 3",
    "dec": "-1234567890123.45600",
    "small_dec": "0.001",
    "text": "convert('Grüße 🎁' using utf8mb4)",
    "other_charset": "convert('é' using latin1)",
    "bytes": "x'00ff'",
    "empty": "''",
    "nothing": "null",
    "quo`ted": "1",
}


@pytest.mark.mysql
@pytest.mark.mariadb
def test_variables_are_written_as_the_servers_tool_prints_them(server: Server) -> None:
    server.flush()
    server.execute(
        "create database variables",
        "create table variables.t (id int auto_increment primary key, value blob, other blob)",
        "set binlog_format = 'statement'",
        *(f"set @`{name.replace('`', '``')}` = {value}" for name, value in VALUES.items()),
        *(f"insert into variables.t (value) values (@`{name.replace('`', '``')}`)" for name in VALUES),
        "insert into variables.t (value, other) values (rand(), last_insert_id())",
        "drop database variables",
    )
    binlog = server.flush()
    texts = [statement_text(*event) for event in bodies(binlog, CODES)]
    output = server.binlogtool(str(binlog)).stdout.decode()
    printed = re.findall(r"^(SET (?:@`|@@RAND|INSERT_ID|LAST_INSERT_ID).*?)/\*!\*/;$", output, re.MULTILINE)
    # The tools print fourteen digits of a real; MySQL's writes hex as 0x, and an empty text as "".
    shorter = [text.replace("0.3333333333333333", "0.33333333333333") for text in texts if text]
    assert [re.sub(r" 0x(\w+)", r" X'\1'", text).replace('""', "X''") for text in printed] == shorter
    assert len(texts) >= 2 * len(VALUES) + 3


@pytest.mark.mysql
@pytest.mark.mariadb
def test_load_data(server: Server, tmp_path: Path) -> None:
    rows = server.directory / "data" / "rows.txt"
    rows.write_text("1\tone\n2\ttwo\n")
    server.flush()
    server.execute(
        "create database loads",
        "create table loads.t (a int primary key, b text)",
        "set binlog_format = 'statement'",
        "use loads",
        f"load data infile '{rows}' replace into table t fields terminated by '\\t' (a, b)",
        "drop database loads",
    )
    ((code, body, fixed),) = bodies(server.flush(), {EXECUTE_LOAD_QUERY})
    text = statement_text(code, body, fixed)
    assert text is not None and text.startswith("LOAD DATA INFILE") and "INTO TABLE" in text
    assert describe_query(body, fixed, server.flavor)["schema"] == "loads"


def user_var(name: bytes, kind: int, value: bytes, flags: bytes = b"", collation: int = 63) -> bytes:
    head = struct.pack("<I", len(name)) + name + b"\0" + struct.pack("<BII", kind, collation, len(value))
    return head + value + flags


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**12), max_value=10**12))
def test_decimals_of_user_variables(value: Decimal) -> None:
    body = user_var(b"d", 4, bytes([20, 4]) + decimal(value, 20, 4))
    assert Decimal(describe_user_var(body)["value"]) == value


def test_a_user_variable_of_an_old_server_has_no_flags() -> None:
    minus_one = struct.pack("<q", -1)
    assert statement_text(USER_VAR, user_var(b"n", 2, minus_one), 0) == "SET @`n`:=-1"
    assert statement_text(USER_VAR, user_var(b"n", 2, minus_one, b"\1"), 0) == "SET @`n`:=18446744073709551615"


def load_body(code: int, clauses: bytes, fname: bytes, file_id: bytes = b"") -> bytes:
    """Return a body: thread 7, 2 seconds, 1 line skipped, table `t` of schema `shop`, columns `a` and `bc`."""
    head = struct.pack("<IIIBBI", 7, 2, 1, 1, 4, 2) + file_id
    return head + clauses + b"\1\2" + b"a\0bc\0" + b"t\0" + b"shop\0" + fname


NEW_CLAUSES = b"\2||" + b'\1"' + b"\1\n" + b"\0" + b"\1\\"
STATEMENT = (
    r"LOAD DATA INFILE 'f.txt' REPLACE INTO TABLE `t` FIELDS TERMINATED BY '||' OPTIONALLY ENCLOSED BY '\"'"
    r" ESCAPED BY '\\' LINES TERMINATED BY '\n' STARTING BY '' IGNORE 1 LINES (`a`,`bc`)"
).replace('\\"', '"')


def test_new_load() -> None:
    assert statement_text(NEW_LOAD, load_body(NEW_LOAD, NEW_CLAUSES + b"\6", b"f.txt"), 18) == STATEMENT


def test_create_file() -> None:
    body = load_body(CREATE_FILE, NEW_CLAUSES + b"\6", b"f.txt\0" + b"1||one\n", struct.pack("<I", 9))
    assert statement_text(CREATE_FILE, body, 4) == STATEMENT
    said = describe_load(CREATE_FILE, body)
    assert (said["file_id"], said["block_size"], said["schema"], said["thread_id"]) == (9, 7, "shop", 7)


def test_load() -> None:
    # One byte each for field_term, enclosed, line_term, line_start, escaped; then options, then flags of empty fields.
    body = load_body(LOAD, b'|"\n.\\' + bytes([8, 2 | 8]), b"f.txt")
    assert statement_text(LOAD, body, 18) == (
        r"LOAD DATA INFILE 'f.txt' IGNORE INTO TABLE `t` FIELDS TERMINATED BY '|' ENCLOSED BY ''"
        r" ESCAPED BY '\\' LINES TERMINATED BY '\n' STARTING BY '' IGNORE 1 LINES (`a`,`bc`)"
    )


def test_types_that_stand_for_no_statement() -> None:
    assert statement_text(9, b"\1\0\0\0block", 4) is None


@given(st.binary(max_size=80), st.sampled_from(sorted(CODES)), st.integers(0, 40))
def test_any_bytes_give_text_or_are_malformed(body: bytes, code: int, post_header_size: int) -> None:
    try:
        text: Any = statement_text(code, body, post_header_size)
    except MalformedEventError:
        return
    assert isinstance(text, str)
