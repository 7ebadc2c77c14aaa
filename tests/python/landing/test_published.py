"""The schema history of a source as raw tables: which version names the values of a table map, and where."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.landing import ingest, land_snapshot, other_names, published
from ingest.landing.published import publish_histories, publish_history, published_bindings
from ingest.sources.files.directory import find_binlogs
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.warehouse.files import append_rows, data_files, read_rows
from ingest.warehouse.home import raw_table_dir
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.tables import (
    BINLOG_FILES,
    SCHEMA_HISTORIES,
    SCHEMA_SNAPSHOTS,
    SOURCES,
    TABLE_BINDINGS,
    TABLE_MAPS,
    TABLE_VERSIONS,
)
from tests.support.landing.binlogs import SHOP, of_41

CLOCK = count()
FOREVER = 2147483647
TYPES = {"int": ("LONG", 0), "varchar(10)": ("VARCHAR", 40), "decimal(10,2)": ("NEWDECIMAL", 2562)}


class Home:
    """A home with one source, `s`, and its log of statements."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "home"
        self._logs = folder / "logs"
        self._logs.mkdir()

    def land(self, *statements: str, number: int = 1) -> list[int]:
        """Land a file with statements of schema `shop`, and return the offsets at which they end."""
        path = self._logs / f"binlog.{number:06}"
        path.write_bytes(of_41(*statements))
        ingest("s", [file for file in find_binlogs(self._logs) if file.path == path], home=self.path)
        ends = [len(of_41(*statements[:size])) for size in range(1, len(statements) + 1)]
        assert ends == sorted({row["end_pos"] for row in landed_statements(self.path, path.name)})
        return ends

    def snapshot(self, place: tuple[str, int] | None, epoch: int | None = None, **tables: str) -> str:
        """Land a snapshot of tables, as `a:int b*:varchar(10)`, each later than the last; return its key."""
        columns = [row for table, text in tables.items() for row in schema_columns(table, text)]
        taken_at = datetime(2026, 11, 1, tzinfo=UTC) + timedelta(seconds=next(CLOCK))
        name, position = place or (None, None)
        taken = SchemaSnapshot("server" if place else "files", taken_at, name, position, columns=columns)
        return land_snapshot("s", taken, self.path, epoch).snapshot_id

    def table_map(self, key: str, table: str, text: str, *, is_named: bool = False) -> None:
        """Land a table map, as `a:int b!:varchar(10)`, where `!` means NOT NULL."""
        columns = [wire_column(word, ordinal, is_named) for ordinal, word in enumerate(text.split())]
        row = {"table_map_id": key, "source_id": "s", "schema_name": "shop", "table_name": table, "hint": "none"}
        append_rows(TABLE_MAPS, [{**row, "column_count": len(columns), "columns": columns}], f"s-{key}", self.path)

    def bindings(self, key: str) -> list[tuple[Any, ...]]:
        """Publish, and return the offset, the names, the confidence and the reason of the bindings of a table map."""
        publish_history("s", self.path)
        rows = [row for row in latest(TABLE_BINDINGS, self.path) if row["table_map_id"] == key]
        rows.sort(key=lambda row: [row[f"valid_from_{name}"] for name in ("epoch", "file_sequence", "pos")])
        names = (row["column_names"] and " ".join(row["column_names"]) for row in rows)
        return [
            (row["valid_from_pos"], text, row["confidence"], row["reason"])
            for row, text in zip(rows, names, strict=True)
        ]

    def detail(self, key: str) -> str | None:
        """Return the detail of the last binding of a table map."""
        publish_history("s", self.path)
        rows = [row for row in latest(TABLE_BINDINGS, self.path) if row["table_map_id"] == key]
        found: str | None = max(rows, key=lambda row: row["valid_to_epoch"])["detail"]
        return found


