"""Snapshots from files of DDL: the content of a dump equals the server's own snapshot."""

from pathlib import Path
from typing import Any

import pytest

from ingest.errors import SnapshotInputError
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.information_schema import take_snapshot
from ingest.sources.servers.server import Server as Source
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.sources.snapshots.snapshot_ddl import read_snapshot_ddl
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from recover.undo.tables.table import tables_of_snapshot
from tests.servers import Server
from tests.servers.marked import marked

DUMP = r"""-- MySQL dump 10.13  Distrib 9.7.4, for Linux (x86_64)
-- Server version	9.7.4
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */;
-- CHANGE REPLICATION SOURCE TO SOURCE_LOG_FILE='binlog.000007', SOURCE_LOG_POS=1234;
CREATE DATABASE /*!32312 IF NOT EXISTS*/ `shop` /*!40100 DEFAULT CHARACTER SET utf8mb4 */;
USE `shop`;
DROP TABLE IF EXISTS `orders`;
CREATE TABLE `orders` (
  `id` int unsigned NOT NULL AUTO_INCREMENT,
  `note` varchar(20) CHARACTER SET latin1 DEFAULT 'a;b',
  `customer` int DEFAULT NULL,
  `twice` int GENERATED ALWAYS AS (`id` * 2) VIRTUAL,
  PRIMARY KEY (`id`),
  UNIQUE KEY `note` (`note`),
  CONSTRAINT `who` FOREIGN KEY (`customer`) REFERENCES `customers` (`id`) ON DELETE CASCADE
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COMMENT='it''s; here';
DELIMITER ;;
/*!50003 CREATE*/ /*!50003 TRIGGER tr BEFORE INSERT ON orders FOR EACH ROW BEGIN SET @a = 1; END */;;
DELIMITER ;
/*!50001 CREATE VIEW `v` AS SELECT 1 AS `id`*/;
INSERT INTO `orders` VALUES (1,'CREATE TABLE x (a int);',NULL);
CREATE TABLE `customers` (`id` int NOT NULL);
ALTER TABLE `customers` ADD PRIMARY KEY (`id`);
"""

STATEMENTS = [
    """create table `snap``ddl`.customers (
        id int unsigned not null auto_increment, name varchar(40) not null,
        code char(3) character set latin1,
        kind enum('a','it''s','b,c'), flags set('x','y'), price decimal(9,2) unsigned, ratio float,
        at timestamp(3) null,
        doc json, raw varbinary(20), bits bit(3), born year, place point, total int as (born * 2) stored,
        small tinyint(1), padded int(5) zerofill, words mediumtext, primary key (id), unique key (code, name),
        unique (name), unique begins (words(9), code, raw(3))) default charset=utf8mb4""",
    """create table `snap``ddl`.`line items` (
        a int, b bigint, c varchar(5), customer int unsigned, primary key (b, a),
        constraint owner foreign key (customer) references customers (id) on delete cascade on update set null
        ) default charset=latin1""",
]


def write(path: Path, text: str) -> Path:
    """Write a file."""
    path.write_text(text)
    return path


def test_a_dump_is_carried_out(tmp_path: Path) -> None:
    snapshot = read_snapshot_ddl(write(tmp_path / "shop.sql", DUMP))
    assert (snapshot.origin, snapshot.binlog_file, snapshot.binlog_pos) == ("ddl", "binlog.000007", 1234)
    orders = [row for row in snapshot.columns if row["table_name"] == "orders"]
    assert [(row["column_name"], row["column_type"], row["character_set"], row["is_nullable"]) for row in orders] == [
        ("id", "int unsigned", None, False),
        ("note", "varchar(20)", "latin1", True),
        ("customer", "int", None, True),
        ("twice", "int", None, True),
    ]
    assert [row["is_generated"] for row in orders] == [False, False, False, True]
    assert [row["primary_key_ordinal"] for row in orders] == [1, None, None, None]
    assert [(row["table_name"], row["constraint_name"], row["column_name"]) for row in snapshot.keys] == [
        ("customers", "PRIMARY", "id"),
        ("orders", "PRIMARY", "id"),
        ("orders", "note", "note"),
    ]
    (key,) = snapshot.foreign_keys
    assert (key["constraint_name"], key["referenced_table_name"], key["referenced_column_name"]) == (
        "who",
        "customers",
        "id",
    )
    assert (key["delete_rule"], key["update_rule"]) == ("CASCADE", "NO ACTION")


