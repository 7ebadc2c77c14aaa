"""Unique values that were taken since, and parents that are gone: never "proved" when the server refuses the script."""

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ingest.sources.servers.address import ServerAddress
from recover.undo.options import Mode, UndoOptions
from recover.undo.plan.planner import Planner
from recover.undo.print.script import Heading, script
from recover.undo.prove.against import LiveServer
from recover.undo.select.selected import select
from recover.undo.tables.definitions import Definitions
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.recover.undo_servers import Case, marts, position_of, root_of, rows_of, run, transaction

ALL = marked("mysql", deep=("mysql56", "mariadb", "mariadb118"))
MINIMAL = "set session binlog_row_image = 'MINIMAL'"
PARENTS = "create table p (id int primary key, code varchar(9) character set utf8mb4, a int, unique key (code))"
TWO_PARENTS = "insert into p values (1, 'one', 0), (2, 'two', 0)"
CHILDREN = "create table c (id int primary key, p_id int, constraint c_p foreign key (p_id) references p (id))"
CODED = (
    "create table c (id int primary key, code varchar(9) character set utf8mb4,"
    " constraint c_p foreign key (code) references p (code))"
)
MOVED = "update c set p_id = 2 where id = 1"
CHILD = "insert into c values (1, 1)"
OF_PARENT = "row 1 of {}.p, to which the undo refers (c_p), is gone or has another key"


@dataclass(frozen=True)
class Situation:
    """A case, and a part of the reason for which its undo is refused; without one, the undo is right.

    Attributes
    ----------
    expected
        A query of the row that the undo brings back, if the other statements are impossible without the damage.
    """

    case: Case
    reason: str = ""
    expected: str = ""

    def __str__(self) -> str:
        return self.case.name


def refused(
    reason: str, name: str, before: tuple[str, ...], damage: str, *after: str, not_on: tuple[str, ...] = ()
) -> Situation:
    return Situation(Case(name, before, (damage,), after, not_on), reason)


def undone_right(
    name: str, before: tuple[str, ...], damage: str, *after: str, not_on: tuple[str, ...] = ()
) -> Situation:
    return Situation(Case(name, before, (damage,), after, not_on))


