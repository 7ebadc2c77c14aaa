"""`binloom restore --compare-with` on real servers: the script makes the live tables as they were, and no more."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.python.binloom.test_restore import (
    SCHEMA,
    SERVERS,
    SESSION,
    SHOP,
    TWO,
    VALID,
    create,
    dump,
    position,
    refused,
    restore,
)
from tests.servers import Server
from tests.servers.accounts import create_account
from tests.servers.rows import table_rows
from tests.support.binlog import workload
from tests.support.binlog.workload_tables import server_charsets, tables
from tests.support.depth import at_depth
from tests.support.recover.undo_servers import rows_of, run
from tests.support.recover.undo_workload import Workload, play

KEYED = [f"{SCHEMA}.{name}" for name in "pcwnq"]


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Server:
    live: Server = request.getfixturevalue(f"{request.param}_server")
    return live


def login(server: Server) -> list[object]:
    """Return the options that name a server."""
    return ["--compare-with", f"127.0.0.1:{server.port}", "--user", "root"]


def since(server: Server, place: str) -> list[Any]:
    """Return the option of the binlog files from a position on."""
    return ["--files", *(path for path in server.binlogs() if path.name >= place.split(":")[0])]


def statements(script: str) -> list[str]:
    """Return the statements of a script that change rows."""
    return re.findall(r"(?m)^(?:INSERT|UPDATE|DELETE) .*;$", script)


def test_random_changes_are_taken_back_by_comparison(server: Server, tmp_path: Path) -> None:
    for seed in range(at_depth(1, 60)):
        server.flush()
        create(server, SCHEMA)
        began = position(server)
        with server.connect(autocommit=False, database=SCHEMA) as connection, connection.cursor() as cursor:
            play(cursor, Workload(3 * seed).transactions(), {})
            taken = dump(server, tmp_path / "dump.sql")
            play(cursor, Workload(3 * seed + 1).transactions(), {})
            moment, expected = position(server), rows_of(server, SCHEMA)
            play(cursor, Workload(3 * seed + 2).transactions(), {})
        words = [*KEYED, "--from-dump", taken, "--as-of", moment, *login(server)]
        changed = rows_of(server, SCHEMA)
        repair = restore(*words, *since(server, began))
        script = repair.stdout
        assert ("It undoes all later changes of these rows." in repair.stderr) == bool(statements(script))
        assert rows_of(server, SCHEMA) == changed
        done = run(server, script)
        assert done.returncode == 0, (seed, done.stderr, script)
        assert {**rows_of(server, SCHEMA), "k": None} == {**expected, "k": None}, seed
        again = restore(*words, *since(server, began))
        assert (statements(again.stdout), "nothing to do" in again.stderr) == ([], True)


def test_values_of_all_types_are_compared(server: Server, tmp_path: Path) -> None:
    made = [one for one in tables(server, server_charsets(server)) if one.key == ("id",) and one.engine == "InnoDB"]
    made = [
        one
        for one in made
        if not (one.is_versioned or one.extra_statements) and one.name.isascii() and len(one.columns) < 50
    ]
    # Some documents of the first cannot be written as SQL, and a dump has not all digits of the second.
    made = [one for one in made if one.name not in ("documents", "floats")]
    server.flush()
    began = position(server)
    server.execute(f"drop database if exists {workload.SCHEMA}", f"create database {workload.SCHEMA}")
    for table in made:
        server.execute(table.ddl())
    taken = dump(server, tmp_path / "dump.sql", schema=workload.SCHEMA)
    later: list[str] = []
    for table in made:
        first, *others = table.statements()
        inserts = [one for one in others if one.startswith("insert") and " values " in one]
        server.execute(SESSION, first, *inserts)
        later += [one for one in others if one not in inserts]
    server.execute(SESSION, VALID)
    moment = position(server)
    expected = {table.name: table_rows(server, workload.SCHEMA, table.name)[1] for table in made}
    server.execute(SESSION, *later, VALID)
    names = [f"{workload.SCHEMA}.{table.name}" for table in made]
    words = [*names, "--rounded", "--from-dump", taken, "--as-of", moment, *login(server), *since(server, began)]
    script = restore(*words).stdout
    assert len(statements(script)) > 20
    done = run(server, script)
    assert done.returncode == 0, done.stderr
    for name, rows in expected.items():
        found = table_rows(server, workload.SCHEMA, name)[1]
        assert sorted(map(repr, found)) == sorted(map(repr, rows)), name


FAMILY = (
    "drop database if exists kept",
    "create database kept character set utf8mb4",
    "create table kept.a (id int primary key, code varchar(9) unique, up int, n int,"
    " foreign key (up) references a (id))",
    "create table kept.b (id int primary key, a_id int not null, foreign key (a_id) references a (id))",
    "create table kept.other (id int primary key, a_id int, foreign key (a_id) references a (id) on delete cascade)",
    "insert into kept.a values (1, 'one', null, 0), (2, 'two', 1, 0), (3, 'three', 2, 0), (4, 'four', null, 0)",
    "insert into kept.b values (1, 1), (2, 4)",
)
DAMAGES: tuple[tuple[tuple[str, ...], list[str]], ...] = (
    (("update a set n = n + 1 where id = 1",), ["UPDATE `kept`.`a` SET `n` = 0 WHERE `id` = 1 AND `n` <=> 1;"]),
    (("insert into a values (9, 'nine', null, 0)", "insert into b values (9, 9)"), ["DELETE", "DELETE"]),
    (("delete from b where id = 2", "delete from a where id = 4"),
     ["INSERT INTO `kept`.`a`", "INSERT INTO `kept`.`b`"]),
    (("insert into a values (9, 'nine', null, 0)", "update b set a_id = 9 where id = 2"), ["UPDATE", "DELETE"]),
    (
        # Two rows exchange a unique value.
        ("update a set code = 'x' where id = 1", "update a set code = 'one' where id = 2",
         "update a set code = 'TWO' where id = 1"),
        ["DELETE", "DELETE", "INSERT", "INSERT"],
    ),
    (("delete from a where id = 4 and 0", "delete from a where id = 3", "insert into a values (8, 'THREE', 8, 1)"),
     ["DELETE", "INSERT"]),
    (("delete from a where id = 3", "delete from a where id = 2", "update a set up = 1, id = 7 where id = 1 and 0"),
     ["INSERT", "INSERT"]),
)  # fmt: skip


@TWO
def test_an_order_that_keys_allow(server: Server, tmp_path: Path) -> None:
    for damage, wanted in DAMAGES:
        server.flush()
        server.execute(*FAMILY)
        began, taken = position(server), dump(server, tmp_path / "dump.sql")
        moment, expected = position(server), rows_of(server, "kept")
        server.execute("use kept", *damage)
        words = ["kept.a", "kept.b", "--from-dump", taken, "--as-of", moment, *login(server), *since(server, began)]
        script = restore(*words).stdout
        found = statements(script)
        assert len(found) == len(wanted), script
        assert all(one.startswith(begin) for one, begin in zip(found, wanted, strict=True)), script
        done = run(server, script)
        assert done.returncode == 0, (done.stderr, script)
        assert rows_of(server, "kept") == expected


@TWO
def test_rows_of_other_tables_are_not_changed(server: Server, tmp_path: Path) -> None:
    server.flush()
    server.execute(*FAMILY)
    began, taken = position(server), dump(server, tmp_path / "dump.sql")
    moment = position(server)
    server.execute("insert into kept.a values (9, 'nine', null, 0)", "insert into kept.other values (1, 9)")
    words = ["kept.a", "--from-dump", taken, "--as-of", moment, *login(server), *since(server, began)]
    script, before = restore(*words).stdout, rows_of(server, "kept")
    # The row of the other table would be deleted with its parent, or be left without one.
    done = run(server, script)
    assert done.returncode != 0 and "nothing is committed" in done.stderr
    assert rows_of(server, "kept") == before
    server.execute("delete from kept.other", "update kept.a set n = 5 where id = 9")
    done = run(server, script)
    assert done.returncode != 0 and "nothing is committed" in done.stderr
    assert len(rows_of(server, "kept")["a"]) == 5


@TWO
def test_triggers_that_run_with_the_script_are_named(server: Server, tmp_path: Path) -> None:
    server.flush()
    server.execute(
        *SHOP,
        "create trigger kept.doubled before insert on kept.`a` for each row set new.v = concat(new.v, new.v)",
    )
    began, taken = position(server), dump(server, tmp_path / "dump.sql")
    moment = position(server)
    server.execute(
        "delete from kept.a where id = 3",
        "delete from kept.stated",
        "create trigger kept.later after insert on kept.gone for each row set @x = 1",
    )

    def warned(*words: object) -> str:
        found = restore(*words, "--from-dump", taken, "--as-of", moment, *since(server, began)).stderr
        assert "may have triggers" not in found
        named = re.search(r"warning: triggers of (.*) run when you run the script", found)
        return named[1] if named else ""

    assert warned("kept.a", "kept.stated") == "kept.a"
    assert warned("kept.a", "kept.gone") == "kept.a, kept.gone"
    assert warned("kept.stated") == ""
    assert warned("kept.a", "kept.stated", *login(server)) == "kept.a"
    # Nothing is written to it.
    assert warned("kept.gone", *login(server)) == ""
    user = create_account(server, tmp_path, "blind", ["SELECT"])
    words = ["--compare-with", f"127.0.0.1:{server.port}", "--defaults-file", user.defaults_file]
    done = restore("kept.a", "--from-dump", taken, "--as-of", moment, *words, *since(server, began))
    assert "these tables may have triggers, which run when you run the script" in done.stderr


@TWO
def test_what_cannot_be_compared_is_refused(server: Server, tmp_path: Path) -> None:
    server.flush()
    server.execute(*SHOP, "create table kept.keyless (v int)", "insert into kept.keyless values (1)")
    began, taken = position(server), dump(server, tmp_path / "dump.sql")
    output, files = tmp_path / "script.sql", since(server, began)
    whole = ["--from-dump", taken, *login(server), *files]
    refused(["kept.keyless", *whole], output, "has neither a primary key")
    refused(["kept.measured", "--rounded", *whole], output, "rounded values")
    refused(["kept.a", "--format", "csv", *whole], output, "--compare-with writes SQL")
    refused(["kept.old", "--locked", *whole], output, "is of engine MyISAM")
    at = whole.index("--compare-with") + 1
    closed = [*whole[:at], "127.0.0.1:1", *whole[at + 1 :]]
    refused(["kept.a", *closed], output, "127.0.0.1:1 cannot be reached")
    user = create_account(server, tmp_path, "comparer", ["SELECT"])
    by_user = [*whole[: at + 1], "--defaults-file", user.defaults_file, *whole[at + 3 :]]
    assert statements(restore("kept.a", *by_user).stdout) == []
    user.defaults_file.write_text(user.defaults_file.read_text().replace(user.password, "wrong"))
    refused(["kept.a", *by_user], output, "comparer")
    nobody = [*whole[: at + 2], "nobody", *whole[at + 3 :]]
    refused(["kept.a", *nobody], output, "(?i)access denied|refuses")
    moment = position(server)
    again = ["--as-of", moment, *whole]
    server.execute("alter table kept.a modify v varchar(30), add w int", "rename table kept.child to kept.moved")
    refused(["kept.a", *again], output, "another definition on the server at .*: only one of them has w")
    refused(["kept.child", *again], output, "has no table kept.child")
    server.execute("alter table kept.a drop w")
    refused(["kept.a", *again], output, r"column v was varchar\(20\) and is varchar\(30\)")
