"""Rows events of version 0, of MySQL 5.1 before 5.1.18: decoded correctly with a snapshot of the table, or reported."""

import struct
import tempfile
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.binlog import SchemaHints
from ingest.binlog.filters import TableFilter
from tests.python.binlog.test_decoder import everything
from tests.support.binlog import forge
from tests.support.binlog.forge import FileMaker

WRITE, UPDATE, DELETE = 20, 21, 22
DATE, BLOB, GEOMETRY = 10, 252, 255
WIRE_TYPES = {
    "tinyint": forge.TINY,
    "smallint": forge.SHORT,
    "mediumint": forge.INT24,
    "int": forge.LONG,
    "bigint": forge.LONGLONG,
    "float": forge.FLOAT,
    "double": forge.DOUBLE,
    "decimal": forge.NEWDECIMAL,
    "year": forge.YEAR,
    "date": DATE,
    "time": forge.OLD_TIME,
    "datetime": forge.OLD_DATETIME,
    "timestamp": forge.OLD_TIMESTAMP,
    "varchar": forge.VARCHAR,
    "varbinary": forge.VARCHAR,
    "bit": forge.BIT,
    **dict.fromkeys(("char", "binary", "enum", "set"), forge.STRING),
    **dict.fromkeys(("tinyblob", "text", "mediumtext", "longblob"), BLOB),
    "geometry": GEOMETRY,
}

Columns = Sequence[str]
"""Types as a snapshot has them, with `not null` and a character set where they are not the default."""

# These are from logs of 5.1.17: a table `t1 (a int, b char(50)) ENGINE=MyISAM`.
INT_AND_CHAR = ("int(11)", "char(50)")
ONE, TWO = bytes.fromhex("f9 00000000 03 6f6e65"), bytes.fromhex("f9 01000000 03 74776f")


def snapshot(columns: Columns) -> SchemaHints:
    rows = []
    for ordinal, column in enumerate(columns, 1):
        column_type, _, charset = column.replace(" not null", "").partition(" charset ")
        data_type = column_type.partition("(")[0]
        has_charset = data_type in ("char", "varchar", "text", "mediumtext", "enum", "set")
        rows.append(
            {
                "schema_name": "test",
                "table_name": "t1",
                "column_name": f"c{ordinal}",
                "ordinal_position": ordinal,
                "data_type": data_type,
                "column_type": column_type,
                "character_set": (charset or "latin1") if has_charset else None,
                "is_nullable": "not null" not in column,
            }
        )
    return SchemaHints.from_columns(rows)