PARENTS_AND_CHILDREN = [
    refused(OF_PARENT, "parent deleted", (PARENTS, TWO_PARENTS, CHILDREN, CHILD), MOVED, "delete from p where id = 1"),
    refused(
        OF_PARENT, "parent with another key", (PARENTS, TWO_PARENTS, CHILDREN, CHILD), MOVED,
        "update p set id = 9 where id = 1",
    ),
    refused(
        OF_PARENT, "deleted child of a deleted parent", (PARENTS, TWO_PARENTS, CHILDREN, CHILD),
        "delete from c where id = 1", "delete from p where id = 1",
    ),
    refused(
        OF_PARENT, "deleted parent, of which the log had shown nothing",
        (PARENTS, TWO_PARENTS, CHILDREN, CHILD, MINIMAL), MOVED, MINIMAL, "delete from p where id = 1",
    ),
    Situation(
        Case(
            "parent deleted and inserted again", (PARENTS, TWO_PARENTS, CHILDREN, CHILD), (MOVED,),
            ("delete from p where id = 1", "insert into p values (1, 'again', 0)"),
        ),
        expected="select p_id from {}.c where p_id = 1",
    ),
    undone_right(
        "parent changed in other columns", (PARENTS, TWO_PARENTS, CHILDREN, CHILD), MOVED,
        "update p set a = 7", "delete from p where id = 9",
    ),
    undone_right(
        "another parent deleted", (PARENTS, TWO_PARENTS, "insert into p values (3, 'three', 0)", CHILDREN, CHILD),
        MOVED, "delete from p where id = 3",
    ),
    refused(
        OF_PARENT, "parent of a unique key deleted", (PARENTS, TWO_PARENTS, CODED, "insert into c values (1, 'one')"),
        "update c set code = 'two'", "delete from p where id = 1",
    ),
    refused(
        OF_PARENT, "parent of a unique key changed", (PARENTS, TWO_PARENTS, CODED, "insert into c values (1, 'ONE')"),
        "update c set code = 'two'", "update p set code = 'uno' where id = 1",
    ),
    refused(
        "the undo refers (c_p) to row 1 of {}.p, whose value another row has now", "another parent with the key",
        (PARENTS, TWO_PARENTS, CODED, "insert into c values (1, 'one')"), "update c set code = 'two'",
        "update p set code = 'uno' where id = 1", "insert into p values (3, 'One', 0)",
    ),
    refused(
        "the undo refers (c_p) to row 1 of {}.p, whose value another row has now", "another parent after a deleted one",
        (PARENTS, TWO_PARENTS, CODED, "insert into c values (1, 'one')"), "delete from c",
        "delete from p where id = 1", "update p set code = 'one' where id = 2",
    ),
    Situation(
        Case(
            "parent whose key came back", (PARENTS, "insert into p values (7, 'one', 0)", "delete from p",
            TWO_PARENTS, CODED, "insert into c values (1, 'one')"), ("update c set code = 'two'",),
            ("update p set code = 'uno' where id = 1", "update p set id = 9 where id = 2",
             "update p set code = 'one' where id = 1"),
        ),
        expected="select code from {}.c where code = 'one'",
    ),
    refused(
        OF_PARENT, "parent of a unique key in MINIMAL images",
        (PARENTS, TWO_PARENTS, CODED, "insert into c values (1, 'one')"), "update c set code = 'two'",
        MINIMAL, "update p set code = 'uno' where id = 1",
    ),
    refused(
        "row 1|1 of {}.p, to which the undo refers (c_p)", "composite key",
        (
            "create table p (a int, b int, primary key (a, b))", "insert into p values (1, 1), (1, 2)",
            "create table c (id int primary key, a int, b int,"
            " constraint c_p foreign key (a, b) references p (a, b))",
            "insert into c values (1, 1, 1)",
        ),
        "update c set b = 2", "delete from p where b = 1",
    ),
    undone_right(
        "composite key with NULL",
        (
            "create table p (a int, b int, primary key (a, b))", "insert into p values (1, 1), (1, 2)",
            "create table c (id int primary key, a int, b int,"
            " constraint c_p foreign key (a, b) references p (a, b))",
            "insert into c values (1, null, 1)",
        ),
        "update c set b = 2", "delete from p where b = 1",
    ),
    refused(
        "row 1 of {}.t, to which the undo refers (t_t)", "row of the same table",
        (
            "create table t (id int primary key, boss int, constraint t_t foreign key (boss) references t (id))",
            "insert into t values (1, null), (2, null)", "insert into t values (3, 1)",
        ),
        "update t set boss = 2 where id = 3", "delete from t where id = 1",
    ),
    refused(
        "row 1 of c.c has no parent in c.p (c_p)".replace("c.", "{}."), "foreign key added since",
        (PARENTS, "insert into p values (2, 'two', 0)", "create table c (id int primary key, p_id int)", CHILD), MOVED,
        "alter table c add constraint c_p foreign key (p_id) references p (id)",
    ),
    undone_right(
        "foreign key added since, and the parent is there",
        (PARENTS, TWO_PARENTS, "create table c (id int primary key, p_id int)", CHILD), MOVED,
        "alter table c add constraint c_p foreign key (p_id) references p (id)",
    ),
]  # fmt: skip


def unique(
    kind: str, old: str, taken: str, reason: str = "row 2 of {}.t has a unique value", name: str = "", key: str = "u",
    not_on: tuple[str, ...] = (),
) -> Situation:  # fmt: skip
    """Return a situation in which another row takes a value since; without a reason, the two are different."""
    before = (
        f"create table t (id int primary key, u {kind} null, unique key u ({key}))",
        f"insert into t values (1, {old})",
    )
    return Situation(
        Case(name or f"{old} and {taken} in {kind} {key}", before, ("update t set u = null",),
             (f"insert into t values (2, {taken})",), not_on), reason,
    )  # fmt: skip


def text(collation: str, length: int = 9) -> str:
    return f"varchar({length}) character set {collation.partition('_')[0]} collate {collation}"


def hexed(value: str, charset: str = "utf8mb4") -> str:
    return f"_utf8mb4 x'{value.encode().hex()}'"


