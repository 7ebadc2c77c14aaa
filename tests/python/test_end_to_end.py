"""From a live server to `row_changes`: the last `row_after` of every key equals the server's row.

The workload of every column type is run on a MySQL and a MariaDB server under their defaults. The commands land
the schemas and the binlogs of both as two sources in one home, `dbt build` derives `row_changes`, and its rows are
followed key by key.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.dataset as dataset
import pytest

from ingest.warehouse.few_rows import FEW_ROWS_VARIABLE
from ingest.warehouse.privacy import GROUP_VARIABLE
from tests.servers import DISTRIBUTIONS
from tests.servers.rows import table_rows
from tests.support.binlog import workload, workload_own, workload_tables
from tests.support.binlog.workload import SCHEMA, Table
from tests.support.commands import binloom, build
from tests.support.permissions import OTHERS, closed_to_the_group, open_to

pytestmark = [pytest.mark.mysql, pytest.mark.mariadb, pytest.mark.spark, pytest.mark.slow]

APART = "apart"
PREPARED_AND_LOGGED_AS_TEXT = f"""
    create database {APART}; create table {APART}.t (id int primary key)
    xa start 'lost'; insert into {APART}.t values (1); xa end 'lost'; xa prepare 'lost'; xa rollback 'lost'
    xa start 'kept'; insert into {APART}.t values (2); xa end 'kept'; xa prepare 'kept'; xa commit 'kept'
    set session binlog_format = statement; insert into {APART}.t values (3); delete from {APART}.t where id = 3
"""

# Key to row, both as text; the columns of a row by name.
Rows = dict[tuple[str | None, ...], dict[str, str | None]]


class Story:
    """A workload that ran, by source: its tables and their final rows."""

    def __init__(self) -> None:
        self.tables: dict[str, list[Table]] = {}
        self.final_rows: dict[tuple[str, str], Rows] = {}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("binloom")


@pytest.fixture(scope="module")
def group_access() -> Iterator[pytest.MonkeyPatch]:
    """The environment of this module's commands."""
    with pytest.MonkeyPatch.context() as environment:
        yield environment


@pytest.fixture(scope="module")
def story(home: Path, tmp_path_factory: pytest.TempPathFactory, group_access: pytest.MonkeyPatch) -> Story:
    """Run the workload on both servers, land it meanwhile, and build the models; the group may read them."""
    result = Story()
    group_access.setenv(GROUP_VARIABLE, "1")
    # All other tests build with the settings for few rows.
    group_access.setenv(FEW_ROWS_VARIABLE, "0")
    for name, distribution in DISTRIBUTIONS.items():
        with distribution.start(tmp_path_factory.mktemp(name)) as server:
            tables = workload_tables.tables(server, workload_tables.server_charsets(server), seed=3)
            if server.flavor == "mariadb":
                tables.append(workload_own.first_versions())
            workload.run(server, tables)
            with server.connect() as connection, connection.cursor() as cursor:
                for statement in PREPARED_AND_LOGGED_AS_TEXT.replace("\n", ";").split(";"):
                    if statement.strip():
                        cursor.execute(statement)
            server.flush()
            result.tables[name] = tables
            for table in tables:
                result.final_rows[name, table.name] = _rows_by_key(table, table_rows(server, SCHEMA, table.name)[1])
            live = ["--server", server.host, "--port", str(server.port), "--user", "root"]
            binloom(home, "snapshot", "--source", name, *live)
            folder = str(server.binlog_dir)
            binloom(home, "ingest", "--source", name, "--binlog-dir", folder, "--all")
    build(home, "row_changes", "quarantined_row_events", "statement_format_changes")
    return result


def _rows_by_key(table: Table, rows: list[tuple[str | None, ...]]) -> Rows:
    names = [column.name for column in table.all_columns]
    by_name = [dict(zip(names, row, strict=True)) for row in rows]
    return {_key(table, row): row for row in by_name}


def _key(table: Table, row: dict[str, str | None]) -> tuple[str | None, ...]:
    return tuple(row[name] for name in table.key)


