"""The servers, users and clients that the tests of following depend on work as documented."""

import stat
from pathlib import Path

import pymysql
import pytest

from tests.python.follow.conftest import SERVER_OPTIONS
from tests.servers import Distribution, Server
from tests.servers.accounts import create_account
from tests.servers.certificates import Authority
from tests.servers.load import SCHEMA, Load
from tests.servers.replication import (
    REPLICA_OPTIONS,
    LogPosition,
    begin_again,
    executed_gtids,
    log_end,
    promote,
    purge_before_current,
    replicate,
    wait_for_replica,
)
from tests.support.follow.tables import Decoded, Tables

pytestmark = pytest.mark.slow


def test_a_replica_logs_the_same_under_names_of_its_own(distribution: Distribution, tmp_path: Path) -> None:
    options = [*SERVER_OPTIONS[distribution.flavor], *REPLICA_OPTIONS[distribution.flavor]]
    nothing = Tables(tmp_path, "none")
    with (
        distribution.start(tmp_path / "primary", options) as primary,
        distribution.start(tmp_path / "replica", options, server_id=2, log_name="second") as replica,
    ):
        begin_again(replica, 41)
        replicate(primary, replica)
        with Load(primary, ddl_every=10) as load:
            load.wait_for(60)
        wait_for_replica(primary, replica)
        assert executed_gtids(replica) == executed_gtids(primary)
        assert [path.name for path in primary.binlogs()] == ["binlog.000001"]
        assert [path.name for path in replica.binlogs()] == ["second.000041"]
        gtids = [
            Decoded([(0, path) for path in server.binlogs()], nothing)["transactions"]["gtid"].to_pylist()
            for server in (primary, replica)
        ]
        assert gtids[0] == gtids[1]
        assert len(gtids[0]) >= 60

        promote(replica)
        primary.execute("create database not_replicated")
        replica.execute("create database of_its_own")
        assert not replica.execute("show databases like 'not_replicated'")
        assert executed_gtids(replica) != executed_gtids(primary)


def test_clients_go_on_when_their_server_was_killed(server: Server) -> None:
    with Load(server) as load:
        load.wait_for(30)
        server.kill()
        server.start()
        # Two of the three can be far ahead before the last one notices the end.
        while load.lost < 3:
            load.wait_for(1)
        while not load.done.keys() >= {"insert", "update", "delete"}:
            load.wait_for(1)
        # The clients delete rows, too.
        while not server.execute(f"select id from {SCHEMA}.accounts limit 1"):
            load.wait_for(1)


def test_a_mistake_of_a_client_is_raised(server: Server) -> None:
    with pytest.raises(pymysql.err.ProgrammingError), Load(server) as load:
        load.wait_for(10)
        server.execute(f"drop table {SCHEMA}.measures")
        load.wait_for(10_000)


def test_logs_are_purged_and_begin_again(server: Server) -> None:
    server.execute("create database one")
    assert purge_before_current(server) == LogPosition("binlog.000002", 4)
    assert [path.name for path in server.binlogs()] == ["binlog.000002"]
    begin_again(server)
    assert log_end(server).binlog_file == "binlog.000001"
    assert executed_gtids(server) == ""


def test_a_user_has_what_it_was_given_and_nobody_reads_its_password(server: Server, tmp_path: Path) -> None:
    account = create_account(server, tmp_path, privileges=["replication client"])
    assert stat.S_IMODE(account.defaults_file.stat().st_mode) == 0o600
    assert not any(account.password.encode() in path.read_bytes() for path in server.binlogs())
    login = {"read_default_file": str(account.defaults_file), "user": None, "password": ""}
    with server.connect(**login) as connection, connection.cursor() as cursor:
        cursor.execute("select current_user()")
        assert cursor.fetchone() == ("follower@%",)
        with pytest.raises(pymysql.err.OperationalError, match="denied"):
            cursor.execute("select * from mysql.user")


def test_a_certificate_holds_for_its_hosts_and_its_authority(distribution: Distribution, tmp_path: Path) -> None:
    authority, other = Authority(tmp_path / "tls"), Authority(tmp_path / "tls", "other")
    options = authority.server_options(authority.sign("server", ("127.0.0.1",)))
    with distribution.start(tmp_path / "server", options) as server:
        account = create_account(server, tmp_path, require="ssl")
        login = {"user": account.user, "password": account.password}
        verified = {"ssl_verify_cert": True, "ssl_verify_identity": True}
        server.connect(**login, ssl_ca=str(authority.file), **verified).close()
        with pytest.raises(pymysql.err.OperationalError, match="certificate verify failed"):
            server.connect(**login, ssl_ca=str(other.file), **verified)
        with pytest.raises(pymysql.err.OperationalError, match="denied"):
            server.connect(**login, ssl_disabled=True)