MAYBE = "row 2 of {}.t may have a unique value"
NOT_MYSQL9 = ("mysql56", "mariadb", "mariadb118")
OLD = ("mysql56",)
UNIQUE = [
    unique(text("utf8mb4_general_ci"), "'a'", "'A'"),
    unique(text("utf8mb4_general_ci"), "'a'", "'a '"),
    unique(text("utf8mb4_general_ci"), "'a'", hexed("Ä"), MAYBE),
    unique(text("utf8mb4_general_ci"), hexed("ß"), "'S'", MAYBE),
    unique(text("utf8mb4_unicode_ci"), hexed("ß"), "'SS'", MAYBE),
    unique(text("utf8mb4_unicode_ci"), hexed("ä"), hexed("Ä"), MAYBE),
    unique(text("utf8mb4_unicode_ci"), "'a'", "'b'", ""),
    unique(text("utf8mb4_unicode_ci"), hexed("ä"), hexed("ö"), ""),
    unique(text("utf8mb4_bin"), "'a'", "'A'", ""),
    unique(text("utf8mb4_bin"), "'a'", "'a '"),
    unique(text("latin1_german2_ci"), hexed("ä"), "'ae'", MAYBE),
    unique(text("latin1_general_cs"), "'a'", "'A'", ""),
    unique(text("latin1_swedish_ci"), hexed("ü"), "'y'", MAYBE),
    unique(text("utf8mb4_0900_ai_ci"), "'a'", "'a '", "", not_on=NOT_MYSQL9),
    unique(text("utf8mb4_0900_ai_ci"), "'a'", hexed("Á"), MAYBE, not_on=NOT_MYSQL9),
    unique(text("utf8mb4_0900_as_cs"), "'a'", "'A'", "", not_on=NOT_MYSQL9),
    unique(text("utf8mb4_turkish_ci"), "'i'", hexed("İ"), MAYBE),
    unique(text("utf8mb4_lithuanian_ci"), "'i'", "'y'", MAYBE),
    unique(text("utf8mb4_general_ci"), "'abcdef'", "'ABCxyz'", name="prefix", key="u(3)"),
    unique(text("utf8mb4_general_ci"), "'abcdef'", "'abxyz'", "", name="another prefix", key="u(3)"),
    unique("varbinary(9)", "'abcdef'", "'abcxyz'", name="prefix of bytes", key="u(3)"),
    unique("double", "0e0", "-0e0"),
    unique("float", "-0e0", "0e0"),
    unique("decimal(5,2)", "1.0", "1.00"),
    unique("decimal(5,2)", "1.0", "1.01", ""),
    unique("datetime", "'2024-01-01'", "'2024-01-01 00:00:00'"),
    unique("bit(5)", "b'00101'", "5"),
    unique("enum('a','b')", "'a'", "1"),
    unique("int", "1", "2", ""),
    refused(
        "row 2 of {}.t may have a unique value ((lower", "functional key",
        (
            "create table t (id int primary key, u varchar(9) character set utf8mb4 collate utf8mb4_bin,"
            " unique key u ((lower(u))))", "insert into t values (1, 'a')",
        ),
        "update t set u = 'z'", "insert into t values (2, 'A')", not_on=NOT_MYSQL9,
    ),
    undone_right(
        "functional key with other values",
        (
            "create table t (id int primary key, u varchar(9) character set utf8mb4 collate utf8mb4_bin, v int,"
            " unique key u ((lower(u))))", "insert into t values (1, 'a', 0), (3, 'c', 0)",
        ),
        "update t set u = 'z' where id = 1", "insert into t values (2, 'b', 0)", "update t set v = 1 where id = 3",
        not_on=NOT_MYSQL9,
    ),
    refused(
        "row 2 of {}.t", "key of a virtual column",
        (
            "create table t (id int primary key, u int, g int as (u % 10) virtual, unique key g (g))",
            "insert into t (id, u) values (1, 5)",
        ),
        "update t set u = 6", "insert into t (id, u) values (2, 15)", not_on=OLD,
    ),
    refused(
        "row 2 of {}.t", "key of a stored column of two others",
        (
            "create table t (id int primary key, a int, b int, g int as (a + b) stored, unique key g (g))",
            "insert into t (id, a, b) values (1, 1, 2)",
        ),
        "update t set a = 6", "insert into t (id, a, b) values (2, 2, 1)", not_on=("mysql56", "mariadb"),
    ),
    refused(
        "row 2 of {}.t", "one column of two in MINIMAL images",
        ("create table t (id int primary key, a int, b int, unique key (a, b))", "insert into t values (1, 1, 1)"),
        "update t set b = 2", MINIMAL, "insert into t values (2, 1, 1)",
    ),
    refused(
        "row 2 of {}.t has a unique value (u)", "unique key added since",
        ("create table t (id int primary key, u int)", "insert into t values (1, 1), (2, 1)"),
        "update t set u = 5 where id = 1", "alter table t add unique key (u)",
    ),
    refused(
        "has a unique value (name)", "primary key in another case",
        (
            "create table t (name varchar(9) character set utf8mb4 collate utf8mb4_general_ci primary key, a int)",
            "insert into t values ('a', 1)",
        ),
        "delete from t", "insert into t values ('A', 2)",
    ),
]  # fmt: skip


