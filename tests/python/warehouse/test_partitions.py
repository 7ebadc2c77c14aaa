"""Partitions that were landed without Spark: the next session registers them, with one statement."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ingest.landing import IngestOptions, ingest
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.landing.recorder import now
from ingest.sources.files.directory import find_binlogs
from ingest.warehouse.catalog import create_statement, ensure_tables
from ingest.warehouse.home import raw_table_dir, warehouse_dir
from ingest.warehouse.partitions import REGISTERED_UNTIL, confirm_registered, open_tables, register_pending
from ingest.warehouse.record import read_states
from ingest.warehouse.segments import FIRST_EVENT, Segment
from ingest.warehouse.tables import SEGMENT_TABLES, STATEMENTS
from tests.support.landing.binlogs import SHOP, transaction_ends
from tests.support.landing.spark import raw_rows, spark_home

pytestmark = [pytest.mark.spark]

SMALL = IngestOptions(segment_bytes=8_000)
FIRST = SHOP / "binlog.000001"
ENDS = transaction_ends(FIRST)
ODD = "it's a/b=c%d \\ ü"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that a follower has landed into before a metastore existed."""
    home = tmp_path_factory.mktemp("home")
    follow(ODD, home, ENDS[10])
    return home


@pytest.fixture(scope="module")
def session(home: Path) -> Iterator[Any]:
    """The session of all tests here."""
    with spark_home(home) as live:
        yield live


def follow(source: str, home: Path, upto: int) -> int:
    """Land the first file up to an offset, without Spark; return the number of row events."""
    with StreamLanding(source, home) as landing:
        return landing.land([SpoolFile(FIRST, 0, upto)]).row_events


def seen(session: Any, source: str) -> int:
    """Return the number of row events that the session finds."""
    quoted = source.replace("\\", "\\\\").replace("'", "\\'")
    return int(session.table("binlog_raw.row_events").where(f"source_id = '{quoted}'").count())


def test_what_was_landed_before_is_there(session: Any, home: Path) -> None:
    assert seen(session, ODD) == follow("the same elsewhere", home, ENDS[10]) > 0
    assert register_pending(session, home)
    assert not register_pending(session, home)


def test_what_is_landed_beside_a_session_waits_to_be_registered(session: Any, home: Path) -> None:
    rows = follow("beside", home, ENDS[10])
    assert seen(session, "beside") == 0 < rows
    assert register_pending(session, home)
    assert seen(session, "beside") == rows
    assert not register_pending(session, home)


def test_ingest_registers_its_own_and_what_was_pending(session: Any, home: Path) -> None:
    rows = follow("pending", home, ENDS[10])
    landed = ingest("ingested", find_binlogs(SHOP), SMALL, home=home)
    assert (seen(session, "pending"), seen(session, "ingested")) == (rows, landed.row_events)
    # All partitions are registered now, so another call finds nothing to do.
    assert not register_pending(session, home)


def test_what_others_land_while_an_ingest_runs_is_registered_too(session: Any, home: Path) -> None:
    rows: list[int] = []

    def beside(done: int, known: int, word: str) -> None:
        if word == "committing" and not rows:
            rows.append(follow("meanwhile", home, ENDS[10]))

    ingest("long", find_binlogs(SHOP), SMALL, home=home, progress=beside)
    assert seen(session, "meanwhile") == rows[0] > 0


def test_a_run_that_registered_its_own_leaves_those_of_others_pending(session: Any, home: Path) -> None:
    def run_of(source: str) -> str:
        follow(source, home, ENDS[10])
        return next(state.run_id for state in read_states(home, source))

    register_pending(session, home)
    confirm_registered(session, home, run_of("alone"))
    assert not register_pending(session, home)
    own = run_of("own")
    run_of("another")
    confirm_registered(session, home, own)
    assert register_pending(session, home)


def partitions(session: Any, source: str) -> list[int]:
    """Return the starts of a source's segments that are registered."""
    shown = session.sql(f"show partitions binlog_raw.row_events partition (source_id = '{source}')").collect()
    return sorted(int(row[0].rpartition("=")[2]) for row in shown)


