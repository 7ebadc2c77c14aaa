"""Rows through time: values carried forward, keys followed, images compared."""

import re

import numpy as np
import pytest

from ingest.ddl.actions import Column
from ingest.ddl.statements import actions_of
from recover.timeline import hiding
from recover.timeline.alterations import alteration
from recover.timeline.columns import Columns
from recover.timeline.components import components
from recover.timeline.events import Effect, Hiding, JsonChange
from recover.timeline.rows import Version, versions
from tests.support.recover.table_logs import Log


def columns(key: str, **types: str) -> Columns:
    return Columns(tuple(Column(name, re.split(r"\W", text)[0], text) for name, text in types.items()), (key,))


COLUMNS = {"v": columns("id", id="int", a="varchar(10)", b="enum('x','y')")}


def read(log: Log) -> list[Version]:
    return sorted(versions(log.changes, log.events, COLUMNS), key=lambda one: (one.line, one.number))


def last(log: Log) -> dict[str, Version]:
    return {one.key: one for one in read(log) if one.ended_by is None}


def test_a_row_is_followed_through_changes_of_its_key_in_one_line() -> None:
    log = Log()
    log.insert("1", a="x")
    log.update("1", {"id": "1", "a": "x"}, {"id": "2", "a": "x"}, key_after="2")
    log.update("2", {"id": "2", "a": "x"}, {"id": "3", "a": "y"}, key_after="3")
    log.insert("1", a="new")
    found = read(log)
    assert [(one.line, one.number, one.key, one.row) for one in found] == [
        (1, 1, "1", {"id": "1", "a": "x"}),
        (1, 2, "2", {"id": "2", "a": "x"}),
        (1, 3, "3", {"id": "3", "a": "y"}),
        (2, 1, "1", {"id": "1", "a": "new"}),
    ]
    assert not any(one.defect for one in found)
    assert [one.ended_by for one in found] == [log.changes[1], log.changes[2], None, None]


def test_the_columns_that_an_image_lacks_keep_their_values_and_an_unknown_value_is_not_null() -> None:
    log = Log()
    log.update("1", {"id": "1"}, {"a": None})
    log.update("1", {"id": "1"}, {"b": "2"})
    before_log, first, second = read(log)
    assert before_log.change is None
    assert before_log.row == {"id": "1"}
    assert first.row == {"id": "1", "a": None}
    assert second.before == {"id": "1", "a": None}
    assert second.row == {"id": "1", "a": None, "b": "2"}


def test_values_are_carried_through_a_change_of_key_with_partial_images() -> None:
    log = Log()
    log.insert("1", a="x", b="y")
    log.update("1", {"id": "1"}, {"id": "2"}, key_after="2")
    assert last(log)["2"].row == {"id": "2", "a": "x", "b": "y"}


def test_a_row_that_is_deleted_and_inserted_again_stays_one_line() -> None:
    log = Log()
    log.insert("1", a="x")
    log.delete("1", a="x")
    log.insert("1", a="y")
    assert [(one.line, one.number, one.row and one.row["a"], one.copies) for one in read(log)] == [
        (1, 1, "x", 1),
        (1, 2, None, 0),
        (1, 3, "y", 1),
    ]


def test_images_that_do_not_link_are_a_defect_and_unproved_values_are_forgotten() -> None:
    log = Log()
    log.insert("1", a="x", b="y")
    log.update("1", {"id": "1", "a": "other"}, {"a": "z"})
    _, broken = read(log)
    assert (broken.defect, broken.differing) == ("values_differ", ("a",))
    assert broken.row == {"id": "1", "a": "z"}


@pytest.mark.parametrize("verb", ["update", "delete"])
def test_a_change_of_a_row_that_does_not_exist_is_a_defect(verb: str) -> None:
    log = Log()
    log.insert("1", a="x")
    log.delete("1", a="x")
    log.update("1", {"id": "1", "a": "x"}, {"id": "1", "a": "y"}) if verb == "update" else log.delete("1", a="x")
    assert [one.defect for one in read(log)] == [None, None, "not_inserted"]


def test_a_key_that_its_row_has_left_does_not_exist() -> None:
    log = Log()
    log.insert("1", a="x")
    log.update("1", {"id": "1", "a": "x"}, {"id": "2", "a": "x"}, key_after="2")
    log.update("1", {"id": "1", "a": "x"}, {"id": "1", "a": "y"})
    assert last(log)["1"].defect == "not_inserted"
    assert last(log)["2"].defect is None


def test_a_row_that_takes_the_place_of_another_is_a_defect() -> None:
    log = Log()
    log.insert("1", a="x")
    log.insert("2", a="y")
    log.update("1", {"id": "1", "a": "x"}, {"id": "2", "a": "x"}, key_after="2")
    log.insert("2", a="z")
    assert [one.defect for one in read(log)] == [None, "not_deleted", "not_deleted", None]


