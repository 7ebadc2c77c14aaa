"""Statements behind the schema snapshot: an undo is refused if they may have changed keys or children of its tables."""

from dataclasses import replace
from typing import Any

import duckdb
import pytest

from ingest.ddl.statements import actions_of
from recover.timeline.baselines import sequence_of_file
from recover.timeline.events import Place
from recover.undo.tables.definitions import Definitions
from recover.undo.tables.stale import changed_since_snapshot
from recover.undo.tables.table import Column, ForeignKey, Table

TABLE = Table(("shop", "t"), (Column("id", "int", "int", is_nullable=False),), ("id",))
KEY = ForeignKey("c_t", ("shop", "c"), ("t",), TABLE.name, ("id",))
DEFINITIONS = Definitions({TABLE.name: TABLE}, (KEY,), Place(0, 2, 100))


def problems(
    text: str, schema: str = "shop", file: str = "b.000002", pos: int = 100, definitions: Definitions = DEFINITIONS
) -> list[str]:
    """Return the problems of an undo in `shop.t` after a statement, read as the marts read it."""
    actions = actions_of(text, schema, 0, "mariadb")
    first = actions[0]
    names = [(one.schema_name, one.table_name) for one in actions]
    names += [(one.other_schema_name, one.other_table_name) for one in actions if one.action == "rename_table"]
    connection = duckdb.connect()
    connection.execute(
        "create schema binloom; create table binloom.schema_changes (source_id varchar, epoch int,"
        " file_sequence bigint, start_pos bigint, binlog_file varchar, statement_type varchar, actions varchar[],"
        " schema_name varchar, tables varchar[], is_understood boolean, sql_text varchar)"
    )
    facts: list[Any] = [
        sequence_of_file(file), pos, file, first.statement_type,
        [" ".join(filter(None, (one.action, one.detail))) for one in actions],
        first.schema_name, [f"{one}.{name}" for one, name in names if name is not None],
        all(one.action != "not_understood" for one in actions), text,
    ]  # fmt: skip
    connection.execute("insert into binloom.schema_changes values ('s', 0, ?, ?, ?, ?, ?, ?, ?, ?, ?)", facts)
    return [*changed_since_snapshot(connection, "s", TABLE, definitions)]


@pytest.mark.parametrize(
    "text",
    [
        "ALTER TABLE t ADD UNIQUE KEY u (a)",
        "ALTER TABLE T DROP INDEX u",
        "CREATE UNIQUE INDEX u ON t (a)",
        "DROP INDEX u ON t",
        "ALTER TABLE t ADD FOREIGN KEY (a) REFERENCES other (id)",
        "ALTER TABLE t DROP FOREIGN KEY f",
        "ALTER TABLE t ADD COLUMN x int",
        "ALTER TABLE t CONVERT TO CHARACTER SET latin1",
        "ALTER TABLE t ENGINE = MyISAM",
        "ALTER TABLE t COMMENT 'x', ADD UNIQUE (a)",
        "ALTER TABLE t SOMETHING NEW",
        "RENAME TABLE t TO u",
        "DROP DATABASE shop",
    ],
)
def test_other_keys_and_columns_than_the_snapshot_has_are_refused(text: str) -> None:
    (problem,) = problems(text)
    assert problem.startswith("the schema snapshot is older than ") and " at b.000002:100 of shop.t: land a" in problem
    assert problems(text, pos=99) == problems(text, file="b.000001", pos=500) == []


def test_files_are_compared_by_their_number() -> None:
    definitions = replace(DEFINITIONS, place=Place(0, 999_999, 100))
    (problem,) = problems("DROP INDEX u ON t", file="b.1000000", pos=4, definitions=definitions)
    assert " at b.1000000:4 of shop.t: land a" in problem


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("ALTER TABLE c ADD CONSTRAINT f FOREIGN KEY (t) REFERENCES t(id) ON DELETE CASCADE", "shop"),
        ("create table n (a int, foreign key (a) references`T`(id))", "shop"),
        ("CREATE TABLE n (a int, FOREIGN KEY (a) REFERENCES /* x */ `shop` . `t` (id))", "other"),
        ("CREATE TABLE n (a int /*!50000 references shop.t (id) */)", "other"),
        ("RENAME TABLE c TO c2", "shop"),
    ],
)
def test_children_that_the_snapshot_does_not_have_are_refused(text: str, schema: str) -> None:
    (problem,) = problems(text, schema)
    assert "at b.000002:100, after which other rows may refer to shop.t: land a new one" in problem
    assert problems(text, schema, pos=99) == []


@pytest.mark.parametrize(
    ("text", "schema"),
    [
        ("ALTER TABLE t ADD INDEX i (a), ALTER COLUMN a SET DEFAULT 3, COMMENT = 'x'", "shop"),
        ("CREATE INDEX i ON t (a)", "shop"),
        ("ALTER TABLE t ADD PARTITION (PARTITION p3 VALUES LESS THAN (30))", "shop"),
        ("CREATE TABLE IF NOT EXISTS t (id int)", "shop"),
        ("CREATE TRIGGER x BEFORE UPDATE ON t FOR EACH ROW SET NEW.a = 1", "shop"),
        ("ALTER TABLE c ADD COLUMN t int, ADD UNIQUE (t)", "shop"),
        ("CREATE TABLE n (t int, FOREIGN KEY (t) REFERENCES u (id))", "shop"),
        ("CREATE TABLE n (a int, FOREIGN KEY (a) REFERENCES t2 (id))", "shop"),
        ("CREATE TABLE n (a int, FOREIGN KEY (a) REFERENCES other.t (id))", "shop"),
        ("CREATE TABLE n (a int, FOREIGN KEY (a) REFERENCES t (id))", "other"),
        ("ALTER TABLE t ADD UNIQUE KEY u (a)", "other"),
        ("DROP DATABASE other", "shop"),
    ],
)
def test_statements_that_change_no_key_of_the_table_are_not_refused(text: str, schema: str) -> None:
    assert problems(text, schema) == []
