"""Server requirements for following: the least set of privileges, and each missing privilege by its name."""

import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pymysql
import pytest
from pymysql.constants import COMMAND, ER

from ingest.errors import SourceError
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.information_schema import binlog_position, take_snapshot
from ingest.sources.servers.replication import Replica, read_head
from ingest.sources.servers.server import Server, binary_logs, executed_gtids, gtid_purged, server_identity
from ingest.sources.servers.server_check import check_server
from tests.servers import Server as LiveServer
from tests.servers import mysql
from tests.servers.marked import marked
from tests.servers.replication import purge_before_current
from tests.support.places import PROJECT

REPLICA = Replica(4711, "1b4e28ba-2fa1-11d2-883f-0016d3cca427")
LEAST = {
    "mysql": {"monitor": "REPLICATION CLIENT", "stream": "REPLICATION SLAVE", "snapshot": "SELECT"},
    "mariadb": {"monitor": "BINLOG MONITOR", "stream": "REPLICATION SLAVE", "snapshot": "SELECT"},
}


@pytest.fixture(params=marked("mysql", "mariadb", "mysql56"))
def server(request: pytest.FixtureRequest) -> LiveServer:
    """Each of the real servers."""
    live: LiveServer = request.getfixturevalue(f"{request.param}_server")
    return live


def as_root(server: LiveServer) -> Server:
    """A connection with all privileges."""
    return Server(ServerAddress("127.0.0.1", server.port, "root"))


def as_follower(server: LiveServer, without: str | None = None) -> Server:
    """Connect as a user with the least set of privileges, or without one of them."""
    account = "'fol''lower'@'localhost'"
    server.execute("create database if not exists shop", "create table if not exists shop.orders (id int primary key)")
    if server.execute("select 1 from mysql.user where user = 'fol''lower'"):
        server.execute(f"drop user {account}")
    server.execute(f"create user {account} identified by 's3cret'")
    for need, privilege in LEAST[server.flavor].items():
        if need != without:
            server.execute(f"grant {privilege} on *.* to {account}")
    return Server(ServerAddress("127.0.0.1", server.port, "fol'lower", "s3cret"))


def command(server: LiveServer, number: int, argument: bytes) -> bytes:
    """Return the server's answer to a replication command."""
    with pymysql.connect(host="127.0.0.1", port=server.port, user="fol'lower", password="s3cret") as connection:
        with connection.cursor() as cursor:
            cursor.execute("set @master_binlog_checksum = 'CRC32'")
        connection._execute_command(number, argument)
        return bytes(connection._read_packet().get_all_data())


def register(server: LiveServer) -> bytes:
    """Register as a replica: server id, no names, a port, rank, the source's id."""
    return command(
        server, COMMAND.COM_REGISTER_SLAVE, struct.pack("<I", 4711) + bytes(3) + struct.pack("<HII", 3306, 0, 0)
    )


def dump(server: LiveServer) -> bytes:
    """Request the log from its first event on: position, flags, server id, file."""
    name = server.binlogs()[-1].name.encode()
    return command(server, COMMAND.COM_BINLOG_DUMP, struct.pack("<IHI", 4, 0, 4711) + name)


def test_the_least_privileges_are_enough(server: LiveServer) -> None:
    with as_follower(server) as live:
        assert binary_logs(live)[-1][0] == binlog_position(live)[0] == server.binlogs()[-1].name
        assert server_identity(live).flavor == server.flavor
        assert executed_gtids(live) is None or executed_gtids(live) == binlog_position(live)[2]
        assert {column["table_name"] for column in take_snapshot(live).columns if column["schema_name"] == "shop"}
        assert not any("SELECT" in finding.message for finding in check_server(live))
    assert register(server)[0] == 0
    assert dump(server)[0] == 0


def test_the_documented_grant_is_the_least_one() -> None:
    text = (PROJECT / "docs" / "follow.md").read_text()
    documented = re.findall(r"^grant (.*) on \*\.\* to .*-- (\w+)", text, re.M)
    assert {flavor.lower(): set(privileges.upper().split(", ")) for privileges, flavor in documented} == {
        flavor: set(privileges.values()) for flavor, privileges in LEAST.items()
    }


