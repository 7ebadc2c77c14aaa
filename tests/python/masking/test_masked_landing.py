"""A source with masks is landed without any masked value; everything else is landed as without masks."""

import hmac
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ingest.binlog.batches import UNSUPPORTED_EVENTS
from ingest.errors import UsageError
from ingest.landing import land_snapshot
from ingest.landing.held import StreamLanding
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.warehouse.files import read_rows
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.tables import SCHEMA_COLUMNS, TABLE_MAPS
from tests.support.landing.binlogs import SHOP, SHOP_MARIADB
from tests.support.masking.shop import (
    COLUMNS,
    KEY,
    MASKS,
    land_shop,
    original_rows,
    places_of,
    secrets,
    set_masks,
)
from tests.support.places import PROJECT

pytestmark = pytest.mark.slow

FIXTURES = PROJECT / "tests" / "fixtures"


def rows_of(home: Path, table: str) -> list[dict[str, Any]]:
    """Return the landed rows of a segment table in the order of the log, without those of unfinished segments."""
    rows = []
    for path in raw_table_dir(table, home).glob("**/[!.]*.parquet"):
        file = path.parent.parent.name.partition("=")[2]
        rows += [{**row, "binlog_file": file} for row in pq.ParquetFile(path).read().to_pylist()]
    order = ("binlog_file", "start_pos", "payload_ordinal", "row_ordinal")
    return sorted(rows, key=lambda row: tuple(row.get(name) or 0 for name in order if name in row))


def masked(column: str, value: str | None) -> str | None:
    """Return the value that the masks of the shop land."""
    if value is None or column in ("city", "balance", "note", "birthday"):
        return None
    if column == "email":
        return hmac.digest(KEY.encode(), value.encode(), "sha256").hex()[:32]
    return f"{value[0]}***" if len(value) > 1 else "***"


