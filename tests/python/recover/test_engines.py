"""The engines that tables get from other tables."""

from contextlib import closing

import pytest

from ingest.ddl.statements import actions_of
from recover.sources.engine import in_memory
from recover.timeline.engines import starts_of, turns_of
from recover.timeline.events import Effect, Place, Table, TableEvent
from recover.timeline.readings import recorded_step

BLACKHOLE = "create table a (i int) engine=blackhole"
MEMORY = "create table a (i int) engine=memory"


def turns(name: str, *statements: str, starts: tuple[int, ...] = ()) -> tuple[list[str | None], list[int]]:
    """Return the engines of a table after the statements that change them, and the server starts that take its rows."""
    table = Table("s", "d", name)
    with closing(in_memory(None)) as connection:
        connection.execute(
            """create schema binloom; create schema binloom_staging;
            create table binloom.schema_changes (
                source_id varchar, epoch integer, file_sequence bigint, start_pos bigint, payload_ordinal integer,
                statement_type varchar, schema_name varchar, table_name varchar, actions varchar[], tables varchar[],
                sql_text varchar, default_schema varchar
            );
            create table binloom_staging.server_starts (
                source_id varchar, epoch integer, file_sequence bigint, binlog_file varchar
            )"""
        )
        events = []
        for number, text in enumerate(statements, 1):
            steps = actions_of(text, "d")
            actions = [*map(recorded_step, steps)]
            names = [(one.schema_name, one.table_name) for one in steps]
            names += [(one.other_schema_name, one.other_table_name) for one in steps if one.action == "rename_table"]
            tables = [f"{schema}.{one}" for schema, one in dict.fromkeys(names) if one is not None]
            first = steps[0]
            connection.execute(
                "insert into binloom.schema_changes values ('s', 0, ?, 200, 0, ?, ?, ?, ?, ?, ?, 'd')",
                [number, first.statement_type, first.schema_name, first.table_name, actions, tables, text],
            )
            if str(table) in tables:
                events.append(TableEvent(Place(0, number, 200), Effect.OBSCURES, "", "f", tuple(actions)))
        for number in starts:
            connection.execute("insert into binloom_staging.server_starts values ('s', 0, ?, 'f')", [number])
        found = turns_of(connection, table, events)
        lost = [event.place.file_sequence for event in starts_of(connection, table, found)]
        return [turn.engine for turn in found.values() if turn.is_carried], lost


@pytest.mark.parametrize(
    ("name", "statements", "expected"),
    [
        ("b", [BLACKHOLE, "create table b like a"], ["BLACKHOLE"]),
        ("b", [BLACKHOLE, "create table if not exists b like a"], ["BLACKHOLE"]),
        ("b", [BLACKHOLE, "create table if/**/not exists a (i int)", "create table b like a"], ["BLACKHOLE"]),
        ("b", [BLACKHOLE, "alter table a engine=innodb", "create table b like a"], [None]),
        ("b", [BLACKHOLE, "rename table a to b"], ["BLACKHOLE"]),
        ("b", [BLACKHOLE, "alter table a add j int, rename to b"], ["BLACKHOLE"]),
        ("b", [BLACKHOLE, "drop table a", "create table a (i int)", "rename table a to b"], [None]),
        ("b", [BLACKHOLE, "drop database d", "create table a (i int)", "rename table a to b"], [None]),
        ("a", [BLACKHOLE, "create table b (i int)", "rename table a to c, b to a"], [None]),
        ("c", [BLACKHOLE, "create table b (i int)", "rename table a to c, b to a"], ["BLACKHOLE"]),
        ("c", [BLACKHOLE, "create table b like a", "drop table a", "rename table b to c"], ["BLACKHOLE"]),
        ("b", ["create table a (i int)", "rename table a to b"], [None]),
    ],
)
def test_a_table_has_the_engine_of_the_one_that_it_comes_from(
    name: str, statements: list[str], expected: list[str | None]
) -> None:
    assert turns(name, *statements)[0] == expected


@pytest.mark.parametrize(
    ("name", "statements", "expected"),
    [
        ("a", [MEMORY], [2, 4]),
        ("a", [MEMORY, "create table c (i int)", "alter table a engine=innodb"], [2]),
        ("b", ["create table b (i int)", MEMORY, "drop table b", "create table b like a"], []),
        ("b", [MEMORY, "create table b like a"], [4]),
        ("b", [BLACKHOLE, "create table b like a"], []),
    ],
)
def test_a_start_of_the_server_counts_while_the_engine_is_memory(
    name: str, statements: list[str], expected: list[int]
) -> None:
    assert turns(name, *statements, starts=(1, 2, 4))[1] == expected
