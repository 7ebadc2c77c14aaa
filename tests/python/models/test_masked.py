"""A warehouse of a source with masks: complete proofs, commands that refuse what masks hide, and no value anywhere."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.warehouse.partitions import open_tables
from recover.sources.log import VIEWS
from recover.timeline.baselines import VIEWS as BASELINE_VIEWS
from recover.timeline.table_log import MARTS
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.landing.binlogs import SHOP
from tests.support.masking.shop import land_shop, places_of, sample_files, secrets, set_masks
from tests.support.models.invoke import run_dbt

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PROOFS = ("chain_breaks", "row_events_unaccounted_for", "transaction_count_mismatches", "undecoded_events")
MODELS = dict.fromkeys((*PROOFS, *(name for _, name in (*VIEWS, *MARTS, *BASELINE_VIEWS))))
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


def test_all_proofs_hold(built: dict[str, str], spark: Any) -> None:
    assert set(built.values()) == {"success"}
    for name in PROOFS:
        assert spark.table(f"binloom_quality.{name}").collect() == []
    assert spark.table("binloom.quarantined_row_events").collect() == []
    assert spark.table("binloom.row_changes").count() > 300


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


def test_no_value_is_in_any_file_of_the_home(built: dict[str, str], home: Path) -> None:
    assert places_of(secrets(), home) == []
