"""A table's known definition at every position: snapshots, statements, gaps, a change of server."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from ingest.ddl.actions import Action, Column
from ingest.ddl.history import Certainty, Event, Handover, Hole, Observation, shapes_after, versions_of
from ingest.ddl.last_shown import last_shown
from ingest.ddl.statements import actions_of
from ingest.ddl.temporary_tables import MAY_BE_TEMPORARY, without_hidden

T, U = ("s", "t"), ("s", "u")


def rows(table: tuple[str, str], **columns: str) -> list[dict[str, Any]]:
    """Return rows of `schema_columns`, by name and type."""
    return [
        {
            "schema_name": table[0],
            "table_name": table[1],
            "column_name": name,
            "ordinal_position": ordinal,
            "data_type": kind.split("(")[0],
            "column_type": kind,
            "primary_key_ordinal": None,
            "character_set": None,
            "collation": None,
            "is_nullable": True,
            "is_generated": False,
            "extra": "",
        }
        for ordinal, (name, kind) in enumerate(columns.items(), 1)
    ]


def seen(**columns: str) -> Observation:
    """Return a snapshot with only table t."""
    return Observation({T: rows(T, **columns)})


def column(name: str, kind: str) -> Column:
    return Column(name, kind.split("(")[0], kind, is_nullable=True, is_generated=False)


def statement(action: Any, table: tuple[str, str] = T, **facts: Any) -> Action:
    return Action(action, action.upper(), *table, **facts)


def modified(name: str, kind: str) -> Action:
    return statement("modify_column", column_name=name, columns=(column(name, kind),))


def known(events: list[Event], table: tuple[str, str] = T) -> list[dict[str, str] | None]:
    """Return the columns of each version of a table, by name and type; the first version is from before everything."""
    return [None if certainty is Certainty.LOST else columns for columns, certainty in named(events, table)]


def named(events: list[Event], table: tuple[str, str] = T) -> list[tuple[dict[str, str] | None, Certainty]]:
    """Return the columns by which each version of a table may name values, and how sure they are."""
    found = versions_of(((place,), event) for place, event in enumerate(events))
    return [
        (
            None if one.columns is None else {row["column_name"]: row["column_type"] for row in one.columns},
            one.certainty,
        )
        for one in found.get(table, [])
    ]


def test_statements_are_carried_out_on_a_snapshot() -> None:
    events = [seen(a="int", e="enum('x')"), modified("e", "enum('y','x')"), statement("drop_column", column_name="a")]
    both = {"a": "int", "e": "enum('y','x')"}
    assert known(events) == [None, {"a": "int", "e": "enum('x')"}, both, {"e": "enum('y','x')"}]


def test_a_table_that_nothing_tells_of_is_not_known_behind_a_statement_either() -> None:
    assert known([modified("e", "enum('x')")]) == [None, None]


def test_a_statement_that_does_not_fit_loses_the_table_until_a_snapshot() -> None:
    events = [seen(a="int"), modified("b", "int"), seen(a="int", b="bigint")]
    assert known(events) == [None, {"a": "int"}, None, {"a": "int", "b": "bigint"}]


def test_a_routine_in_another_language_loses_no_table() -> None:
    routine = "create function f(n int) returns int language javascript as $$ return `it's` $$"
    for version in ((8, 4), (9, 4)):
        assert known([seen(a="int"), *actions_of(routine, "s", 0, "mysql", version)]) == [None, {"a": "int"}]


def test_a_statement_that_is_not_understood_loses_its_table_alone() -> None:
    events = [
        Observation({T: rows(T, a="int"), U: rows(U, b="int")}),
        statement("not_understood", detail="why"),
        modified("a", "bigint"),
    ]
    assert known(events)[-1] is None
    assert known(events, U) == [None, {"b": "int"}]


def test_one_that_names_no_table_loses_those_of_its_schema() -> None:
    other = ("z", "t")
    events = [Observation({T: rows(T, a="int"), other: rows(other, b="int")}), statement("not_understood", ("s", None))]
    assert known(events) == [None, {"a": "int"}, None]
    assert known(events, other) == [None, {"b": "int"}]


def test_behind_a_hole_nothing_is_known_but_what_is_created_there() -> None:
    created = statement("create_table", U, columns=(column("b", "int"),))
    events = [seen(a="int"), Hole(), created]
    assert known(events) == [None, {"a": "int"}, None]
    assert known(events, U) == [None, {"b": "int"}]


def test_another_server_takes_tables_over_with_a_doubt() -> None:
    found = versions_of([((0,), seen(a="int")), ((1,), Handover()), ((2,), modified("a", "bigint"))])[T]
    assert [(one.columns is not None, one.is_handed_over, one.certainty) for one in found[1:]] == [
        (True, False, Certainty.CERTAIN),
        (True, True, Certainty.ASSUMED),
        (True, False, Certainty.ASSUMED),
    ]


def test_behind_a_hole_names_are_carried_on() -> None:
    events = [seen(a="int"), Hole(), modified("a", "bigint"), modified("b", "int")]
    assert named(events)[2:] == [
        ({"a": "int"}, Certainty.LOST),
        ({"a": "bigint"}, Certainty.LOST),
        (None, Certainty.CERTAIN),
    ]


def test_a_table_that_may_have_been_there_has_the_names_of_the_statement() -> None:
    created = statement("create_table", columns=(column("a", "int"),), is_conditional=True)
    assert named([created])[-1] == ({"a": "int"}, Certainty.LOST)
    assert named([seen(b="int"), Hole(), created])[-1] == ({"b": "int"}, Certainty.LOST)


def test_a_snapshot_without_a_position_does_not_tell_that_there_was_no_table() -> None:
    created = statement("create_table", columns=(column("a", "int"),), is_conditional=True)
    others = {U: rows(U, b="int")}
    assert named([Observation(others), created])[-1] == ({"a": "int"}, Certainty.CERTAIN)
    assert named([Observation(others, has_place=False), created])[-1] == ({"a": "int"}, Certainty.LOST)


def test_an_old_dump_does_not_speak_against_the_log() -> None:
    created = statement("create_table", columns=(column("y", "int"), column("x", "int")))
    dump = Observation({T: rows(T, x="int", y="int")}, has_place=False)
    assert named([created, dump])[1:] == [({"y": "int", "x": "int"}, Certainty.CERTAIN)]
    # Behind a gap, the log knows less.
    assert named([created, Hole(), dump])[-1] == ({"x": "int", "y": "int"}, Certainty.ASSUMED)


def test_a_table_keeps_its_certainty_under_a_new_name() -> None:
    renamed = statement("rename_table", other_schema_name=U[0], other_table_name=U[1])
    unplaced = Observation({T: rows(T, a="int")}, has_place=False)
    assert named([unplaced, renamed], U)[-1] == ({"a": "int"}, Certainty.ASSUMED)
    assert named([unplaced, statement("create_like", U, other_schema_name=T[0], other_table_name=T[1])], U)[-1] == (
        {"a": "int"},
        Certainty.ASSUMED,
    )


def test_a_version_tells_its_evidence() -> None:
    events = [seen(a="int"), modified("a", "bigint"), modified("b", "int"), statement("drop_table")]
    found = versions_of(((place,), event) for place, event in enumerate(events))[T]
    assert [(one.evidence.place, one.evidence.detail) for one in found[1:] if one.evidence is not None] == [
        ((), ""),
        ((1,), ""),
        ((2,), "altered in a way that its columns do not allow"),
    ]


def test_a_table_may_have_been_there_before_it_is_created_if_it_is_not() -> None:
    created = statement("create_table", columns=(column("a", "int"),), is_conditional=True)
    assert known([created]) == [None, None]
    assert known([Observation({U: rows(U, b="int")}), created]) == [None, {"a": "int"}]
    assert known([statement("drop_table"), created])[-1] == {"a": "int"}
    assert known([Action("create_database", "CREATE DATABASE", "s"), created])[-1] == {"a": "int"}
    assert known([Observation({U: rows(U, b="int")}), Hole(), created]) == [None, None]
    assert known([statement("drop_table"), Hole(), created])[-1] is None
    assert known([seen(a="int", b="int"), statement("not_understood", detail="why"), created])[-1] is None


def test_a_database_that_no_snapshot_showed_is_new() -> None:
    made = Action("create_database", "CREATE DATABASE", "s", character_set="latin1", is_conditional=True)
    text = Column("a", "varchar", "varchar(9)", is_nullable=True, is_generated=False)
    created = statement("create_table", columns=(text,))
    default = {"schema_name": "z", "table_name": None, "character_set": "utf8mb4", "collation": None}

    def character_set(*events: Event) -> Any:
        (row,) = versions_of(((place,), event) for place, event in enumerate(events))[T][-1].columns or [{}]
        return row["character_set"]

    assert character_set(made, created) is None
    assert character_set(Observation({}, [default]), made, created) == "latin1"
    assert character_set(Observation({}, [default], has_place=False), made, created) is None
    assert character_set(Observation({}, [{**default, "schema_name": "s"}]), made, created) == "utf8mb4"


def test_one_that_is_created_is_as_it_is_created_whatever_was_known() -> None:
    created = statement("create_table", columns=(column("b", "int"),))
    assert known([seen(a="int"), created])[-1] == {"b": "int"}


def test_a_renamed_table_takes_its_columns_along() -> None:
    renamed = statement("rename_table", other_schema_name="s", other_table_name="u")
    assert known([seen(a="int"), renamed]) == [None, {"a": "int"}, None]
    assert known([seen(a="int"), renamed], U) == [None, {"a": "int"}]
    assert known([renamed], U) == [None, None]


def test_a_rename_of_a_table_that_is_not_there_changes_nothing() -> None:
    renamed = statement("rename_table", U, other_schema_name="s", other_table_name="t", is_conditional=True)
    created = statement("create_table", columns=(column("b", "int"),), is_conditional=True)
    dropped, gone = statement("drop_table"), statement("drop_table", U)
    assert known([seen(a="int"), renamed]) == [None, {"a": "int"}]
    assert known([dropped, gone, renamed, created])[-1] == {"b": "int"}
    # Nothing tells whether u was there, so t may be what it was.
    assert known([dropped, renamed, created])[-1] is None
    unknown = statement("not_understood", U, detail="why")
    assert known([seen(a="int"), dropped, unknown, renamed, created])[-1] is None


def test_a_table_that_is_renamed_to_its_own_name_stays_as_it_is() -> None:
    renamed = statement("rename_table", other_schema_name="s", other_table_name="t")
    assert known([seen(a="int"), renamed]) == [None, {"a": "int"}]


def is_same(one: Any, other: Any) -> bool:
    return bool(one["column_type"] == other["column_type"])


def test_a_snapshot_without_a_position_is_behind_the_last_statement_that_it_shows() -> None:
    actions = [
        ((1, 0), modified("e", "enum('x','y')")),
        ((2, 0), statement("add_column", columns=(column("n", "int"),))),
        ((3, 0), modified("e", "enum('y','x')")),
        ((4, 0), statement("other")),
    ]

    def place(**columns: str) -> Any:
        return last_shown(T, {T: rows(T, **columns)}, actions, is_same)

    assert place(e="enum('x')") == ()
    assert place(e="enum('x','y')") == (1, 0)
    assert place(e="enum('x','y')", n="int") == (2, 0)
    assert place(e="enum('y','x')", n="int") == (3, 0)


def test_a_snapshot_without_an_added_column_is_before_the_statement() -> None:
    added, widened = statement("add_column", columns=(column("n", "int"),)), modified("a", "int")
    same = [((1, 0), widened), ((2, 0), widened), ((2, 1), added), ((3, 0), widened)]
    assert last_shown(T, {T: rows(T, a="int")}, same, is_same) == (1, 0)
    assert last_shown(T, {T: rows(T, a="int", n="int")}, same, is_same) == (3, 0)
    # The column is not there any more.
    dropped = [*same, ((4, 0), statement("drop_column", column_name="n")), ((5, 0), widened)]
    assert last_shown(T, {T: rows(T, a="int")}, dropped, is_same) == (5, 0)
    away = [*same, ((4, 0), statement("rename_column", column_name="n", columns=(column("m", "int"),)))]
    assert last_shown(T, {T: rows(T, a="int", m="int")}, away, is_same) == (4, 0)


@pytest.mark.parametrize(
    "change",
    [
        "modify e enum('y','x')",
        "rename column a to b",
        "change a b int",
        "modify a int unsigned",
        "modify e enum('y','x'), convert to character set utf8mb4",
    ],
)
def test_a_snapshot_without_a_changed_column_is_before_the_statement(change: str) -> None:
    texts = ["add n int", change, "drop n", "modify c int comment 'as it was'"]
    numbered = [(n, action) for n, text in enumerate(texts, 1) for action in actions_of(f"alter table t {text}", "s")]
    actions = [((place, number), action) for number, (place, action) in enumerate(numbered)]
    old = {T: rows(T, a="int", e="enum('x','y')", c="int")}
    assert last_shown(T, old, actions, is_same) == ()
    # A later statement gave the column its former type.
    back = ((9, 0), modified("e", "enum('x','y')"))
    assert (last_shown(T, old, [*actions, back], is_same) == (9, 0)) == ("modify e" in change)


def test_statements_of_other_tables_tell_nothing_of_where_it_was_taken() -> None:
    actions = [((1,), statement("modify_column", U, column_name="a", columns=(column("a", "int"),)))]
    assert last_shown(T, {T: rows(T, a="int")}, actions, is_same) == ()
    created = [((1,), statement("rename_table", U, other_schema_name="s", other_table_name="t"))]
    assert last_shown(T, {T: rows(T, a="int")}, created, is_same) == (1,)


def renamed_to(table: tuple[str, str], other: tuple[str, str]) -> Action:
    return statement("rename_table", table, other_schema_name=other[0], other_table_name=other[1])


def test_a_copy_that_takes_the_name_of_a_table_is_shown_only_with_its_columns() -> None:
    made = statement("create_like", U, other_schema_name=T[0], other_table_name=T[1])
    widened = statement("add_column", U, columns=(column("n", "int"),))
    swap = [renamed_to(T, ("s", "old")), renamed_to(U, T)]
    actions = [((number,), action) for number, action in enumerate([made, widened, *swap, statement("drop_table")], 1)]
    assert last_shown(T, {T: rows(T, a="int")}, actions, is_same) == ()
    assert last_shown(T, {T: rows(T, a="int", n="int")}, actions, is_same) == (4,)
    assert last_shown(T, {T: rows(T, a="int"), U: rows(U, a="int", n="int")}, actions, is_same) == ()


def test_a_table_that_took_its_name_thousands_of_times_is_followed_to_its_first_one() -> None:
    names = [("s", f"t{number}") for number in range(3_000)]
    renames = [((number, 0), renamed_to(one, other)) for number, (one, other) in enumerate(pairwise(names), 1)]
    made = statement("create_table", names[0], columns=(column("a", "int"), column("n", "int")))
    actions = [((0, 0), made), *renames]
    assert last_shown(names[-1], {names[-1]: rows(names[-1], a="int", n="int")}, actions, is_same) == renames[-1][0]
    assert last_shown(names[-1], {names[-1]: rows(names[-1], a="int")}, actions, is_same) == ()


def test_a_table_that_is_there_under_its_former_name_is_not_renamed_yet() -> None:
    both = {T: rows(T, a="int"), U: rows(U, b="int")}
    actions = [((1,), statement("drop_table")), ((2,), renamed_to(U, T))]
    assert last_shown(T, both, actions, is_same) == ()
    assert last_shown(T, both, [*actions, ((3,), statement("create_like", U))], is_same) == (2,)
    # The tables exchange their names, so both are there before and behind.
    exchanged = [renamed_to(T, ("s", "x")), renamed_to(U, T), renamed_to(("s", "x"), U)]
    widened = ((1,), statement("add_column", U, columns=(column("n", "int"),)))
    actions = [widened, *(((2, number), action) for number, action in enumerate(exchanged))]
    assert last_shown(T, both, actions, is_same) == ()
    assert last_shown(U, both, actions, is_same) == ()
    assert last_shown(U, both, actions[1:], is_same) == (2, 2)


def test_a_copy_is_shown_only_if_it_looks_like_its_model() -> None:
    copied = [
        ((1,), statement("drop_table")),
        ((2,), statement("create_like", other_schema_name="s", other_table_name="u")),
    ]
    old, new = rows(T, a="int"), rows(T, b="int")
    for model, is_shown in ((rows(U, b="int"), True), (rows(U, a="int"), False), (rows(U, b="bigint"), False)):
        assert last_shown(T, {T: new, U: model}, copied, is_same) == ((2,) if is_shown else ())
    # The snapshot has no model, or another statement has changed that.
    assert last_shown(T, {T: old}, copied, is_same) == (2,)
    dropped = ((3,), statement("drop_column", U, column_name="b"))
    assert last_shown(T, {T: old, U: rows(U, c="int")}, [*copied, dropped], is_same) == (2,)


@pytest.mark.parametrize("created", ["create table if not exists t (a int)", "create table if not exists t like u"])
def test_a_creation_that_may_have_done_nothing_is_not_shown(created: str) -> None:
    def place(*texts: str) -> Any:
        told = [*enumerate((*texts, created), 1)]
        actions = [((number,), action) for number, text in told for action in actions_of(text, "s")]
        return last_shown(T, {T: rows(T, a="int")}, actions, lambda one, other: True)

    # The dump is older than the log.
    assert place("alter table t rename column a to b") == ()
    assert place("rename table u to t", "alter table t rename column a to b") == (1,)
    for end in ("drop table t", "rename table t to x", "drop database s"):
        assert place(end) == (2,)
        assert place(end, "create table t (b int)") == ()


@pytest.mark.parametrize(("shown", "expected"), [("varchar(5)", "latin1"), ("varchar(6)", None)])
def test_a_later_snapshot_tells_the_character_set_that_a_statement_did_not(shown: str, expected: str | None) -> None:
    created = statement("create_table", columns=(column("a", "varchar(5)"),))
    later = Observation({T: [{**row, "character_set": "latin1"} for row in rows(T, a=shown)]})
    found = versions_of(((place,), event) for place, event in enumerate([created, later]))[T]
    ((row,),) = (one.columns for one in found[1:2] if one.columns is not None)
    assert row["character_set"] == expected


@pytest.mark.parametrize(
    ("action", "is_shown"),
    [
        (statement("create_table", columns=(column("a", "int"), column("b", "int"))), True),
        (statement("create_table", columns=(column("b", "int"), column("a", "int"))), False),
        (statement("add_column", columns=(column("b", "int"),)), True),
        (statement("add_column", columns=(column("a", "int"),)), False),
        (statement("add_column", columns=(column("a", "int"),), is_conditional=True), True),
        (statement("add_column", columns=(column("a", "int"),), place="first"), True),
        (statement("add_column", columns=(column("b", "int"),), place="first"), False),
        (
            statement("modify_column", column_name="b", columns=(column("b", "int"),), place="after", after_column="a"),
            True,
        ),
        (
            statement("modify_column", column_name="a", columns=(column("a", "int"),), place="after", after_column="b"),
            False,
        ),
        (statement("modify_column", column_name="a", columns=(column("a", "int"),)), True),
    ],
)
def test_a_snapshot_shows_a_statement_only_with_its_order_of_columns(action: Action, is_shown: bool) -> None:
    shown = last_shown(T, {T: rows(T, a="int", b="int")}, [((1,), action)], lambda one, other: True)
    assert shown == ((1,) if is_shown else ())


def test_a_statement_for_a_sequence_leaves_a_table_alone() -> None:
    created = statement("create_table", columns=(column("a", "int"),))
    dropped = replace(statement("drop_table", is_conditional=True), statement_type="DROP SEQUENCE")
    assert named([created, dropped])[1:] == [({"a": "int"}, Certainty.CERTAIN)]


def after(*texts: str) -> list[str] | None:
    """Return the names of the columns of table t after statements, in a log that begins with a snapshot of table u."""
    actions = [action for text in texts for action in actions_of(text, "s", 0, "mariadb")]
    events: list[Event] = [Observation({U: rows(U, b="int")}), *actions]
    last = versions_of(((place,), event) for place, event in enumerate(events)).get(T, [None])[-1]
    return None if last is None or last.columns is None else [row["column_name"] for row in last.columns]


MADE = "create table if not exists t ({} int)"


@pytest.mark.parametrize(
    "view",
    [
        ["create view t as select 1"],
        ["create or replace view t as select 1", "drop table if exists t"],
        ["create view if not exists t as select 1", "drop view if exists x, y"],
        [MADE.format("a"), "alter view t as select 1"],
        ["create view t as select 1", "create sequence if not exists t", "drop sequence if exists t"],
        ["create view t as select 1", "rename table u to w"],
    ],
)
def test_no_table_is_created_where_a_view_has_its_name(view: list[str]) -> None:
    assert after(*view, MADE.format("b")) is None
    # Then the name is free.
    for end in ("drop view t", "drop view x, t", "drop view if exists t", "drop database s", "rename table t to z"):
        assert after(*view, MADE.format("b"), end, MADE.format("c")) == ["c"], end
    assert after(*view, "create or replace table t (c int)") == ["c"]


def test_a_view_that_is_older_than_the_log_is_known_by_its_end() -> None:
    assert after(MADE.format("a"), "drop view t", MADE.format("b")) == ["b"]
    # Servers log the statement also if it leaves a table alone.
    assert after(MADE.format("a"), "drop view if exists t") == ["a"]
    assert after("create table t (a int)", "create view if not exists t as select 1") == ["a"]


def test_behind_a_hole_a_view_may_be_a_table() -> None:
    view, made = (actions_of(text, "s")[0] for text in ("create view t as select 1", MADE.format("b")))
    assert named([view, Hole(), made])[-1] == ({"b": "int"}, Certainty.LOST)


@pytest.mark.parametrize("clauses", ["drop c, add c int first", "drop c, change a c int", "drop c"])
def test_a_key_has_the_column_that_gets_the_name_of_a_dropped_one(clauses: str) -> None:
    texts = ("create table t (a int, b int not null, c int, primary key (b, c))", f"alter table t {clauses}")
    actions = [action for text in texts for action in actions_of(text, T[0])]
    shape = shapes_after(((place,), action) for place, action in enumerate(actions)).tables[T[0], "t"]
    # A column that gets the name by CHANGE does not get the key.
    assert shape.primary_key == (("b", "c") if "add" in clauses else ("b",))
    assert {column.name for column in shape.columns if column.is_nullable is False} == {*shape.primary_key}


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("create table u like t", U),
        *((text, T) for text in ("alter table t change a x int", "create unique index i on t (a)")),
    ],
)
def test_a_statement_may_be_on_the_temporary_table_of_the_name(text: str, table: tuple[str, str]) -> None:
    def detail(*texts: str) -> str:
        actions = [action for one in ("create table t (a int, b int)", *texts) for action in actions_of(one, "s")]
        last = versions_of(without_hidden(((number,), action) for number, action in enumerate(actions)))[table][-1]
        assert last.evidence is not None
        assert (last.columns is None) == bool(last.evidence.detail)
        return last.evidence.detail

    hides, reveals = "create temporary table t (x int, y int)", "drop temporary table if exists v, t"
    assert detail(hides, text) in ("created like a table that is not known", MAY_BE_TEMPORARY)
    assert not detail(hides, reveals, text)
    assert not detail("create temporary table v (x int, y int)", text)