@pytest.mark.parametrize("sample", [SHOP, SHOP_MARIADB], ids=lambda path: path.name)
def test_no_value_of_a_masked_column_is_in_the_home(
    sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    set_masks(home, monkeypatch)
    values = secrets(sample)
    assert len(values) > 100
    assert land_shop(home, sample).problems == []
    assert places_of(values, home) == []
    assert places_of({KEY}, home) == []
    # The search finds values where they are.
    monkeypatch.delenv("SHOP_MASK_KEY")
    land_shop(tmp_path / "plain", sample)
    assert len(places_of(values, tmp_path / "plain")) > len(values)


@pytest.mark.parametrize("sample", [SHOP, SHOP_MARIADB], ids=lambda path: path.name)
def test_each_value_is_as_its_mask_shows_it(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    set_masks(home, monkeypatch)
    land_shop(home, sample)
    landed = rows_of(home, "row_events")
    originals = list(original_rows(sample))
    assert len(landed) == len(originals) > 300
    for row, original in zip(landed, originals, strict=True):
        names: Any = original["names"]
        hidden = COLUMNS.get(row["table_name"], ())
        for side, absent_in in (("before", "INSERT"), ("after", "DELETE")):
            shown, before = row[f"{side}_values"], original[f"{side}_values"]
            pairs = zip(names, before, strict=True)
            expected = [masked(name, text) if name in hidden else text for name, text in pairs]
            assert shown == expected
            is_dropped = "birthday" in hidden and row["event_type"] != absent_in
            present = [place for place, name in enumerate(names) if name != "birthday"] if is_dropped else None
            assert row[f"{side}_columns"] == present
        for name in ("start_pos", "row_ordinal", "event_type", "gtid", "table_name", "transaction_pos"):
            assert row[name] == original[name]
        is_same_map = row["table_map_id"] == original["table_map_id"]
        assert is_same_map == (not hidden)


def test_table_maps_record_the_masks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    set_masks(home, monkeypatch)
    land_shop(home)
    recorded = {
        (row["table_name"], one["column_name"]): (one["ordinal"], one["tag"], one["method"])
        for row in read_rows(TABLE_MAPS, home)
        for one in row["masked_columns"] or ()
    }
    assert recorded == {
        ("customers", "email"): (1, "contact", "hash"),
        ("customers", "full_name"): (2, "name", "partial"),
        ("customers", "city"): (3, "where", "null"),
        ("customers", "birthday"): (4, "birth", "drop"),
        ("customers", "balance"): (6, "where", "null"),
        ("orders", "note"): (7, "free text", "null"),
    }
    ids = {row["table_map_id"] for row in read_rows(TABLE_MAPS, home)}
    assert {row["table_map_id"] for row in rows_of(home, "row_events")} <= ids


def test_statements_have_no_literals_and_the_schema_history_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_masks(tmp_path / "masked", monkeypatch)
    land_shop(tmp_path / "masked", SHOP_MARIADB)
    land_shop(tmp_path / "plain", SHOP_MARIADB)
    actions, plain = (rows_of(tmp_path / name, "ddl_actions") for name in ("masked", "plain"))
    assert actions == plain
    assert len(actions) > 3
    statements, originals = (rows_of(tmp_path / name, "statements") for name in ("masked", "plain"))
    texts = [(row["sql_text"], original["sql_text"]) for row, original in zip(statements, originals, strict=True)]
    created = [text for text, original in texts if original.startswith("create table shop.customers")]
    assert "email varchar ( 120 ) not null" in created[0]
    updates = {text for text, original in texts if original.startswith("update shop.customers set loyalty_points")}
    assert len(updates) == 1, "statements that differ only in their values have one digest"
    assert updates.pop().startswith("-- masked: UPDATE, digest ")
    assert [row["dml_targets"] for row in statements] == [row["dml_targets"] for row in originals]
    # The history is read from the masked statements when the next file is landed.
    with StreamLanding("shop", tmp_path / "masked") as landing, StreamLanding("shop", tmp_path / "plain") as other:
        hints, known = landing._run.history.hints(0), other._run.history.hints(0)
    assert hints is not None and known is not None
    assert hints.tables == known.tables


def test_rows_without_names_are_left_out_until_a_snapshot_is_landed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sample = tmp_path / "sample"
    sample.mkdir()
    # The second file has no CREATE TABLE.
    shutil.copy(SHOP / "binlog.000002", sample)
    home = tmp_path / "home"
    set_masks(home, monkeypatch, MASKS.replace("shop.*.CITY", "shop.customers.CITY"))
    result = land_shop(home, sample, has_snapshot=False)
    (warning,) = [text for text in result.warnings if "not landed" in text]
    assert "shop.customers, shop.orders" in warning and "binloom snapshot" in warning
    assert {row["table_name"] for row in rows_of(home, "row_events")} == {"order_items"}
    missing = rows_of(home, "unsupported_events")
    assert {(row["table_name"], row["reason"]) for row in missing} == {
        ("customers", "no_names_to_mask"),
        ("orders", "no_names_to_mask"),
    }
    assert set(UNSUPPORTED_EVENTS.names) <= missing[0].keys()
    landed = len(rows_of(home, "row_events"))
    assert sum(row["row_events"] for row in rows_of(home, "transactions")) == landed == result.row_events
    assert places_of(secrets(), home) == []
    # The snapshot makes the segments stale: they are landed again, with masks.
    land_snapshot("shop", read_snapshot_dir(SHOP / "schema"), home)
    land_shop(home, sample, has_snapshot=False)
    assert {row["table_name"] for row in rows_of(home, "row_events")} == {"customers", "orders", "order_items"}
    assert rows_of(home, "unsupported_events") == []
    assert places_of(secrets(), home) == []


def test_names_of_the_log_itself_need_no_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = tmp_path / "sample"
    sample.mkdir()
    shutil.copy(FIXTURES / "mysql-metadata-full.binlog", sample / "binlog.000001")
    home = tmp_path / "home"
    set_masks(home, monkeypatch, "tags: {all: null}\nrules: [{columns: fixture.things.*e*, tag: all}]\n")
    land_shop(home, sample, has_snapshot=False)
    hidden = [one["column_name"] for row in read_rows(TABLE_MAPS, home) for one in row["masked_columns"] or ()]
    assert hidden and all("e" in name for name in hidden)


def test_a_key_must_stay_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    set_masks(home, monkeypatch, "tags: {gone: drop}\nrules: [{columns: shop.customers.id, tag: gone}]\n")
    result = land_shop(home)
    assert any("primary key" in warning and "shop.customers" in warning for warning in result.warnings)
    assert {row["table_name"] for row in rows_of(home, "row_events")} == {"orders", "order_items"}
    assert {row["reason"] for row in rows_of(home, "unsupported_events")} == {"key_would_be_lost"}


def test_masks_are_not_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    set_masks(home, monkeypatch)
    land_shop(home)
    (home / "masks.yml").rename(tmp_path / "elsewhere.yml")
    with pytest.raises(UsageError, match="was landed with masks, and now there is no file"):
        land_snapshot("shop", read_snapshot_dir(SHOP / "schema"), home)
    monkeypatch.setenv("BINLOOM_MASKS", str(tmp_path / "elsewhere.yml"))
    land_snapshot("shop", read_snapshot_dir(SHOP / "schema"), home)
    # Another source of the home never had any.
    monkeypatch.delenv("BINLOOM_MASKS")
    land_snapshot("other", read_snapshot_dir(SHOP / "schema"), home)


def test_snapshots_have_no_defaults_and_comments_of_masked_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    set_masks(home, monkeypatch)
    snapshot = read_snapshot_dir(SHOP / "schema")
    for row in snapshot.columns:
        row["column_comment"] = f"about {row['column_name']}"
    land_snapshot("shop", snapshot, home)
    rows = {(row["table_name"], row["column_name"]): row for row in read_rows(SCHEMA_COLUMNS, home)}
    balance, points = rows["customers", "balance"], rows["customers", "loyalty_points"]
    assert (balance["column_default"], balance["column_comment"]) == (None, None)
    assert (points["column_default"], points["column_comment"]) == ("0", "about loyalty_points")
