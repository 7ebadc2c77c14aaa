"""Schema snapshots from files: the three forms are equivalent, and an error is reported in a sentence."""

import csv
import io
import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ingest.binlog import SchemaHints
from ingest.errors import SnapshotInputError
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from tests.support.landing.binlogs import SHOP
from tests.support.places import FIXTURES

VERSIONED = FIXTURES / "mariadb-versioned-and-generated-schema"
VIEWS = ("columns", "key_column_usage", "referential_constraints", "tables", "statistics", "schemata")


def views_in(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Return rows of the views from files that a server's clients have written."""
    return {view: json.loads(path.read_text()) for view in VIEWS if (path := folder / f"{view}.json").exists()}


def shop() -> dict[str, list[dict[str, Any]]]:
    """Return rows of the sample's views."""
    return views_in(SHOP / "schema")


def write(folder: Path, views: dict[str, list[dict[str, Any]]], ending: str = "json") -> Path:
    """Write views as a server's clients do."""
    for view, rows in views.items():
        path = folder / f"{view}.{ending}"
        if ending == "json":
            path.write_text(json.dumps(rows))
        elif ending == "csv":
            text = io.StringIO()
            writer = csv.DictWriter(text, list(rows[0]))
            writer.writeheader()
            writer.writerows([{k: "NULL" if v is None else v for k, v in row.items()} for row in rows])
            path.write_text(text.getvalue())
        else:
            lines = ["\t".join(rows[0]), *("\t".join(map(batch_text, row.values())) for row in rows)]
            path.write_text("\n".join(lines) + "\n")
    return folder


def batch_text(value: Any) -> str:
    """Return a value as `mysql --batch` prints it."""
    if value is None:
        return "NULL"
    return str(value).replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


def content(snapshot: SchemaSnapshot) -> tuple[Any, ...]:
    """Return the content of a snapshot."""
    return snapshot.columns, snapshot.keys, snapshot.foreign_keys


def test_the_three_forms_say_the_same(tmp_path: Path) -> None:
    found = []
    for ending in ("json", "csv", "tsv"):
        (tmp_path / ending).mkdir()
        found.append(read_snapshot_dir(write(tmp_path / ending, shop(), ending)))
    assert content(found[0]) == content(found[1]) == content(found[2])
    assert len({snapshot.snapshot_id("s") for snapshot in found}) == 1
    assert found[0].tables == 3 and found[0].foreign_keys


def test_json_lines_and_small_letters(tmp_path: Path) -> None:
    views = {
        view: [{name.lower(): value for name, value in row.items()} for row in rows] for view, rows in shop().items()
    }
    for view, rows in views.items():
        (tmp_path / f"{view}.json").write_text("\n".join(map(json.dumps, rows)) + "\n")
    assert content(read_snapshot_dir(tmp_path)) == content(read_snapshot_dir(SHOP / "schema"))


def test_columns_keys_and_rules(tmp_path: Path) -> None:
    snapshot = read_snapshot_dir(SHOP / "schema")
    items = [column for column in snapshot.columns if column["table_name"] == "order_items"]
    assert [column["ordinal_position"] for column in items] == list(range(1, len(items) + 1))
    assert [c["primary_key_ordinal"] for c in items if c["primary_key_ordinal"]] == [1, 2]
    foreign = snapshot.foreign_keys[0]
    assert foreign["referenced_table_name"] and foreign["update_rule"] and foreign["delete_rule"]
    assert all(row["referenced_table_name"] is None for row in snapshot.keys)
    hints = SchemaHints.from_columns(snapshot.columns)
    schema = items[0]["schema_name"]
    names = [column.name for columns in hints.definitions(schema, "order_items") for column in columns]
    assert names == [column["column_name"] for column in items]


def test_the_identifier_is_of_content_and_position_and_source() -> None:
    one = read_snapshot_dir(SHOP / "schema")
    moved = SchemaSnapshot("files", datetime.now(UTC), "binlog.000001", 4, None, *content(one))
    later = SchemaSnapshot("files", datetime.now(UTC), None, None, None, *content(one))
    assert later.snapshot_id("s") == one.snapshot_id("s")
    assert len({one.snapshot_id("s"), one.snapshot_id("t"), moved.snapshot_id("s")}) == 3


def test_generated_is_not_a_default_that_is_an_expression(tmp_path: Path) -> None:
    views = shop()
    extras = ["DEFAULT_GENERATED", "VIRTUAL GENERATED", "STORED GENERATED INVISIBLE", "auto_increment"]
    for row, extra in zip(views["columns"], extras, strict=False):
        row["EXTRA"] = extra
    by_name = {
        (column["table_name"], column["column_name"]): column["is_generated"]
        for column in read_snapshot_dir(write(tmp_path, views)).columns
    }
    found = [by_name[row["TABLE_NAME"], row["COLUMN_NAME"]] for row in views["columns"][:4]]
    assert found == [False, True, True, False]


@pytest.mark.parametrize("ending", ["json", "csv", "tsv"])
def test_defaults_are_in_files_that_may_be_left_out(tmp_path: Path, ending: str) -> None:
    # Without them, the identifier equals the one from before defaults existed.
    (tmp_path / "older").mkdir()
    views = {view: rows for view, rows in shop().items() if view not in ("tables", "schemata")}
    older = read_snapshot_dir(write(tmp_path / "older", views, ending))
    assert older.defaults == []
    assert older.snapshot_id("shop") == "8bcdbe8444e9d2912810fb6034ee46f0"
    views["tables"] = [
        {"TABLE_SCHEMA": "shop", "TABLE_NAME": name, "TABLE_TYPE": kind, "TABLE_COLLATION": collation}
        for name, kind, collation in (("orders", "BASE TABLE", "utf8mb4_bin"), ("seen", "VIEW", None))
    ]
    names = ("SCHEMA_NAME", "DEFAULT_CHARACTER_SET_NAME", "DEFAULT_COLLATION_NAME")
    views["schemata"] = [dict(zip(names, ("shop", "koi8r", "koi8r_bin"), strict=True))]
    snapshot = read_snapshot_dir(write(tmp_path, views, ending))
    assert [tuple(row.values()) for row in snapshot.defaults] == [
        ("shop", None, "koi8r", "koi8r_bin"),
        ("shop", "orders", "utf8mb4", "utf8mb4_bin"),
    ]
    assert content(snapshot) == content(older)
    assert snapshot.snapshot_id("shop") != older.snapshot_id("shop")


def test_schemata_without_a_default_is_said(tmp_path: Path) -> None:
    with pytest.raises(SnapshotInputError, match=r"schemata\.json has no DEFAULT_CHARACTER_SET_NAME in row 1"):
        read_snapshot_dir(write(tmp_path, {**shop(), "schemata": [{"SCHEMA_NAME": "shop"}]}))


@pytest.mark.parametrize("ending", ["json", "csv", "tsv"])
def test_a_versioned_table_has_the_columns_that_are_not_listed(tmp_path: Path, ending: str) -> None:
    views = {view: rows for view, rows in views_in(VERSIONED).items() if rows}
    columns: dict[str, list[Any]] = {"priced": [], "priced_by_name": [], "hidden": []}
    for row in read_snapshot_dir(write(tmp_path, views, ending)).columns:
        columns.get(row["table_name"], []).append(row)
    assert [row["column_name"] for row in columns["priced"]] == ["id", "price", "row_start", "row_end"]
    assert [row["column_name"] for row in columns["priced_by_name"]] == ["id", "price", "valid_from", "valid_to"]
    assert [row["column_name"] for row in columns["hidden"]] == ["id", "seen", "unseen", "last_one"]
    for mine, declared in zip(columns["priced"], columns["priced_by_name"], strict=True):
        told = {**declared, "table_name": "priced", "column_name": mine["column_name"]}
        if declared["is_generated"]:
            told["extra"] = "STORED GENERATED, INVISIBLE"
        assert mine == told


def test_a_versioned_table_needs_what_tells_of_it(tmp_path: Path) -> None:
    views = views_in(VERSIONED)
    del views["tables"]
    with pytest.raises(SnapshotInputError, match=r"on column 'row_end' of table fixture\.priced,") as caught:
        read_snapshot_dir(write(tmp_path, views))
    assert "where a table is system-versioned, tables too" in str(caught.value)
    views = views_in(VERSIONED)
    for row in views["columns"]:
        del row["GENERATION_EXPRESSION"]
    with pytest.raises(SnapshotInputError, match=r"no GENERATION_EXPRESSION, but table fixture\.priced is"):
        read_snapshot_dir(write(tmp_path, views))


def hashed(engine: str | None) -> dict[str, list[dict[str, Any]]]:
    """Return the sample's views with a unique hash index of two columns on one table, and others that add no column."""
    views = shop()
    table = {name: views["columns"][0][name] for name in ("TABLE_SCHEMA", "TABLE_NAME")}
    indexes = [
        ("PRIMARY", 0, "HASH", 1),
        ("words", 0, "HASH", 1),
        ("words", 0, "HASH", 2),
        ("some", 1, "HASH", 1),
        ("tree", 0, "BTREE", 1),
    ]
    names = ("INDEX_NAME", "NON_UNIQUE", "INDEX_TYPE", "SEQ_IN_INDEX")
    views["statistics"] = [{**table, **dict(zip(names, index, strict=True))} for index in indexes]
    views["tables"] = [{**table, "TABLE_TYPE": "BASE TABLE", "ENGINE": engine}]
    return views


@pytest.mark.parametrize("ending", ["json", "csv", "tsv"])
def test_a_unique_hash_is_a_column_that_is_not_listed(tmp_path: Path, ending: str) -> None:
    table = shop()["columns"][0]["TABLE_NAME"]
    listed = [row for row in read_snapshot_dir(SHOP / "schema").columns if row["table_name"] == table]
    *others, added = (
        row
        for row in read_snapshot_dir(write(tmp_path, hashed("InnoDB"), ending)).columns
        if row["table_name"] == table
    )
    assert others == listed
    assert added == {
        **dict.fromkeys(("primary_key_ordinal", "character_set", "collation", "column_default", "column_comment")),
        "schema_name": listed[0]["schema_name"],
        "table_name": table,
        "column_name": "DB_ROW_HASH_1",
        "ordinal_position": len(listed) + 1,
        "column_key": "",
        "data_type": "bigint",
        "column_type": "bigint(20) unsigned",
        "is_nullable": True,
        "is_generated": True,
        "extra": "VIRTUAL GENERATED, INVISIBLE",
    }


def test_whether_a_unique_hash_is_a_column_depends_on_the_engine(tmp_path: Path) -> None:
    assert content(read_snapshot_dir(write(tmp_path, hashed("MEMORY")))) == content(read_snapshot_dir(SHOP / "schema"))
    with pytest.raises(SnapshotInputError, match=r"hash index of table shop\.\w+, but no view contains its ENGINE"):
        read_snapshot_dir(write(tmp_path, hashed(None)))
    (tmp_path / "tables.json").unlink()
    with pytest.raises(SnapshotInputError, match="no view contains its ENGINE") as caught:
        read_snapshot_dir(tmp_path)
    assert "Export tables, too" in str(caught.value)


@pytest.mark.parametrize("ending", ["json", "csv", "tsv"])
def test_a_part_of_a_unique_key_is_a_column_a_prefix_or_an_expression(tmp_path: Path, ending: str) -> None:
    views = shop()
    schema = views["columns"][0]["TABLE_SCHEMA"]
    # An index may have the name of a foreign key.
    indexes = [
        ("customers", "PRIMARY", "id", None),
        ("customers", "uk_customers_email", None, None),
        ("orders", "PRIMARY", "id", 3),
    ]
    views["statistics"] = [
        {
            "TABLE_SCHEMA": schema,
            "TABLE_NAME": table,
            "NON_UNIQUE": 0,
            "INDEX_NAME": name,
            "INDEX_TYPE": "BTREE",
            "COLUMN_NAME": column,
            "SUB_PART": length,
        }
        for table, name, column, length in indexes
    ]
    before, after = read_snapshot_dir(SHOP / "schema"), read_snapshot_dir(write(tmp_path, views, ending))
    others = {
        (row["table_name"], row["constraint_name"]): (row["column_name"], row.get("prefix_length"))
        for row in after.keys
        if row not in before.keys
    }
    assert others == {("customers", "uk_customers_email"): (None, None), ("orders", "PRIMARY"): ("id", 3)}
    assert after.foreign_keys == before.foreign_keys


def test_missing_folder_and_missing_views(tmp_path: Path) -> None:
    with pytest.raises(SnapshotInputError, match="There is no directory"):
        read_snapshot_dir(tmp_path / "nowhere")
    with pytest.raises(SnapshotInputError, match=r"no columns\.json, columns\.csv or columns\.tsv"):
        read_snapshot_dir(tmp_path)
    views = shop()
    del views["key_column_usage"]
    with pytest.raises(SnapshotInputError, match="no key_column_usage"):
        read_snapshot_dir(write(tmp_path, views))


def test_rules_are_needed_only_with_foreign_keys(tmp_path: Path) -> None:
    views = shop()
    del views["referential_constraints"]
    with pytest.raises(SnapshotInputError, match="no referential_constraints"):
        read_snapshot_dir(write(tmp_path, views))
    views["key_column_usage"] = [row for row in views["key_column_usage"] if not row["REFERENCED_TABLE_NAME"]]
    assert read_snapshot_dir(write(tmp_path, views)).foreign_keys == []


def test_the_same_view_twice(tmp_path: Path) -> None:
    write(tmp_path, shop(), "json")
    write(tmp_path, shop(), "tsv")
    with pytest.raises(SnapshotInputError, match="which one is meant"):
        read_snapshot_dir(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("columns.json", '[{"TABLE_SCHEMA": ', "is not JSON"),
        ("columns.json", '["a", "b"]', "is not a list of objects"),
        ("columns.json", '[{"TABLE_SCHEMA": "shop"}]', "has no TABLE_NAME in row 1; its columns are TABLE_SCHEMA"),
        ("columns.json", "[]", "No column of any table"),
        ("columns.tsv", "TABLE_SCHEMA\tTABLE_NAME\nshop\n", "has 1 values in line 2, but 2 names"),
        ("columns.csv", 'TABLE_SCHEMA,TABLE_NAME\n"shop,x\n', "is not CSV"),
    ],
)
def test_malformed_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    write(tmp_path, {view: rows for view, rows in shop().items() if view != "columns"})
    (tmp_path / name).write_text(text)
    with pytest.raises(SnapshotInputError, match=message):
        read_snapshot_dir(tmp_path)


