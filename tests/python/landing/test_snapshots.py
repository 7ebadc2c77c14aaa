"""Schema snapshots for the decoder: file names start over with each epoch, and positions count within an epoch."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

import pytest

from ingest.binlog import SchemaHints
from ingest.landing import land_snapshot
from ingest.landing.schema_history import SchemaHistory
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.warehouse.files import read_rows
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.tables import SCHEMA_DEFAULTS

CLOCK = count()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder for each test."""
    return tmp_path / "home"


def snapshot(place: tuple[str, int] | None, **tables: str) -> SchemaSnapshot:
    """Take a snapshot of tables with one named column, at a position or without one, each later than the last."""
    columns = [
        {
            "schema_name": "shop",
            "table_name": table,
            "column_name": column,
            "ordinal_position": 1,
            "data_type": "int",
            "column_type": "int",
        }
        for table, column in tables.items()
    ]
    taken_at = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=next(CLOCK))
    name, position = place or (None, None)
    return SchemaSnapshot("server" if place else "files", taken_at, name, position, columns=columns)


def hints_of(home: Path, epoch: int) -> SchemaHints | None:
    """Return the known schema of the source in an epoch."""
    return SchemaHistory.load(SourceRecord.load("s", home), home).hints(epoch)


def column(home: Path, epoch: int, binlog_file: str, position: int, table: str = "t") -> str | None:
    """Return the name of the table's column that the decoder gets at a position."""
    hints = hints_of(home, epoch)
    assert hints is not None
    definitions = hints.definitions("shop", table, binlog_file, position)
    return definitions[0][0].name if definitions else None


def test_without_a_snapshot_there_are_no_hints(home: Path) -> None:
    land_snapshot("another", snapshot(None, t="a"), home)
    assert hints_of(home, 0) is None


def test_defaults_are_landed_with_their_snapshot(home: Path) -> None:
    default = {"schema_name": "shop", "table_name": None, "character_set": "latin1", "collation": "latin1_bin"}
    without = land_snapshot("s", snapshot(None, t="a"), home)
    assert read_rows(SCHEMA_DEFAULTS, home) == []
    with_one = land_snapshot("s", replace(snapshot(None, t="a"), defaults=[default]), home)
    assert with_one.is_new and with_one.snapshot_id != without.snapshot_id
    assert read_rows(SCHEMA_DEFAULTS, home) == [{"snapshot_id": with_one.snapshot_id, **default}]


def test_files_of_the_same_names_in_two_epochs(home: Path) -> None:
    land_snapshot("s", snapshot(("binlog.000001", 4), t="first"), home, 0)
    land_snapshot("s", snapshot(("binlog.000005", 700), t="altered"), home, 0)
    land_snapshot("s", snapshot(("binlog.000001", 900), t="after_reset"), home, 1)
    assert column(home, 0, "binlog.000001", 950) == "first"
    assert column(home, 0, "binlog.000006", 4) == "altered"
    # The schema at the end of the previous epoch is uncertain, so a snapshot of this epoch takes precedence.
    assert column(home, 1, "binlog.000001", 899) == "after_reset"
    assert column(home, 1, "binlog.000001", 900) == "after_reset"
    assert column(home, 1, "binlog.000006", 4) == "after_reset"
    assert column(home, 2, "binlog.000001", 4) == "after_reset"


def test_files_of_other_names_in_the_next_epoch(home: Path) -> None:
    # By name alone, the next server's file would sort before the first server's files.
    land_snapshot("s", snapshot(("mysql-bin.000009", 100), t="first"), home, 0)
    land_snapshot("s", snapshot(("binlog.000002", 500), t="next"), home, 1)
    assert column(home, 0, "mysql-bin.000009", 100) == "first"
    assert column(home, 0, "mysql-bin.000100", 4) == "first"
    assert column(home, 1, "binlog.000002", 499) == "next"
    assert column(home, 2, "binlog.000001", 4) == "next"
    assert column(home, 1, "binlog.000003", 4) == "next"


def test_the_same_schema_at_the_same_place_of_two_epochs_is_two_snapshots(home: Path) -> None:
    same = snapshot(("binlog.000001", 158), t="a")
    landed = [land_snapshot("s", same, home, epoch) for epoch in (0, 1, 1)]
    assert [one.is_new for one in landed] == [True, True, False]
    land_snapshot("s", snapshot(("binlog.000001", 700), t="b"), home, 0)
    assert column(home, 0, "binlog.000001", 800) == "b"
    assert column(home, 1, "binlog.000001", 800) == "a"


def test_a_later_epoch_counts_for_tables_that_have_nothing_else(home: Path) -> None:
    land_snapshot("s", snapshot(("binlog.000003", 400), t="own"), home, 0)
    land_snapshot("s", snapshot(("binlog.000001", 4), t="later", new="first"), home, 1)
    land_snapshot("s", snapshot(("binlog.000001", 4), t="latest", new="second"), home, 2)
    assert column(home, 0, "binlog.000001", 4) == "own"  # the snapshot also applies before its position
    assert column(home, 0, "binlog.000009", 4) == "own"
    assert column(home, 0, "binlog.000001", 4, table="new") == "first"


def test_an_unknown_epoch_counts_by_position_in_all(home: Path) -> None:
    land_snapshot("s", snapshot(("binlog.000002", 4), t="by_hand"), home)
    land_snapshot("s", snapshot(("binlog.000004", 4), t="followed"), home, 0)
    land_snapshot("s", snapshot(("binlog.000001", 4), t="next"), home, 1)
    assert column(home, 0, "binlog.000003", 4) == "by_hand"
    assert column(home, 0, "binlog.000004", 4) == "followed"
    assert column(home, 1, "binlog.000001", 4) == "next"
    assert column(home, 1, "binlog.000002", 4) == "by_hand"


def test_files_say_less_than_the_epoch_before(home: Path) -> None:
    land_snapshot("s", snapshot(("binlog.000002", 4), t="followed"), home, 0)
    land_snapshot("s", snapshot(None, t="from_files", other="from_files"), home)
    assert column(home, 0, "binlog.000001", 4) == "from_files"
    assert column(home, 1, "binlog.000001", 4) == "followed"
    assert column(home, 1, "binlog.000001", 4, table="other") == "from_files"


def test_of_two_at_one_place_the_later_taken_one_counts(home: Path) -> None:
    first, second = (snapshot(("binlog.000001", 4), t=name) for name in ("first", "second"))
    for one in (second, first):
        land_snapshot("s", one, home, 0)
    assert column(home, 0, "binlog.000001", 4) == "second"
