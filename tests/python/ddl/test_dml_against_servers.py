"""The targets of logged statements are the tables in which a real server changed rows."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from ingest.binlog import open_binlog
from ingest.warehouse.landed import landed_batches
from tests.servers import Server
from tests.servers.marked import marked

TABLES = [("d", "a"), ("d", "b"), ("d", "t `x`"), ("e", "a"), ("e", "größe$1")]
SCHEMA = [
    "create database d",
    "create database e",
    *(f"create table `{schema}`.`{name.replace('`', '``')}` (id int primary key, n int)" for schema, name in TABLES),
    "create table d.logged (n int)",
    "create function d.note() returns int modifies sql data begin insert into e.a values (99, 1); return 1; end",
]
# Each on rows 1 to 3 of every table, in database d.
STATEMENTS = [
    "insert into a values (10, 1)",
    "insert low_priority ignore into e . `größe$1` (id) select id + 10 from a",
    "/* who */ -- why\n insert a set id = 10",
    "/*!50000 insert */ into `t ``x``` values (10, 1)",
    "insert into a values (1, 5) on duplicate key update n = 6",
    "replace into e.a values (1, 5)",
    "update a set n = (select max(id) + 7 from b)",
    "update low_priority ignore e.a as x set x.n = 7",
    "update a x join e.a y on x.id = y.id set x.n = y.id + 7",
    "update a x, e.a y set x.n = 7, y.n = 8 where x.id = y.id",
    "update (a join b using (id)) join e.a as c using (id) set b.n = 7",
    "update a join (select 1 as id union select 2) q using (id) set n = 7",
    "update a left join b on a.id = b.id set b.n = case when a.n in (1, 2) then 3 else 4 end, b.n = b.n + 5",
    "delete from a where id = 1",
    "delete low_priority quick ignore from e.a where id in (select id from a)",
    "delete a, e.`größe$1`.* from a join e.`größe$1` using (id)",
    "delete x from a as y inner join e.a as x on x.id = y.id",
    "delete from x, b using a x join b on x.id = b.id",
    "delete `t ``x```.* from a, `t ``x``` where a.id = `t ``x```.id",
]
STATEMENTS_OF = {
    "mysql": [
        "with c as (select id from b where n in (1, 2, 0)) update a join c using (id) set n = 7",
        "with c as (select 1 as id) delete from a where id in (select id from c)",
        "insert into a with c as (select 10 as id) select id, 1 from c",
        "delete from a as x where x.id = 1",
        "update a, json_table('[1]', '$[*]' columns (id int path '$')) as j set a.n = 7 where a.id = j.id",
    ],
    "mariadb": [
        "set statement max_statement_time = 60, sql_mode = '' for update a set n = 7",
        "insert into a values (10, 1) returning id",
        "delete from a where id = 1 returning id, n",
        "/*M!100100 update */ a set n = 7",
    ],
}
CREATED = ["create table d.c1 as select * from d.a", "create table if not exists e.c2 (id int) ignore select 1 as id"]


Targets = list[tuple[str, str | None, str | None]]


def quoted(schema: str, name: str) -> str:
    """Return a table as SQL names it."""
    return f"`{schema}`.`{name.replace('`', '``')}`"


@pytest.fixture(params=marked("mysql", "mariadb"))
def database(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server with the tables."""
    server: Server = request.getfixturevalue(f"{request.param}_server")
    server.execute("set global log_bin_trust_function_creators = 1", *SCHEMA)
    yield server
    server.execute("drop database d", "drop database e", "set global log_bin_trust_function_creators = default")


def landed(server: Server, *statements: str) -> list[Targets]:
    """Let a server run statements and log them as text; return the landed targets of each statement that has any."""
    server.flush()
    server.execute("use d", "set session binlog_format = 'STATEMENT'", *statements)
    return landed_targets(server)


def landed_targets(server: Server) -> list[Targets]:
    """Return the targets in the server's newest file, of each statement that has any."""
    return [
        [tuple(target.values()) for target in targets]
        for kind, batch in landed_batches(open_binlog(server.flush()))
        if kind == "statements"
        for targets in batch["dml_targets"].to_pylist()
        if targets
    ]


def test_the_targets_are_the_tables_that_changed(database: Server) -> None:
    statements = [*STATEMENTS, *STATEMENTS_OF[database.flavor]]
    changed = []
    database.flush()
    with database.connect(database="d", autocommit=True) as connection, connection.cursor() as cursor:

        def rows() -> list[Sequence[Any]]:
            found = []
            for table in TABLES:
                cursor.execute(f"select * from {quoted(*table)} order by id")
                found.append(cursor.fetchall())
            return found

        cursor.execute("set session binlog_format = 'STATEMENT'")
        for statement in statements:
            cursor.execute("set session sql_log_bin = 0")
            for table in TABLES:
                cursor.execute(f"replace into {quoted(*table)} values (1, 0), (2, 0), (3, 0)")
                cursor.execute(f"delete from {quoted(*table)} where id > 3")
            cursor.execute("set session sql_log_bin = 1")
            before = rows()
            cursor.execute(statement)
            changed.append({table for table, old, new in zip(TABLES, before, rows(), strict=True) if old != new})
    found = landed_targets(database)
    assert all(changed)
    assert dict(zip(statements, changed, strict=True)) == {
        statement: {(schema, name) for _, schema, name in targets}
        for statement, targets in zip(statements, found, strict=True)
    }
    assert all(verb.lower() in statement for statement, [(verb, *_), *_] in zip(statements, found, strict=True))


def test_quotes_of_names_are_those_of_the_sql_mode(database: Server) -> None:
    statements = ["set session sql_mode = 'ANSI_QUOTES'", 'insert into "t `x`" values (1, 1)']
    assert landed(database, *statements) == [[("INSERT", "d", "t `x`")]]


def test_tables_that_a_query_fills(database: Server) -> None:
    created = [[("CREATE TABLE SELECT", "d", "c1")], [("CREATE TABLE SELECT", "e", "c2")]]
    assert landed(database, *CREATED) == created


def test_calls_of_functions_and_loads(database: Server) -> None:
    file = database.binlog_dir / "rows.txt"
    file.write_text("20\t1\n")
    load = f"load data infile '{file}' ignore into table e.`größe$1`"
    assert landed(database, "set @a = note()", load) == [[("SELECT", None, None)], [("LOAD DATA", "e", "größe$1")]]
