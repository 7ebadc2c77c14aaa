"""A warehouse of a source with masks: complete proofs, commands that refuse what masks hide, and no value anywhere."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.landing.expiry import OldFile
from ingest.landing.held import StreamLanding
from ingest.landing.schema_history import SchemaHistory
from ingest.warehouse.files import read_rows
from ingest.warehouse.partitions import open_tables
from ingest.warehouse.tables import BASELINE_ROWS, BASELINES
from recover.retention.carried import CarriedTable, land_carried, tables_at
from recover.sources.log import VIEWS, Log
from recover.timeline.baselines import VIEWS as BASELINE_VIEWS
from recover.timeline.table_log import MARTS
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.landing.binlogs import SHOP
from tests.support.masking.shop import land_shop, places_of, sample_files, secrets, set_masks
from tests.support.models.invoke import run_dbt
from tests.support.recover.landed_marts import assert_built_as_landed

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROOFS = ("chain_breaks", "row_events_unaccounted_for", "transaction_count_mismatches", "undecoded_events")
MODELS = dict.fromkeys((*PROOFS, "masked_columns", *(name for _, name in (*VIEWS, *MARTS, *BASELINE_VIEWS))))
# The change of all orders by mistake; all of them have a masked note.
DAMAGE = ("--table", "shop.orders", "--where", "before.status != 'cancelled' and after.status = 'cancelled'")


@pytest.fixture(scope="module")
def built(home: Path, spark: Any) -> Iterator[dict[str, str]]:
    """The status of every model of the shop with masks that proofs of rows and the commands read."""
    with pytest.MonkeyPatch.context() as patch:
        set_masks(home, patch)
        land_shop(home, segment_bytes=1 << 20)
        open_tables(spark, home)
        yield run_dbt(home, "run", "--select", *(f"+{name}" for name in MODELS))


def files_of_the_shop() -> list[str]:
    """Return the options that read the original binlogs."""
    return ["--files", *(str(SHOP / name) for name in sample_files(SHOP)), "--snapshot-dir", str(SHOP / "schema")]


def land_rows_at_the_second_file(home: Path) -> dict[str, CarriedTable]:
    """Land the rows at the beginning of the second file, as `expire` does it; return the tables by name."""
    later = OldFile(0, "binlog.000002", {}, [], None)
    with StreamLanding("shop", home) as landing:
        log = Log.of_warehouse(home, dict.fromkeys((*VIEWS, *MARTS, *BASELINE_VIEWS)))
        shapes = SchemaHistory.load(landing.record, home).shapes_before(0, later.binlog_file)
        tables = tables_at(log.connection, landing.record, home, later, shapes)
        land_carried(landing, tables, [], later, shapes)
    return {table.table.table_name: table for table in tables}


def test_all_proofs_hold(built: dict[str, str], spark: Any) -> None:
    assert set(built.values()) == {"success"}
    for name in PROOFS:
        assert spark.table(f"binloom_quality.{name}").collect() == []
    assert spark.table("binloom.quarantined_row_events").collect() == []
    assert spark.table("binloom.row_changes").count() > 300


def test_questions_have_the_same_marts_before_a_build(built: dict[str, str], home: Path, tmp_path: Path) -> None:
    assert_built_as_landed(home, tmp_path)


def test_images_and_keys_have_masks(built: dict[str, str], spark: Any) -> None:
    rows = spark.sql("select * from binloom.row_changes where table_name = 'customers'").collect()
    assert len(rows) > 100
    for row in rows:
        for image in (row["row_before"], row["row_after"]):
            assert image is None or ("birthday" not in image and image["city"] is None and len(image["email"]) == 32)
        assert "birthday" not in (row["changed_columns"] or ())


def test_an_undo_of_masked_columns_is_refused(built: dict[str, str], home: Path) -> None:
    for command in ("undo", "redo"):
        refused = binloom_here(command, *DAMAGE)
        assert_sentence(refused, 1, r"shop\.orders has masked columns, .*: note \(null\); name other columns")
        assert refused.stdout == ""
    refused = binloom_here("undo", *DAMAGE, "--columns", "status,note")
    assert_sentence(refused, 1, r"note \(null\)")
    refused = binloom_here("undo", "--table", "shop.customers", "--type", "INSERT", "--columns", "is_active")
    assert_sentence(refused, 1, r"shop\.customers has masked columns, .*birthday \(drop\).*; only updates")
    assert refused.stdout == ""


def test_other_columns_are_undone_as_from_the_original_files(built: dict[str, str], home: Path) -> None:
    masked = binloom_here("undo", *DAMAGE, "--columns", "status")
    original = binloom_here("undo", *DAMAGE, "--columns", "status", *files_of_the_shop())
    assert (masked.returncode, original.returncode) == (0, 0), masked.stderr + original.stderr
    statements = [
        [line for line in done.stdout.splitlines() if line.startswith(("UPDATE", "INSERT", "DELETE"))]
        for done in (masked, original)
    ]
    assert statements[0] == statements[1]
    assert len(statements[0]) > 50


def test_history_state_and_status_tell_the_masks(built: dict[str, str], home: Path) -> None:
    history = binloom_here("history", "shop.orders", "1042", "--format", "json")
    assert "masked in shop.orders: note (null)" in history.stderr
    assert all(json.loads(line)["row"]["note"] is None for line in history.stdout.splitlines())
    state = binloom_here("state", "shop.customers")
    assert "email (hash), full_name (partial)" in state.stderr
    refused = binloom_here("state", "shop.customers", "--format", "sql")
    assert_sentence(refused, 2, r"shop\.customers has masked columns")
    status = binloom_here("status")
    assert "masked:     shop.customers.balance (null), shop.customers.birthday (drop)" in status.stdout


def test_a_mart_lists_the_masked_columns(built: dict[str, str], spark: Any) -> None:
    masks = spark.sql(
        "select table_name, column_name, method, tag, row_events, baseline_rows from binloom.masked_columns"
    )
    changes = spark.table("binloom.row_changes").groupBy("table_name").count().collect()
    counts = {row["table_name"]: row["count"] for row in changes}
    assert {tuple(row) for row in masks.collect()} == {
        (table, column, method, tag, counts[table], 0)
        for table, column, method, tag in (
            ("customers", "email", "hash", "contact"),
            ("customers", "full_name", "partial", "name"),
            ("customers", "city", "null", "where"),
            ("customers", "birthday", "drop", "birth"),
            ("customers", "balance", "null", "where"),
            ("orders", "note", "null", "free text"),
        )
    }


def test_rows_are_carried_with_their_masks_before_files_expire(built: dict[str, str], home: Path) -> None:
    tables = land_rows_at_the_second_file(home)
    customers, orders, items = (tables[name] for name in ("customers", "orders", "order_items"))
    baseline = {row["table_name"]: row for row in read_rows(BASELINES, home)}
    assert {name: table.rows for name, table in tables.items()} == {
        name: row["row_count"] for name, row in baseline.items()
    }
    assert all(row["is_complete"] for row in baseline.values()) and customers.rows > 20
    recorded = {one["column_name"]: (one["ordinal"], one["method"]) for one in baseline["customers"]["masked_columns"]}
    assert recorded == {
        "email": (1, "hash"),
        "full_name": (2, "partial"),
        "city": (3, "null"),
        "birthday": (None, "drop"),
        "balance": (5, "null"),
    }
    assert "birthday" not in baseline["customers"]["column_names"]
    assert [one["column_name"] for one in orders.masks] == ["note"]
    assert items.masks == () and baseline["order_items"]["masked_columns"] is None
    rows = [row for row in read_rows(BASELINE_ROWS, home) if row["table_name"] == "customers"]
    assert all(row["known_columns"] is None and len(row["row_values"][1]) == 32 for row in rows)
    assert {row["row_values"][3] for row in rows} == {None}


def test_no_value_is_in_any_file_of_the_home(built: dict[str, str], home: Path) -> None:
    assert places_of(secrets(), home) == []