@pytest.mark.parametrize("name", ALL)
def test_an_undo_is_right_or_names_the_row_in_the_way(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: Server = request.getfixturevalue(f"{name}_server")
    situations = [one for one in (*PARENTS_AND_CHILDREN, *UNIQUE) if name not in one.case.not_on]
    server.flush()
    conditions = [_played(server, one, f"undo_keys_{number}") for number, one in enumerate(situations)]
    with marts(server, [server.flush()], tmp_path) as (connection, definitions):
        wrong = {
            (one.case.name, against is not None): problem
            for number, (one, condition) in enumerate(zip(situations, conditions, strict=True))
            for against in (root_of(server), None)
            if (problem := _problem(server, connection, definitions, one, condition, f"undo_keys_{number}", against))
        }
    for number in range(len(situations)):
        server.execute(f"drop database undo_keys_{number}", f"drop database if exists undo_keys_{number}_without")
    assert not wrong


def _played(server: Server, situation: Situation, schema: str) -> str:
    """Play a situation; return the condition that selects its damage."""
    case = situation.case
    server.execute(f"create database {schema}")
    transaction(server, schema, case.before)
    before = position_of(server)
    transaction(server, schema, case.damage)
    end = position_of(server)
    transaction(server, schema, case.after)
    if not situation.reason and not situation.expected:
        server.execute(f"create database {schema}_without")
        transaction(server, f"{schema}_without", case.before, case.after)
    return f"schema_name = '{schema}' and transaction_pos >= {before} and transaction_pos < {end}"


def _problem(
    server: Server,
    connection: Any,
    definitions: Definitions,
    situation: Situation,
    condition: str,
    schema: str,
    against: ServerAddress | None,
) -> object:
    """Return what is wrong with the undo of a situation; the script without a comparison is run."""
    with ExitStack() as opened:
        live = None if against is None else opened.enter_context(LiveServer(against))
        planner = opened.enter_context(Planner(connection, definitions, live))
        selected = select(connection, condition)
        plan = planner.plan(selected, UndoOptions())
        if situation.reason:
            skipped = planner.plan(selected, UndoOptions(mode=Mode.SKIP))
            left_out = skipped.conflicting or skipped.differing
            is_left_out = skipped.is_printable and left_out and not skipped.statements
            reason = situation.reason.format(schema, schema)
            is_named = against is not None or reason in " ".join(plan.problems)
            is_right = not plan.is_printable and (plan.in_the_way or plan.differing) and is_named and is_left_out
            return None if is_right else (plan.problems, plan.conflicts, plan.refusals, skipped.problems)
        if not plan.is_printable or plan.differing:
            return plan.problems, plan.conflicts, plan.refusals, plan.differences
        text = "\n".join(script(planner, plan, Heading("the end", condition), "commit")) + "\n"
    if against is not None:
        return None
    done = run(server, text)
    if done.returncode:
        return done.stderr, text
    if situation.expected:
        return None if server.execute(situation.expected.format(schema)) else text
    is_right = rows_of(server, schema) == rows_of(server, f"{schema}_without")
    return None if is_right else (rows_of(server, schema), text)
