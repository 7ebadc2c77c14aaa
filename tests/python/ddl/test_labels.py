"""Labels of ENUM and SET have the bytes that a server gives them, however a statement writes them."""

from collections.abc import Iterable
from typing import Any

import pytest

from ingest.binlog.events.hints import enum_members
from ingest.binlog.text.charsets import as_text, decode_text, encode_text
from ingest.ddl.labels import Literals, in_any, in_column, reinterpreted, written
from ingest.ddl.shapes import Shapes
from ingest.ddl.statements import actions_of
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.ddl.folded import observed, stated_actions

# The statements of a session on one table.
SESSIONS = [
    # A conversion of the table keeps the bytes.
    ("create table {} (a enum('é','Č','x') charset utf8mb4, b set('é','x') charset utf8mb4) charset utf8mb4",
     "alter table {} convert to character set latin2"),
    ("create table {} (a enum('é','Č','x')) charset utf8mb4", "alter table {} convert to character set latin1"),
    ("create table {} (a enum('é','x')) charset latin1", "alter table {} convert to character set utf8mb4"),
    ("create table {} (a enum('ab','x')) charset latin1", "alter table {} convert to character set utf16"),
    ("create table {} (a enum('é','x')) charset utf8mb4", "alter table {} convert to character set binary"),
    ("create table {} (a enum('é ','x ')) charset binary", "alter table {} convert to character set utf8mb4"),
    ("create table {} (a enum('一','あ')) charset gbk", "alter table {} convert to character set sjis"),
    ("create table {} (a enum('é')) charset utf8mb4", "alter table {} modify a enum('é') charset latin1"),
    # A column that the same statement adds and converts never has its own character set.
    ("set names binary", "create table {} (a int)",
     "alter table {} add b enum('ж','é') charset utf8mb4, convert to character set latin2"),
    ("create table {} (a int)", "alter table {} add b enum('ж','é') charset latin1, convert to character set utf8mb4"),
    ("create table {} (a int)", "alter table {} add b enum('ж','é') charset utf8mb4, convert to character set latin1"),
    ("create table {} (a int)", "alter table {} add b enum(0xE9,'x') charset latin1, convert to character set utf8mb4"),
    ("create table {} (a enum('x'))",
     "alter table {} modify a enum(0xC3A9,'é') charset utf8mb4, convert to character set latin1"),
    # Spaces at the end belong to a label of bytes alone.
    ("create table {} (a enum('a ','b') charset binary, b set('c ') charset binary, c enum('d ') charset latin1)",),
    ("create table {} (a enum('a ','b')) charset binary",),
    ("create table {} (a enum('a ','b') charset utf16, b enum('a\t','\xa0') charset latin1)",),
    # Hex and binary literals are bytes.
    ("create table {} (a enum(0xE9,'x') charset latin1, b enum(0xD2BB) charset gbk,"
     " d enum(0x00E9) charset utf16, e enum(0xC3A9) charset utf8mb4, f enum(0xE920) charset latin1,"
     " g enum(b'11101001') charset latin1, h set(x'E9') charset latin1, i enum(0x82A0) charset sjis)",),
    ("create table {} (a enum(0xE920,0xff) charset binary, b enum(0x61) charset utf32, c enum(0xe9) charset utf8mb4)",),
    ("create table {} (a enum(0xE9,'x')) charset latin1",),
    ("create table {} (a enum('x')) charset latin1", "alter table {} add b enum(0xE9)"),
    ("create table {} (a int) charset binary", "alter table {} add b enum(0x61,x'6220','b'), add c set(b'1100001')"),
    ("create table {} (a int) charset binary", "alter table {} modify a enum(0xC3A9,'b ')"),
    ("create table {} (a int) charset binary", "set names binary", "alter table {} modify a enum('é','b ')"),
    ("create table {} (a int) charset binary", "set names latin1", "set character_set_connection = binary",
     "alter table {} modify a enum('é',0x61)"),
    ("create table {} (a enum('€','ÿ','漢')) charset latin1",),
    # Texts of a session without a character set are bytes, too.
    ("set names binary", "create table {} (a enum('é','x') charset latin1, b enum('é') charset utf8mb4,"
     " c enum('é ') charset binary, d enum('é') charset utf16)"),
    ("set names latin1", "create table {} (a enum('é') charset utf8mb4)"),
    ("set names binary", "create table {} (a enum('ab','x','abc ') charset utf16, b enum('ab','[') charset utf32,"
     " c enum('[','x ') charset swe7, d enum('x ','y') charset latin1, e enum('x ','y') charset utf16le)"),
    ("create table {} (a int) charset ucs2", "set names binary", "alter table {} modify a enum('ab','x','abc ')"),
    # Texts pass through the character set of the connection.
    ("set character_set_connection = swe7", "create table {} (a enum('[','y') charset latin1,"
     " b enum('@','y') charset binary, c enum('~','y') charset utf8mb4)"),
    ("create table {} (a enum('[',0x5B,'^') charset swe7)",),
    ("set character_set_connection = latin1", "create table {} (a enum('é','Č','漢') charset utf8mb4)"),
    ("set character_set_connection = latin2", "create table {} (a enum('é','Č ') charset latin2,"
     " b set('é') charset latin1)"),
    ("set character_set_connection = cp1251", "create table {} (a enum('ж','x') charset binary)"),
    ("set character_set_connection = utf16", "create table {} (a enum('é','漢') charset utf8mb4)"),
    ("set character_set_connection = binary", "create table {} (a enum('é') charset latin1,"
     " b enum('é') charset utf8mb4, c enum('é') charset binary)"),
    ("set names latin1", "create table {} (a enum('é','x') charset binary, b enum('é','x ') charset utf8mb4)"),
    ("set names latin1", "set character_set_connection = binary", "create table {} (a enum('é') charset utf8mb4)"),
    ("set names utf8mb4", "set character_set_client = binary", "create table {} (a enum('é') charset latin1)"),
    ("set names latin1", "set character_set_client = binary", "create table {} (a enum('é','x') charset utf8mb4)"),
    ("create table {} (a enum('x'))", "set character_set_connection = latin1",
     "alter table {} add b enum('Č') charset latin2"),
]  # fmt: skip