def test_truncate_ends_all_rows_and_afterwards_an_unknown_row_is_a_defect() -> None:
    log = Log()
    log.insert("1", a="x")
    truncated = log.event(Effect.EMPTIES)
    log.insert("1", a="y")
    log.delete("2", a="z")
    found = read(log)
    assert [(one.event, one.row and one.row["a"], one.defect) for one in found] == [
        (None, "x", None),
        (truncated, None, None),
        (None, "y", None),
        (None, None, "not_inserted"),
    ]
    assert found[0].ended_by is truncated


def test_a_replaced_table_has_other_rows_which_are_unknown() -> None:
    log = Log()
    log.insert("1", a="x")
    log.event(Effect.REPLACES)
    log.update("1", {"id": "1", "a": "other"}, {"id": "1", "a": "y"})
    found = read(log)
    assert not any(one.defect for one in found)
    assert [(one.line, one.row and one.row["a"]) for one in found] == [(1, "x"), (1, None), (2, "other"), (2, "y")]


def test_a_row_before_its_first_change_is_known_since_the_last_event_that_may_have_changed_it() -> None:
    log = Log()
    log.insert("1", a="x")
    gap = log.event(Effect.OBSCURES)
    log.update("2", {"id": "2", "a": "x"}, {"id": "2", "a": "y"})
    before_log = next(one for one in read(log) if one.key == "2")
    assert (before_log.change, before_log.since, before_log.place) == (None, gap, gap.place)
    assert [before_log.is_at(gap.place._replace(pos=pos)) for pos in (gap.place.pos, gap.place.pos + 1, 10**6)] == [
        False,
        True,
        False,
    ]


def test_a_doubt_lasts_until_an_image_refutes_it() -> None:
    log = Log()
    log.insert("1", a="x")
    log.insert("2", a="x")
    log.insert("3", a="x")
    gap = log.event(Effect.OBSCURES)
    log.update("1", {"id": "1", "a": "x"}, {"id": "1", "a": "y"})
    log.update("2", {"id": "2"}, {"b": "y"})
    doubts = {(one.key, one.number): one.doubts for one in read(log)}
    assert doubts == {("1", 1): (), ("1", 2): (), ("2", 1): (gap,), ("2", 2): (gap,), ("3", 1): (gap,)}


def test_an_altered_table_has_rows_with_what_the_statement_tells() -> None:
    log = Log()
    log.insert("1", a="x", b="y")
    log.alter("modify a varchar(20), drop b, add c int default 3, add d datetime default now()")
    assert last(log)["1"].row == {"id": "1", "a": "x", "c": "3"}


def test_rows_are_followed_to_another_primary_key() -> None:
    log = Log()
    log.insert("1", a="x")
    log.alter("drop primary key, add primary key (a)")
    log.insert("y", id2="1")
    assert {key: one.line for key, one in last(log).items()} == {"x": 1, "y": 2}
    assert not any(one.defect or one.doubts for one in read(log))


def test_rows_whose_new_key_is_unknown_stay_and_are_doubtful() -> None:
    log = Log()
    log.insert("1", a="x")
    event = log.alter("drop primary key, add n int auto_increment primary key")
    assert [(one.row, one.doubts) for one in read(log)][1:] == [({"id": "1", "a": "x"}, (event,))]


def test_equal_rows_without_a_key_are_counted() -> None:
    log = Log(has_key=False)
    log.insert("x")
    log.insert("x")
    log.update("x", {"id": "x"}, {"id": "y"}, key_after="y")
    log.delete("x")
    log.delete("x")
    assert [(one.key, one.copies, one.defect) for one in read(log)] == [
        ("x", 1, None),
        ("x", 2, None),
        ("x", 1, None),
        ("x", 0, None),
        ("x", 0, None),
        ("y", 1, None),
    ]


def test_more_deleted_copies_than_an_emptied_table_had_are_a_defect() -> None:
    log = Log(has_key=False)
    log.event(Effect.EMPTIES)
    log.insert("x")
    log.delete("x")
    log.delete("x")
    assert [one.defect for one in read(log)] == [None, None, "not_inserted"]


def test_changes_of_a_json_document_are_applied_to_the_earlier_document() -> None:
    log = Log()
    log.insert("1", doc='{"a": [1, 2.50]}')
    log.update(
        "1",
        {"id": "1"},
        {},
        json_changes=(
            JsonChange("doc", "replace", "$.a[0]", '"new"'),
            JsonChange("doc", "insert", "$.b", "null"),
        ),
    )
    log.update("1", {"id": "1"}, {}, json_changes=(JsonChange("doc", "remove", "$.a[1]", None),))
    assert [one.row and one.row["doc"] for one in read(log)] == [
        '{"a": [1, 2.50]}',
        '{"a": ["new", 2.50], "b": null}',
        '{"a": ["new"], "b": null}',
    ]


