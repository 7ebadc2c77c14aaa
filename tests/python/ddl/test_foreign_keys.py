"""Foreign keys through the log: their ranges, and their names."""

from ingest.ddl.foreign_keys import KeyInTime, foreign_keys_through
from ingest.ddl.history import Event, Hole, Observation
from ingest.ddl.statements import actions_of
from ingest.versions import Flavor

P = "create table p (id int primary key)"
C = "create table c (id int, r int, foreign key (r) references p (id) on delete cascade)"
SHOWN = Observation({("d", "c"): []}, keys={("d", "c"): [key for one in actions_of(C, "d") for key in one.keys]})


def through(*told: str | Observation | Hole, server: Flavor = "mysql") -> list[KeyInTime]:
    """Return the foreign keys of statements and snapshots; each is at its number, counted from 0."""
    events: list[tuple[tuple[int, ...], Event]] = []
    for place, one in enumerate(told):
        actions = actions_of(one, "d", server=server) if isinstance(one, str) else [one]
        events += [((place, number), action) for number, action in enumerate(actions)]
    return [
        KeyInTime(**{**vars(key), "since": key.since and key.since[:1], "until": key.until and key.until[:1]})
        for key in foreign_keys_through(events)
    ]


def test_a_key_is_there_from_its_statement_to_the_one_that_drops_it() -> None:
    (key,) = through(P, C, "alter table c drop foreign key C_ibfk_1")
    assert (key.name, key.table, key.parent) == ("c_ibfk_1", (("d", "c"),), (("d", "p"),))
    assert (key.delete_rule, key.update_rule, key.is_cascading) == ("CASCADE", "NO ACTION", True)
    assert (key.since, key.until) == ((1,), (2,))
    for end in ("drop table c", "drop database d", "create or replace table c (id int)"):
        assert [key.until for key in through(P, C, end)] == [(2,)]
    assert [key.until for key in through(P, C, "create table if not exists c (id int)", "drop table other")] == [None]


def test_a_key_is_followed_to_other_names() -> None:
    (key,) = through(
        P, C, "rename table c to x, p to y", "alter table x rename column r to s", "alter table y change id i int"
    )
    assert (key.table, key.parent) == ((("d", "c"), ("d", "x")), (("d", "p"), ("d", "y")))
    assert (key.columns, key.parent_columns) == ((("r", "s"),), (("id", "i"),))


def test_a_snapshot_shows_a_key_once() -> None:
    assert [key.since for key in through(P, C, SHOWN)] == [(1,)]
    assert [key.since for key in through(SHOWN, SHOWN)] == [None]
    other = "alter table c drop foreign key c_ibfk_1, add constraint c_ibfk_1 foreign key (r) references p (id)"
    assert [(key.since, key.until, key.is_cascading) for key in through(C, other)] == [
        ((0,), (1,), True),
        ((1,), None, False),
    ]


def test_only_a_statement_on_foreign_keys_drops_one() -> None:
    named = "create table c (r int, constraint f foreign key (r) references p (id) on delete cascade)"
    for other in ("drop index f", "drop check f", "drop foreign key if exists g", "drop constraint if exists g"):
        assert [key.until for key in through(named, f"alter table c {other}")] == [None]
    for own in ("foreign key f", "constraint f", "foreign key if exists F", "constraint if exists f"):
        assert [key.until for key in through(named, f"alter table c drop {own}")] == [(1,)]


def test_a_condition_leaves_a_key_as_it_is() -> None:
    add = "alter table c add foreign key if not exists {} (r) references q (id)"
    named = "create table c (r int, constraint f foreign key (r) references p (id))"
    assert [key.parent[-1] for key in through(named, add.format("F"), server="mariadb")] == [("d", "p")]
    assert [key.name for key in through(named, add.format("g"), server="mariadb")] == ["f", "g"]
    # The condition is on the name behind it.
    of_constraint = add.replace("add", "add constraint e")
    assert [key.name for key in through(named, of_constraint.format("F"), server="mariadb")] == ["f"]
    assert [key.name for key in through(named, of_constraint.format("g"), server="mariadb")] == ["f", "e"]
    # A program that starts again creates its tables again.
    assert len(through(C, C.replace("table c", "table if not exists c"))) == 1


def test_a_table_with_known_keys_has_no_other_ones() -> None:
    drop = "alter table c drop foreign key if exists f"
    assert [key.name for key in through(drop)] == ["f"]
    assert through("create table c (r int)", drop) == []
    assert through("create table b (r int)", "rename table b to c", drop) == []
    assert through(Observation({("d", "c"): []}, keys={}), drop) == []
    for end in (Hole(), "drop table c", "drop database d"):
        assert [key.name for key in through("create table c (r int)", end, drop)] == ["f"]


def test_a_key_that_only_its_drop_shows_may_be_any() -> None:
    (key,) = through("alter table c drop foreign key f")
    assert (key.name, key.parent, key.is_cascading, key.until) == ("f", (), True, (0,))
    assert through("alter table c drop index i") == []


def test_a_name_that_a_server_chose_changes_with_that_of_the_table() -> None:
    for end in ("drop foreign key x_ibfk_1", "drop constraint x_ibfk_1"):
        (key,) = through(P, C, "rename table c to x", f"alter table x {end}")
        assert (key.name, key.until) == ("x_ibfk_1", (3,))
    (key,) = through(P, "create table c (r int, constraint k foreign key (r) references p (id))", "rename table c to x")
    assert key.name == "k"


def test_a_server_counts_foreign_keys_from_the_highest_one_before_the_statement() -> None:
    add = "add foreign key (r) references q (id)"
    keys = through(C, f"alter table c drop foreign key c_ibfk_1, {add}", f"alter table c {add}")
    assert [(key.name, key.until) for key in keys] == [("c_ibfk_1", (1,)), ("c_ibfk_2", None), ("c_ibfk_3", None)]
    keys = through(C, f"alter table c {add}", "alter table c drop foreign key c_ibfk_1", f"alter table c {add}")
    assert [(key.name, key.since) for key in keys[1:]] == [("c_ibfk_2", (1,)), ("c_ibfk_3", (3,))]


def test_only_mariadb_names_a_foreign_key_like_its_index() -> None:
    add = "alter table c add foreign key i (r) references q (id)"
    assert [key.name for key in through(C, add)] == ["c_ibfk_1", "c_ibfk_2"]
    assert [key.name for key in through(C, add, server="mariadb")] == ["c_ibfk_1", "i"]


def test_a_statement_that_is_not_understood_may_have_added_a_key() -> None:
    added = "alter table c add constraint x foreign key (r) references p (id) nonsense here"
    for statements in ((P, "create table c (r int)"), (P, "create table c (r int)", added)):
        keys = through(*statements, "alter table c drop constraint x")
        assert [key.name for key in keys] == ["x"] * (added in statements)