def landed_statements(home: Path, file: str) -> Iterator[dict[str, Any]]:
    """Yield the landed statements of a file."""
    import pyarrow.parquet as pq

    for path in raw_table_dir("statements", home).rglob(f"binlog_file={file}/*/*.parquet"):
        yield from pq.ParquetFile(path).read().to_pylist()


def latest(table: Any, home: Path) -> list[dict[str, Any]]:
    """Return the rows of the set that counts."""
    head = max(read_rows(SCHEMA_HISTORIES, home, source_id="s"), key=lambda row: row["published_at"])
    return read_rows(table, home, history_id=head["history_id"])


def schema_columns(table: str, text: str) -> Iterator[dict[str, Any]]:
    keys = count(1)
    for ordinal, word in enumerate(text.split(), 1):
        name, kind = word.split(":")
        yield {
            "schema_name": "shop",
            "table_name": table,
            "column_name": name.rstrip("*!"),
            "ordinal_position": ordinal,
            "primary_key_ordinal": next(keys) if "*" in name else None,
            "data_type": kind.split("(")[0],
            "column_type": kind,
            "is_nullable": "!" not in name and "*" not in name,
        }


def table_map_ids(path: Path) -> list[str]:
    import pyarrow.parquet as pq

    found: list[str] = pq.ParquetFile(path).read(["table_map_id"])["table_map_id"].to_pylist()
    return found


def wire_column(word: str, ordinal: int, is_named: bool) -> dict[str, Any]:
    name, kind = word.split(":")
    wire, metadata = TYPES.get(kind) or (kind.split("(")[0], int(kind.split("(")[1].rstrip(")")))
    return {
        "ordinal": ordinal,
        "type": wire,
        "metadata": metadata,
        "is_nullable": "!" not in name and "*" not in name,
        "name": name.rstrip("*!") if is_named else None,
        "is_primary_key": "*" in name if is_named else None,
    }


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_names_in_the_table_map_are_right_everywhere(home: Home) -> None:
    home.snapshot(None, t="a*:int")
    home.table_map("m", "t", "b*:int", is_named=True)
    home.table_map("twice", "t", "b:int b:int", is_named=True)
    assert home.bindings("m") == [(-1, "b", "exact", None)]
    assert home.bindings("twice") == [(-1, "b b", "exact", "column_count_mismatch")]
    assert home.detail("twice") == "two columns have the same name"


def test_a_table_of_which_nothing_is_known_has_no_names(home: Home) -> None:
    home.table_map("m", "t", "a:int")
    assert home.bindings("m") == [(-1, None, None, "unknown_table")]
    assert home.detail("m") == "the table map has no column names, and nothing tells what the table looks like"


def test_statements_are_in_force_from_their_end(home: Home) -> None:
    created, altered, dropped = home.land(
        "create table t (a int not null primary key)", "alter table t add b varchar(10)", "drop table t"
    )
    home.table_map("one", "t", "a!:int")
    home.table_map("two", "t", "a!:int b:varchar(10)")
    assert home.bindings("one") == [
        (-1, None, None, "unknown_table"),
        (created, "a", "in_force", None),
        (altered, "a b", None, "column_count_mismatch"),
        (dropped, None, None, "unknown_table"),
    ]
    assert home.bindings("two")[2] == (altered, "a b", "in_force", None)
    start = altered
    assert home.detail("two") == (
        "the table map has no column names, and what the table looks like is not known since "
        f"binlog.000001:{start}: dropped"
    )


