"""The rows of a state are sorted by their key, by the types of its columns."""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from recover.selection.catalog import Column, TableVersion
from recover.sources.engine import in_memory
from recover.timeline import sorted_rows as module
from recover.timeline.sorted_rows import sorted_rows
from recover.timeline.state import Row, State
from tests.support.binlog import forge
from tests.support.in_process import binloom_here


@dataclass
class Rows:
    """A state of given rows."""

    given: list[Row]
    table_version_id: str = "v"

    def rows(self) -> Iterator[Row]:
        yield from self.given


def in_order(column_type: str, *values: str | None) -> list[str | None]:
    """Return the values of a column in the order of the rows."""
    data_type = column_type.partition("(")[0].partition(" ")[0]
    column = Column(0, "id", data_type, column_type, "utf8mb4", True, True)
    version = TableVersion("v", "s", "s", "t", (column,), ("id",))
    rows = [Row({"id": value} if value != "?" else {}, ("id",) if value == "?" else (), ()) for value in values]
    random.Random(7).shuffle(rows)
    with in_memory() as connection:
        found = [*sorted_rows(connection, cast("State", Rows(rows)), [version])]
    assert sorted(map(str, found)) == sorted(map(str, rows))
    return [row.values.get("id", "?") for row in found]


@pytest.mark.parametrize(
    ("column_type", "values"),
    [
        ("int", ["-10", "-9", "2", "9", "10", "100"]),
        ("bigint unsigned", ["9", "10", "9223372036854775808", "18446744073709551615"]),
        ("decimal(10,2)", ["-10.50", "-9.00", "2.00", "10.00"]),
        ("decimal(65,0)", ["-" + "9" * 65, "-1", "5", "1" + "0" * 64, "9" * 65]),
        ("double", ["-1e300", "-2", "0.5", "3", "1e20"]),
        ("time", ["-838:59:59", "-01:00:00", "09:00:00", "100:00:00"]),
        ("datetime", ["2026-01-02 03:04:05", "2026-11-02 03:04:05"]),
        ("varchar(20)", ["", "10", "9", "B", "a"]),
        ("int", ["1", None]),
    ],
)
def test_each_type_has_its_own_order(column_type: str, values: list[str | None]) -> None:
    assert in_order(column_type, *values) == values


def test_a_row_whose_key_is_unknown_comes_last() -> None:
    assert in_order("int", "10", "?", "9") == ["9", "10", "?"]


def test_rows_are_more_than_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ROWS_AT_ONCE", 10)
    for size in (9, 10, 11, 25):
        assert in_order("int", *map(str, range(size))) == [*map(str, range(size))]


def file_of(folder: Path, key: bytes, rows: list[tuple[int, int]]) -> Path:
    """Write a file that inserts rows (a, b) into s.t."""
    maker = forge.FileMaker()
    maker.begin()
    names = forge.field_of(4, b"\x01a\x01b") + key
    maker.table_map([forge.LONG, forge.LONG], b"", forge.signedness(False, False) + names)
    maker.rows(30, 2, b"".join(b"\0" + struct.pack("<ii", *row) for row in rows))
    maker.commit()
    maker.rotate()
    return maker.write(folder)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (forge.field_of(8, b"\0"), ["-5,1", "2,10", "9,9", "10,2"]),
        (forge.field_of(8, b"\1"), ["-5,1", "10,2", "9,9", "2,10"]),
        (b"", ["-5,1", "2,10", "9,9", "10,2"]),
    ],
    ids=["key", "another key", "no key"],
)
def test_state_prints_rows_by_their_key(tmp_path: Path, key: bytes, expected: list[str]) -> None:
    file = file_of(tmp_path, key, [(10, 2), (2, 10), (9, 9), (-5, 1)])
    done = binloom_here("state", "s.t", "--files", file, home=tmp_path / "home")
    assert [line.removesuffix(",,") for line in done.stdout.splitlines()[1:]] == expected
