"""The chain of a row's images on logs of real servers: complete when nothing is missing, broken otherwise.

Three servers run the same statements. Broken logs are separate sources, all in one warehouse, so that one build checks
them all; the second build runs after a missing file has arrived.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.landing import ingest, land_snapshot
from ingest.sources.files.directory import find_binlogs
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.information_schema import take_snapshot
from ingest.sources.servers.server import Server as Connection
from tests.servers import Server, mariadb, mysql
from tests.support.binlog import workload, workload_own, workload_tables
from tests.support.binlog.mutations import events_of
from tests.support.landing.spark import show_landed, without_session

pytestmark = [pytest.mark.mysql, pytest.mark.mariadb, pytest.mark.spark, pytest.mark.slow]

Dbt = Callable[..., dict[str, str]]

# Unit tests run elsewhere, with the unit tests of all models.
NODES = ("--select", "+chain_breaks", "+unlogged_cascades", "--exclude-resource-type", "unit_test")
# Tests of models that are not built are not run.
BUILD = ("build", *NODES, "--indirect-selection", "cautious")
# The names of columns are logged, so no snapshot is needed between two ALTERs.
NAMES = "--binlog-row-metadata=FULL"
TABLE_MAP, UPDATES = 19, (24, 31)

# One list for each file. Rows change only by logged changes.
CLEAN = [
    """
    create database life
    create table life.things (id int primary key, name varchar(20), n int)
    create table life.pairs (a int, b varchar(10), v double, primary key (b, a))
    create table life.emptied (id int primary key, n int)
    create table life.dropped (id int primary key, n int)
    create table life.`left` (id int primary key, n int)
    create table life.`right` (id int primary key, n int)
    create table life.keyless (n int)
    create table life.counted (id int primary key, n int)
    create table life.parts (id int primary key, n int) partition by range (id)
        (partition p0 values less than (10), partition p1 values less than (20))
    create table life.parents (id int primary key)
    create table life.children (id int primary key, parent int,
        foreign key (parent) references life.parents (id) on delete restrict)
    insert into life.things values (1, 'one', 1), (2, 'two', 2), (3, 'three', null), (4, null, 4), (5, '', 5)
    insert into life.pairs values (1, 'x|y', 0.1), (2, 'x\\\\y', 1e100), (3, '', -0.0)
    insert into life.emptied values (1, 1), (2, 2)
    insert into life.dropped values (1, 1), (2, 2)
    insert into life.`left` values (1, 10)
    insert into life.`right` values (1, 20)
    insert into life.keyless values (1), (1)
    insert into life.counted values (1, 1), (2, 2)
    create table life.partial (id int primary key, n int, t text)
    insert into life.partial values (1, 1, 'a')
    insert into life.parts values (1, 1), (2, 2), (11, 11)
    insert into life.parents values (1), (2)
    insert into life.children values (1, 1), (2, 2)
    update life.things set n = n + 1
    update life.things set id = 12 where id = 2
    delete from life.things where id = 3
    insert into life.things values (3, 'again', 3)
    replace into life.things values (4, 'four', 44)
    insert into life.things values (5, 'five', 5) on duplicate key update n = 55
    """,
    """
    update life.things set id = id + 100 order by id desc
    update life.things set id = id - 100 order by id
    update life.things set id = 2 where id = 12
    update life.things set name = name
    update life.pairs set v = v / 3, b = concat(b, '!') where a < 3
    begin
    update life.things set n = 7 where id = 1
    savepoint here
    update life.things set n = 8 where id = 1
    rollback to savepoint here
    update life.things set name = 'last' where id = 1
    commit
    begin
    update life.things set n = 9 where id = 1
    rollback
    xa start 'lost'
    update life.things set n = 10 where id = 1
    xa end 'lost'
    xa prepare 'lost'
    xa rollback 'lost'
    xa start 'kept'
    update life.things set n = 11 where id = 1
    xa end 'kept'
    xa prepare 'kept'
    xa commit 'kept'
    update life.things set n = 12 where id = 1
    truncate table life.emptied
    insert into life.emptied values (1, 3), (2, 4)
    drop table life.dropped
    create table life.dropped (id int primary key, n int)
    insert into life.dropped values (1, 3), (2, 4)
    update life.keyless set n = 2
    update life.counted set n = n + 1
    set session binlog_row_image = 'MINIMAL'
    update life.partial set n = 2
    update life.partial set t = 'b'
    set session binlog_row_image = 'NOBLOB'
    update life.partial set n = 3
    update life.partial set t = 'c'
    set session binlog_row_image = 'FULL'
    update life.partial set n = 4
    delete from life.children where id = 1
    delete from life.parents where id = 1
    """,
    """
    alter table life.things add column extra int default 5 first
    update life.things set n = n + 1
    alter table life.things drop column extra, modify name varchar(40) after n
    update life.things set n = n + 1
    rename table life.`left` to life.between_them, life.`right` to life.`left`, life.between_them to life.`right`
    update life.`left` set n = n + 1
    update life.`right` set n = n + 1
    alter table life.parts drop partition p0
    alter table life.parts add partition (partition p2 values less than (30))
    update life.parts set n = 12 where id = 11
    alter table life.emptied drop primary key, add primary key (n)
    update life.emptied set id = 9 where n = 3
    update life.counted set n = n + 1
    """,
    """
    update life.things set name = upper(name)
    delete from life.things
    insert into life.things values (1, 1, 'new'), (2, 2, 'new')
    update life.things set n = 0
    update life.dropped set n = n * 2
    update life.pairs set v = null
    drop database life
    create database life
    create table life.things (id int primary key, n int)
    insert into life.things values (1, 1), (2, 2)
    """,
]

# MySQL executes cascades above the engine and logs them.
LOGGED_CASCADES = """
    create table life.owners (id int primary key)
    create table life.pets (id int primary key, owner int,
        foreign key (owner) references life.owners (id) on delete cascade on update cascade)
    insert into life.owners values (1), (2), (3)
    insert into life.pets values (1, 1), (2, 2), (3, 3)
    delete from life.owners where id = 1
    update life.owners set id = 20 where id = 2
    insert into life.owners values (1)
    insert into life.pets values (1, 1)
    update life.pets set owner = 3 where id = 2
