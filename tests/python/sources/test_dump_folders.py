"""Rows of dumps that are folders: those of mydumper and of MySQL Shell."""

import gzip
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from ingest.binlog import TableFilter
from ingest.errors import SnapshotInputError, UsageError
from ingest.sources.baselines.consistent_read import ConsistentRead
from ingest.sources.dumps.named_dump import open_dump
from ingest.sources.servers.address import ServerAddress
from tests.python.sources.test_dump import SCHEMA, rows_of
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.depth import at_depth
from tests.support.mydumper import dumped_by_mydumper, needs_mydumper
from tests.support.object_store import BUCKET, running_store
from tests.support.shell_dump import shell_dump

FIXTURES = Path(__file__).parents[2] / "fixtures"
# Made of the tables of `test_dump.SCHEMA` by:
#   mydumper 0.10.0 (Debian 12), MariaDB 10.11 and MySQL 9.7: mydumper -x '^(dumped|dumped_too)\.' -o FOLDER
#   mydumper 1.0.1 (built from its source), MariaDB 10.11: the same with --hex-blob -r 1 --compress=zstd
RECORDED = {
    "mydumper-0.10-mariadb": (None, "binlog.000001", 4250, "0-1-12"),
    "mydumper-0.10-mysql": (("binlog.000001", 42), "binlog.000001", 42, None),
    "mydumper-1.0-mariadb": (None, "binlog.000001", 4250, "0-1-12"),
}
ROW = {
    "id": "18446744073709551615", "d": "-1.500", "r": "1e-300", "b": "341", "bytes": "0x00FF27",
    "fixed": "0x00000000", "blobs": "0x275C0A00", "t": "it's \\ \n \t \0 \x1a 🎁 ), (", "latin": "ü'",
    "place": "0x000000000101000000000000000000F03F0000000000000040", "e": "it's, (b)", "s": "x,y", "y": "2155",
    "day": "0000-00-00", "moment": "2024-02-31 01:02:03.004", "stamp": "2026-11-20 09:08:07.654321",
    "span": "-838:59:58.00",
}  # fmt: skip


@pytest.fixture(params=marked("mysql", "mariadb"))
def server(request: pytest.FixtureRequest) -> Server:
    live: Server = request.getfixturevalue(f"{request.param}_server")
    live.execute(*SCHEMA)
    return live


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_dumps_of_mydumper(name: str) -> None:
    given, *expected = RECORDED[name]
    found = open_dump(FIXTURES / name, position=given)
    assert [found.snapshot.binlog_file, found.snapshot.binlog_pos, found.snapshot.gtid_executed] == expected
    rows = rows_of(found)
    assert {table: sum(counts.values()) for table, counts in rows.items()} == {
        "dumped.ev(e)ry, thing": 3, "dumped_too.empty": 0, "dumped_too.plain": 3,
    }  # fmt: skip
    assert rows["dumped_too.plain"][("a", "1"), ("b", "a")] == 2
    (last,) = (row for one in rows["dumped.ev(e)ry, thing"] if (row := dict(one))["id"] == ROW["id"])
    assert {name: value for name, value in last.items() if name != "doc"} == ROW
    assert json.loads(last["doc"] or "") == {"a": [1, 2.5]}
    # Only a dump that counts its rows shows that a table had none.
    (empty,) = (table for table in found.tables if table.table_name == "empty")
    assert found.has_data(empty) is (name == "mydumper-1.0-mariadb")
    assert set(found.engines.values()) == {"INNODB"}


@needs_mydumper
def test_a_dump_of_mydumper_has_the_rows_of_the_server(server: Server, tmp_path: Path) -> None:
    server.execute("insert into dumped_too.empty values (1), (2), (3)")
    wanted = TableFilter.of(schemas=["dumped", "dumped_too"])
    with ConsistentRead(ServerAddress("127.0.0.1", server.port, "root"), wanted) as read:
        expected, snapshot = rows_of(read), read.snapshot
    assert snapshot.binlog_file is not None and snapshot.binlog_pos is not None
    for number, options in enumerate([[], ["--compress", "--complete-insert", "--statement-size=1"]]):
        folder = dumped_by_mydumper(server, tmp_path / str(number), "dumped|dumped_too", *options)
        # The mydumper of Debian asks a new MySQL for its position by a statement that is gone.
        position = None if server.flavor == "mariadb" else (snapshot.binlog_file, snapshot.binlog_pos)
        found = open_dump(folder, position=position)
        assert rows_of(found) == expected
        assert (found.snapshot.binlog_file, found.snapshot.binlog_pos) == (snapshot.binlog_file, snapshot.binlog_pos)


