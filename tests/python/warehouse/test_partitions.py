"""Partitions that were landed without Spark: the next session registers them, with one statement."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.landing import IngestOptions, ingest
from ingest.landing.held import SpoolFile, StreamLanding
from ingest.sources.directory import find_binlogs
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.partitions import register_pending
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


def test_what_others_land_while_an_ingest_runs_stays_pending(session: Any, home: Path) -> None:
    rows: list[int] = []

    def beside(done: int, known: int, word: str) -> None:
        if word == "committing" and not rows:
            rows.append(follow("meanwhile", home, ENDS[10]))

    ingest("long", find_binlogs(SHOP), SMALL, home=home, progress=beside)
    assert seen(session, "meanwhile") == 0 < rows[0]
    assert register_pending(session, home)
    assert seen(session, "meanwhile") == rows[0]


def test_a_partition_whose_folder_is_gone_reads_as_empty_and_is_taken_away(session: Any, home: Path) -> None:
    follow("gone", home, ENDS[10])
    register_pending(session, home)
    kept = raw_rows(session, "row_events", "ingested")
    (folder,) = raw_table_dir("row_events", home).glob("source_id=gone/*/*/*")
    shutil.rmtree(folder)
    session.catalog.refreshTable("binlog_raw.row_events")
    assert seen(session, "gone") == 0
    assert raw_rows(session, "row_events", "ingested") == kept
    follow("gone", home, ENDS[11])
    register_pending(session, home)
    partitions = session.sql("show partitions binlog_raw.row_events partition (source_id = 'gone')").collect()
    assert [row[0].rpartition("=")[2] for row in partitions] == [str(ENDS[10])]
