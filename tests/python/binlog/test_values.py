"""Decoding wire bytes to text, for any value that a column can store."""

import base64
import datetime
import ipaddress
import json
import math
import struct
import tempfile
import uuid
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.binlog import SchemaHints, open_binlog
from ingest.binlog.text.charsets import decode_text
from tests.support.binlog import forge

# Each example is a list of values: these are hundreds.
few_lists = settings(max_examples=20)


def known_as(column_type: str) -> SchemaHints:
    """Return a snapshot of the hand-made table, whose only column is of this type."""
    column = {"schema_name": "s", "table_name": "t", "column_name": "c", "ordinal_position": 1}
    data_type = column_type.partition("(")[0]
    return SchemaHints.from_columns([{**column, "data_type": data_type, "column_type": column_type}])


def server_of(hints: SchemaHints | None) -> bytes:
    """Return the server for a type: only MariaDB has the types that need a snapshot."""
    return forge.VERSION if hints is None else b"10.11.18-MariaDB"


def texts(
    kind: int,
    metadata: bytes,
    values: Sequence[bytes | None],
    optional: bytes = b"",
    hints: SchemaHints | None = None,
) -> list[str | None]:
    """Return the decoder's texts of a column's values."""
    with tempfile.TemporaryDirectory() as folder:
        log = open_binlog(
            forge.column_file(Path(folder), kind, metadata, values, optional, server_of(hints)), hints=hints
        )
        found: list[str | None] = []
        for name, batch in log.batches():
            assert name != "unsupported_events", batch.to_pylist()
            if name == "row_events":
                found += [row[0] for row in batch.column("after_values").to_pylist()]
        return found


def undecodable(
    kind: int, metadata: bytes, value: bytes, optional: bytes = b"", hints: SchemaHints | None = None
) -> str:
    """Return the decoder's reason for an undecodable value."""
    with tempfile.TemporaryDirectory() as folder:
        log = open_binlog(
            forge.column_file(Path(folder), kind, metadata, [value], optional, server_of(hints)), hints=hints
        )
        kinds = {name: batch.to_pylist() for name, batch in log.batches()}
    assert "row_events" not in kinds
    return str(kinds["unsupported_events"][0]["reason"])


def few_groups(pattern: int) -> ipaddress.IPv6Address:
    """Format an address with a zero group for each 0 bit."""
    return ipaddress.IPv6Address(sum((pattern >> group & 1) * (group + 1) << 16 * group for group in range(8)))


INTEGERS = [(forge.TINY, 1), (forge.SHORT, 2), (forge.INT24, 3), (forge.LONG, 4), (forge.LONGLONG, 8)]


@pytest.mark.parametrize(("kind", "size"), INTEGERS)
@pytest.mark.parametrize("signed", [True, False])
@few_lists
@given(data=st.data())
def test_integers_are_decimal(kind: int, size: int, signed: bool, data: st.DataObject) -> None:
    low, high = (-(1 << 8 * size - 1), (1 << 8 * size - 1) - 1) if signed else (0, (1 << 8 * size) - 1)
    numbers = [*data.draw(st.lists(st.integers(low, high), min_size=1, max_size=200)), low, high, 0]
    encoded = [number.to_bytes(size, "little", signed=signed) for number in numbers]
    assert texts(kind, b"", encoded, forge.signedness(not signed)) == [str(number) for number in numbers]


@given(precision=st.integers(1, 65), data=st.data())
def test_decimals_keep_their_scale(precision: int, data: st.DataObject) -> None:
    scale = data.draw(st.integers(0, min(30, precision)))
    limit = 10**precision - 1
    unscaled = [*data.draw(st.lists(st.integers(-limit, limit), min_size=1, max_size=50)), limit, -limit, 0]
    numbers = [Decimal(number).scaleb(-scale) for number in unscaled]
    encoded = [
        forge.decimal(Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -scale)), precision, scale) for n in unscaled
    ]
    expected = [f"{number:.{scale}f}" for number in _exact(unscaled, scale)]
    assert texts(forge.NEWDECIMAL, bytes([precision, scale]), encoded) == expected
    assert len(numbers) == len(expected)