@pytest.mark.parametrize("has_key", [True, False])
def test_rows_that_are_written_to_a_table_of_a_hiding_engine_are_in_doubt_until_the_end(has_key: bool) -> None:
    log = Log(has_key)
    log.insert("1", a="x")
    begin = log.event(Effect.OBSCURES, hiding=Hiding.BEGINS)
    log.insert("2", a="x")
    log.update("3", {"id": "3", "a": "x"}, {"id": "3", "a": "y"}, key_after=None if has_key else "3y")
    end = log.event(Effect.OBSCURES, hiding=Hiding.ENDS)
    log.insert("4", a="x")
    found = {(one.row["id"], one.row["a"]): one.doubts for one in read(log) if one.row is not None}
    both = (begin, end)
    assert found == {("1", "x"): both, ("2", "x"): both, ("3", "x"): (begin,), ("3", "y"): both, ("4", "x"): ()}


def test_a_table_whose_rows_another_one_has_is_in_doubt_whatever_becomes_of_it() -> None:
    log = Log()
    begin = log.event(Effect.OBSCURES, hiding=Hiding.LASTS)
    log.insert("1", a="x")
    log.event(Effect.EMPTIES, hiding=Hiding.ENDS)
    log.insert("2", a="x")
    assert last(log)["2"].doubts == (begin,)


def test_what_hides_rows_before_a_place_hides_those_after_it() -> None:
    log = Log()
    first = log.event(Effect.OBSCURES, hiding=Hiding.BEGINS)
    end = log.event(Effect.EMPTIES, hiding=Hiding.ENDS)
    emptied = log.event(Effect.EMPTIES)
    second = log.event(Effect.OBSCURES, hiding=Hiding.BEGINS)
    idle = log.event(Effect.OBSCURES, hiding=Hiding.ENDS)
    events = [first, end, emptied, second]
    assert hiding.since(events, end.place) == [first, end, emptied, second]
    assert hiding.since(events, emptied.place) == [emptied, second]
    assert hiding.since(events, idle.place) == [second]
    assert [*hiding.without_idle_ends([end, idle, second, idle, idle])] == [end, second, idle]


def test_a_json_document_is_unknown_without_an_earlier_one_or_if_it_is_in_doubt() -> None:
    change = (JsonChange("doc", "replace", "$.a", "1"),)
    log = Log()
    log.update("1", {"id": "1"}, {}, json_changes=change)
    log.insert("2", doc='{"a": 0}')
    log.event(Effect.OBSCURES)
    log.update("2", {"id": "2"}, {}, json_changes=change)
    assert [one.row for one in last(log).values()] == [{"id": "1"}, {"id": "2"}]


def test_an_update_without_changes_of_a_document_leaves_it_as_it_was() -> None:
    log = Log()
    log.insert("1", doc='{"a": 0}')
    log.update("1", {"id": "1"}, {}, unchanged_documents=("doc",))
    assert last(log)["1"].row == {"id": "1", "doc": '{"a": 0}'}


def test_masked_changes_leave_the_document_unknown() -> None:
    for value in ("***", None):
        log = Log()
        log.insert("1", doc='{"b": 0}')
        log.update("1", {"id": "1"}, {}, json_changes=(JsonChange("doc", "replace", "***", value),))
        assert last(log)["1"].row == {"id": "1"}


def test_a_json_change_that_does_not_fit_leaves_the_document_unknown() -> None:
    log = Log()
    log.insert("1", doc='{"b": 0}')
    log.update("1", {"id": "1"}, {}, json_changes=(JsonChange("doc", "replace", "$.a", "1"),))
    assert last(log)["1"].row == {"id": "1"}


@pytest.mark.parametrize(
    ("old", "new", "is_kept"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("int", "int unsigned", False),
        ("varchar(10)", "varchar(11)", True),
        ("varchar(10)", "varchar(9)", False),
        ("varchar(10)", "char(10)", False),
        ("varchar(10)", "text", True),
        ("enum('a','b')", "enum('a','b','c')", True),
        ("enum('a','b')", "enum('b','a')", False),
        ("datetime", "datetime(6)", False),
        ("decimal(10,2)", "decimal(10,2)", True),
    ],
)
def test_a_modified_column_is_kept_if_its_text_stays_the_same(old: str, new: str, is_kept: bool) -> None:
    before = columns("a", id="int", a=old)
    found = alteration([tuple(actions_of(f"alter table t modify a {new} after id", "d"))], before)
    assert found.keeps_keys is is_kept


def test_components_connect_all_nodes_that_edges_reach() -> None:
    nodes, roots = components(np.array([1, 2, 7], np.uint64), np.array([2, 3, 8], np.uint64))
    found = dict(zip(nodes.tolist(), roots.tolist(), strict=True))
    assert found[1] == found[2] == found[3] != found[7] == found[8]