def _changes(home: Path, source: str) -> Iterator[dict[str, object]]:
    """Yield the rows of `row_changes` of a source in commit order."""
    rows = dataset.dataset(home / "warehouse" / "binloom.db" / "row_changes", partitioning="hive")
    order = [(name, "ascending") for name in ("epoch", "file_sequence", "start_pos", "payload_ordinal", "row_ordinal")]
    yield from rows.to_table(filter=dataset.field("source_id") == source).sort_by(order).to_pylist()


def _followed(home: Path, source: str, tables: dict[str, Table]) -> dict[str, Rows]:
    """Follow every key through its changes."""
    followed: dict[str, Rows] = {name: {} for name in tables}
    for change in _changes(home, source):
        if change["schema_name"] == APART:
            continue
        table = tables[str(change["table_name"])]
        before, after = (dict(change[image]) if change[image] else None for image in ("row_before", "row_after"))  # type: ignore[call-overload]
        rows = followed[table.name]
        if before is not None:
            rows.pop(_key(table, before), None)
        if after is not None:
            rows[_key(table, after)] = after
    return followed


@pytest.mark.parametrize("source", list(DISTRIBUTIONS))
def test_the_last_row_after_of_every_key_is_the_servers_row(home: Path, story: Story, source: str) -> None:
    tables = {table.name: table for table in story.tables[source]}
    followed = _followed(home, source, tables)
    wrong = []
    for name, table in tables.items():
        if not table.key:
            continue
        expected = story.final_rows[source, name]
        assert expected
        assert set(followed[name]) == set(expected), f"{source}.{name}: other keys than the server has"
        for key, row in expected.items():
            ours = followed[name][key]
            assert list(ours) == list(row), f"{source}.{name}: other columns than the server has"
            for column in table.all_columns:
                mine, theirs = ours[column.name], row[column.name]
                if column.kind == "float" and mine is not None and theirs is not None:
                    # The server prints six digits of a FLOAT; the test selects it as a DOUBLE.
                    same = np.float32(mine) == np.float32(theirs)
                else:
                    same = mine == theirs
                if not same:
                    wrong.append(f"{source}.{name}.{column.name} of {key}: {mine!r} for {theirs!r}"[:300])
    assert not wrong, "\n".join(wrong[:20])


@pytest.mark.parametrize("source", list(DISTRIBUTIONS))
def test_no_row_is_left_out(home: Path, story: Story, source: str) -> None:
    warehouse = home / "warehouse"
    raw = dataset.dataset(warehouse / "binlog_raw.db" / "row_events", partitioning="hive")
    landed = raw.count_rows(filter=dataset.field("source_id") == source)
    changes = list(_changes(home, source))
    assert len(changes) == landed > 2000
    assert {change["schema_name"] for change in changes} == {SCHEMA, APART}
    assert len({change["change_id"] for change in changes}) == len(changes)


@pytest.mark.parametrize("source", list(DISTRIBUTIONS))
def test_what_was_rolled_back_and_what_has_no_images_is_told(home: Path, story: Story, source: str) -> None:
    apart = [change for change in _changes(home, source) if change["schema_name"] == APART]
    assert [(dict(change["row_after"])["id"], change["outcome"]) for change in apart] == [  # type: ignore[call-overload]
        ("1", "rollback"),
        ("2", "commit"),
    ]
    texts = dataset.dataset(home / "warehouse" / "binloom_quality.db" / "statement_format_changes")
    rows = texts.to_table(filter=dataset.field("source_id") == source).to_pylist()
    assert {(row["schema_name"], row["table_name"], row["verb"], row["statements"]) for row in rows} >= {
        (APART, "t", "INSERT", 1),
        (APART, "t", "DELETE", 1),
    }


def test_the_group_can_read_what_is_in_the_home_and_others_cannot(home: Path, story: Story) -> None:
    # Only the owner of a metastore can open it. Files that dbt writes for itself have the user's umask. Hive makes
    # the folder of a session, and it stays if a plain dbt ends.
    own = ("metastore", "derby.log", "target", "logs/dbt.log", "tmp/resources")
    assert [path for path in closed_to_the_group(home) if not path.startswith(own)] == []
    assert [path for path in open_to(OTHERS, home) if not path.startswith(own[2:])] == []