def _exact(unscaled: list[int], scale: int) -> list["_Fixed"]:
    return [_Fixed(number, scale) for number in unscaled]


class _Fixed:
    """A number with a fixed scale, formatted independently of a context's precision."""

    def __init__(self, unscaled: int, scale: int) -> None:
        self.unscaled, self.scale = unscaled, scale

    def __format__(self, spec: str) -> str:
        digits = str(abs(self.unscaled)).rjust(self.scale + 1, "0")
        sign = "-" if self.unscaled < 0 else ""
        return sign + (f"{digits[: -self.scale]}.{digits[-self.scale :]}" if self.scale else digits)


def test_a_decimal_with_impossible_digits_is_not_a_value() -> None:
    assert undecodable(forge.NEWDECIMAL, bytes([9, 0]), b"\xbf\xff\xff\xff") == "undecodable_value"


finite = st.floats(allow_nan=False, allow_infinity=False)
AWKWARD = [
    0.0,
    -0.0,
    5e-324,
    2.2250738585072014e-308,
    1.7976931348623157e308,
    1e15,
    1e16,
    9007199254740993.0,
    1e22,
    1e23,
]


@few_lists
@given(st.lists(finite, min_size=1, max_size=300))
def test_doubles_read_back_and_are_no_longer_than_they_must_be(numbers: list[float]) -> None:
    numbers = numbers + AWKWARD
    found = texts(forge.DOUBLE, b"\x08", [struct.pack("<d", number) for number in numbers])
    for text, number in zip(found, numbers, strict=True):
        assert text is not None
        assert float(text) == number and math.copysign(1, float(text)) == math.copysign(1, number)
        assert len(text.split("e")[0].strip("-0").replace(".", "").strip("0")) <= len(
            repr(number).split("e")[0].strip("-0").replace(".", "").strip("0")
        )


@few_lists
@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=300))
def test_floats_read_back_as_the_same_32_bits(numbers: list[float]) -> None:
    found = texts(forge.FLOAT, b"\x04", [struct.pack("<f", number) for number in numbers])
    for text, number in zip(found, numbers, strict=True):
        assert text is not None
        assert np.float32(text) == np.float32(number)
        shortest = np.format_float_scientific(np.float32(number), unique=True, trim="-").split("e")[0]
        assert len(text.split("e")[0].strip("-0").replace(".", "").strip("0")) <= len(
            shortest.strip("-0").replace(".", "")
        )


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1000000000000000.0, "1e15"),
        (123456789012345.0, "123456789012345"),
        (100000000000000.0, "100000000000000"),
        (1e-16, "1e-16"),
        (1e-15, "0.000000000000001"),
        (1234567890123456.8, "1234567890123456.8"),
        (-1.5e300, "-1.5e300"),
        (0.1, "0.1"),
    ],
)
def test_doubles_look_as_the_server_prints_them(number: float, text: str) -> None:
    assert texts(forge.DOUBLE, b"\x08", [struct.pack("<d", number)]) == [text]


def test_a_double_that_is_no_number_is_not_a_value() -> None:
    assert undecodable(forge.DOUBLE, b"\x08", struct.pack("<d", math.inf)) == "undecodable_value"