@pytest.mark.parametrize(
    ("defined", "wire", "detail"),
    [
        ("a:int", "a:int b:int", "the table map has 2 columns, the schema 1"),
        ("a:varchar(10)", "a:int", "column 1 a is varchar(10) in the schema and LONG(0) in the binlog"),
        ("a:varchar(10)", "a:VARCHAR(8)", "column 1 a is varchar(10) in the schema and VARCHAR(8) in the binlog"),
        ("a:varchar(10)", "a:VARCHAR(40)", None),
        ("a:varchar(10)", "a:VARCHAR_COMPRESSED(41)", None),
        (
            "a:varchar(10)",
            "a:VARCHAR_COMPRESSED(42)",
            "column 1 a is varchar(10) in the schema and VARCHAR_COMPRESSED(42) in the binlog",
        ),
        (
            "a:decimal(10,2)",
            "a:NEWDECIMAL(2563)",
            "column 1 a is decimal(10,2) in the schema and NEWDECIMAL(2563) in the binlog",
        ),
        ("a!:int", "a:int", "column 1 a is int not null in the schema and LONG(0) in the binlog"),
        ("a:int", "a!:int", "column 1 a is int in the schema and LONG(0) not null in the binlog"),
        ("a:text", "a:BLOB(3)", "column 1 a is text in the schema and BLOB(3) in the binlog"),
        ("a:datetime(3)", "a:DATETIME2(3)", None),
        ("a:datetime(3)", "a:DATETIME2(0)", "column 1 a is datetime(3) in the schema and DATETIME2(0) in the binlog"),
    ],
)
def test_a_definition_fits_types_sizes_and_nulls(home: Home, defined: str, wire: str, detail: str | None) -> None:
    home.snapshot(("binlog.000001", 4), t=defined)
    home.table_map("m", "t", wire)
    assert home.detail("m") == detail


def test_a_text_grows_with_its_character_set_where_a_statement_made_it(home: Home) -> None:
    (created,) = home.land("create table t (a text)")
    home.table_map("m", "t", "a:BLOB(3)")
    assert home.bindings("m")[-1] == (created, "a", "in_force", None)


def test_a_later_snapshot_is_true_since_the_last_statement_before_it(home: Home) -> None:
    created, altered = home.land("create table t (a int)", "alter table t change a b int")
    home.snapshot(("binlog.000002", 4), t="b:int")
    home.table_map("m", "t", "a:int")
    assert home.bindings("m") == [
        (-1, None, None, "unknown_table"),
        (created, "a", "in_force", None),
        (altered, "b", "in_force", None),
    ]


def test_a_statement_that_did_nothing_yields_to_a_later_snapshot(home: Home) -> None:
    created, altered = home.land("create table if not exists t (a int, b int)", "alter table t add c int")
    home.snapshot(("binlog.000002", 4), t="p:int q:int c:int")
    home.table_map("before", "t", "a:int b:int")
    home.table_map("behind", "t", "a:int b:int c:int")
    assert home.bindings("before")[1] == (created, "p q", "inferred", None)
    assert home.bindings("behind")[2] == (altered, "p q c", "inferred", None)


def test_a_snapshot_that_contradicts_leaves_two_names(home: Home) -> None:
    created, later = home.land("create table t (a int)", "insert into t values (1)")
    home.snapshot(("binlog.000001", later), t="b:int")
    home.table_map("m", "t", "a:int")
    assert home.bindings("m")[1:] == [
        (created, "b", "ambiguous", "ambiguous_version"),
        (later, "b", "in_force", None),
    ]


def test_of_two_definitions_the_one_that_fits_is_taken(home: Home) -> None:
    created, later = home.land("create table t (a int)", "insert into t values (1)")
    home.snapshot(("binlog.000001", later), t="b:varchar(10)")
    home.table_map("m", "t", "a:int")
    home.table_map("n", "t", "b:varchar(10)")
    assert home.bindings("m")[1] == (created, "a", "inferred", None)
    assert home.bindings("n")[1] == (created, "b", "inferred", None)


def test_behind_a_part_that_is_not_landed_names_are_inferred(home: Home) -> None:
    (created,) = home.land("create table t (a int)")
    home.land("insert into t values (1)", number=3)
    home.table_map("m", "t", "a:int")
    assert home.bindings("m") == [
        (-1, None, None, "unknown_table"),
        (created, "a", "in_force", None),
        (4, "a", "inferred", None),
    ]