@pytest.mark.parametrize(
    "routine",
    [
        "delimiter ;;\ncreate function f() returns int language javascript\nas $$\n // don't ;;\n $$ ;;\ndelimiter ;",
        "create library l language javascript as $js$ let x = `; $$ $JS$ ' \ndelimiter x\n $js$;",
        "delimiter $$\ncreate procedure p() begin select 1; end $$ create procedure q() select 'a'$$\ndelimiter ;",
        "delimiter $$\ncreate procedure p() language javascript as $_$ don't; $_$ $$\ndelimiter ;",
    ],
)
def test_a_routine_hides_no_table_behind_it(routine: str, tmp_path: Path) -> None:
    script = f"create table s.a (x int);\n{routine}\ncreate table s.b (x int comment 'it');\ncreate table s.c (x int);"
    path = write(tmp_path / "dump.sql", script)
    assert {row["table_name"] for row in read_snapshot_ddl(path).columns} == {"a", "b", "c"}


def test_before_mysql_9_dollars_quote_nothing(tmp_path: Path) -> None:
    script = "-- Server version\t8.4.3\ncreate table s.a ($$ int);\ncreate table s.$b$ ($$ int);"
    path = write(tmp_path / "dump.sql", script)
    assert {row["table_name"] for row in read_snapshot_ddl(path).columns} == {"a", "$b$"}


def test_defaults_are_those_that_the_statements_say(tmp_path: Path) -> None:
    text = (
        "create database if not exists shop character set koi8r collate koi8r_bin; use shop;"
        "create table plain (a text); create table own (a text) charset latin1; create table other.unsaid (a text);"
        "create database unsaid; alter table own collate latin1_bin;"
    )
    snapshot = read_snapshot_ddl(write(tmp_path / "shop.sql", text))
    assert [tuple(row.values()) for row in snapshot.defaults] == [
        ("shop", None, "koi8r", "koi8r_bin"),
        ("shop", "own", "latin1", "latin1_bin"),
        ("shop", "plain", "koi8r", "koi8r_bin"),
    ]
    assert [(row["table_name"], row["character_set"]) for row in snapshot.columns] == [
        ("unsaid", None),
        ("own", "latin1"),
        ("plain", "koi8r"),
    ]


def test_the_position_that_is_given_counts_before_the_one_in_the_file(tmp_path: Path) -> None:
    snapshot = read_snapshot_ddl(write(tmp_path / "shop.sql", DUMP), None, "binlog.000001", 4)
    assert (snapshot.binlog_file, snapshot.binlog_pos) == ("binlog.000001", 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "creates no table"),
        ("-- nothing\nselect 1;", "creates no table"),
        ("create table t (a int);", "line 1: table t has no schema"),
        ("use d;\ncreate table t (a int);\n\nalter table t wonder;", "line 4: ALTER TABLE is not understood"),
        ("use d;\n/* why */ create table t like u;", "line 2: table d.t is made like d.u, which is not known"),
        ("use d; create table t select 1;", "come from a query"),
    ],
)
def test_what_cannot_be_used_is_named_with_its_line(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(SnapshotInputError, match=message) as caught:
        read_snapshot_ddl(write(tmp_path / "x.sql", text))
    assert caught.value.hint


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SnapshotInputError, match="cannot be read"):
        read_snapshot_ddl(tmp_path / "none.sql")


def test_tables_without_a_schema_are_in_the_one_that_is_given(tmp_path: Path) -> None:
    snapshot = read_snapshot_ddl(write(tmp_path / "x.sql", "create table t (a int)"), "shop")
    assert [(row["schema_name"], row["table_name"]) for row in snapshot.columns] == [("shop", "t")]