@few_lists
@given(
    digits=st.integers(0, 6), moments=st.lists(st.datetimes(datetime.datetime(1000, 1, 1)), min_size=1, max_size=100)
)
def test_datetimes(digits: int, moments: list[datetime.datetime]) -> None:
    step = 10 ** (6 - digits)
    moments = [moment.replace(microsecond=moment.microsecond // step * step) for moment in moments]
    encoded = [forge.datetime2(*moment.timetuple()[:6], moment.microsecond, digits) for moment in moments]
    assert texts(forge.DATETIME2, bytes([digits]), encoded) == [_text(moment, digits) for moment in moments]


def _text(moment: datetime.datetime, digits: int) -> str:
    whole = moment.strftime("%m-%d %H:%M:%S")
    fraction = f".{moment.microsecond:06d}"[: digits + 1] if digits else ""
    return f"{moment.year:04d}-{whole}{fraction}"


def test_zero_and_invalid_datetimes_are_kept() -> None:
    encoded = [forge.datetime2(0, 0, 0, 0, 0, 0, 0, 0), forge.datetime2(2024, 2, 31, 0, 0, 0, 0, 0)]
    assert texts(forge.DATETIME2, b"\0", encoded) == ["0000-00-00 00:00:00", "2024-02-31 00:00:00"]


@few_lists
@given(digits=st.integers(0, 6), seconds=st.lists(st.integers(1, 2**32 - 1), min_size=1, max_size=100))
def test_timestamps_are_utc(digits: int, seconds: list[int]) -> None:
    encoded = [second.to_bytes(4, "big") + forge.fraction(0, digits) for second in seconds]
    moments = [datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=second) for second in seconds]
    assert texts(forge.TIMESTAMP2, bytes([digits]), encoded) == [_text(moment, digits) for moment in moments]


def test_timestamp_zero_is_the_zero_date() -> None:
    assert texts(forge.TIMESTAMP2, b"\x03", [bytes(6)]) == ["0000-00-00 00:00:00.000"]


@few_lists
@given(digits=st.integers(0, 6), micros=st.lists(st.integers(-3_020_399_999_999, 3_020_399_999_999), min_size=1))
def test_times_may_be_negative_and_long(digits: int, micros: list[int]) -> None:
    step = 10 ** (6 - digits)
    encoded, expected = [], []
    for value in micros:
        rest = abs(value) // step * step
        seconds, fraction = divmod(rest, 1_000_000)
        hour, minute, second = seconds // 3600, seconds // 60 % 60, seconds % 60
        negative = value < 0 and rest > 0
        encoded.append(forge.time2(negative, hour, minute, second, fraction, digits))
        tail = f".{fraction:06d}"[: digits + 1] if digits else ""
        expected.append(f"{'-' if negative else ''}{hour:02d}:{minute:02d}:{second:02d}{tail}")
    assert texts(forge.TIME2, bytes([digits]), encoded) == expected


@few_lists
@given(st.lists(st.dates(datetime.date(1, 1, 1)), min_size=1))
def test_dates(dates: list[datetime.date]) -> None:
    encoded = [(date.year << 9 | date.month << 5 | date.day).to_bytes(3, "little") for date in dates]
    assert texts(forge.DATE, b"", encoded) == [date.isoformat() for date in dates]


def test_temporal_types_from_before_5_6() -> None:
    assert texts(forge.OLD_TIMESTAMP, b"", [struct.pack("<I", 1)]) == ["1970-01-01 00:00:01"]
    assert texts(forge.OLD_DATETIME, b"", [struct.pack("<Q", 20240229123456)]) == ["2024-02-29 12:34:56"]
    assert texts(
        forge.OLD_TIME, b"", [(8385959).to_bytes(3, "little"), (-10203).to_bytes(3, "little", signed=True)]
    ) == [
        "838:59:59",
        "-01:02:03",
    ]
    assert texts(forge.YEAR, b"", [b"\0", b"\x01", b"\xff"]) == ["0000", "1901", "2155"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("838:59:59", 8385959),
        ("-838:59:59", -8385959),
        ("00:00:00", 0),
        ("-00:00:01", -1),
        ("100:00:00", 1000000),
    ],
)
def test_times_from_before_5_6(text: str, value: int) -> None:
    assert texts(forge.OLD_TIME, b"", [value.to_bytes(3, "little", signed=True)]) == [text]


@pytest.mark.parametrize("text", ["0000-00-00 00:00:00", "2024-02-31 00:00:00", "9999-12-31 23:59:59"])
def test_datetimes_from_before_5_6_are_kept_as_written(text: str) -> None:
    number = int("".join(character for character in text if character.isdigit()))
    assert texts(forge.OLD_DATETIME, b"", [struct.pack("<Q", number)]) == [text]


def test_timestamps_from_before_5_6_are_unsigned() -> None:
    encoded = [struct.pack("<I", seconds) for seconds in (0, 2**31 - 1, 2**31, 2**32 - 1)]
    assert texts(forge.OLD_TIMESTAMP, b"", encoded) == [
        "0000-00-00 00:00:00",
        "2038-01-19 03:14:07",
        "2038-01-19 03:14:08",
        "2106-02-07 06:28:15",
    ]