@pytest.mark.parametrize("name", marked("mysql", "mariadb118", "mysql56", deep=("mariadb",)))
def test_labels_are_those_of_the_server(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    server.execute("create database labels character set utf8mb4")
    server.flush()
    try:
        for number, statements in enumerate(SESSIONS):
            run(server, number, statements)
        shapes = Shapes()
        apply_log(shapes, server)
        assert_labels(shapes, server, range(len(SESSIONS)))
    finally:
        server.execute("drop database labels")


@pytest.mark.parametrize("name", marked("mysql", "mariadb118", "mysql56", deep=("mariadb",)))
def test_labels_of_a_snapshot_go_on_as_those_of_a_statement(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    altered = {
        number: statements
        for number, statements in enumerate(SESSIONS)
        if statements[0].startswith("create") and len(statements) > 1
    }
    spaces = "create table {} (a enum('a ','b') charset binary, b set('c ') charset binary)"
    altered[-1] = (spaces, "alter table {} convert to character set latin1")
    server.execute("create database labels character set utf8mb4")
    try:
        for number, (create, *_) in altered.items():
            run(server, number, [create])
        server.flush()
        shapes = Shapes()
        observed(shapes, server, ["labels"])
        for number, (_, *others) in altered.items():
            run(server, number, others)
        apply_log(shapes, server)
        assert_labels(shapes, server, altered)
    finally:
        server.execute("drop database labels")


def run(server: Server, number: int, statements: Iterable[str]) -> None:
    """Run the statements of a session on its table."""
    with server.connect() as connection, connection.cursor() as cursor:
        for statement in ("set names utf8mb4", "set sql_mode = ''", *statements):
            cursor.execute(statement.format(f"labels.t{number % 1000}"))


def apply_log(shapes: Shapes, server: Server) -> None:
    """Apply the statements of the current binlog."""
    for action in stated_actions(server.flush()):
        shapes.apply(action)


def assert_labels(shapes: Shapes, server: Server, numbers: Iterable[int]) -> None:
    """Assert that the tables of sessions have the labels that the server has."""
    for number in numbers:
        table = f"t{number % 1000}"
        labelled = [one for one in shapes.tables["labels", table].columns if one.data_type in ("enum", "set")]
        for column in labelled:
            labels = enum_members(column.column_type or "")
            theirs = labels_of(server, f"labels.{table}", column.name)
            charset = column.character_set or "binary"
            texts = [as_text(label, charset) for label in theirs]
            # Bytes that are no text are not shown: the servers print something else for them.
            assert labels == (None if None in texts else tuple(texts)), (number, column)


def labels_of(server: Server, table: str, column: str) -> list[bytes]:
    """Return the bytes of each label, as the server reads them from rows."""
    found: list[bytes] = []
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set sql_mode = ''")
        kind = str(server.execute(f"show columns from {table} where field = '{column}'")[0][1])
        values = [1, 2, 4] if "set(" in kind else [1, 2, 3]
        for value in values:
            cursor.execute(f"delete from {table}")
            cursor.execute(f"insert into {table} ({column}) values ({value})")
            cursor.execute(f"select hex({column}), {column} + 0 from {table}")
            ((text, kept),) = cursor.fetchall()
            if kept == value:
                found.append(bytes.fromhex(text))
    return found


@pytest.mark.parametrize(
    "labels",
    [["a", "it's", "b\\c", "\0", "line\nline", "cr\r", '"', "x'61'", "", "é", "a,b", "')"], [b"\xe9", b""]],
)
def test_labels_are_read_as_they_are_written(labels: list[Any]) -> None:
    text = written(labels)
    assert in_column(text, None) == text
    if isinstance(labels[0], str):
        assert enum_members(f"enum({text})") == tuple(labels)
        assert in_column(in_column(text, "utf8mb4"), "utf8mb4") == text


def test_zeros_fill_the_first_character_of_bytes() -> None:
    # MySQL 5.6 writes only the zeros.
    assert in_column("x'e9'", "utf16") == "'é'" == in_column("x'0000e9'", "utf32")
    assert in_column("x'e9'", None) == "x'e9'" == in_column("x'e9'", "utf8mb4")


def test_bytes_are_labels_of_a_table_in_binary() -> None:
    shapes = Shapes()
    for text in (
        "create table t (a int) charset binary",
        "alter table t modify a enum(0x61,x'6220',b'1100011','d ')",
        "alter table t add b enum(0x61,'é')",
    ):
        for action in actions_of(text, "d"):
            shapes.apply(action)
    types = [column.column_type for column in shapes.tables["d", "t"].columns]
    # The bytes of `é` are those of the session.
    assert types == ["enum('a','b ','c','d ')", "enum(?)"]


def test_ascii_is_not_the_same_bytes_in_each_session() -> None:
    def types(table: str, column: str, session: Literals) -> list[str | None]:
        shapes = Shapes()
        statements = (f"create table t (a int, {column}) {table}", f"alter table t modify a {column[2:]}")
        for action in (one for text in statements for one in actions_of(text, "d", literals=session)):
            shapes.apply(action)
        return [one.column_type for one in shapes.tables["d", "t"].columns]

    utf16, binary = Literals("utf8mb4", "utf16"), Literals("binary", "binary")
    assert types("charset binary", "b enum('x')", utf16) == ["enum(?)", "enum('\\0x')"]
    assert types("charset binary", "b enum('x')", binary) == ["enum('x')", "enum('x')"]
    assert types("charset utf16", "b enum('ab')", binary) == ["enum('慢')", "enum('慢')"]
    assert types("charset latin1", "b enum('ab ')", binary) == ["enum('ab')", "enum('ab')"]


def test_labels_of_which_nobody_knows_the_bytes_are_no_labels() -> None:
    assert reinterpreted("enum('a','b')", None, "latin1") == "enum('a','b')"
    assert reinterpreted("set('x','y')", None, "latin1") == "set('x','y')"
    assert reinterpreted("enum('x',x'61')", None, "latin1") == "enum(?)"
    assert reinterpreted("enum('a','é')", None, "latin1") == "enum(?)" == reinterpreted("enum('é')", "latin1", None)
    assert in_any("enum('a','é')") == "enum(?)" == in_any("enum(x'61')")
    assert in_any("enum('a','b')") == "enum('a','b')"
    assert enum_members("enum(?)") is None
    assert in_column("enum(?)", "latin1") == "enum(?)"


@pytest.mark.parametrize("charset", ["latin1", "gbk", "sjis", "ujis", "gb18030", "utf8mb3", "utf16", "koi8r", "swe7"])
def test_a_text_is_encoded_as_it_is_decoded(charset: str) -> None:
    for text in ("abc", "é", "一", "あ", "ж", "😀"):
        data = encode_text(text, charset)
        shown = decode_text(data, charset)
        assert shown in (text, "?" * len(text), "ꓹ"), (text, data, shown)
        assert as_text(data, charset) == shown