def test_without_the_one_to_ask_nothing_says_where_the_log_stands(server: LiveServer) -> None:
    privilege = LEAST[server.flavor]["monitor"]
    with as_follower(server, without="monitor") as live:
        for ask in (binary_logs, binlog_position, take_snapshot):
            with pytest.raises(SourceError) as caught:
                ask(live)
            assert f"User 'fol''lower'@'localhost' lacks the privilege {privilege} on the server" in str(caught.value)
            assert f"grant {privilege.lower()} on *.* to 'fol''lower'@'localhost';" in str(caught.value)
            assert "s3cret" not in str(caught.value)
            # The statement in the message solves the problem.
            server.execute((caught.value.hint or "").removeprefix("Run there: "))
            with Server(live.address) as again:
                ask(again)
            server.execute(f"revoke {privilege} on *.* from 'fol''lower'@'localhost'")


def test_without_the_one_to_read_the_log_is_not_sent(server: LiveServer) -> None:
    with as_follower(server, without="stream") as live:
        with pytest.raises(pymysql.err.OperationalError) as refused:
            register(server)
        assert refused.value.args[0] == ER.ACCESS_DENIED_ERROR  # as if the password were wrong
        with pytest.raises(pymysql.err.OperationalError) as refused:
            dump(server)
        assert refused.value.args[0] == ER.SPECIFIC_ACCESS_DENIED_ERROR
        name = server.binlogs()[-1].name
        with pytest.raises(SourceError) as named:
            read_head(live.address, server.flavor, REPLICA, name)
        assert "User 'fol''lower'@'localhost' lacks the privilege REPLICATION SLAVE" in str(named.value)
        with pytest.raises(SourceError, match=r"refuses user .* Check the user, and the password"):
            read_head(replace(live.address, password="wrong"), server.flavor, REPLICA, name)
        server.execute((named.value.hint or "").removeprefix("Run there: "))
        assert read_head(live.address, server.flavor, REPLICA, name).format
    assert dump(server)[0] == register(server)[0] == 0


def test_without_the_one_to_select_a_check_says_so(server: LiveServer) -> None:
    with as_follower(server, without="snapshot") as live:
        (finding,) = (one for one in check_server(live) if one.level == "error")
        assert "User 'fol''lower'@'localhost' lacks the privilege SELECT" in finding.message


def test_which_logs_there_are(server: LiveServer) -> None:
    with as_root(server) as live:
        before = binary_logs(live)
        closed = server.flush()
        logs = binary_logs(live)
    assert [name for name, _ in logs] == [path.name for path in server.binlogs()]
    assert len(logs) == len(before) + 1
    assert dict(logs)[closed.name] == closed.stat().st_size


def test_gtids_of_a_mysql_server(mysql_server: LiveServer) -> None:
    mysql_server.execute("create database if not exists shop")
    with as_root(mysql_server) as live:
        uuid = server_identity(live).server_uuid
        executed = executed_gtids(live)
        assert executed is not None and executed.startswith(f"{uuid}:1-") and "\n" not in executed
        # Dump threads of the tests before may still read a file.
        purge_before_current(mysql_server)
        assert gtid_purged(live) == executed_gtids(live)


def test_gtids_of_a_mariadb_server(mariadb_server: LiveServer) -> None:
    with as_root(mariadb_server) as live:
        mariadb_server.execute("create database if not exists shop")
        executed = executed_gtids(live)
        mariadb_server.execute("create or replace table shop.t (id int)")
        assert executed is not None and executed.startswith("0-1-") and executed_gtids(live) != executed
        assert gtid_purged(live) is None


def test_gtids_of_a_server_without(mysql56_server: LiveServer) -> None:
    with as_root(mysql56_server) as live:
        assert executed_gtids(live) is gtid_purged(live) is None


@pytest.fixture(scope="module")
def without_log(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A MySQL server without a binlog."""
    with mysql.start(tmp_path_factory.mktemp("mysql"), options=["--skip-log-bin"]) as live:
        yield live


@pytest.mark.mysql
def test_a_server_without_a_log(without_log: LiveServer) -> None:
    with as_root(without_log) as live:
        for ask in (binary_logs, binlog_position):
            with pytest.raises(SourceError, match=r"The binary log of the server at .* is off"):
                ask(live)
