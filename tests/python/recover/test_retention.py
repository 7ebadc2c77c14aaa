"""The files that must stay and the rows that are carried before old files expire."""

import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from ingest.errors import UsageError
from ingest.landing.expiry import OldFile
from ingest.landing.held import StreamLanding
from ingest.landing.schema_history import SchemaHistory
from ingest.warehouse.files import read_rows
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.tables import BASELINE_ROWS, BASELINES, SCHEMA_SNAPSHOTS
from recover.retention.carried import land_carried, tables_at
from recover.retention.carried_masks import LandedMaps, masks_of_rows
from recover.retention.needed import expiring, keep_needed
from recover.sources.log import VIEWS, Log
from recover.timeline.baselines import VIEWS as BASELINE_VIEWS
from recover.timeline.baselines import Baseline
from recover.timeline.events import Place, Table
from recover.timeline.table_log import MARTS
from tests.support.landing.binlogs import SHOP
from tests.support.masking.shop import MASKS, land_shop, set_masks
from tests.support.older_warehouse import FOLLOWED, unpack

TRANSACTIONS = """create table binloom.transactions as
    select 's' as source_id, 0 as epoch, sequence as file_sequence, pos as start_pos, id as transaction_id,
        ending as xa_end_transaction_id, outcome
    from (values {}) as listed (sequence, pos, id, ending, outcome)"""
SCHEMA_CHANGES = """create table binloom.schema_changes as
    select 's' as source_id, 0 as epoch, 1 as file_sequence, 1::bigint as start_pos, '' as binlog_file,
        '' as statement_type, '' as schema_name, '' as table_name, ['add_column'] as actions where false"""


@pytest.fixture
def connection() -> Iterator["duckdb.DuckDBPyConnection"]:
    with duckdb.connect() as connection:
        connection.execute("create schema binloom")
        connection.execute(SCHEMA_CHANGES)
        yield connection


def files(count: int) -> list[OldFile]:
    """Return old files, of which all but the last expire."""
    found = [OldFile(0, f"b.{number:06}", {}, [], None) for number in range(1, count + 1)]
    found[-1].why_kept = "it is the newest file"
    return found


@pytest.mark.parametrize(
    ("transactions", "left"),
    [
        ("(1, 4, 'a', null, 'commit')", 3),
        # Prepared in the second file, and never ended.
        ("(2, 4, 'a', null, 'xa_prepare')", 1),
        # Prepared in the second file, and ended in a file that stays.
        ("(2, 4, 'a', 'b', 'commit'), (4, 4, 'b', null, 'commit')", 1),
        ("(1, 4, 'a', 'b', 'commit'), (3, 4, 'b', null, 'commit')", 3),
        # The second transaction keeps the third file, so the first one is open there, too.
        ("(2, 4, 'a', 'b', 'commit'), (3, 4, 'b', null, 'commit'), (3, 9, 'c', null, 'xa_prepare')", 1),
        ("(2, 4, 'a', 'b', 'commit'), (3, 4, 'b', null, 'commit'), (3, 9, 'c', null, 'none')", 1),
        # The last file that would expire ends within a transaction.
        ("(3, 4, 'a', null, 'none')", 2),
        ("(1, 4, 'a', null, 'none'), (1, 9, 'b', null, 'commit')", 3),
    ],
)
def test_open_transactions_keep_their_files(
    connection: "duckdb.DuckDBPyConnection", tmp_path: Path, transactions: str, left: int
) -> None:
    connection.execute(TRANSACTIONS.format(transactions))
    old = files(4)
    keep_needed(connection, "s", old, tmp_path)
    assert len(expiring(old)) == left
    assert all(file.why_kept for file in old[left:])


