"""Rows of files that mysqldump and mariadb-dump write."""

import gzip
from collections import Counter
from operator import itemgetter
from pathlib import Path

import pytest

from ingest.binlog import TableFilter
from ingest.errors import SnapshotInputError, UsageError
from ingest.sources.baselines.consistent_read import ConsistentRead
from ingest.sources.dumps.dump import Dump
from ingest.sources.dumps.dump_file import SqlDump
from ingest.sources.servers.address import ServerAddress
from tests.servers import Server
from tests.servers.dumped import dumped
from tests.servers.marked import marked

SCHEMA = [
    "drop database if exists dumped",
    "drop database if exists dumped_too",
    "create database dumped character set utf8mb4",
    "create database dumped_too character set utf8mb4",
    "set session sql_mode = 'NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
    "create table dumped.`ev(e)ry, thing` (id bigint unsigned primary key, d decimal(9,3), r double, f float,"
    " rounded double(10,2), b bit(9), bytes varbinary(20), fixed binary(4), blobs blob,"
    " place point, t text, latin varchar(90) character set latin1, e enum('a','it''s, (b)'), s set('x','y'), y year,"
    " day date, moment datetime(3), stamp timestamp(6) null, span time(2), doc json,"
    " doubled int generated always as (y * 2) virtual)",
    "insert into dumped.`ev(e)ry, thing` (id, d, r, f, rounded, b, bytes, fixed, blobs, place, t, latin, e, s, y, day,"
    " moment, stamp, span, doc) values"
    " (18446744073709551615, -1.5, 1e-300, 3.14159274, 1.1, b'101010101', x'00ff27', x'00', x'275c0a00',"
    " st_geomfromtext('point(1 2)'), 'it''s \\\\ \\n \\t \\0 \\Z 🎁 ), (', 'ü''', 'it''s, (b)', 'x,y', 2155,"
    " '0000-00-00', '2024-02-31 01:02:03.004', '2026-11-20 09:08:07.654321', '-838:59:58', '{\"a\": [1, 2.50]}'),"
    " (0, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,"
    " null), (1, 0, -0e0, 0, 0, 0, '', '', '', null, '', '0x41', 'a', '', 1901, '2026-01-01', '0000-00-00', null,"
    " '00:00:00.5', 'null')",
    "create table dumped_too.plain (a int, b varchar(20) character set utf8mb4)",
    "insert into dumped_too.plain values (1, 'a'), (1, 'a'), (null, 'NULL')",
    "create table dumped_too.empty (a int primary key)",
    "create view dumped_too.seen as select * from dumped_too.plain",
    "create trigger dumped_too.fires before insert on dumped_too.plain for each row set new.b = 'INSERT INTO'",
    "create trigger dumped_too.fires_too after delete on dumped_too.plain for each row begin\n"
    "INSERT INTO `empty` VALUES (1);\nend",
]
OPTIONS = (
    ["--hex-blob"],
    ["--skip-extended-insert", "--complete-insert"],
    ["--single-transaction", "--skip-opt", "--create-options", "--set-charset"],
    ["--replace"],
)


@pytest.fixture(params=marked("mysql", "mariadb"))
def server(request: pytest.FixtureRequest) -> Server:
    live: Server = request.getfixturevalue(f"{request.param}_server")
    live.execute(*SCHEMA)
    return live


def dump(server: Server, path: Path, *options: str) -> Path:
    """Write a dump with the server's own program."""
    source = "--source-data=2" if server.flavor == "mysql" else "--master-data=2"
    path.write_bytes(dumped(server, source, *options, "--databases", "dumped", "dumped_too"))
    return path


def rows_of(read: "Dump | ConsistentRead") -> "dict[str, Counter[tuple[tuple[str, str | None], ...]]]":
    """Return the rows of each table as names and values of the columns that a dump shows exactly."""
    return {
        str(table): Counter(
            tuple(
                pair
                for pair in sorted(zip(table.column_names, row, strict=True), key=itemgetter(0))
                if pair[0] not in ("f", "rounded", "doubled")
            )
            for batch in read.rows(table)
            for row in batch.to_pylist()
        )
        for table in read.tables
    }