def test_not_utf8(tmp_path: Path) -> None:
    write(tmp_path, shop())
    (tmp_path / "columns.json").write_bytes(b'[{"TABLE_SCHEMA": "\xff"}]')
    with pytest.raises(SnapshotInputError, match="is not UTF-8 at byte 19"):
        read_snapshot_dir(tmp_path)


def test_views_that_contradict_each_other(tmp_path: Path) -> None:
    views = shop()
    views["columns"].append({**views["columns"][0], "COLUMN_NAME": "again"})
    with pytest.raises(SnapshotInputError, match="have the same ORDINAL_POSITION"):
        read_snapshot_dir(write(tmp_path, views))
    views = shop()
    views["key_column_usage"][0]["COLUMN_NAME"] = "gone"
    with pytest.raises(SnapshotInputError, match="but columns has no such column"):
        read_snapshot_dir(write(tmp_path, views))
    views = shop()
    views["referential_constraints"] = views["referential_constraints"][:-1]
    with pytest.raises(SnapshotInputError, match="has no row for the foreign key"):
        read_snapshot_dir(write(tmp_path, views))
    views = shop()
    views["columns"][0]["ORDINAL_POSITION"] = "first"
    with pytest.raises(SnapshotInputError, match="is 'first', not a number"):
        read_snapshot_dir(write(tmp_path, views))


