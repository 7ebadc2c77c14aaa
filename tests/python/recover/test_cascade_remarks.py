"""Histories and states mark the rows that a foreign key may have changed: most servers do not log cascades."""

from pathlib import Path

import pytest

from recover.timeline import cascades
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.in_process import binloom_here

BEGIN = (
    "drop database if exists cascading",
    "create database cascading",
    "create table cascading.p (id int primary key, code varchar(9) unique)",
    "create table cascading.kept (id int primary key, r int, foreign key (r) references cascading.p (id))",
)
CHILD = (
    "create table cascading.c (id int primary key, r int, {columns} constraint kin foreign key ({key})"
    " references cascading.p ({parent}) {rule})"
)
MARK = "uncertain after the {} of the row of cascading.p that it refers to at "


def asked(*words: object, log: Path, snapshot: Path | None = None, ddl: Path | None = None) -> str:
    """Return an answer with its notes, from the statements of the log and from what is given."""
    given = () if snapshot is None else ("--snapshot-dir", snapshot)
    given += () if ddl is None else ("--ddl", ddl)
    done = binloom_here(*words, "--files", log, *given)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout + done.stderr


def story(server: Server, child: str, *statements: str) -> Path:
    """Return the log of a table with a cascade."""
    server.flush()
    server.execute(*BEGIN, child, *statements)
    return server.flush()