"""

# Of a document that is changed in part, the log has only the changes, and the image after lacks it.
DOCUMENTS = """
    create table life.documents (id int primary key, n int, d json)
    insert into life.documents values (1, 1, json_object('a', 1, 'b', repeat('x', 100))), (2, 1, json_object('a', 1))
    set session binlog_row_value_options = 'PARTIAL_JSON'
    update life.documents set d = json_set(d, '$.a', 2), n = 2
    update life.documents set d = json_set(d, '$.a', 3)
    update life.documents set n = 3
    update life.documents set d = json_remove(d, '$.a'), id = id + 10
    set session binlog_row_image = 'MINIMAL'
    update life.documents set d = json_set(d, '$.b', repeat('y', 100)) where id = 11
    set session binlog_row_image = 'FULL'
    set session binlog_row_value_options = ''
    update life.documents set n = 4
"""

BROKEN = [
    """
    create database torn
    create table torn.unlogged (id int primary key, name varchar(20), n int)
    create table torn.as_text (id int primary key, n int)
    create table torn.altered (id int primary key, n int, m int)
    create table torn.owners (id int primary key)
    create table torn.pets (id int primary key, owner int, name varchar(9),
        foreign key (owner) references torn.owners (id) on delete cascade on update cascade)
    create table torn.toys (id int primary key, pet int,
        foreign key (pet) references torn.pets (id) on delete set null on update restrict)
    create table torn.kept (id int primary key, owner int,
        foreign key (owner) references torn.owners (id) on delete restrict on update restrict)
    create table torn.level0 (id int primary key)
    create table torn.level1 (id int primary key, up int,
        foreign key (up) references torn.level0 (id) on delete cascade on update cascade)
    create table torn.level2 (id int primary key, up int,
        foreign key (up) references torn.level1 (id) on delete cascade on update cascade)
    create table torn.level3 (id int primary key, up int,
        foreign key (up) references torn.level2 (id) on delete cascade on update cascade)
    create table torn.level4 (id int primary key, up int,
        foreign key (up) references torn.level3 (id) on delete cascade on update cascade)
    create table torn.level5 (id int primary key, up int,
        foreign key (up) references torn.level4 (id) on delete cascade on update cascade)
    insert into torn.unlogged values (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4)
    insert into torn.as_text values (1, 1), (2, 2)
    insert into torn.altered values (1, 1, 1)
    insert into torn.owners values (1), (2), (3), (4)
    insert into torn.pets values (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'), (4, 4, 'd')
    insert into torn.toys values (1, 1), (4, 4)
    insert into torn.level0 values (1)
    insert into torn.level1 values (1, 1)
    insert into torn.level2 values (1, 1)
    insert into torn.level3 values (1, 1)
    insert into torn.level4 values (1, 1)
    insert into torn.level5 values (1, 1)
    """,
    """
    delete from torn.unlogged where id = 3
    set session sql_log_bin = 0
    update torn.unlogged set n = 99, name = 'x' where id = 1
    delete from torn.unlogged where id = 2
    insert into torn.unlogged values (3, 'c', 3)
    set session sql_log_bin = 1
    update torn.unlogged set name = 'z' where id = 1
    insert into torn.unlogged values (2, 'again', 2)
    delete from torn.unlogged where id = 3
    update torn.unlogged set n = 44 where id = 4
    set session binlog_format = 'STATEMENT'
    update torn.as_text set n = 5 where id = 1
    set session binlog_format = 'ROW'
    delete from torn.owners where id = 1
    update torn.owners set id = 20 where id = 2
    insert into torn.owners values (1)
    delete from torn.level0
    """,
    """
    insert into torn.level5 values (1, null)
    update torn.as_text set n = n + 1
    insert into torn.pets values (1, 1, 'again')
    update torn.pets set name = 'y'
    update torn.toys set pet = 3
    alter table torn.altered drop column n
    alter table torn.altered add column n int default 7
    update torn.altered set m = 2
    """,
]

# (table, key, defect, columns that differ, cause)
EXPECTED = {
    ("unlogged", "1", "values_differ", ("name", "n"), "unlogged_write"),
    ("unlogged", "2", "not_deleted", None, "unlogged_write"),
    ("unlogged", "3", "not_inserted", None, "unlogged_write"),
    ("as_text", "1", "values_differ", ("n",), "statement_format"),
    ("altered", "1", "values_differ", ("n",), "version_change"),
    ("pets", "1", "not_deleted", None, "unlogged_cascade"),
    ("pets", "2", "values_differ", ("owner",), "unlogged_cascade"),
    ("toys", "1", "values_differ", ("pet",), "unlogged_cascade"),
    ("level5", "1", "not_deleted", None, "unlogged_cascade"),
}

CASCADING = {
    ("pets", ("owner",), "owners", ("id",), "CASCADE", "CASCADE"),
    ("toys", ("pet",), "pets", ("id",), "SET NULL", "RESTRICT"),
    *((f"level{level}", ("up",), f"level{level - 1}", ("id",), "CASCADE", "CASCADE") for level in range(1, 6)),
}


def statements(text: str) -> Iterator[str]:
    """Return the statements of a text, one per line; a line with deeper indentation continues the previous one."""
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(" " * 8):
            lines[-1] += " " + line.strip()
        elif line.strip():
            lines.append(line.strip())
    yield from lines


def tell(server: Server, files: list[str]) -> None:
    """Run the statements, with one file for each part."""
    for part in files:
        with server.connect() as connection, connection.cursor() as cursor:
            for statement in statements(part):
                cursor.execute(statement)
        server.flush()


def land(home: Path, source: str, server: Server, files: list[Path]) -> None:
    """Land binlogs and the current schema."""
    with Connection(ServerAddress(server.host, server.port, "root")) as live:
        land_snapshot(source, take_snapshot(live), home)
    land_files(home, source, files)


@without_session()
def land_files(home: Path, source: str, files: list[Path]) -> None:
    """Land binlogs of one folder."""
    wanted = {path.name for path in files}
    result = ingest(source, [each for each in find_binlogs(files[0].parent) if each.name in wanted], home=home)
    assert result.exit_code == 0, result.problems


def without_update(data: bytes, table: bytes) -> bytes:
    """Return a binlog without the first UPDATE event of a table."""
    events = events_of(data)
    of_table = False
    for number, event in enumerate(events):
        if event[4] == TABLE_MAP:
            of_table = table in bytes(event)
        elif of_table and event[4] in UPDATES:
            del events[number]
            return data[:4] + b"".join(bytes(each) for each in events)
    raise AssertionError(f"no UPDATE of {table!r}")


class Logs:
    """Folders of binlogs that were changed after the server wrote them."""

    def __init__(self, folder: Path, files: list[Path]) -> None:
        self.removed, self.missing = folder / "removed", folder / "missing"
        for target in (self.removed, self.missing):
            target.mkdir()
            for path in files:
                shutil.copy(path, target / path.name)


def land_all(home: Path, folder: Path) -> Logs:
    """Let the servers run the statements, and land the logs."""
    with mysql.start(folder / "mysql", [NAMES]) as server:
        tell(server, [*CLEAN, LOGGED_CASCADES, DOCUMENTS])
        story = server.binlogs()[:-1]
        workload.run(server, workload_tables.tables(server, workload_tables.server_charsets(server), seed=5))
        server.flush()
        land(home, "mysql", server, server.binlogs()[:-1])
        changed = Logs(folder, story)
        torn = changed.removed / story[1].name
        torn.write_bytes(without_update(torn.read_bytes(), b"counted"))
        land(home, "mysql_removed", server, sorted(changed.removed.iterdir()))
        land(home, "mysql_missing", server, sorted(changed.missing.iterdir())[::2])
    with mysql.start(folder / "native", [NAMES, "--innodb-native-foreign-keys=ON"]) as server:
        tell(server, BROKEN)
        land(home, "mysql_native", server, server.binlogs()[:-1])
    with mariadb.start(folder / "mariadb", [NAMES]) as server:
        tell(server, CLEAN)
        tables = workload_tables.tables(server, workload_tables.server_charsets(server), seed=5)
        workload.run(server, [*tables, workload_own.first_versions()])
        server.flush()
        clean = server.binlogs()[:-1]
        land(home, "mariadb", server, clean)
        tell(server, BROKEN)
        land(home, "mariadb_broken", server, server.binlogs()[len(clean) : -1])
    return changed


@pytest.fixture(scope="module")
def logs(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Logs:
    return land_all(home, tmp_path_factory.mktemp("servers"))


@pytest.fixture(scope="module")
def first_build(logs: Logs, home: Path, spark: Any, dbt: Dbt) -> dict[str, str]:
    show_landed(spark, home)
    return dbt(*BUILD)


def breaks(spark: Any, source: str) -> set[tuple[Any, ...]]:
    """Return the rows of chain_breaks for a source."""
    rows = spark.sql(f"select * from binloom_quality.chain_breaks where source_id = '{source}'").collect()
    return {
        (row.table_name, row.pk_values, row.defect, row.differing_columns and tuple(row.differing_columns), row.cause)
        for row in rows
    }


def cascades(spark: Any, source: str) -> set[tuple[Any, ...]]:
    """Return the rows of unlogged_cascades for a source."""
    rows = spark.sql(f"select * from binloom_quality.unlogged_cascades where source_id = '{source}'").collect()
    return {
        (
            row.table_name,
            tuple(row.column_names),
            row.referenced_table_name,
            tuple(row.referenced_column_names),
            row.delete_rule,
            row.update_rule,
        )
        for row in rows
    }


def suspect_files(home: Path) -> dict[str, set[tuple[str, int]]]:
    """Return names and times of the files of each partition of int_chain_suspects."""
    folder = home / "warehouse" / "binloom_intermediate.db" / "int_chain_suspects"
    found: dict[str, set[tuple[str, int]]] = {}
    for path in folder.rglob("*.parquet"):
        found.setdefault(str(path.parent.relative_to(folder)), set()).add((path.name, path.stat().st_mtime_ns))
    return found


def test_every_model_is_built(first_build: dict[str, str]) -> None:
    assert {name: status for name, status in first_build.items() if status not in ("success", "pass")} == {}


@pytest.mark.parametrize("source", ["mysql", "mariadb"])
def test_nothing_is_broken_where_everything_is_logged(first_build: dict[str, str], spark: Any, source: str) -> None:
    rows = spark.sql(f"select count(digest_after) from binloom.row_changes where source_id = '{source}'")
    assert rows.first()[0] > 1000
    assert breaks(spark, source) == set()


@pytest.mark.parametrize("source", ["mysql_native", "mariadb_broken"])
def test_each_unlogged_change_is_found_with_its_cause(first_build: dict[str, str], spark: Any, source: str) -> None:
    assert breaks(spark, source) == EXPECTED


def test_changes_of_a_removed_event_are_not_landed(first_build: dict[str, str], spark: Any) -> None:
    assert breaks(spark, "mysql_removed") == {
        ("counted", "1", "values_differ", ("n",), "not_landed"),
        ("counted", "2", "values_differ", ("n",), "not_landed"),
    }


def test_rows_of_a_missing_file_are_not_landed(first_build: dict[str, str], spark: Any) -> None:
    assert breaks(spark, "mysql_missing") == {
        ("counted", "1", "values_differ", ("n",), "not_landed"),
        ("counted", "2", "values_differ", ("n",), "not_landed"),
        ("things", "1", "values_differ", ("name", "n"), "not_landed"),
        # The row had another key at the end of the first file.
        ("things", "2", "not_inserted", None, "not_landed"),
    }


def test_tables_are_named_whose_rows_change_without_being_logged(first_build: dict[str, str], spark: Any) -> None:
    assert cascades(spark, "mysql_native") == cascades(spark, "mariadb_broken") == CASCADING
    assert cascades(spark, "mysql") == cascades(spark, "mariadb") == set()


def test_a_file_that_comes_late_mends_the_chain(
    first_build: dict[str, str], logs: Logs, spark: Any, dbt: Dbt, home: Path
) -> None:
    before = suspect_files(home)
    others = {source: breaks(spark, source) for source in ("mysql_native", "mariadb_broken", "mysql_removed")}
    land_files(home, "mysql_missing", sorted(logs.missing.iterdir()))
    show_landed(spark, home)
    dbt("run", *NODES[:3])
    assert breaks(spark, "mysql_missing") == set()
    assert {source: breaks(spark, source) for source in others} == others
    after = suspect_files(home)
    rewritten = {folder for folder in before if before[folder] != after.get(folder)}
    assert (
        {folder.split("/")[0] for folder in rewritten}
        == {"source_id=mysql_missing"}
        < {folder.split("/")[0] for folder in before}
    )