def test_comments_of_columns_are_kept_and_change_nothing_where_there_are_none(tmp_path: Path) -> None:
    plain = read_snapshot_dir(write(tmp_path, shop()))
    assert {row["column_comment"] for row in plain.columns} == {None}
    # Snapshots from before comments were kept have the same identifier.
    older = replace(plain, columns=[{k: v for k, v in row.items() if k != "column_comment"} for row in plain.columns])
    assert older.snapshot_id("s") == plain.snapshot_id("s")

    views = shop()
    views["columns"][0]["COLUMN_COMMENT"] = "Für den Versand"
    commented = read_snapshot_dir(write(tmp_path, views))
    assert commented.columns[0]["column_comment"] == "Für den Versand"
    assert commented.snapshot_id("s") != replace(commented, columns=plain.columns).snapshot_id("s")


def test_a_view_is_no_table(tmp_path: Path) -> None:
    columns = [
        {"TABLE_SCHEMA": "s", "TABLE_NAME": name, "COLUMN_NAME": "a", "ORDINAL_POSITION": 1, "DATA_TYPE": "int"}
        | {"IS_NULLABLE": "YES", "COLUMN_TYPE": "int", "COLUMN_KEY": "", "EXTRA": "", "CHARACTER_SET_NAME": None}
        | {"COLLATION_NAME": None}
        for name in ("t", "w")
    ]
    tables = [
        {"TABLE_SCHEMA": "s", "TABLE_NAME": name, "TABLE_TYPE": kind}
        for name, kind in (("t", "BASE TABLE"), ("w", "VIEW"))
    ]
    for name, rows in (("columns", columns), ("tables", tables), ("key_column_usage", [])):
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    assert [row["table_name"] for row in read_snapshot_dir(tmp_path).columns] == ["t"]