def test_a_partition_whose_folder_was_removed_is_taken_away(session: Any, home: Path) -> None:
    follow("gone", home, ENDS[10])
    register_pending(session, home)
    assert partitions(session, "gone") == [FIRST_EVENT]
    kept = raw_rows(session, "row_events", "ingested")
    (folder,) = raw_table_dir("row_events", home).glob("source_id=gone/*/*/*")
    shutil.rmtree(folder)
    session.catalog.refreshTable("binlog_raw.row_events")
    assert seen(session, "gone") == 0
    assert raw_rows(session, "row_events", "ingested") == kept
    segment = Segment("gone", 0, FIRST.name, FIRST_EVENT, ENDS[10])
    with StreamLanding("gone", home) as landing:
        landing.record_states([segment.state("removed", "a run", now())])
    assert register_pending(session, home)
    assert partitions(session, "gone") == []
    assert raw_rows(session, "row_events", "ingested") == kept


@pytest.mark.parametrize("found", ["a state of an earlier time", "the property of an older version"])
def test_every_partition_is_looked_for_when_it_is_unknown_which_are_new(session: Any, home: Path, found: str) -> None:
    recorded = [*raw_table_dir("segments", home).glob("beside-*")]
    assert recorded
    if found == "a state of an earlier time":
        for path in recorded:
            path.rename(home / path.name)
        register_pending(session, home)
        for path in recorded:
            (home / path.name).rename(path)
    else:
        properties = dict(session.sql("show tblproperties binlog_raw.row_events").collect())
        moment, _, _ = properties[REGISTERED_UNTIL].partition(", ")
        session.sql(f"alter table binlog_raw.row_events set tblproperties ('{REGISTERED_UNTIL}' = '{moment}')")
    session.sql("alter table binlog_raw.row_events drop partition (source_id = 'beside')")
    assert register_pending(session, home)
    assert partitions(session, "beside") == [FIRST_EVENT]
    assert not register_pending(session, home)


def test_what_is_new_costs_as_many_statements_with_many_segments(session: Any, home: Path) -> None:
    follow("grows", home, ENDS[10])
    register_pending(session, home)
    follow("grows", home, ENDS[11])
    told = Told(session)
    assert register_pending(told, home)
    assert not any("msck" in statement for statement in told.statements)
    assert sum("add if not exists" in statement for statement in told.statements) <= len(SEGMENT_TABLES)
    assert partitions(session, "grows") == [FIRST_EVENT, ENDS[10]]


class Told:
    """Passes statements on to a session, and keeps them."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.statements: list[str] = []

    def sql(self, statement: str, /) -> Any:
        self.statements.append(statement)
        return self.session.sql(statement)


def test_tables_from_before_a_column_was_added_get_it(session: Any, home: Path) -> None:
    ingest("columns", find_binlogs(SHOP), SMALL, home=home)
    before = raw_rows(session, "statements", "columns")
    added = {"sql_mode", "time_zone", "character_set_client"}
    older = replace(STATEMENTS, columns=pa.schema([one for one in STATEMENTS.columns if one.name not in added]))
    session.sql("drop table binlog_raw.statements")
    session.sql(create_statement(older, str(raw_table_dir("statements", home))))
    session.sql("alter table binlog_raw.statements recover partitions")
    session.sql("alter schema binlog_raw set dbproperties ('binloom.layout' = 'an older one')")
    assert not added & set(session.table("binlog_raw.statements").columns)
    assert ensure_tables(session, warehouse_dir(home)) == []
    assert before == raw_rows(session, "statements", "columns") != []
    # One check is enough: the tables are not examined again.
    session.sql("drop table binlog_raw.statements")
    session.sql(create_statement(older, str(raw_table_dir("statements", home))))
    assert ensure_tables(session, warehouse_dir(home)) == []
    assert not added & set(session.table("binlog_raw.statements").columns)
    session.sql("drop table binlog_raw.statements")
    # Rows that were landed before are still there.
    open_tables(session, home)
    assert before == raw_rows(session, "statements", "columns")