def written(folder: Path, code: int, columns: Columns, images: bytes, present: bytes | None = None) -> Path:
    """Write a log of 5.1.17 with one rows event."""
    maker = FileMaker(checksum=False, version=b"5.1.17-beta-log")
    types = bytes(WIRE_TYPES[column.partition(" ")[0].partition("(")[0]] for column in columns)
    head = struct.pack("<IHH", 16, 0, 1)
    maker.event(19, struct.pack("<IHH", 16, 0, 0) + b"\4test\0\2t1\0" + bytes([len(types)]) + types)
    maker.event(code, head + bytes([len(types)]) + (present or b"\xff" * ((len(types) + 7) // 8)) + images)
    maker.rotate()
    return maker.write(folder)


def decoded(
    folder: Path, code: int, columns: Columns, images: bytes, present: bytes | None = None, **options: Any
) -> dict[str, list[dict[str, Any]]]:
    path = written(folder, code, columns, images, present)
    return everything(path, **({"hints": snapshot(columns)} | options))


def rows_of(found: dict[str, list[dict[str, Any]]]) -> list[tuple[Any, Any]]:
    return [(row["before_values"], row["after_values"]) for row in found["row_events"]]


def inserted(folder: Path, columns: Columns, images: str) -> list[Any]:
    found = decoded(folder, WRITE, columns, bytes.fromhex(images))
    assert found["unsupported_events"] == []
    return [after for _, after in rows_of(found)]


def assert_named(found: dict[str, list[dict[str, Any]]]) -> None:
    (problem,) = found["unsupported_events"]
    assert (problem["reason"], problem["schema_name"], problem["table_name"]) == ("rows_without_metadata", "test", "t1")
    assert "snapshot" in problem["detail"]
    assert found["row_events"] == []
    (transaction,) = found["transactions"]
    assert (transaction["events"], transaction["row_events"]) == (2, 0)


def test_the_rows_of_5_1_17(tmp_path: Path) -> None:
    found = decoded(tmp_path, WRITE, INT_AND_CHAR, ONE + TWO)
    assert rows_of(found) == [([None, None], ["0", "one"]), ([None, None], ["1", "two"])]
    assert found["unsupported_events"] == []
    assert [row["payload_ordinal"] for row in found["row_events"]] == [0, 0]
    (transaction,) = found["transactions"]
    assert (transaction["events"], transaction["inserts"], transaction["row_events"]) == (2, 2, 2)
    (table_map,) = found["table_maps"]
    assert table_map["hint"] == "snapshot"
    assert [(column["type"], column["metadata"]) for column in table_map["columns"]] == [("LONG", 0), ("STRING", 50)]


def test_one_bitmap_stands_for_both_images_of_an_update(tmp_path: Path) -> None:
    found = decoded(tmp_path, UPDATE, INT_AND_CHAR, ONE + TWO)
    assert rows_of(found) == [(["0", "one"], ["1", "two"])]
    assert rows_of(decoded(tmp_path, DELETE, INT_AND_CHAR, TWO)) == [(["1", "two"], [None, None])]


def test_a_null_stands_over_a_default(tmp_path: Path) -> None:
    assert inserted(tmp_path, INT_AND_CHAR, "fd 01000000 00  fb 00000000 03 6f6e65  ff 00000000 00") == [
        ["1", None],
        [None, "one"],
        [None, None],
    ]


def test_columns_that_take_no_null_have_no_bit(tmp_path: Path) -> None:
    columns = ("int(11) not null", "smallint(6)", "char(3) not null", "tinyint(4)")
    assert inserted(tmp_path, columns, "fd 01000000 0000 01 61 07  ff 02000000 0000 00 00") == [
        ["1", None, "a", "7"],
        ["2", None, "", None],
    ]
    assert inserted(tmp_path, ("bigint(20) not null",), "ff 0700000000000000") == [["7"]]


def test_records_without_a_fixed_size_begin_with_a_column(tmp_path: Path) -> None:
    assert inserted(tmp_path, ("int(11)", "varchar(20)"), "fc 01000000 0161  fd 00000000 0162  fe 01000000 00") == [
        ["1", "a"],
        [None, "b"],
        ["1", None],
    ]
    assert inserted(tmp_path, ("varchar(20) not null", "int(11) not null"), "0161 01000000") == [["a", "1"]]


def test_sizes_come_from_the_snapshot(tmp_path: Path) -> None:
    columns = (
        "char(86) charset utf8 not null",
        "varchar(128) charset gbk not null",
        "varbinary(255) not null",
        "binary(2) not null",
        "tinyblob not null",
        "text not null",
        "mediumtext not null",
        "longblob not null",
        "geometry not null",
    )
    images = "0200 c3a9  0200 c4e3  01 ff  02 00ff  01 01  0100 78  010000 79  01000000 02  04000000 00000001"
    assert inserted(tmp_path, columns, images) == [
        ["é", "你", "0xFF", "0x00FF", "0x01", "x", "y", "0x02", "0x00000001"]
    ]


def test_every_type_of_one_size(tmp_path: Path) -> None:
    columns = [
        f"{kind} not null"
        for kind in (
            *("tinyint(4)", "mediumint(8) unsigned", "float", "double", "decimal(10,3)", "decimal(11,0)", "year(4)"),
            *("date", "time", "datetime", "timestamp", "enum('a','b')", "set('x','y','z')"),
        )
    ]
    many = "enum(" + ",".join(f"'{number}'" for number in range(300)) + ") not null"
    large = "set(" + ",".join(f"'{number}'" for number in range(40)) + ") not null"
    values = (
        b"\xff",
        b"\xff\xff\xff",
        struct.pack("<f", 1.5),
        struct.pack("<d", -2.5),
        forge.decimal(Decimal("-12.345"), 10, 3),
        forge.decimal(Decimal(12345678901), 11, 0),
        b"\x6b",
        (2007 << 9 | 5 << 5 | 31).to_bytes(3, "little"),
        (123456).to_bytes(3, "little"),
        struct.pack("<q", 20070531123456),
        struct.pack("<I", 1180614896),
        b"\2",
        b"\5",
        struct.pack("<H", 300),
        struct.pack("<q", 1 << 39 | 1),
    )
    assert inserted(tmp_path, [*columns, many, large], (b"\xff" + b"".join(values)).hex()) == [
        [
            *("-1", "16777215", "1.5", "-2.5", "-12.345", "12345678901", "2007"),
            *("2007-05-31", "12:34:56", "2007-05-31 12:34:56", "2007-05-31 12:34:56", "b", "x,z", "299", "0,39"),
        ]
    ]


def test_a_null_decimal_stands_over_its_zero(tmp_path: Path) -> None:
    assert inserted(tmp_path, ("int(11)", "decimal(4,2)"), "fd 07000000 8000") == [["7", None]]


def test_columns_that_are_not_in_the_event_are_absent(tmp_path: Path) -> None:
    found = decoded(tmp_path, WRITE, INT_AND_CHAR, bytes.fromhex("f9 07000000"), present=b"\xfd")
    assert rows_of(found) == [([None, None], ["7", None])]
    assert [row["after_columns"] for row in found["row_events"]] == [[0]]


def test_without_a_snapshot_the_event_is_named(tmp_path: Path) -> None:
    found = decoded(tmp_path, WRITE, INT_AND_CHAR, ONE + TWO, hints=None)
    assert_named(found)
    assert [row["event_type"] for row in found["unsupported_events"]] == ["WRITE_ROWS_V0"]
    (table_map,) = found["table_maps"]
    assert table_map["hint"] == "none"
    assert [column["type"] for column in table_map["columns"]] == ["LONG", "STRING"]


@pytest.mark.parametrize(
    "columns",
    [("int(11)",), ("int(11)", "varchar(50)"), ("bigint(20)", "char(50)"), ("int(11)", "char(50) charset utf8mb4")],
)
def test_a_snapshot_of_another_table_is_not_used(columns: Columns, tmp_path: Path) -> None:
    found = decoded(tmp_path, WRITE, INT_AND_CHAR, ONE, hints=snapshot(columns))
    assert_named(found)
    assert [column["metadata"] for column in found["table_maps"][0]["columns"]] == [0, 0]


@pytest.mark.parametrize(
    ("columns", "images"),
    [
        pytest.param(INT_AND_CHAR, ONE[:-1], id="cut off"),
        pytest.param(INT_AND_CHAR, ONE + b"\xf9", id="a row too little"),
        pytest.param(INT_AND_CHAR, b"", id="no row"),
        pytest.param(INT_AND_CHAR, b"\xb9" + ONE[1:], id="a bit of no column is not 1"),
        pytest.param(INT_AND_CHAR, b"\xf8" + ONE[1:], id="the mark is not 1"),
        pytest.param(INT_AND_CHAR, b"\xfd" + TWO[1:], id="a NULL with a value"),
        pytest.param(("int(11)", "char(2)"), ONE, id="longer than its column"),
        pytest.param(("int(11)", "bit(9)"), b"\xf9" + bytes(6), id="bits among the null bits"),
        pytest.param(("binary(2) not null",), b"\xff\x01\x41", id="a BINARY that may have lost spaces or zeros"),
        pytest.param(("char(2) charset ucs2 not null",), b"\xff\x03\x00\x41\x00", id="half a space"),
        pytest.param(("decimal(0,0) not null",), b"\x01", id="images of no bytes"),
        # Either (0, NULL) of a table whose records have the deletion mark, or (NULL, '') of a table without it.
        pytest.param(INT_AND_CHAR, bytes.fromhex("fd 00000000 00"), id="two readings"),
        pytest.param(("tinyint(4) not null",), b"\xff\x05", id="one row or two"),
    ],
)
def test_what_does_not_fit_in_one_way_is_named(columns: Columns, images: bytes, tmp_path: Path) -> None:
    assert_named(decoded(tmp_path, WRITE, columns, images))


def test_an_update_has_pairs_of_images(tmp_path: Path) -> None:
    assert_named(decoded(tmp_path, UPDATE, INT_AND_CHAR, ONE + TWO + ONE))


def test_an_event_of_no_columns_is_named(tmp_path: Path) -> None:
    assert_named(decoded(tmp_path, WRITE, INT_AND_CHAR, b"\xf9\xf9", present=b"\0"))


def test_rows_of_a_table_that_is_left_out_are_not_named(tmp_path: Path) -> None:
    found = decoded(tmp_path, WRITE, INT_AND_CHAR, ONE, hints=None, tables=TableFilter(exclude_tables=("test.t1",)))
    assert found["row_events"] == found["unsupported_events"] == found["table_maps"] == []


def test_rows_of_no_table_are_named(tmp_path: Path) -> None:
    maker = FileMaker(checksum=False, version=b"5.1.17-beta-log")
    maker.event(WRITE, struct.pack("<IHH", 16, 0, 1) + b"\2\xff" + ONE)
    (problem,) = everything(maker.write(tmp_path))["unsupported_events"]
    assert (problem["event_type"], problem["reason"]) == ("WRITE_ROWS_V0", "no_table_map")


# --- any rows ---

VALUES: dict[str, st.SearchStrategy[tuple[str, bytes]]] = {
    "int(11)": st.integers(-(1 << 31), (1 << 31) - 1).map(lambda value: (str(value), struct.pack("<i", value))),
    "tinyint(4)": st.integers(-2, 1).map(lambda value: (str(value), struct.pack("<b", value))),
    "char(3)": st.text("abc", max_size=3).map(lambda text: (text, bytes([len(text)]) + text.encode())),
    "varchar(300)": st.text("abc", max_size=4).map(lambda text: (text, struct.pack("<H", len(text)) + text.encode())),
    "text": st.text("abc", max_size=4).map(lambda text: (text, struct.pack("<H", len(text)) + text.encode())),
    "decimal(4,2)": st.integers(-9999, 9999).map(
        lambda cents: (f"{Decimal(cents) / 100:.2f}", forge.decimal(Decimal(cents) / 100, 4, 2))
    ),
}
DEFAULTS = {
    "int(11)": bytes(4),
    "tinyint(4)": b"\0",
    "char(3)": b"\0",
    "varchar(300)": bytes(2),
    "text": bytes(2),
    "decimal(4,2)": b"\x80\0",
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], bool]:
    """Draw column types, and whether records begin with the deletion mark."""
    kinds = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=10))
    return [kind + draw(st.sampled_from(["", " not null"])) for kind in kinds], draw(st.booleans())