def test_a_snapshot_behind_a_gap_names_nothing_before_it(home: Home) -> None:
    home.land("insert into t values (1)")
    home.land("insert into t values (1)", number=3)
    home.snapshot(("binlog.000003", 50), t="a:int")
    home.table_map("m", "t", "a:int")
    assert home.bindings("m") == [
        (-1, None, None, "unknown_table"),
        (4, "a", "inferred", None),
        (50, "a", "in_force", None),
    ]


def test_a_snapshot_behind_the_log_names_what_no_statement_tells(home: Home) -> None:
    home.land("insert into t values (1)")
    home.snapshot(("binlog.000007", 50), t="a:int")
    home.table_map("m", "t", "a:int")
    assert home.bindings("m")[0] == (-1, "a", "inferred", None)


def test_a_snapshot_without_a_position_is_assumed_where_it_fits_the_log(home: Home) -> None:
    home.table_map("m", "t", "a:int")
    home.snapshot(None, t="a:int")
    assert home.bindings("m") == [(-1, "a", "inferred", None)]
    # It shows the outcome of the statement, so it was taken after it.
    _, altered = home.land("create table t (b int)", "alter table t change b a int")
    assert home.bindings("m")[-1] == (altered, "a", "in_force", None)


def test_a_dump_from_before_tells_the_tables_that_tools_exchange(home: Home) -> None:
    home.snapshot(None, t="a:int", u="x:int", v="y:int")
    *_, exchanged, _, renamed = home.land(
        *("create table _t_new like t", "alter table _t_new add column b int"),
        "rename table t to _t_old, _t_new to t",
        *("drop table u", "rename table v to u"),
    )
    home.table_map("before", "t", "a:int")
    home.table_map("after", "t", "a:int b:int")
    home.table_map("replaced", "u", "y:int")
    assert home.bindings("before")[0] == (-1, "a", "inferred", None)
    assert home.bindings("after")[-1] == (exchanged, "a b", "inferred", None)
    assert home.bindings("replaced")[-1] == (renamed, "y", "inferred", None)


BEHIND = ("binlog.000002", 4)
PLACES = pytest.mark.parametrize("place", [None, ("binlog.000001", 0), BEHIND], ids=["nowhere", "at its end", "behind"])


def land_and_show(home: Home, place: tuple[str, int] | None, *statements: str, **tables: str) -> list[int]:
    """Land statements, and a snapshot of tables at a place; one in the log is at its end. Return their ends."""
    *ends, end = home.land(*statements, "insert into t values (1)")
    home.snapshot((place[0], end) if place and place != BEHIND else place, **tables)
    return ends


@PLACES
@pytest.mark.parametrize(
    ("statements", "shown", "wire", "names"),
    [
        (["alter table t add c int first"], "c:int a:int b:int", "a:int b:int", "a b"),
        (["alter table t rename column a to c"], "c:int b:int", "a:int b:int", "a b"),
        (["alter table t change a b int, change b a int"], "b:int a:int", "a:int b:int", "a b"),
        (["alter table t modify a int"], "a:int b:int", "a:VARCHAR(8) b:int", "a b"),
        (["alter table t add c int", "alter table t rename column a to z"], "z:int b:int c:int", "a:int b:int", "a b"),
        (["alter table t drop column c"], "a:int b:int", "a:int b:int c:int", None),
        (["alter table t drop column a, add column c int"], "b:int c:int", "a:int b:int", None),
        (["alter table t modify b int first"], "b:int a:int", "a:int b:int", None),
        (["alter table t add c int", "alter table t drop column c"], "a:int b:int", "a:int b:int", None),
        (["alter table t drop primary key"], "a!:int b:int", "a!:int b:int", None),
    ],
)
def test_rows_before_a_statement_have_the_names_of_before(
    home: Home, place: tuple[str, int] | None, statements: list[str], shown: str, wire: str, names: str | None
) -> None:
    *_, last = land_and_show(home, place, *statements, t=shown)
    home.table_map("before", "t", wire)
    home.table_map("after", "t", shown)
    expected = (-1, names, "inferred", None) if names else (-1, None, None, "unknown_table")
    assert home.bindings("before")[0] == expected
    named = [one for one in home.bindings("after") if one[0] >= last]
    assert named[0] == (last, re.sub("!?:int", "", shown), "inferred", None)


