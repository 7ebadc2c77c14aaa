"""`binloom decode` prints the output that its contract describes."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.binlog import forge
from tests.support.binlog.forge import FileMaker
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.landing.binlogs import flip_bit
from tests.support.places import FIXTURES, SAMPLES

pytestmark = pytest.mark.slow

MYSQL = SAMPLES / "shop-mysql"
MARIADB = SAMPLES / "shop-mariadb"

KEYS = ["start_pos", "end_pos", "payload_ordinal", "row_ordinal", "event_type", "event_timestamp", "gtid"]
KEYS += ["schema_name", "table_name"]


def changes(*arguments: object) -> list[dict[str, Any]]:
    result = binloom_here("decode", *arguments)
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@pytest.mark.parametrize("folder", [MYSQL, MARIADB], ids=["mysql", "mariadb"])
def test_the_lines_have_the_keys_of_the_contract_in_order(folder: Path) -> None:
    rows = changes(folder / "binlog.000001", "--snapshot-dir", folder / "schema")
    assert len(rows) > 200
    for row in rows:
        assert list(row) == [*KEYS, "column_names", "before", "after"]
        assert row["payload_ordinal"] == 0
        assert row["event_timestamp"].startswith("2026-11-17T0") and row["event_timestamp"].endswith("Z")
        images = {"INSERT": ("after",), "DELETE": ("before",), "UPDATE": ("before", "after")}[row["event_type"]]
        for image in ("before", "after"):
            if image in images:
                assert len(row[image]) == len(row["column_names"])
                assert all(value is None or isinstance(value, str) for value in row[image])
            else:
                assert row[image] is None
    keys = [(row["start_pos"], row["payload_ordinal"], row["row_ordinal"]) for row in rows]
    assert keys == sorted(keys) and len(set(keys)) == len(keys)


def test_names_are_left_out_where_nothing_has_them() -> None:
    assert all("column_names" not in row for row in changes(MYSQL / "binlog.000001"))


def test_names_in_the_log_need_no_snapshot() -> None:
    rows = changes(FIXTURES / "mysql-metadata-full.binlog")
    assert rows and all(row["column_names"] for row in rows)


def test_partial_images_say_which_columns_they_have() -> None:
    rows = changes(FIXTURES / "mysql-row-image-minimal.binlog")
    partial = [row for row in rows if "before_columns" in row or "after_columns" in row]
    assert partial
    for row in partial:
        for image in ("before", "after"):
            present = row.get(f"{image}_columns")
            if present is not None:
                assert present == sorted(set(present)) and len(present) < len(row[image])
                assert all(row[image][n] is None for n in range(len(row[image])) if n not in present)


def test_changes_of_documents_that_the_log_does_not_have() -> None:
    path = FIXTURES / "mysql-partial-json-minimal.binlog"
    rows = changes(path)
    told = [row for row in rows if "undecoded_columns" in row]
    assert told and told == [row for row in rows if "json_changes" in row]
    (first, *_) = told
    assert (first["undecoded_columns"], first["after_columns"], first["after"]) == ([1], [], [None] * 5)
    assert first["json_changes"][1:] == [
        {"column_ordinal": 1, "operation": "replace", "path": "$.deep.n", "value": "22"},
        {"column_ordinal": 1, "operation": "insert", "path": "$.fresh", "value": '{"k": 1}'},
    ]
    text = binloom_here("decode", "--format", "text", path)
    assert (text.returncode, text.stderr) == (0, "")
    assert "    @2  (not logged) → (changed in part: remove $.tags[0]; remove $.deep.list[0])\n" in text.stdout


def test_both_servers_tell_the_same_story() -> None:
    """The samples come from the same statements, so values that do not depend on a clock are equal."""
    stories = []
    for folder in (MYSQL, MARIADB):
        rows = changes(folder / "binlog.000001", folder / "binlog.000002", "--snapshot-dir", folder / "schema")
        stories.append(
            [
                (row["event_type"], row["table_name"], *(_timeless(row, image) for image in ("before", "after")))
                for row in rows
            ]
        )
    assert stories[0] == stories[1]


def _timeless(row: dict[str, Any], image: str) -> dict[str, str] | None:
    if row[image] is None:
        return None
    values = dict(zip(row["column_names"], row[image], strict=True))
    # MySQL stores JSON as a document, MariaDB as the text that was sent.
    for name in ("created_at", "updated_at", "placed_at", "shipped_at", "preferences", "attributes"):
        values.pop(name, None)
    return values


def test_csv_has_a_header_and_the_same_rows() -> None:
    sample = MYSQL / "binlog.000002"
    rows = list(csv.DictReader(io.StringIO(binloom_here("decode", "--format", "csv", sample).stdout, newline="")))
    expected = changes(sample)
    assert len(rows) == len(expected)
    for row, change in zip(rows, expected, strict=True):
        assert row["start_pos"] == str(change["start_pos"]) and row["event_type"] == change["event_type"]
        for image in ("before", "after"):
            assert (json.loads(row[image]) if row[image] else None) == change[image]


def test_text_shows_what_changed_with_an_arrow() -> None:
    result = binloom_here("decode", "--format", "text", MYSQL / "binlog.000002", "--snapshot-dir", MYSQL / "schema")
    assert result.returncode == 0
    assert "UPDATE shop.orders at binlog.000002:" in result.stdout
    assert "'shipped' → 'cancelled'" in result.stdout


def test_schema_and_table_filters() -> None:
    sample = MYSQL / "binlog.000001"
    everything = changes(sample)
    assert changes(sample, "--tables", "orders") == [row for row in everything if row["table_name"] == "orders"]
    assert changes(sample, "--schemas", "shop", "--exclude-tables", "shop.order*") == [
        row for row in everything if row["table_name"] == "customers"
    ]
    assert changes(sample, "--schemas", "elsewhere") == []


@pytest.mark.parametrize("option", ["--schemas", "--tables", "--exclude-tables"])
def test_an_empty_filter_is_refused(option: str) -> None:
    assert_sentence(binloom_here("decode", MYSQL / "binlog.000001", option, ""), 2, f"{option} is empty")


@pytest.mark.parametrize(
    ("options", "sentences"),
    [
        (("--tables", "shop.ordres"), ("There is no table 'shop.ordres'", "shop.orders")),
        (("--schemas", "nope"), ("There is no schema 'nope' in the files. There are shop",)),
        (("--tables", "orders", "--exclude-tables", "shop.*"), ()),
        (("--start-position", "9999999"), ()),
        (("--stop-position", "20"), ()),
        (("--stop-position", "20", "--schemas", "shop"), ()),
    ],
)
def test_filters_that_fit_nothing_are_told(options: tuple[str, ...], sentences: tuple[str, ...]) -> None:
    result = binloom_here("decode", MYSQL / "binlog.000001", *options)
    assert_sentence(result, 0, "no row change fits the filters", *sentences)
    assert result.stdout == "" and len(result.stderr.splitlines()) == (2 if sentences else 1)


def test_positions_cut_out_a_part() -> None:
    sample = MYSQL / "binlog.000001"
    everything = changes(sample)
    start, stop = everything[40]["start_pos"], everything[200]["start_pos"]
    expected = [row for row in everything if start <= row["start_pos"] < stop]
    assert expected and changes(sample, "--start-position", start, "--stop-position", stop) == expected
    # As in mysqlbinlog, the start applies to the first file and the stop to the last one.
    both = changes(MYSQL / "binlog.000001", MYSQL / "binlog.000002", "-j", start, "--stop-position", 1440)
    tail = [row for row in changes(MYSQL / "binlog.000002") if row["start_pos"] < 1440]
    assert both == [row for row in everything if row["start_pos"] >= start] + tail


def test_what_cannot_be_decoded_is_said_and_the_rest_is_printed(tmp_path: Path) -> None:
    maker = FileMaker()
    maker.begin()
    maker.table_map([forge.LONG], b"", forge.signedness(False))
    maker.rows(30, 1, b"\0abcd")
    position = maker.rows(30, 0, b"", table_id=9, bitmaps=b"")
    maker.commit()
    result = binloom_here("decode", maker.write(tmp_path))
    assert result.returncode == 3
    assert "WRITE_ROWS" in result.stderr and str(position) in result.stderr
    assert result.stdout.splitlines()


def test_bad_checksums_are_passed_over_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "binlog.000001"
    path.write_bytes(flip_bit((MYSQL / path.name).read_bytes(), 9000))
    stopped = binloom_here("decode", path)
    assert stopped.returncode == 3
    passed_over = binloom_here("decode", path, "--skip-bad-checksum")
    assert passed_over.returncode == 3
    assert "position 8796: " in passed_over.stderr and "bad_checksum" in passed_over.stderr
    whole = changes(MYSQL / path.name)
    lines = [json.loads(line) for line in passed_over.stdout.splitlines()]
    assert len(stopped.stdout.splitlines()) < len(lines) < len(whole)
    assert all(line in whole for line in lines)
    # The same holds for a start after that position.
    behind = whole[-5]["start_pos"]
    cut = binloom_here("decode", path, "--skip-bad-checksum", "--start-position", behind)
    assert cut.returncode == 0
    assert [json.loads(line) for line in cut.stdout.splitlines()] == [
        row for row in whole if row["start_pos"] >= behind
    ]