def packed_row(columns: Columns, row: Sequence[tuple[str, bytes] | None], has_mark: bool) -> bytes:
    """Encode a row as the server wrote it: null bytes of the record, then every column."""
    nulls = [value is None for column, value in zip(columns, row, strict=True) if "not null" not in column]
    bits = [True] * has_mark + nulls
    bits += [True] * (-len(bits) % 8)
    head = sum(bit << number for number, bit in enumerate(bits)).to_bytes(len(bits) // 8, "little")
    return head + b"".join(
        DEFAULTS[column] if value is None else value[1] for column, value in zip(columns, row, strict=True)
    )


@given(tables(), st.data())
def test_rows_of_any_table_are_right_or_named(table: tuple[list[str], bool], data: st.DataObject) -> None:
    columns, has_mark = table
    values = [VALUES[column.removesuffix(" not null")] for column in columns]
    any_row = [each if "not null" in column else st.none() | each for column, each in zip(columns, values, strict=True)]
    rows = data.draw(st.lists(st.tuples(*any_row), min_size=1, max_size=4))
    images = b"".join(packed_row(columns, row, has_mark) for row in rows)
    with tempfile.TemporaryDirectory() as folder:
        found = decoded(Path(folder), WRITE, columns, images)
    texts = [[None if value is None else value[0] for value in row] for row in rows]
    if found["unsupported_events"]:
        assert_named(found)
    else:
        assert [after for _, after in rows_of(found)] == texts


@given(
    st.sampled_from([WRITE, UPDATE, DELETE]),
    tables(),
    st.binary(max_size=40),
    st.none() | st.binary(min_size=2, max_size=2),
)
def test_any_bytes_are_decoded_or_named(
    code: int, table: tuple[list[str], bool], images: bytes, present: bytes | None
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = decoded(Path(folder), code, table[0], images, present)
    reasons = {row["reason"] for row in found["unsupported_events"]}
    if reasons == {"rows_without_metadata"}:
        assert_named(found)
    else:
        # Rows of the right size may contain bytes that are not a value, such as a DECIMAL with too many digits.
        assert found["row_events"] or reasons
        assert reasons <= {"undecodable_value"}
