"""MySQL 8.0.17 and 8.0.18 log the hidden columns of multi-valued indexes, which nobody sees."""

import struct
from pathlib import Path

import pytest

from tests.python.binlog.test_decoder import everything
from tests.support.binlog.forge import JSON, LONG, LONGLONG, VARCHAR, FileMaker, field_of, json_document, packed

TYPED_ARRAY = 20


def number(value: int) -> bytes:
    return struct.pack("<i", value)


def document(value: list[int] | dict[str, int]) -> bytes:
    data = json_document(value)  # type: ignore[arg-type]
    return struct.pack("<I", len(data)) + data


@pytest.mark.parametrize("is_logged", [True, False])
@pytest.mark.parametrize("element", [bytes([LONGLONG]), bytes([VARCHAR, 9, 0])])
def test_hidden_columns_are_no_part_of_a_row(is_logged: bool, element: bytes, tmp_path: Path) -> None:
    maker = FileMaker(version=b"8.0.18")
    maker.begin()
    names = field_of(
        4, b"".join(packed(len(name)) + name for name in (b"id", b"j", b"!hidden!a!0!0", b"!hidden!b!0!0"))
    )
    maker.table_map([LONG, JSON, TYPED_ARRAY, TYPED_ARRAY], b"\4" + 2 * element, names)
    maker.table_map([LONG], b"", field_of(4, packed(1) + b"n"), table_id=2, name=b"u")
    present, nulls = (b"\x0f", b"\x08") if is_logged else (b"\x03", b"\0")
    array = document([1, 2]) if is_logged else b""
    rows = [number(id) + document({"a": id}) + array for id in (7, 8)]
    maker.rows(30, 4, nulls + rows[0] + nulls + rows[1], bitmaps=present, ends_statement=False)
    maker.rows(31, 4, nulls + rows[0] + b"\0" + number(9), bitmaps=present + b"\1", ends_statement=False)
    maker.rows(30, 1, b"\0" + number(3), table_id=2)
    maker.commit()
    maker.rotate()
    found = everything(maker.write(tmp_path))
    assert not found.get("unsupported_events")
    assert [[one["name"] for one in row["columns"]] for row in found["table_maps"]] == [["id", "j"], ["n"]]
    facts = ("column_count", "before_values", "after_values", "before_columns", "after_columns")
    assert [[row[fact] for fact in facts] for row in found["row_events"]] == [
        [2, [None, None], ["7", '{"a": 7}'], None, None],
        [2, [None, None], ["8", '{"a": 8}'], None, None],
        [2, ["7", '{"a": 7}'], ["9", None], None, [0]],
        [1, [None], ["3"], None, None],
    ]