@pytest.mark.slow
def test_the_rows_of_partial_images_are_carried_with_what_is_known(tmp_path: Path) -> None:
    home = unpack(tmp_path)
    later = OldFile(0, "binlog.000002", {}, [], None)
    with StreamLanding(FOLLOWED, home) as landing:
        log = Log.of_warehouse(home, dict.fromkeys((*VIEWS, *MARTS, *BASELINE_VIEWS)))
        shapes = SchemaHistory.load(landing.record, home).shapes_before(0, later.binlog_file)
        (boats,) = tables_at(log.connection, landing.record, home, later, shapes)
        expected = {row.values["id"]: row.values for row in boats.state.rows()}
        (boats,) = tables_at(log.connection, landing.record, home, later, shapes)
        land_carried(landing, [boats], [], later, shapes)
        assert not land_carried(landing, [boats], [], later, shapes).is_new
    (baseline,) = read_rows(BASELINES, home)
    assert (baseline["binlog_file"], baseline["binlog_pos"], baseline["origin"]) == (later.binlog_file, 4, "binlog")
    assert baseline["primary_key_ordinals"] == [0] and baseline["is_complete"] is True
    names = baseline["column_names"]
    carried = {
        row["row_values"][0]: {
            names[place]: row["row_values"][place] for place in row["known_columns"] or range(len(names))
        }
        for row in read_rows(BASELINE_ROWS, home)
    }
    assert carried == expected and len(carried) == 2
    newest = max(read_rows(SCHEMA_SNAPSHOTS, home, source_id=FOLLOWED), key=lambda row: row["taken_at"])
    assert (newest["origin"], newest["epoch"]) == ("binlog", 0) and newest["taken_at"] < datetime.now(UTC)


def test_masks_that_changed_among_the_rows_stop_expiry(
    connection: "duckdb.DuckDBPyConnection", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, first = tmp_path / "home", tmp_path / "first"
    shutil.copytree(SHOP / "schema", first / "schema")
    shutil.copy(SHOP / "binlog.000001", first)
    set_masks(home, monkeypatch)
    land_shop(home, first)
    set_masks(home, monkeypatch, MASKS.replace("keep_first: 1", "keep_first: 2"))
    land_shop(home)
    connection.execute("create table binloom.row_changes (table_version_id varchar, source_id varchar, epoch int)")
    for name, kind in (
        *dict.fromkeys(("schema_name", "table_name", "binlog_file"), "varchar").items(),
        ("start_pos", "bigint"),
    ):
        connection.execute(f"alter table binloom.row_changes add column {name} {kind}")
    connection.execute("create table binloom.table_versions (table_version_id varchar, column_names varchar[])")
    landed, table = LandedMaps(SourceRecord.load("shop", home), home), Table("shop", "shop", "customers")
    names = ("id", "email", "full_name", "city", "birthday", "is_active", "balance", "loyalty_points")
    second = Place(0, 2, 4)

    def masks(beginning: Baseline | None, until: Place | None) -> dict[str, str]:
        found = masks_of_rows(connection, table, names, landed, beginning, until)
        return {one["column_name"]: one["fingerprint"] for one in found}

    with pytest.raises(UsageError, match=r"masks of shop\.customers changed .*: full_name\."):
        masks(None, None)
    earlier = masks(None, second)
    later = masks(Baseline("", second, "binlog.000002", table), None)
    assert [*earlier] == [*later] == ["email", "full_name", "city", "birthday", "balance"]
    assert {name for name in earlier if earlier[name] != later[name]} == {"full_name"}
    # A column without its mask may have values under another name.
    fewer = ("id", "full_name")
    assert [one["column_name"] for one in masks_of_rows(connection, table, fewer, landed, None, second)] == [
        "full_name"
    ]
    connection.execute("insert into binloom.schema_changes by name select 's' as source_id")
    connection.execute(
        "update binloom.schema_changes set source_id = 'shop', schema_name = 'shop', table_name = 'customers',"
        " actions = ['modify_column']"
    )
    with pytest.raises(UsageError, match="may have another name since an ALTER TABLE: balance, birthday, city, email"):
        masks_of_rows(connection, table, fewer, landed, None, second)