@PLACES
def test_rows_between_statements_have_the_names_of_between(home: Home, place: tuple[str, int] | None) -> None:
    statements = ("alter table t drop column z", "alter table t add b int", "alter table t rename column a to c")
    first, second, third = land_and_show(home, place, *statements, t="c:int b:int")
    home.table_map("one", "t", "a:int")
    home.table_map("two", "t", "a:int b:int")
    assert home.bindings("one")[:2] == [(-1, None, None, "unknown_table"), (first, "a", "inferred", None)]
    named = [one[:2] for one in home.bindings("two") if one[1] and one[3] is None]
    assert named[:2] == [(second, "a b"), (third, "c b")]


@PLACES
def test_a_renamed_table_had_its_columns_before(home: Home, place: tuple[str, int] | None) -> None:
    statements = ("rename table old to middle", "alter table middle add b int", "rename table middle to t")
    land_and_show(home, place, *statements, t="a:int b:int")
    home.table_map("old", "old", "a:int")
    home.table_map("middle", "middle", "a:int b:int")
    assert home.bindings("old")[0] == (-1, "a", "inferred", None)
    assert [one[1:] for one in home.bindings("middle") if one[3] is None] == [("a b", "inferred", None)]


@PLACES
def test_what_may_not_have_happened_tells_nothing_of_before(home: Home, place: tuple[str, int] | None) -> None:
    land_and_show(home, place, "alter table t add column if not exists b int", t="a:int b:int")
    for key, wire in (("one", "a:int"), ("two", "a:int b:int")):
        home.table_map(key, "t", wire)
        assert home.bindings(key)[0] == (-1, None, None, "unknown_table")


def test_a_gap_ends_what_a_snapshot_tells_of_before(home: Home) -> None:
    home.land("alter table t add b int")
    _, end = home.land("alter table t add c int", "insert into t values (1)", number=3)
    home.snapshot(("binlog.000003", end), t="a:int b:int c:int")
    home.table_map("one", "t", "a:int")
    home.table_map("two", "t", "a:int b:int")
    assert {one[1] for one in home.bindings("one")} == {None, "a b", "a b c"}
    assert not any(one[3] is None for one in home.bindings("one"))
    assert [one[1:] for one in home.bindings("two") if one[3] is None] == [("a b", "inferred", None)]


def test_a_key_that_the_server_hides_is_named(home: Home) -> None:
    home.snapshot(None, t="a:int b:int", u="a*:int b:int")
    home.table_map("m", "t", "id!:LONGLONG(0) a:int b:int")
    home.table_map("n", "u", "id!:LONGLONG(0) a:int b:int")
    assert "show_gipk_in_create_table_and_information_schema" in (home.detail("m") or "")
    assert home.detail("n") == "the table map has 3 columns, the schema 2"


def test_names_are_in_lower_case_where_the_server_keeps_them_so(home: Home) -> None:
    home.land("create table T (a int)")
    home.table_map("m", "t", "a:int")
    assert home.bindings("m")[-1][1:] == ("a", "in_force", None)
    home.table_map("n", "Other", "a:int")
    assert home.bindings("m")[-1][3] == "unknown_table"