@pytest.mark.parametrize("is_hex", [False, True])
def test_a_dump_in_the_form_of_mysql_shell_has_the_rows_of_the_server(
    server: Server, tmp_path: Path, is_hex: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A row may be longer than what is read at once.
    monkeypatch.setattr("ingest.sources.dumps.tab_rows._AT_ONCE", 100)
    server.execute(
        "create table dumped.filled (a int(6) zerofill primary key)",
        "insert into dumped.filled values (7), (0)",
        "create table dumped_too.long (a int primary key, c char(0) not null, big longtext)",
        f"insert into dumped_too.long values (7, '', repeat('a\\n\\t\\\\', {500})), (42, '', null), (43, '', '')",
        "create table dumped_too.one (c varchar(9))",
        "insert into dumped_too.one values (''), ('N'), ('\\\\N'), (null), ('\\r')",
    )
    folder = shell_dump(server, tmp_path / "dump", "dumped", "dumped_too", is_hex=is_hex)
    found = open_dump(folder)
    rows = rows_of(found)
    assert rows.pop("dumped.filled") == {(("a", "7"),): 1, (("a", "0"),): 1}
    wanted = TableFilter.of(schemas=["dumped", "dumped_too"], exclude_tables=["filled"])
    with ConsistentRead(ServerAddress("127.0.0.1", server.port, "root"), wanted) as read:
        assert rows == rows_of(read)
        assert (found.snapshot.binlog_file, found.snapshot.binlog_pos) == (
            read.snapshot.binlog_file, read.snapshot.binlog_pos,
        )  # fmt: skip
        if server.flavor == "mysql":
            assert found.snapshot.gtid_executed == read.snapshot.gtid_executed
    assert all(map(found.has_data, found.tables))


def refused(folder: Path, reason: str, hint: str = "", *, position: tuple[str, int] | None = None) -> None:
    """Assert that a dump is refused for a reason."""
    with pytest.raises((SnapshotInputError, UsageError), match=reason) as error:
        rows_of(open_dump(folder, position=position))
    assert hint in error.value.hint


def edit(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Change a file."""
    path.write_bytes(change(path.read_bytes()))


def copied(name: str, tmp_path: Path) -> Path:
    """Return a fresh copy of a recorded dump."""
    shutil.rmtree(tmp_path / "copy", ignore_errors=True)
    return shutil.copytree(FIXTURES / name, tmp_path / "copy")


def test_a_dump_of_mydumper_that_lacks_something_is_refused(tmp_path: Path) -> None:
    old, new = "mydumper-0.10-mariadb", "mydumper-1.0-mariadb"
    folder = copied(new, tmp_path)
    (folder / "metadata").rename(folder / "metadata.partial")
    refused(folder, "the dump did not end")
    folder = copied(old, tmp_path)
    edit(folder / "metadata", lambda text: text[: text.index(b"Finished")])
    refused(folder, "metadata does not tell when it finished")
    for name in (old, new):
        folder = copied(name, tmp_path)
        edit(folder / "metadata", lambda text: text.replace(b"LOG_POS", b"LOG_").replace(b"Pos:", b""))
        refused(folder, "does not name its position", "--from-position")
        open_dump(folder, position=("binlog.000001", 4250))
    folder = copied(new, tmp_path)
    (folder / "dumped_too.plain.00000.sql.zst").unlink()
    refused(folder, "plain has 0 rows in 0 files, and had 3")
    folder = copied(new, tmp_path)
    edit(folder / "dumped_too.plain.00000.sql.zst", lambda data: data[:-20])
    refused(folder, "plain.00000.sql cannot be read: its compressed data is cut off")
    folder = copied(old, tmp_path)
    whole = (folder / "dumped_too.plain.sql").read_bytes()
    for size in range(0, len(whole) - 2, at_depth(9, 1)):
        (folder / "dumped_too.plain.sql").write_bytes(whole[:size])
        refused(folder, "plain.sql")
    (folder / "dumped_too.plain.sql").write_bytes(whole.replace(b"NAMES binary", b"NAMES latin1"))
    refused(folder, "its text is in latin1")
    (folder / "dumped_too.plain.sql").rename(folder / "dumped_too.plain.00001.sql")
    (folder / "dumped_too.plain.00001.sql").write_bytes(whole)
    refused(folder, "a missing file would not be noticed", "later mydumper")
    folder = copied(old, tmp_path)
    edit(folder / "dumped_too.plain.sql", lambda text: text.replace(b"INTO `plain`", b"INTO `other`"))
    refused(folder, "does not begin with rows of dumped_too.plain")
    folder = copied(old, tmp_path)
    edit(folder / "dumped.ev(e)ry, thing.sql", lambda text: text.replace(b"TIME_ZONE='+00:00'", b"TIME_ZONE='x'"))
    refused(folder, "the time zone of .* is unknown")
    folder = copied(old, tmp_path)
    edit(folder / "dumped_too.plain-schema.sql", lambda text: text[:-4])
    refused(folder, "plain-schema.sql is cut off")
    empty = tmp_path / "empty"
    empty.mkdir()
    refused(empty, "is not a dump")


@pytest.mark.mysql
def test_a_dump_of_mysql_shell_that_lacks_something_is_refused(mysql_server: Server, tmp_path: Path) -> None:
    mysql_server.execute(*SCHEMA)
    whole, folder = shell_dump(mysql_server, tmp_path / "whole", "dumped", "dumped_too"), tmp_path / "dump"
    plain, about = "dumped_too@plain", "dumped_too@plain.json"

    def fresh() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole, folder)

    def described(name: str, key: str, value: object, reason: str) -> None:
        fresh()
        content = json.loads((folder / name).read_text())
        (content["options"] if key in content.get("options", {}) else content)[key] = value
        (folder / name).write_text(json.dumps(content))
        refused(folder, reason)

    for name, reason in (
        ("@.done.json", "the dump did not end"),
        (f"{plain}@0.tsv.zst", "@0.tsv is missing"),
        (f"{plain}@@1.tsv.zst", "the last file of .* is missing"),
        (f"{plain}.sql", r"plain\.sql is missing"),
        (about, r"plain\.json is missing"),
    ):
        fresh()
        (folder / name).unlink()
        refused(folder, reason)
    described("@.json", "binlogFile", "", "does not name its position")
    described("@.json", "consistent", False, "different moments")
    described("@.json", "capabilities", [{"id": "telepathy"}], "a program needs telepathy")
    described("@.json", "tzUtc", False, "time zone")
    described(about, "where", "a = 1", "only some rows")
    described(about, "fieldsTerminatedBy", ",", "another fieldsTerminatedBy")
    described(about, "defaultCharacterSet", "latin1", "its text is in latin1")
    described(about, "columns", ["a"], "does not have 1 values")
    described(about, "columns", ["a", "z"], "no column z")
    described("@.done.json", "chunkFileBytes", {}, "it is cut off or of another dump")
    text = zstandard.decompress((whole / f"{plain}@0.tsv.zst").read_bytes())
    for size in range(0, len(text), at_depth(3, 1)):
        fresh()
        (folder / f"{plain}@0.tsv.zst").write_bytes(zstandard.compress(text[:size]))
        refused(folder, f"{plain}@0.tsv")
    fresh()
    edit(folder / f"{plain}@0.tsv.zst", lambda data: data[:-3])
    refused(folder, "cannot be read: its compressed data is cut off")
    edit(folder / "@.json", lambda data: data[:40])
    refused(folder, "@.json is cut off or damaged")
    with pytest.raises(UsageError, match="names its schemas"):
        open_dump(whole, "shop")


def test_a_dump_in_an_archive(tmp_path: Path) -> None:
    for name in ("mydumper-0.10-mariadb", "mydumper-1.0-mariadb"):
        folder = FIXTURES / name
        expected, place = rows_of(open_dump(folder)), tmp_path / "dump.tar"
        for inside in (name, ""):
            with tarfile.open(place, "w") as archive:
                for file in folder.iterdir():
                    archive.add(file, f"{inside}/{file.name}" if inside else f"./{file.name}")
            assert rows_of(open_dump(place)) == expected
            packed = tmp_path / "dump.tar.gz"
            packed.write_bytes(gzip.compress(place.read_bytes()))
            assert rows_of(open_dump(packed)) == expected
            packed.write_bytes(packed.read_bytes()[:-100])
            refused(packed, "cut off")
    with tarfile.open(place, "w") as archive:
        archive.add(folder, "one")
        archive.add(folder, "two")
    with pytest.raises(UsageError, match="several dumps"):
        open_dump(place)
    with tarfile.open(place, "w") as archive:
        archive.add(folder / "dumped_too.plain-schema.sql.zst", "a")
        archive.add(folder / "dumped_too.plain-schema.sql.zst", "b")
    with pytest.raises(UsageError, match="an archive of 2 files"):
        open_dump(place)


@pytest.mark.slow
def test_a_dump_in_an_object_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Names of its files have spaces and parentheses.
    folder, other = FIXTURES / "mydumper-0.10-mariadb", tmp_path / "x.tar"
    expected = rows_of(open_dump(folder))
    with tarfile.open(other, "w") as archive:
        archive.add(folder, "x")
    with running_store() as store:
        for name, value in store.environment.items():
            monkeypatch.setenv(name, value)
        for file in folder.iterdir():
            store.put(file, f"dumps/of-monday/{file.name}")
        packed = store.put(other, "x.tar")
        for address in (f"s3://{BUCKET}/dumps/of-monday/", f"s3://{BUCKET}/dumps/of-monday", packed):
            found = open_dump(address)
            assert rows_of(found) == expected, address
            assert (found.snapshot.binlog_file, found.snapshot.binlog_pos) == ("binlog.000001", 4250)
        with pytest.raises(SnapshotInputError, match="missing: no such object"):
            open_dump(f"s3://{BUCKET}/missing")
        store.refuses = True
        with pytest.raises(SnapshotInputError, match="cannot be read"):
            open_dump(f"s3://{BUCKET}/dumps/of-monday/")
