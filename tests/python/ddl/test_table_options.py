"""Options of tables that tell whose rows a table has."""

import pytest

from ingest.ddl.statements import actions_of

UNION = "in the union of another table"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("alter table t engine = InnoDB", [("other", "t", "engine")]),
        ("alter table t engine 'blackhole'", [("truncate_table", "t", None), ("other", "t", "engine blackhole")]),
        (
            "alter table t union = (a, e.b), engine=MERGE",
            [("other", "t", "union"), ("other", "a", UNION), ("other", "b", UNION), ("other", "t", "engine merge")],
        ),
        ("alter table t union = ()", [("other", "t", "union")]),
        ("alter table t comment 'engine=blackhole'", [("other", "t", "comment")]),
        ("create table t (a int) engine = InnoDB comment = 'engine=merge'", [("create_table", "t", None)]),
        ("create table t (a int) Engine Blackhole", [("create_table", "t", None), ("other", "t", "engine blackhole")]),
        (
            "create table t (a int) engine=mrg_myisam union=(a) insert_method=last",
            [("create_table", "t", None), ("other", "t", "engine merge"), ("other", "a", UNION)],
        ),
        ("create table t (a int) engine=merge engine=myisam union=(a)", [("create_table", "t", None)]),
        ("alter table t engine=heap", [("other", "t", "engine memory")]),
        ("create table t (a int) engine=memory", [("create_table", "t", None), ("other", "t", "engine memory")]),
        ("create table t (engine int, `union` int)", [("create_table", "t", None)]),
        (
            "create table t (a int) partition by hash (a) (partition p engine = InnoDB)",
            [("create_table", "t", None)],
        ),
        ("create table t engine=myisam as select 1 union select 2", [("create_select", "t", None)]),
    ],
)
def test_only_an_engine_with_which_the_log_does_not_show_the_rows_is_told(
    statement: str, expected: list[tuple[str, str, str | None]]
) -> None:
    assert [(one.action, one.table_name, one.detail) for one in actions_of(statement, "d")] == expected