@few_lists
@given(digits=st.integers(1, 6), data=st.data())
def test_times_of_mariadb_5_3(digits: int, data: st.DataObject) -> None:
    unit = 10**digits
    numbers = data.draw(st.lists(st.integers(1 - 3020400 * unit, 3020400 * unit - 1), min_size=1, max_size=50))
    size = (4, 4, 5, 5, 5, 6)[digits - 1]
    encoded = [(number + 3020400 * unit).to_bytes(size, "big") for number in numbers]
    expected = []
    for number in numbers:
        seconds, fraction = divmod(abs(number), unit)
        clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        expected.append(f"{'-' if number < 0 else ''}{clock}.{fraction:0{digits}}")
    assert texts(forge.OLD_TIME, b"", encoded, hints=known_as(f"time({digits}) /* mariadb-5.3 */")) == expected


@few_lists
@given(digits=st.integers(1, 6), moments=st.lists(st.datetimes(datetime.datetime(1, 1, 1)), min_size=1, max_size=50))
def test_datetimes_of_mariadb_5_3(digits: int, moments: list[datetime.datetime]) -> None:
    size = (6, 6, 7, 7, 7, 8)[digits - 1]
    encoded = []
    for moment in moments:
        days = (moment.year * 13 + moment.month) * 32 + moment.day
        seconds = ((days * 24 + moment.hour) * 60 + moment.minute) * 60 + moment.second
        encoded.append((seconds * 10**digits + moment.microsecond // 10 ** (6 - digits)).to_bytes(size, "big"))
    found = texts(forge.OLD_DATETIME, b"", encoded, hints=known_as(f"datetime({digits})"))
    assert found == [_text(moment, digits) for moment in moments]


@few_lists
@given(
    digits=st.integers(1, 6),
    moments=st.lists(st.tuples(st.integers(1, 2**32 - 1), st.integers(0, 10**6 - 1)), min_size=1),
)
def test_timestamps_of_mariadb_5_3(digits: int, moments: list[tuple[int, int]]) -> None:
    encoded, expected = [], []
    for seconds, micros in moments:
        units = micros // 10 ** (6 - digits)
        encoded.append(seconds.to_bytes(4, "big") + units.to_bytes((digits + 1) // 2, "big"))
        moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds, microseconds=micros)
        expected.append(_text(moment, digits))
    assert texts(forge.OLD_TIMESTAMP, b"", encoded, hints=known_as(f"timestamp({digits})")) == expected


@pytest.mark.parametrize(
    ("kind", "column_type", "value"),
    [
        (forge.OLD_TIME, "time(1)", bytes(4)),
        (forge.OLD_TIME, "time(6)", b"\xff" * 6),
        (forge.OLD_DATETIME, "datetime(6)", b"\xff" * 8),
        (forge.OLD_DATETIME, "datetime(6)", b"\x7f" * 8),
        (forge.OLD_DATETIME, "datetime(1)", b"\x7f" * 6),
        (forge.OLD_TIMESTAMP, "timestamp(1)", b"\0\0\0\1\x0a"),
        (forge.OLD_TIMESTAMP, "timestamp(6)", b"\0\0\0\1\xff\xff\xff"),
    ],
)
def test_impossible_temporals_of_mariadb_5_3(kind: int, column_type: str, value: bytes) -> None:
    assert undecodable(kind, b"", value, hints=known_as(column_type)) == "undecodable_value"


def fixed_binary(data: bytes) -> bytes:
    """The wire drops zero bytes at the end."""
    data = data.rstrip(b"\0")
    return bytes([len(data)]) + data


@few_lists
@given(st.lists(st.uuids(), min_size=1))
def test_uuids_of_mariadb(values: list[uuid.UUID]) -> None:
    values = [*values, uuid.UUID(int=0), uuid.UUID(int=1 << 127)]
    found = texts(forge.STRING, b"\xfe\x10", [fixed_binary(value.bytes) for value in values], hints=known_as("uuid"))
    assert found == [str(value) for value in values]


@few_lists
@given(st.lists(st.ip_addresses(v=4), min_size=1))
def test_inet4_of_mariadb(values: list[ipaddress.IPv4Address]) -> None:
    found = texts(forge.STRING, b"\xfe\x04", [fixed_binary(value.packed) for value in values], hints=known_as("inet4"))
    assert found == [str(value) for value in values]


@few_lists
@given(st.lists(st.one_of(st.ip_addresses(v=6), st.integers(0, 255).map(few_groups)), min_size=1))
def test_inet6_of_mariadb_is_the_same_address(values: list[ipaddress.IPv6Address]) -> None:
    found = texts(forge.STRING, b"\xfe\x10", [fixed_binary(value.packed) for value in values], hints=known_as("inet6"))
    assert [ipaddress.IPv6Address(text) for text in found] == values
    for text in found:
        assert text is not None and text == text.lower() and (text.count("::") == 1 or text.count(":") == 7)


@pytest.mark.parametrize(("column_type", "size"), [("uuid", 16), ("inet6", 16), ("inet4", 4)])
def test_too_many_bytes_for_a_fixed_binary_are_not_a_value(column_type: str, size: int) -> None:
    value = bytes([size + 1]) + b"\1" * (size + 1)
    hints = known_as(column_type)
    assert undecodable(forge.STRING, bytes([254, size]), value, hints=hints) == "undecodable_value"
    assert undecodable(forge.STRING, bytes([254, size]), b"\xff\1", hints=hints) == "malformed_row"


def test_a_snapshot_of_another_size_does_not_make_a_uuid() -> None:
    assert texts(forge.STRING, b"\xfe\x0f", [b"\3abc"], hints=known_as("uuid")) == ["abc"]


@given(bits=st.integers(1, 64), data=st.data())
def test_bits_are_an_unsigned_number(bits: int, data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(0, (1 << bits) - 1), min_size=1, max_size=50))
    encoded = [number.to_bytes((bits + 7) // 8, "big") for number in numbers]
    assert texts(forge.BIT, bytes([bits % 8, bits // 8]), encoded) == [str(number) for number in numbers]


@few_lists
@given(st.lists(st.one_of(st.none(), st.text(max_size=80)), min_size=1, max_size=60), st.integers(1, 2))
def test_utf8_text_is_kept(values: list[str | None], length_bytes: int) -> None:
    encoded = [None if v is None else len(v.encode()).to_bytes(length_bytes, "little") + v.encode() for v in values]
    if length_bytes == 1:
        encoded = [value for value in encoded if value is None or len(value) == value[0] + 1 if len(value or b"") < 256]
        values = [None if value is None else value[1:].decode() for value in encoded]
    metadata = struct.pack("<H", 255 if length_bytes == 1 else 4000)
    assert texts(forge.VARCHAR, metadata, encoded, forge.charset(forge.UTF8MB4)) == values


@pytest.mark.parametrize(
    "data", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"abcdefgh\xe2\x82", b"\x80" * 9]
)
def test_text_that_is_not_utf8_is_not_a_value(data: bytes) -> None:
    value = bytes([len(data)]) + data
    assert undecodable(forge.VARCHAR, b"\xff\x00", value, forge.charset(forge.UTF8MB4)) == "undecodable_value"


def short_value(data: bytes) -> bytes:
    return bytes([len(data)]) + data


@few_lists
@given(st.lists(st.text(st.characters(min_codepoint=0x10000), max_size=30), min_size=1))
def test_gb18030_beyond_the_basic_plane(values: list[str]) -> None:
    encoded = [value.encode("gb18030") for value in values]
    found = texts(forge.VARCHAR, b"\xff\x00", [short_value(data) for data in encoded], forge.charset(forge.GB18030))
    assert found == values
    assert [decode_text(data, "gb18030") for data in encoded] == values


def test_gb18030_has_one_two_and_four_bytes() -> None:
    data = b"a" + bytes.fromhex("D6D0 81308130 8135F437 8431A439 90308130 E3329A35") + b"z"
    text = "a中\x80\ue7c7\uffff\U00010000\U0010ffffz"
    assert texts(forge.VARCHAR, b"\xff\x00", [short_value(data)], forge.charset(forge.GB18030)) == [text]
    assert decode_text(data, "gb18030") == text


def test_four_bytes_of_gb18030_that_unicode_does_not_have_are_a_question_mark() -> None:
    data = bytes.fromhex("8431A530 8F39FE39 E3329A36 FE39FE39")
    assert texts(forge.VARCHAR, b"\xff\x00", [short_value(data)], forge.charset(forge.GB18030)) == ["????"]
    assert decode_text(data, "gb18030") == "????"


@pytest.mark.parametrize("data", ["80", "FF", "D6", "8130", "813081", "81308140", "81303030", "FF308130", "D67F"])
def test_what_is_not_gb18030_is_not_a_value(data: str) -> None:
    value = short_value(b"ok" + bytes.fromhex(data))
    assert undecodable(forge.VARCHAR, b"\xff\x00", value, forge.charset(forge.GB18030)) == "undecodable_value"
    assert decode_text(b"ok" + bytes.fromhex(data), "gb18030").startswith("ok\\x")


@few_lists
@given(st.lists(st.binary(max_size=60), min_size=1, max_size=60))
def test_binary_is_upper_case_hex(values: list[bytes]) -> None:
    encoded = [bytes([len(value)]) + value for value in values]
    expected = [f"0x{value.hex().upper()}" for value in values]
    assert texts(forge.VARCHAR, b"\xff\x00", encoded, forge.charset(forge.BINARY_COLLATION)) == expected
    assert texts(forge.BLOB, b"\x01", encoded, forge.charset(forge.BINARY_COLLATION)) == expected


@few_lists
@given(st.lists(st.binary(max_size=20), min_size=1))
def test_fixed_binary_is_padded_to_its_length(values: list[bytes]) -> None:
    encoded = [bytes([len(value)]) + value for value in values]
    found = texts(forge.STRING, bytes([forge.STRING, 20]), encoded, forge.charset(forge.BINARY_COLLATION))
    assert found == [f"0x{value.ljust(20, bytes(1)).hex().upper()}" for value in values]


def test_a_string_of_unknown_character_set_is_text_when_it_is_utf8_and_hex_when_not() -> None:
    assert texts(forge.VARCHAR, b"\xff\x00", [b"\x03\xe2\x82\xac", b"\x02\xe4\x21"]) == ["€", "0xE421"]


def long_value(data: bytes) -> bytes:
    """Return a value with a length of four bytes."""
    return struct.pack("<I", len(data)) + data


@given(st.lists(st.tuples(st.text(max_size=300), st.sampled_from(("none", "zlib", "deflate"))), min_size=1), st.data())
def test_compressed_columns(values: list[tuple[str, str]], data: st.DataObject) -> None:
    encoded = []
    for text, method in values:
        plain = text.encode()
        if method == "none" or not plain:
            encoded.append(long_value(b"\0" + plain if plain else b""))
        else:
            encoded.append(long_value(forge.compressed(plain, raw=method == "deflate")))
    found = texts(forge.BLOB_COMPRESSED, b"\x04", encoded, forge.charset(forge.UTF8MB4))
    assert found == [text for text, _ in values]
    found = texts(forge.BLOB_COMPRESSED, b"\x04", encoded, forge.charset(forge.BINARY_COLLATION))
    assert found == [f"0x{text.encode().hex().upper()}" for text, _ in values]


def test_compressed_columns_in_other_character_sets_and_of_many_bytes() -> None:
    text = "Größe €" * 300_000
    value = long_value(forge.compressed(text.encode("cp1252"), raw=True))
    assert texts(forge.BLOB_COMPRESSED, b"\x04", [value] * 3, forge.charset(forge.LATIN1)) == [text] * 3
    assert texts(forge.BLOB_COMPRESSED, b"\x04", [long_value(forge.compressed(b"\xff" * 99, raw=False))]) == [
        "0x" + "FF" * 99
    ]
    varchar = forge.compressed(b"ab" * 90, raw=True)
    assert texts(forge.VARCHAR_COMPRESSED, b"\xff\0", [bytes([len(varchar)]) + varchar]) == ["ab" * 90]
    varchar = struct.pack("<H", len(varchar)) + varchar
    assert texts(forge.VARCHAR_COMPRESSED, b"\0\1", [varchar]) == ["ab" * 90]


GOOD_STREAM = forge.compressed(b"ab" * 200, raw=True)


@pytest.mark.parametrize(
    "value",
    [
        forge.compressed(b"ab" * 200, raw=True, size=399),
        forge.compressed(b"ab" * 200, raw=True, size=401),
        forge.compressed(b"ab" * 200, raw=False, size=2**32 - 1),
        GOOD_STREAM[:-1],
        GOOD_STREAM + b"\0",
        GOOD_STREAM[:3],
        b"\x82" + GOOD_STREAM[1:],  # declared as zlib, but raw
        b"\x90" + GOOD_STREAM[1:],  # unknown method
        b"\x88" + GOOD_STREAM[1:],  # a size of no bytes
        b"\x8f" + GOOD_STREAM[1:],  # a size of seven bytes
        b"\x8a",
        forge.compressed(b"\xff" * 200, raw=True),  # not UTF-8
    ],
)
def test_what_does_not_inflate_to_the_column_is_not_a_value(value: bytes) -> None:
    reason = undecodable(forge.BLOB_COMPRESSED, b"\x04", long_value(value), forge.charset(forge.UTF8MB4))
    assert reason == "undecodable_value"


def test_a_row_whose_value_does_not_inflate_is_left_out_alone(tmp_path: Path) -> None:
    good, bad = long_value(GOOD_STREAM), long_value(GOOD_STREAM[:-1])
    path = forge.column_file(tmp_path, forge.BLOB_COMPRESSED, b"\x04", [good, bad, None, good])
    kinds = {name: batch.to_pylist() for name, batch in open_binlog(path).batches()}
    assert [(row["row_ordinal"], row["after_values"]) for row in kinds["row_events"]] == [
        (0, ["ab" * 200]),
        (2, [None]),
        (3, ["ab" * 200]),
    ]
    (problem,) = kinds["unsupported_events"]
    assert problem["reason"] == "undecodable_value" and problem["start_pos"] == kinds["row_events"][0]["start_pos"]
    assert kinds["transactions"][0]["row_events"] == 3


def test_labels() -> None:
    members = packed_labels(["red", "green", "blue"])
    enum = forge.field_of(6, members) + forge.field_of(10, forge.packed(forge.UTF8MB4))
    assert texts(forge.ENUM, bytes([forge.ENUM, 1]), [b"\x01", b"\x03", b"\x00"], enum) == ["red", "blue", ""]
    assert texts(forge.ENUM, bytes([forge.ENUM, 1]), [b"\x02"]) == ["2"]
    assert undecodable(forge.ENUM, bytes([forge.ENUM, 1]), b"\x04", enum) == "undecodable_value"
    labels = forge.field_of(5, members) + forge.field_of(10, forge.packed(forge.UTF8MB4))
    assert texts(forge.SET, bytes([forge.SET, 1]), [b"\x05", b"\x00", b"\x07"], labels) == [
        "red,blue",
        "",
        "red,green,blue",
    ]
    assert texts(forge.SET, bytes([forge.SET, 1]), [b"\x05"]) == ["5"]


def packed_labels(labels: list[str]) -> bytes:
    return forge.packed(len(labels)) + b"".join(forge.packed(len(x.encode())) + x.encode() for x in labels)


documents: st.SearchStrategy[forge.JsonValue] = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**63), 2**64 - 1),
        finite,
        st.text(max_size=30),
        st.text(min_size=120, max_size=140),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=6), st.dictionaries(st.text(max_size=12), inner, max_size=6)),
    max_leaves=25,
)


@given(st.lists(documents, min_size=1, max_size=20))
def test_json_says_what_the_document_holds(values: list[forge.JsonValue]) -> None:
    encoded = [forge.json_document(value) for value in values]
    found = texts(forge.JSON, b"\x04", [struct.pack("<I", len(data)) + data for data in encoded])
    for text, value in zip(found, values, strict=True):
        assert text is not None
        parsed = json.loads(text)
        assert parsed == value
        # Only the order of keys and the digits of doubles differ from Python's output.
        if isinstance(value, str):
            assert text == json.dumps(value, ensure_ascii=False).replace("\\u007f", "\x7f")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [True, None, 64.0], "cc": {}}, '{"a": [true, null, 64.0], "b": 1, "cc": {}}'),
        ([], "[]"),
        ('q"b\\s/\x01\n', '"q\\"b\\\\s/\\u0001\\n"'),
        (1e300, "1e300"),
        ([[[["deep"]]]], '[[[["deep"]]]]'),
    ],
)
def test_json_looks_as_the_server_prints_it(value: forge.JsonValue, text: str) -> None:
    data = forge.json_document(value)
    assert texts(forge.JSON, b"\x04", [struct.pack("<I", len(data)) + data]) == [text]


