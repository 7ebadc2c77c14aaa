"""The servers that other tests depend on start, log rows, rotate, and stop."""

import os
import socket
from pathlib import Path

import pytest

from tests.servers import ALL_DISTRIBUTIONS, Distribution, Server
from tests.servers.ports import ReservedPort

EACH_SERVER = [
    pytest.param(distribution, id=name, marks=getattr(pytest.mark, distribution.marker))
    for name, distribution in ALL_DISTRIBUTIONS.items()
]


def test_a_reserved_port_is_free_for_servers_only() -> None:
    with ReservedPort() as port:
        address = ("127.0.0.1", port.number)
        for _ in range(2):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(address)
            with socket.create_server(address), socket.create_connection(address):
                pass
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(address)


@pytest.mark.parametrize("distribution", EACH_SERVER)
def test_a_server_logs_rows_rotates_restarts_and_stops(distribution: Distribution, tmp_path: Path) -> None:
    with distribution.start(tmp_path) as server:
        server.execute(
            "create database shop",
            "create table shop.t (id int primary key)",
            "insert into shop.t values (7)",
        )
        closed = server.flush()
        assert [path.name for path in server.binlogs()] == ["binlog.000001", "binlog.000002"]
        text = server.binlogtool("-vv", "--base64-output=decode-rows", str(closed)).stdout
        assert b"###   @1=7" in text
        server.restart()
        assert server.execute("select id from shop.t") == [(7,)]
        assert len(server.binlogs()) == 3
        pid = server.pid
        assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_a_default_server_of_either_kind_writes_rows(mysql_server: Server, mariadb_server: Server) -> None:
    for server in (mysql_server, mariadb_server):
        assert server.execute("select @@log_bin, @@binlog_format, @@binlog_checksum") == [(1, "ROW", "CRC32")]
