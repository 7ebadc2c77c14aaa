"""Live servers: connecting, messages about their settings, and the content of their snapshots."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.errors import AccessRefusedError, SourceCheckError, SourceError, UsageError
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.information_schema import binlog_position, take_snapshot
from ingest.sources.servers.server import Server, ServerIdentity, server_identity
from ingest.sources.servers.server_check import check_server, require_usable
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.versions import NEWEST, Version
from tests.servers import Distribution, mariadb, mariadb118
from tests.servers import Server as LiveServer
from tests.servers.accounts import create_account
from tests.servers.marked import marked

SCHEMA = [
    "drop database if exists inventory",
    "create database inventory",
    "create table inventory.places (area int, shelf int, label varchar(20) character set latin1 default 'x',"
    " code varchar(9) generated always as (concat(area, '-', shelf)) stored,"
    " primary key (shelf, area), unique (label))",
    "create table inventory.things (id int auto_increment primary key, area int, shelf int, kind enum('a','b''c'),"
    " constraint stands foreign key (shelf, area) references inventory.places (shelf, area)"
    " on delete cascade on update restrict)",
    "create view inventory.everything as select * from inventory.things",
]


@pytest.fixture(params=marked("mysql", "mariadb"))
def server(request: pytest.FixtureRequest) -> Iterator[LiveServer]:
    """Each of the real servers, with a small schema."""
    live: LiveServer = request.getfixturevalue(f"{request.param}_server")
    live.execute(*SCHEMA)
    return live


def address(server: LiveServer, **more: Any) -> ServerAddress:
    """The address of a server for tests: root, without a password."""
    return ServerAddress("127.0.0.1", server.port, "root", **more)


def test_snapshot_says_what_the_server_has(server: LiveServer, tmp_path: Path) -> None:
    with Server(address(server)) as live:
        snapshot = take_snapshot(live)
        name, position, gtids = binlog_position(live)
    assert (snapshot.binlog_file, snapshot.binlog_pos, snapshot.gtid_executed) == (name, position, gtids)
    assert name == server.binlogs()[-1].name
    assert snapshot.logs_cascades == (server.flavor == "mysql")
    mine = [column for column in snapshot.columns if column["schema_name"] == "inventory"]
    assert {column["table_name"] for column in mine} == {"places", "things"}
    places = [column for column in mine if column["table_name"] == "places"]
    assert [(c["column_name"], c["primary_key_ordinal"], c["is_generated"]) for c in places] == [
        ("area", 2, False),
        ("shelf", 1, False),
        ("label", None, False),
        ("code", None, True),
    ]
    assert places[2]["character_set"] == "latin1"
    assert [c["column_type"] for c in mine if c["column_name"] == "kind"] == ["enum('a','b''c')"]
    foreign = [row for row in snapshot.foreign_keys if row["schema_name"] == "inventory"]
    assert [(r["constraint_name"], r["column_name"], r["ordinal_position"], r["delete_rule"]) for r in foreign] == [
        ("stands", "shelf", 1, "CASCADE"),
        ("stands", "area", 2, "CASCADE"),
    ]
    assert {row["referenced_table_name"] for row in foreign} == {"places"}


def test_snapshot_of_the_server_and_of_its_files_agree(server: LiveServer, tmp_path: Path) -> None:
    with Server(address(server)) as live:
        from_server = take_snapshot(live)
    from_files = read_snapshot_dir(server.snapshot_dir(tmp_path / "schema"))
    for kind in ("columns", "keys", "foreign_keys", "defaults"):
        found = [
            [row for row in getattr(snapshot, kind) if row["schema_name"] == "inventory" and is_table(row)]
            for snapshot in (from_server, from_files)
        ]
        assert found[0] == found[1]


@pytest.mark.parametrize(
    "name",
    marked("mysql", "mariadb", "mysql56", "mariadb118"),
)
def test_snapshot_says_the_defaults_of_schemas_and_tables(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: LiveServer = request.getfixturevalue(f"{name}_server")
    utf8 = "utf8" if server.version.startswith("5.") else "utf8mb3"
    create_account(server, tmp_path, "defaults", ("replication client", "select"), password="secret")
    server.execute(
        "create database defaults character set koi8r collate koi8r_bin",
        "create table defaults.plain (a text)",
        "create table defaults.own (a text) character set utf8 collate utf8_bin",
        "create view defaults.seen as select a from defaults.plain",
    )
    try:
        with Server(ServerAddress("127.0.0.1", server.port, "defaults", password="secret")) as live:
            from_server = take_snapshot(live)
        from_files = read_snapshot_dir(server.snapshot_dir(tmp_path / "schema"))
    finally:
        server.execute("drop database defaults")
    for snapshot in (from_server, from_files):
        assert [row for row in snapshot.defaults if row["schema_name"] == "defaults"] == [
            {"schema_name": "defaults", "table_name": None, "character_set": "koi8r", "collation": "koi8r_bin"},
            {"schema_name": "defaults", "table_name": "own", "character_set": utf8, "collation": f"{utf8}_bin"},
            {"schema_name": "defaults", "table_name": "plain", "character_set": "koi8r", "collation": "koi8r_bin"},
        ]


def is_table(row: dict[str, Any]) -> bool:
    """Whether a row belongs to a table: the files do not distinguish tables and views."""
    return bool(row["table_name"] != "everything")


def test_snapshot_beside_writers_and_ddl(server: LiveServer) -> None:
    """While rows and columns change, a snapshot has the columns at the position that it records."""
    server.execute("create table inventory.busy (id int auto_increment primary key, c0 int)")
    stop = threading.Event()

    def write() -> None:
        with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
            added = 0
            while not stop.is_set():
                cursor.execute("insert into inventory.busy (c0) values (1)")
                if added < 30:
                    added += 1
                    cursor.execute(f"alter table inventory.busy add column c{added} int")

    writer = threading.Thread(target=write)
    writer.start()
    try:
        snapshots = []
        tries = 0
        # The writer ends its DDL statements some time, so that a snapshot can be taken.
        while tries < 8 or not snapshots:
            tries += 1
            with Server(address(server)) as live:
                try:
                    snapshots.append(take_snapshot(live))
                except SourceError as error:
                    assert "changed while it was read" in str(error)
    finally:
        stop.set()
        writer.join()
    for snapshot in snapshots:
        columns = [column for column in snapshot.columns if column["table_name"] == "busy"]
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"show binlog events in '{snapshot.binlog_file}'")
            altered = sum(
                "alter table inventory.busy" in str(row[5])
                for row in cursor.fetchall()
                if row[4] <= snapshot.binlog_pos
            )
        assert len(columns) == 2 + altered


def test_who_a_server_is(server: LiveServer) -> None:
    with Server(address(server)) as live:
        identity = server_identity(live)
    expected = "mariadb" if "mariadb" in identity.version.lower() else "mysql"
    assert (identity.flavor, identity.port) == (expected, server.port)
    assert identity.version_numbers >= (9, 7, 0)
    assert (identity.server_uuid is None) == (expected == "mariadb")


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("9.7.4", (9, 7, 4)), ("8.0", (8, 0, 0)), ("10.11.18-MariaDB-deb12", NEWEST), ("", NEWEST)],
)
def test_version_numbers(version: str, numbers: Version) -> None:
    assert ServerIdentity("mysql", version, 1, None, "h", 1).version_numbers == numbers


@pytest.mark.parametrize(
    ("distribution", "version"),
    [
        pytest.param(mariadb, "8.0.36-shop", id="mariadb", marks=pytest.mark.mariadb),
        pytest.param(mariadb118, "5.5.60-shop", id="mariadb118", marks=pytest.mark.mariadb118),
    ],
)
def test_a_mariadb_that_does_not_say_so(distribution: Distribution, version: str, tmp_path: Path) -> None:
    with distribution.start(tmp_path, [f"--version={version}"]) as named, Server(address(named)) as live:
        identity = server_identity(live)
        assert (identity.flavor, identity.version, identity.version_numbers) == ("mariadb", version, NEWEST)
        assert [issue for issue in check_server(live) if issue.level == "error"] == []


def test_checks_of_a_mysql_server(mysql_server: LiveServer) -> None:
    mysql_server.execute(*SCHEMA)
    with Server(address(mysql_server)) as live:
        assert [finding.level for finding in check_server(live)] == ["advice"]
        require_usable(live)
        mysql_server.execute("set global binlog_row_image = 'MINIMAL'", "set global binlog_row_metadata = 'FULL'")
        try:
            (finding,) = check_server(live)
            assert finding.level == "warning" and "binlog_row_image is MINIMAL" in finding.message
            mysql_server.execute("set global binlog_format = 'STATEMENT'")
            with pytest.raises(SourceCheckError, match="binlog_format is STATEMENT"):
                require_usable(live)
        finally:
            mysql_server.execute(
                "set global binlog_row_image = default",
                "set global binlog_row_metadata = default",
                "set global binlog_format = 'ROW'",
            )


def test_cascades_inside_the_engine_are_listed(mariadb_server: LiveServer) -> None:
    mariadb_server.execute(*SCHEMA)
    with Server(address(mariadb_server)) as live:
        (warning,) = (finding for finding in check_server(live) if finding.level == "warning")
    assert "inventory.things stands (on update restrict, on delete cascade)" in warning.message


def test_wrong_password_and_nobody_there(server: LiveServer) -> None:
    with pytest.raises(SourceError, match="refuses user 'root'") as caught:
        Server(address(server, password="s3cret-and-wrong"))
    assert "s3cret" not in str(caught.value)
    assert "s3cret" not in repr(address(server, password="s3cret"))
    with pytest.raises(SourceError, match="cannot be reached"):
        Server(ServerAddress("127.0.0.1", 1))


@pytest.mark.parametrize(
    ("attribute", "needle"),
    [
        ("password expire", "Its password has expired: ALTER USER gives it a new one"),
        ("account lock", "The account is locked: ALTER USER ... ACCOUNT UNLOCK opens it"),
    ],
)
def test_an_account_that_cannot_be_used_is_told_as_such(server: LiveServer, attribute: str, needle: str) -> None:
    user = "'ada'@'%'"
    server.execute(f"drop user if exists {user}", f"create user {user} identified by 'pw'")
    server.execute(f"alter user {user} {attribute}")
    with pytest.raises(AccessRefusedError, match=rf"refuses user 'ada': .*[^.]\. {needle}\.$"):
        Server(ServerAddress("127.0.0.1", server.port, "ada", "pw")).rows("select 1 as one")


def test_a_server_without_room_is_not_said_to_be_away(server: LiveServer) -> None:
    user = "'ada'@'%'"
    server.execute(f"drop user if exists {user}", f"create user {user} identified by 'pw' with max_user_connections 1")
    asked = ServerAddress("127.0.0.1", server.port, "ada", "pw")
    with Server(asked), pytest.raises(SourceError, match=r"refuses the connection: .*\. Try again when others have"):
        Server(asked)


def test_missing_privilege_is_named(server: LiveServer) -> None:
    server.execute(
        "drop user if exists 'reader'@'%'",
        "create user 'reader'@'%' identified by 'pw'",
        "grant select on inventory.* to 'reader'@'%'",
    )
    with Server(ServerAddress("127.0.0.1", server.port, "reader", "pw")) as live:
        monitor = "REPLICATION CLIENT" if server.flavor == "mysql" else "BINLOG MONITOR"
        with pytest.raises(
            SourceError,
            match=rf"'reader'@'%' lacks the privilege {monitor} .* grant {monitor.lower()} on \*\.\* to 'reader'@'%';",
        ):
            take_snapshot(live)
        server.execute("grant replication client on *.* to 'reader'@'%'")
    with Server(ServerAddress("127.0.0.1", server.port, "reader", "pw")) as live:
        assert {column["schema_name"] for column in take_snapshot(live).columns} == {"inventory"}


def test_address_from_file_and_environment(tmp_path: Path) -> None:
    options = tmp_path / "my.cnf"
    options.write_text("[client]\nuser=app\npassword='p#1'\nport=3307\nssl-ca=/ca.pem\n[binloom]\nuser=binloom\n")
    found = ServerAddress.of("db.example", None, None, options, {})
    assert (found.host, found.port, found.user, found.password, found.tls_ca) == (
        "db.example",
        3307,
        "binloom",
        "p#1",
        "/ca.pem",
    )
    environment = {"MYSQL_PWD": "two", "BINLOOM_PASSWORD": "one", "USER": "me"}
    found = ServerAddress.of(environment=environment)
    assert (found.host, found.port, found.user, found.password) == ("127.0.0.1", 3306, "me", "one")
    assert ServerAddress.of("h", 1, "u", options, environment).password == "p#1"


def test_options_files_that_do_not_help(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        ServerAddress.of(defaults_file=tmp_path / "none.cnf")
    broken = tmp_path / "broken.cnf"
    broken.write_text("user=nobody\npassword=s3cret\n")
    with pytest.raises(UsageError, match="is malformed") as caught:
        ServerAddress.of(defaults_file=broken)
    assert "s3cret" not in str(caught.value)
    broken.write_text("[client]\nport=none\n")
    with pytest.raises(UsageError, match="'none'"):
        ServerAddress.of(defaults_file=broken)