def test_large_json_documents() -> None:
    value: forge.JsonValue = {f"key{number}": ["x" * 500, number, 1 << 40] for number in range(300)}
    data = forge.json_document(value)
    assert data[0] == 1, "the document must be a large object"
    (text,) = texts(forge.JSON, b"\x04", [struct.pack("<I", len(data)) + data])
    assert text is not None and json.loads(text) == value


@pytest.mark.parametrize("size", [0, 1, 2, 3, 56, 57, 58, 114, 115, 5000])
def test_bytes_in_json_are_base_64_in_lines_of_76(size: int) -> None:
    data = bytes(number % 251 for number in range(size))
    head = bytes([size]) if size < 128 else bytes([size & 127 | 128, size >> 7])
    document = bytes([15, 252]) + head + data
    digits = base64.b64encode(data).decode()
    lines = [digits[at : at + 76] for at in range(0, len(digits), 76)]
    expected = '"base64:type252:' + "\\n".join(lines) + '"'
    assert texts(forge.JSON, b"\x04", [struct.pack("<I", len(document)) + document]) == [expected]


@pytest.mark.parametrize(
    ("version", "kind", "metadata", "value"),
    [(b"9.7.0", forge.VECTOR, b"\x04", bytes(4)), (b"10.11.18-MariaDB", forge.GEOMETRY, b"\x04", bytes(4))],
)
def test_signs_and_character_sets_behind_columns_that_have_an_entry_too(
    tmp_path: Path, version: bytes, kind: int, metadata: bytes, value: bytes
) -> None:
    maker = forge.FileMaker(version=version)
    maker.begin()
    charsets = forge.field_of(3, bytes([forge.BINARY_COLLATION, forge.LATIN1]))
    optional = forge.signedness(True, False, True) + charsets
    types = [forge.YEAR, forge.TINY, kind, forge.VARCHAR, forge.TINY]
    maker.table_map(types, metadata + b"\xff\x00", optional)
    maker.rows(30, 5, b"\xe0" + b"\x7c\xff" + value + b"\x01\xe9" + b"\xff")
    maker.commit()
    rows = [
        row["after_values"]
        for name, batch in open_binlog(maker.write(tmp_path)).batches()
        if name == "row_events"
        for row in batch.to_pylist()
    ]
    assert rows == [["2024", "-1", "0x", "é", "255"]]


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x00\xff\xff",  # an object larger than its bytes
        b"\x02\x01\x00\x07\x00\x02\x00\x00",  # an array whose element is itself
        b"\x0d",  # no such type
        b"\x0c\xff\xff\xff\xff\xff\x01",  # a length of six bytes
        b"\x04\x07",  # unknown literal
    ],
)
def test_malformed_json_is_not_a_value(data: bytes) -> None:
    assert undecodable(forge.JSON, b"\x04", struct.pack("<I", len(data)) + data) == "undecodable_value"


def test_json_that_shares_its_bytes_cannot_grow_without_bounds() -> None:
    # Each level is an array with the next level as both elements: 2**40 leaves in 300 bytes.
    data = b"\x02\x00\x00\x04\x00"[1:]
    for _ in range(40):
        size = 4 + 6 + len(data)
        data = struct.pack("<HH", 2, size) + struct.pack("<BH", 2, 10) * 2 + data
    document = b"\x02" + data
    assert undecodable(forge.JSON, b"\x04", struct.pack("<I", len(document)) + document) == "undecodable_value"