def test_rows_are_those_that_the_server_gives(server: Server, tmp_path: Path) -> None:
    wanted = TableFilter.of(schemas=["dumped", "dumped_too"])
    for number, options in enumerate(OPTIONS):
        found = SqlDump(dump(server, tmp_path / f"{number}.sql", *options))
        with ConsistentRead(ServerAddress("127.0.0.1", server.port, "root"), wanted) as read:
            assert rows_of(found) == rows_of(read), options
            snapshot = read.snapshot
        assert (found.snapshot.binlog_file, found.snapshot.binlog_pos) == (snapshot.binlog_file, snapshot.binlog_pos)
        if server.flavor == "mysql":
            assert found.snapshot.gtid_executed == snapshot.gtid_executed
        (table,) = (table for table in found.tables if table.schema_name == "dumped")
        assert {"f", "rounded"}.isdisjoint(table.column_names)
        assert table.primary_key_ordinals == (0,)


def test_a_dump_that_does_not_show_its_rows_is_refused(server: Server, tmp_path: Path) -> None:
    whole = dump(server, tmp_path / "whole.sql", "--skip-extended-insert").read_bytes()
    path = tmp_path / "refused.sql"
    for changed, reason in (
        (whole[: len(whole) // 2].rsplit(b"\n", 1)[0], "it has no end"),
        (whole.replace(b"utf8mb4 */", b"latin1 */"), "not known to be utf8mb4"),
        (whole.replace(b"+00:00", b"+01:00"), "time zone"),
        (whole.replace(b"LOG_FILE=", b"LOG_="), "does not name its position"),
        (whole.replace(b"USE `dumped`", b"-- `dumped`"), "has no schema"),
        (whole + b"\n-- WHERE:  id = 1\n", "only some rows"),
    ):
        path.write_bytes(changed)
        with pytest.raises(SnapshotInputError, match=reason):
            _ = SqlDump(path).tables
    path.write_bytes(whole.replace(b"(1,'a')", b"(1,'a','b')", 1))
    line = path.read_bytes().split(b"(1,'a','b')")[0].count(b"\n") + 1
    refused = SqlDump(path)
    with pytest.raises(SnapshotInputError, match=rf"refused\.sql, line {line}: a row is not in a form"):
        rows_of(refused)
    path.write_bytes(whole)
    with pytest.raises(UsageError, match="No table of"):
        _ = SqlDump(path, wanted=TableFilter.of(tables=["other"])).tables


def test_a_compressed_dump_has_the_same_rows(server: Server, tmp_path: Path) -> None:
    whole = dump(server, tmp_path / "whole.sql")
    packed = tmp_path / "whole.sql.gz"
    packed.write_bytes(gzip.compress(whole.read_bytes()))
    assert rows_of(SqlDump(packed)) == rows_of(SqlDump(whole))
    packed.write_bytes(packed.read_bytes()[:-500])
    with pytest.raises(SnapshotInputError, match="compressed data is cut off"):
        SqlDump(packed)


def test_numbers_have_no_zeros_of_zerofill(server: Server, tmp_path: Path) -> None:
    server.execute(
        "create table dumped_too.filled (a int(6) zerofill primary key, b decimal(6,2) zerofill)",
        "insert into dumped_too.filled values (0, 0), (42, 1.5)",
    )
    found = SqlDump(dump(server, tmp_path / "dump.sql"), wanted=TableFilter.of(tables=["filled"]))
    (table,) = found.tables
    assert [row for batch in found.rows(table) for row in batch.to_pylist()] == [["0", "0.00"], ["42", "1.50"]]


def test_a_dump_that_is_cut_anywhere_is_refused(server: Server, tmp_path: Path) -> None:
    whole = dump(server, tmp_path / "whole.sql").read_bytes()
    path = tmp_path / "cut.sql"
    end = whole.index(b"-- Dump completed")
    for size in (*range(0, end, 97), *range(end - 40, end + 17)):
        path.write_bytes(whole[:size])
        try:
            found = SqlDump(path)
        except (SnapshotInputError, UsageError):
            continue
        # The last statement is whole, and so are all rows.
        assert not found.is_whole or size > whole.rindex(b"SQL_NOTES=@OLD_") - 1, size


@pytest.mark.parametrize("content", [b"\xfebin" + bytes(100), b"a,b\n1,2\n", b""])
def test_a_file_that_is_no_dump_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "dump.sql"
    path.write_bytes(content)
    with pytest.raises(SnapshotInputError, match="it is not a dump") as refused:
        SqlDump(path)
    assert "mysqldump or mariadb-dump" in refused.value.hint