def test_the_same_definition_again_is_another_version(home: Home) -> None:
    created, renamed, back = home.land(
        "create table t (a int)", "alter table t change a b int", "alter table t change b a int"
    )
    home.table_map("m", "t", "a:int")
    assert [names for _, names, _, _ in home.bindings("m")] == [None, "a", "b", "a"]
    found = [row for row in latest(TABLE_VERSIONS, home.path) if row["column_names"] == ["a"]]
    assert len({row["table_version_id"] for row in found}) == 2 and len({row["definition_id"] for row in found}) == 1
    ranges = sorted((row["valid_from_pos"], row["valid_to_pos"]) for row in found)
    assert ranges == [(created, renamed), (back, 2**63 - 1)]
    assert {row["valid_from_binlog_file"] for row in found} == {"binlog.000001"}


def test_an_epoch_of_a_snapshot_follows_from_its_file_and_time(home: Home) -> None:
    home.snapshot(("binlog.000001", 50), epoch=0, t="a:int")
    home.snapshot(("binlog.000001", 50), epoch=1, t="b:int")
    home.table_map("m", "t", "a:int")
    publish_history("s", home.path)
    rows = sorted(latest(TABLE_BINDINGS, home.path), key=lambda row: row["valid_from_epoch"])
    assert [(row["valid_from_epoch"], row["column_names"]) for row in rows][-1] == (1, ["b"])


def test_each_snapshot_with_a_position_has_an_epoch(tmp_path: Path) -> None:
    def moment(hour: int) -> datetime:
        return datetime(2026, 11, 1, hour, 30, tzinfo=UTC)

    def snapshot(key: str, file: str | None, hour: int, epoch: int | None = None) -> dict[str, Any]:
        row = {"snapshot_id": key, "source_id": "s", "epoch": epoch, "taken_at": moment(hour), "origin": "server"}
        return {**row, "binlog_file": file, "binlog_pos": None if file is None else 900}

    for epoch, hour in ((0, 9), (1, 11)):
        opened = {"source_id": "s", "epoch": epoch, "observed_at": moment(hour), "change": "epoch_opened"}
        append_rows(SOURCES, [opened], f"s-{epoch}", tmp_path)
        file = {"source_id": "s", "epoch": epoch, "binlog_file": "b.000001", "first_event_at": moment(hour)}
        append_rows(BINLOG_FILES, [{**file, "scanned_at": moment(hour), "file_size": 999}], f"s-{epoch}", tmp_path)
    snapshots = [
        snapshot("says", "b.000001", 10, epoch=1),
        snapshot("by_file", "b.000001", 10),
        snapshot("by_file_of_two", "b.000001", 12),
        snapshot("by_time", "b.000007", 12),
        snapshot("before_all", "b.000007", 8),
        snapshot("nowhere", None, 12),
    ]
    append_rows(SCHEMA_SNAPSHOTS, snapshots, "s-snapshots", tmp_path)
    publish_history("s", tmp_path)
    (row,) = read_rows(SCHEMA_HISTORIES, tmp_path)
    assert dict(row["snapshot_epochs"]) == {
        "says": 1,
        "by_file": 0,
        "by_file_of_two": 1,
        "by_time": 1,
        "before_all": 0,
    }


# --- publishing ---


def files(home: Home) -> dict[str, int]:
    return {
        path.name: path.stat().st_mtime_ns
        for table in (SCHEMA_HISTORIES, TABLE_VERSIONS, TABLE_BINDINGS)
        for path in data_files(raw_table_dir(table.name, home.path))
    }


def test_without_new_evidence_nothing_is_written(home: Home) -> None:
    home.snapshot(None, t="a:int")
    home.table_map("m", "t", "a:int")
    assert publish_history("s", home.path)
    before = files(home)
    assert not publish_history("s", home.path)
    publish_histories(home.path)
    assert files(home) == before


def test_a_late_snapshot_names_what_is_landed(home: Home) -> None:
    home.table_map("m", "t", "a:int")
    assert home.bindings("m")[0][3] == "unknown_table"
    home.snapshot(None, t="a:int")
    assert home.bindings("m") == [(-1, "a", "inferred", None)]