@pytest.mark.parametrize("name", marked("mysql", "mariadb"))
def test_ddl_of_a_server_is_the_snapshot_of_the_server(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    server.execute("create database `snap``ddl`", *STATEMENTS)
    try:
        shown = [
            server.execute(f"show create table `snap``ddl`.`{table}`")[0][1] for table in ("customers", "line items")
        ]
        head = f"-- Server version\t{server.execute('select version()')[0][0]}\n"
        path = write(tmp_path / "x.sql", head + ";\n".join(shown) + ";")
        with Source(ServerAddress(server.host, server.port, "root")) as source:
            expected = take_snapshot(source)
        ours = read_snapshot_ddl(path, "snap`ddl")
        assert rows(ours) == rows(expected)
    finally:
        server.execute("drop database `snap``ddl`")


WITH_EXPRESSIONS = """create table `snap``ddl`.mails (
    tenant int not null, email varchar(20) not null, unique key plain (tenant, email), unique ((lower(email))),
    unique key ends (tenant, (lower(email))), unique key begins ((lower(email)), tenant), key (tenant, (lower(email))))
"""


def test_the_lengths_of_a_key_follow_its_columns(tmp_path: Path) -> None:
    text = """create table s.t (a text, b text, c text, unique k (a(3), b(4), c(5)));
    alter table s.t drop column a, rename column b to z, add unique m (z(8), c(9));"""
    snapshot = read_snapshot_ddl(write(tmp_path / "t.sql", text))
    found = [(row["constraint_name"], row["column_name"], row.get("prefix_length")) for row in snapshot.keys]
    assert found == [("k", "z", 4), ("k", "c", 5), ("m", "z", 8), ("m", "c", 9)]
    (table,) = tables_of_snapshot(snapshot.columns, snapshot.keys).values()
    assert [key.text for key in table.computed_keys] == ["z(4), c(5)", "z(8), c(9)"]
    assert not table.unique_keys and not table.row_key


def test_a_unique_key_with_an_expression_is_none_of_its_columns(mysql_server: Server, tmp_path: Path) -> None:
    mysql_server.execute("create database `snap``ddl`", WITH_EXPRESSIONS)
    try:
        shown = mysql_server.execute("show create table `snap``ddl`.mails")[0][1]
        with Source(ServerAddress(mysql_server.host, mysql_server.port, "root")) as source:
            snapshots = [take_snapshot(source), read_snapshot_dir(mysql_server.snapshot_dir(tmp_path))]
    finally:
        mysql_server.execute("drop database `snap``ddl`")
    for number, text in enumerate((shown, WITH_EXPRESSIONS)):
        snapshots.append(read_snapshot_ddl(write(tmp_path / f"{number}.sql", text + ";"), "snap`ddl"))
    for snapshot in snapshots:
        parts = [(row["constraint_name"], row["column_name"], row.get("expression")) for row in rows(snapshot)["keys"]]
        whole = [part for part in parts if part[0] == "plain"]
        assert whole == [("plain", "tenant", None), ("plain", "email", None)], snapshot.origin
        # A file of DDL knows that a part is an expression, and not which one.
        lower = None if snapshot.origin == "ddl" else "lower(`email`)"
        assert [part for part in parts if part[0] != "plain"] == [
            ("begins", None, lower), ("begins", "tenant", None), ("ends", "tenant", None), ("ends", None, lower),
            ("functional_index", None, lower),
        ], snapshot.origin  # fmt: skip


def rows(snapshot: SchemaSnapshot) -> dict[str, list[dict[str, Any]]]:
    """Return the part that both contain: DDL omits default collations and keys that are not unique."""
    left_out = ("collation", "column_comment", "column_default", "extra", "column_key")
    return {
        name: [
            {key: value for key, value in row.items() if key not in left_out}
            for row in getattr(snapshot, name)
            if row["schema_name"] == "snap`ddl"
        ]
        for name in ("columns", "keys", "foreign_keys")
    }