@pytest.mark.parametrize("server", marked("mariadb", "mysql"))
def test_only_rows_whose_parent_was_deleted_are_doubtful(
    server: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    live: Server = request.getfixturevalue(f"{server}_server")
    log = story(
        live,
        CHILD.format(columns="", key="r", parent="ID", rule="on delete cascade"),
        "insert into cascading.p (id) values (1), (2), (3)",
        "insert into cascading.c values (1, 1), (2, 2), (3, null), (4, 3)",
        "insert into cascading.kept values (1, 2), (2, 2)",
        "delete from cascading.c where id = 4",
        "update cascading.p set code = 'a' where id = 2",
        "delete from cascading.p where id in (1, 3)",
    )
    is_logged = live.flavor == "mysql"
    for snapshot in (None, live.snapshot_dir(tmp_path)):
        state = asked("state", "cascading.c", log=log, snapshot=snapshot)
        # MySQL 9.7 logs the cascade.
        assert ("2 rows, complete" in state) == is_logged
        assert ("3 rows, changed rows only" in state, "1 row may have other values" in state) == (not is_logged,) * 2
        assert "kin" not in state
        history = asked("history", "cascading.c", "1", log=log, snapshot=snapshot)
        assert (MARK.format("DELETE") in history) == (not is_logged)
        end = ("--as-of", "2099-01-01")
        then = asked("history", "cascading.c", "1", *end, log=log, snapshot=snapshot)
        assert (MARK.format("DELETE") in then, "did not exist as of" in then) == (not is_logged, is_logged)
        for key in (2, 3, 4):
            for options in ((), end):
                sure = asked("history", "cascading.c", key, *options, log=log, snapshot=snapshot)
                assert "uncertain" not in sure
                assert "oreign key" not in sure
        assert "2 rows, complete" in asked("state", "cascading.kept", log=log, snapshot=snapshot)


@pytest.mark.parametrize(
    ("columns", "key", "parent", "rule", "marked_rows"),
    [
        # The row of the parent that got another key, and that one alone.
        ("code varchar(9),", "code", "code", "on update cascade", {1}),
        # Texts that differ in case are equal.
        ("code varchar(9),", "code", "code", "on update set null", {1}),
        # A deletion is refused, and an update of another column changes no child.
        ("code varchar(9),", "r", "id", "on update cascade", set()),
    ],
)
def test_only_rows_whose_parent_got_another_key_are_doubtful(
    mariadb_server: Server, columns: str, key: str, parent: str, rule: str, marked_rows: set[int]
) -> None:
    log = story(
        mariadb_server,
        CHILD.format(columns=columns, key=key, parent=parent, rule=rule),
        "insert into cascading.p values (1, 'Ab'), (2, 'b')",
        "insert into cascading.c values (1, 1, 'aB'), (2, 2, 'b')",
        "update cascading.p set code = 'x' where id = 1",
    )
    state = asked("state", "cascading.c", "--format", "json", log=log)
    found = {number for number in (1, 2) if MARK.format("UPDATE") in asked("history", "cascading.c", number, log=log)}
    assert found == marked_rows
    assert ("complete" in state) == (not marked_rows)


def test_a_row_written_after_its_parent_was_deleted_is_certain(mariadb_server: Server) -> None:
    log = story(
        mariadb_server,
        CHILD.format(columns="", key="r", parent="id", rule="on delete cascade"),
        "insert into cascading.p (id) values (1)",
        "insert into cascading.c values (1, 1)",
        "delete from cascading.p",
        "insert into cascading.p (id) values (1)",
        "insert into cascading.c values (1, 1)",
    )
    assert "1 row, complete" in asked("state", "cascading.c", log=log)
    history = asked("history", "cascading.c", "1", log=log)
    # The row of before was there until its parent was deleted.
    assert history.count(MARK.format("DELETE")) == 1
    assert "chain break" not in history


@pytest.mark.parametrize(
    ("statements", "reason"),
    [
        # The engine deleted rows of c because it had deleted rows of p, because one of top was deleted.
        (
            (
                "create table cascading.top (id int primary key)",
                "alter table cascading.p add foreign key (id) references cascading.top (id) on delete cascade",
                "insert into cascading.top values (1)",
                "insert into cascading.p (id) values (1)",
                "insert into cascading.c values (1, 1)",
                "delete from cascading.top",
            ),
            "another foreign key may have changed rows of cascading.p",
        ),
        # A text outside ASCII is equal to others as only the server knows.
        (
            (
                "insert into cascading.p values (1, 'ß')",
                "alter table cascading.c add code varchar(9),"
                " add foreign key (code) references cascading.p (code) on delete set null",
                "insert into cascading.c values (1, null, 'ß')",
                "delete from cascading.p",
            ),
            "rows of cascading.p were deleted, or got another key, and only the server knows which rows refer to these",
        ),
    ],
)
def test_if_the_log_hides_which_parents_are_gone_no_row_is_certain(
    mariadb_server: Server, statements: tuple[str, ...], reason: str
) -> None:
    child = CHILD.format(columns="", key="r", parent="id", rule="on delete cascade")
    log = story(mariadb_server, child, *statements)
    for words in (
        ("state", "cascading.c"),
        ("history", "cascading.c", "1"),
        ("history", "cascading.c", "1", "--as-of", "2099-01-01"),
    ):
        answer = asked(*words, log=log)
        assert f"may have changed rows of cascading.c without the log: {reason}." in answer
        assert ("changed rows only" in answer) == (words[0] == "state")


def test_an_update_that_hides_the_parent_leaves_all_rows_uncertain(mariadb_server: Server) -> None:
    log = story(
        mariadb_server,
        CHILD.format(columns="other int,", key="r", parent="id", rule="on delete set null"),
        "insert into cascading.p (id) values (1)",
        "insert into cascading.c values (1, 1, 1)",
        "delete from cascading.p",
        "set session binlog_row_image = 'minimal'",
        "update cascading.c set other = 2",
        "set session binlog_row_image = 'full'",
    )
    assert "and updates of cascading.c do not show r." in asked("state", "cascading.c", log=log)


def test_rows_of_parents_that_are_not_known_leave_all_rows_uncertain(mariadb_server: Server, tmp_path: Path) -> None:
    child = CHILD.format(columns="", key="r", parent="id", rule="on delete cascade")
    story(mariadb_server, child)
    mariadb_server.execute(
        "insert into cascading.p (id) values (1)", "insert into cascading.c values (1, 1)", "delete from cascading.p"
    )
    log, ddl = mariadb_server.flush(), tmp_path / "tables.sql"
    ddl.write_text(f"create database cascading;\n{child};\n")
    answer = asked("state", "cascading.c", log=log, ddl=ddl)
    assert "the log does not show all changes of cascading.p because of rows in quarantine at" in answer


IN_FORCE = (
    "create table c (id int primary key, r int, constraint f foreign key (r) references p (id) on delete cascade)"
)
PARENTS = "create table p (id int primary key)"
DELETED = ("insert into p values (1), (2)", "insert into c values (1, 1), (2, 2)", "delete from p where id = 1")
TREE = "create table c (id int primary key, r int, foreign key (r) references c (id) on delete cascade)"
KEYLESS = "create table c (r int, foreign key (r) references p (id) on delete cascade)"
CIRCLE = (
    "create table p (id int primary key, r int)",
    "create table c (id int primary key, r int, foreign key (r) references p (id) on delete cascade)",
    "alter table p add foreign key (r) references c (id) on delete cascade",
    "insert into p values (1, null), (2, null), (3, null)",
    "insert into c values (1, 1), (2, 2)",
    "update p set r = 1 where id = 2",
)
LITHUANIAN = "varchar(9) character set utf8mb4 collate utf8mb4_lithuanian_ci"


@pytest.mark.parametrize(
    ("statements", "is_complete"),
    [
        # A key that was dropped since, that another one replaced, and whose table got its name later.
        ((PARENTS, IN_FORCE, *DELETED, "alter table c drop foreign key f"), False),
        (
            (
                *(PARENTS, IN_FORCE, *DELETED, "alter table c drop foreign key f"),
                "alter table c add constraint g foreign key (r) references p (id) on update cascade",
            ),
            False,
        ),
        ((PARENTS, IN_FORCE.replace("table c", "table b"), "rename table b to c", "truncate c", *DELETED), False),
        ((PARENTS, IN_FORCE, "rename table p to q", *(one.replace(" p ", " q ") for one in DELETED)), False),
        (
            (
                PARENTS,
                IN_FORCE,
                "alter table c rename column r to s",
                "alter table p rename column id to i",
                *(one.replace("where id", "where i") for one in DELETED),
            ),
            False,
        ),
        # The engine deletes rows of a tree at any depth, and any of equal rows.
        ((TREE, "insert into c values (1, null), (2, 1), (3, 2)", "delete from c where id = 1"), False),
        (
            (
                *(PARENTS, KEYLESS, "insert into p values (1)", "insert into c values (1)", "delete from p"),
                *("insert into p values (1)", "insert into c values (1)"),
            ),
            False,
        ),
        # Texts that differ are equal for a collation; the server compares the numbers of labels.
        (
            (
                f"create table p (id {LITHUANIAN} primary key)",
                f"create table c (id int primary key, r {LITHUANIAN},"
                " foreign key (r) references p (id) on delete cascade)",
                *("insert into p values ('y'), ('b')", "insert into c values (1, 'i'), (2, 'b')"),
                "delete from p where id = 'y'",
            ),
            False,
        ),
        (
            (
                "create table p (id enum('a', 'b') primary key)",
                "create table c (id int primary key, r enum('b', 'a'),"
                " foreign key (r) references p (id) on delete cascade)",
                *("insert into p values ('a'), ('b')", "insert into c values (1, 'b')", "delete from p where id = 'a'"),
            ),
            False,
        ),
        # There was no key when the parent was deleted.
        ((PARENTS, IN_FORCE, "alter table c drop foreign key f", *DELETED), True),
        (
            (
                *(PARENTS, IN_FORCE.replace("on delete cascade", ""), DELETED[0], "insert into c values (2, 2)"),
                *(DELETED[2], "alter table c drop foreign key f"),
                "alter table c add constraint f foreign key (r) references p (id) on delete cascade",
            ),
            True,
        ),
        # No row between the two referred to what is gone.
        (
            (
                *(
                    "create table top (id int primary key)",
                    "create table p (id int primary key, t int, foreign key (t) references top (id) on delete cascade)",
                    IN_FORCE,
                ),
                *("insert into top values (1), (2)", "insert into p values (1, 1)", "insert into c values (1, 1)"),
                "delete from top where id = 2",
            ),
            True,
        ),
        ((TREE, "insert into c values (1, null), (2, 1)", "delete from c where id = 2"), True),
        ((*CIRCLE, "delete from p where id = 3"), True),
        ((*CIRCLE, "delete from c where id = 1"), False),
    ],
)
def test_a_state_is_complete_only_if_no_cascade_can_have_changed_it(
    mariadb_server: Server, statements: tuple[str, ...], is_complete: bool
) -> None:
    mariadb_server.flush()
    mariadb_server.execute("drop database if exists cascading", "create database cascading")
    with mariadb_server.connect(database="cascading") as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
        cursor.execute("select count(*) from c")
        ((rows,),) = cursor.fetchall()
    state = asked("state", "cascading.c", log=mariadb_server.flush())
    assert ("complete" in state) == is_complete
    if is_complete:
        assert f"{rows} row" in state and "uncertain" not in state.partition("\n")[2]


def test_a_key_that_only_its_drop_shows_leaves_all_rows_uncertain(mariadb_server: Server, tmp_path: Path) -> None:
    mariadb_server.execute("drop database if exists cascading", "create database cascading")
    with mariadb_server.connect(database="cascading") as connection, connection.cursor() as cursor:
        cursor.execute(PARENTS)
        cursor.execute(IN_FORCE)
        mariadb_server.flush()
        for statement in ("truncate c", *DELETED, "alter table c drop foreign key f"):
            cursor.execute(statement)
    state = asked("state", "cascading.c", log=mariadb_server.flush(), snapshot=mariadb_server.snapshot_dir(tmp_path))
    assert "Foreign key f may have changed rows of cascading.c without the log: a statement dropped it" in state


def test_the_row_that_another_one_took_the_key_of_may_have_been_gone(mariadb_server: Server) -> None:
    mariadb_server.flush()
    mariadb_server.execute("drop database if exists cascading", "create database cascading")
    with mariadb_server.connect(database="cascading") as connection, connection.cursor() as cursor:
        for statement in (PARENTS, IN_FORCE, *DELETED, "update c set id = 1 where id = 2"):
            cursor.execute(statement)
    assert MARK.format("DELETE") in asked("history", "cascading.c", "1", log=mariadb_server.flush())


def test_rows_below_a_cascade_that_is_logged_are_certain(mysql_server: Server) -> None:
    mysql_server.flush()
    mysql_server.execute("drop database if exists cascading", "create database cascading")
    with mysql_server.connect(database="cascading") as connection, connection.cursor() as cursor:
        for statement in (
            "create table top (id int primary key)",
            "create table p (id int primary key, t int, foreign key (t) references top (id) on delete cascade)",
            IN_FORCE,
            "insert into top values (1), (2)",
            "insert into p values (1, 1), (2, 2)",
            "insert into c values (1, 1), (2, 2)",
            "delete from top where id = 1",
        ):
            cursor.execute(statement)
    assert "1 row, complete" in asked("state", "cascading.c", log=mysql_server.flush())


def test_more_losses_than_fit_into_memory_leave_all_rows_uncertain(
    mariadb_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = CHILD.format(columns="", key="r", parent="id", rule="on delete cascade")
    rows = ("insert into cascading.p (id) values (1), (2), (3)", "insert into cascading.c values (1, 3)")
    log = story(mariadb_server, child, *rows, "delete from cascading.p where id < 3")
    for most, is_complete in ((2, True), (1, False)):
        monkeypatch.setattr(cascades, "_MOST_LOST", most)
        state = asked("state", "cascading.c", log=log)
        assert ("1 row, complete" in state, "more than 1 rows of cascading.p were deleted" in state) == (
            is_complete,
            not is_complete,
        )