@pytest.mark.parametrize("killed_before", [TABLE_VERSIONS.name, TABLE_BINDINGS.name, SCHEMA_HISTORIES.name])
def test_readers_see_the_old_set_until_the_new_one_is_whole(
    home: Home, killed_before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.table_map("m", "t", "a:int")
    before = home.bindings("m")
    write = published.append_rows

    def killed(table: Any, *arguments: Any) -> None:
        if table.name == killed_before:
            raise KeyboardInterrupt
        write(table, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(published, "append_rows", killed)
        with pytest.raises(KeyboardInterrupt):
            home.snapshot(None, t="a:int")
    rows = [row for row in latest(TABLE_BINDINGS, home.path) if row["table_map_id"] == "m"]
    assert [row["reason"] for row in rows] == [reason for *_, reason in before]
    assert home.bindings("m") == [(-1, "a", "inferred", None)]


def test_a_set_of_long_ago_is_deleted(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    home.table_map("m", "t", "a:int")
    for name in ("a", "b", "c"):
        home.snapshot(None, t=f"{name}:int")
        home.bindings("m")
    assert len(read_rows(SCHEMA_HISTORIES, home.path)) == 4
    monkeypatch.setattr(published, "_KEEP_SETS", timedelta(0))
    home.snapshot(None, t="d:int")
    assert home.bindings("m") == [(-1, "d", "inferred", None)]
    # The one before is kept: a build may have begun to read it just now.
    assert {row["history_id"] for row in read_rows(TABLE_BINDINGS, home.path)} == {
        row["history_id"] for row in read_rows(SCHEMA_HISTORIES, home.path)
    }
    assert len(read_rows(SCHEMA_HISTORIES, home.path)) == 2


def test_a_snapshot_tells_how_many_landed_rows_have_other_names(tmp_path: Path) -> None:
    # The statements that make the tables are in the first file.
    rows = ingest("s", find_binlogs(SHOP)[1:], home=tmp_path).row_events
    shown = read_snapshot_dir(SHOP / "schema")
    landed = [land_snapshot("s", shown, tmp_path) for _ in range(2)]
    # Counted in another way: the rows of table maps without a reason for quarantine.
    in_quarantine = {row["table_map_id"] for row in published_bindings("s", tmp_path) if row["reason"] is not None}
    maps = [key for path in raw_table_dir("row_events", tmp_path).rglob("*.parquet") for key in table_map_ids(path)]
    assert len(maps) == rows
    assert [one.renamed_rows for one in landed] == [sum(key not in in_quarantine for key in maps), 0]
    assert landed[0].renamed_rows > 100


def test_only_rows_of_the_positions_that_changed_have_other_names(home: Home) -> None:
    record = SourceRecord("s")
    position = {"valid_from_epoch": 0, "valid_from_file_sequence": 2}

    def bindings(*ranges: tuple[int, str]) -> list[dict[str, Any]]:
        return [
            {**position, "table_map_id": "m", "valid_from_pos": pos, "column_names": [name], "reason": None}
            for pos, name in ranges
        ]

    def differing(old: list[dict[str, Any]], new: list[dict[str, Any]], file: tuple[int, int]) -> int:
        before, after = (other_names._by_table_map(one)["m"] for one in (old, new))
        return other_names._differing(before, after, file, np.array([100, 200, 200, 300]))

    one, two = bindings((4, "a")), bindings((4, "a"), (200, "b"), (300, "a"))
    assert other_names.rows_with_other_names(one, one, record, home.path) == 0
    assert [differing(one, two, (0, number)) for number in (1, 2, 3)] == [0, 2, 0]
    assert [differing(one, bindings((4, "b")), (epoch, 2)) for epoch in (0, 1)] == [4, 4]
    assert differing(bindings((200, "a")), one, (0, 2)) == 1
