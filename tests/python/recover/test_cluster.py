"""The messages when no cluster answers, and the types of Spark that have an exact text."""

import contextlib
import itertools
import json
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar, cast

import pyarrow as pa
import pytest
from sqlglot import exp

from ingest.errors import UsageError
from recover.questions.sql import ask_cluster
from recover.sources.cluster import thrift as cluster
from recover.sources.engine import in_memory
from recover.sources.spark_rows import Column, line_of, values_of
from tests.servers.ports import ReservedPort
from tests.support.command_line import assert_sentence, binloom


@contextlib.contextmanager
def listener(greeting: bytes) -> Iterator[int]:
    """Give the port of something that sends bytes to each client and then waits."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        clients = []

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    client, _ = server.accept()
                    client.sendall(greeting)
                    clients.append(client)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield server.getsockname()[1]
        finally:
            for client in clients:
                client.close()


@pytest.mark.parametrize("greeting", [b"", b"J\0\0\0\n9.7.4\0\x08\0\0\0", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_something_else_at_the_port_is_no_cluster(greeting: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_CONNECT_SECONDS", 0.2)
    with listener(greeting) as port, pytest.raises(cluster.ClusterLostError, match=r"No Thrift server answers at"):
        cluster.Cluster("127.0.0.1", port, "binloom")


def test_a_server_that_wants_a_password_is_told_from_none() -> None:
    refusal = b"Error validating the login"
    told = pytest.raises(cluster.ClusterLostError, match=r"refuses a session of user 'ada'.*without a password")
    with listener(b"\x03" + len(refusal).to_bytes(4) + refusal) as port, told:
        cluster.Cluster("127.0.0.1", port, "ada")


def test_a_port_without_a_server_is_named_with_what_to_do(tmp_path: Path) -> None:
    with ReservedPort() as port:
        target = {"BINLOOM_TARGET": "thrift", "BINLOOM_THRIFT_PORT": str(port.number)}
        for words in (["query", "--by", "table"], ["sql", "select 1"]):
            result = binloom(*words, home=tmp_path, env=target)
            assert_sentence(
                result, 3, rf"No Thrift server answers at 127\.0\.0\.1:{port.number}\. Start it, or set BINLOOM_THRIFT"
            )
            assert result.stdout == ""


@pytest.mark.parametrize(
    ("variables", "needle"),
    [
        ({"BINLOOM_TARGET": "thrft"}, "BINLOOM_TARGET is 'thrft', which is not a target. The targets are local and"),
        ({"BINLOOM_TARGET": "thrift", "BINLOOM_THRIFT_PORT": "x"}, "BINLOOM_THRIFT_PORT is 'x', which is not a port"),
        ({"BINLOOM_TARGET": "thrift", "BINLOOM_THRIFT_PORT": "0"}, "BINLOOM_THRIFT_PORT is '0', which is not a port"),
    ],
)
def test_a_wrong_variable_is_named(variables: dict[str, str], needle: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=needle):
        cluster.is_cluster_target()
        cluster.Cluster.of_environment()


@pytest.mark.parametrize("kind", ["binary", "interval day to second", "map<int,string>", "struct<a b:int>", "array<x>"])
def test_a_type_without_an_exact_text_is_refused(kind: str) -> None:
    with pytest.raises(UsageError, match=r"Column c has the type .* Cast it to string\."):
        Column.of("c", kind)


def test_lines_become_values_of_their_types() -> None:
    columns = [
        Column.of('odd "name"', "map<string,string>"),
        Column.of("moment", "timestamp"),
        Column.of("parts", "array<struct<ordinal:int,is_key:boolean,total:decimal(20,2)>>"),
        Column.of("nothing", "void"),
    ]
    assert line_of(columns) == (
        "to_json(struct(cast(c0 as MAP<STRING, STRING>) as c0, cast(unix_micros(c1) as string) as c1,"
        " cast(c2 as ARRAY<STRUCT<ordinal: STRING, is_key: STRING, total: STRING>>) as c2, cast(c3 as STRING) as c3),"
        " map('ignoreNullFields', 'false'))"
    )
    image = {"a": None, "": "null", "b\0": "'\\\u2028🙏", "z": ""}
    part = {"ordinal": "-1", "is_key": "true", "total": "123456789012345678.90"}
    line = json.dumps({"c0": image, "c1": "1763374662123457", "c2": [part, None], "c3": None})
    connection = in_memory()
    connection.register("lines", pa.table({"line": [line]}))
    answer = connection.execute(values_of(columns, "lines"))
    assert [column[0] for column in answer.description or ()] == ['odd "name"', "moment", "parts", "nothing"]
    rows = answer.fetchall()
    assert rows[0][0] == image and list(rows[0][0]) == list(image)
    assert rows[0][1].isoformat() == "2025-11-17T10:17:42.123457+00:00"
    assert str(rows[0][2]) == "[{'ordinal': -1, 'is_key': True, 'total': Decimal('123456789012345678.90')}, None]"
    assert rows[0][3] is None


class FakeSession:
    """A Thrift session whose only query has a number of rows."""

    def __init__(self, rows: int) -> None:
        self._rows = rows

    def cursor(self) -> "FakeSession":
        return FakeSession(self._rows)

    def execute(self, statement: str) -> None:
        is_query = statement.startswith("select ")
        self._left = iter([(f'{{"c0":"{number}"}}',) for number in range(self._rows)] if is_query else [])

    def fetchall(self) -> list[tuple[str, ...]]:
        return [("n", "bigint", "")]

    def fetchmany(self, size: int) -> list[tuple[str, ...]]:
        return [*itertools.islice(self._left, size)]


FIRST, SECOND = cluster._FIRST_ROWS, cluster._FIRST_ROWS + cluster._MOST_ROWS


@pytest.mark.parametrize("rows", [0, 1, FIRST - 1, FIRST, FIRST + 1, SECOND - 1, SECOND, SECOND + 1])
def test_an_answer_has_all_rows_also_if_others_begin(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "_connected", lambda *_: FakeSession(rows))
    asked = cluster.Cluster("127.0.0.1", 1, "ada")
    query = exp.select("n").from_("t")
    found = asked.answer(query)
    read = [*itertools.islice(found.rows, 1)]
    assert len([*asked.rows(query)]) == rows
    with in_memory() as connection:
        asked.copy(query, connection, "copied")
        assert connection.execute("select count(*), count(distinct n) from copied").fetchone() == (rows, rows)
    assert [*read, *found.rows] == [(number,) for number in range(rows)]


class FakeCluster:
    """A cluster with two schemas, whose answers are known."""

    answers: ClassVar[dict[str, list[tuple[Any, ...]]]] = {
        "show schemas": [("binloom",), ("shop",)],
        "show tables in `binloom`": [("binloom", "row_changes", False), ("", "temporary", True)],
        "show tables in `shop`": [("shop", "orders", False)],
        "describe query SELECT * FROM `shop`.`orders` LIMIT 0": [("id", "bigint", None)],
    }

    def plain_rows(self, statement: str) -> list[tuple[Any, ...]]:
        return self.answers[statement]


def test_tables_of_a_cluster_are_listed_and_described() -> None:
    asked = cast("cluster.Cluster", FakeCluster())
    assert [*ask_cluster("show tables", asked).rows] == [("binloom", "row_changes"), ("shop", "orders")]
    assert [*ask_cluster("describe shop.orders", asked).rows] == [("id", "bigint")]
