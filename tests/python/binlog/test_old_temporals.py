"""MariaDB's temporal columns of unknown fraction: decoded correctly without a snapshot, or reported."""

import struct
from pathlib import Path
from typing import Any

import pytest

from ingest.binlog import SchemaHints, open_binlog
from tests.python.binlog.test_against_servers import assert_final_rows, each, server_of
from tests.python.binlog.test_values import known_as
from tests.servers import Server
from tests.support.binlog import forge, recordings, workload_tables
from tests.support.binlog.recordings import Recording, Setting
from tests.support.binlog.workload import Column, Table

Decoded = dict[str, list[dict[str, Any]]]
Rows = dict[tuple[int, int], dict[str, Any]]

UNKNOWN = "unknown_fraction_digits"


def decoded(path: Path, hints: SchemaHints | None = None) -> Decoded:
    kinds: Decoded = {"row_events": [], "unsupported_events": [], "table_maps": []}
    for kind, batch in open_binlog(path, hints=hints).batches():
        kinds.setdefault(kind, []).extend(batch.to_pylist())
    return kinds


def one_event(folder: Path, types: list[int], metadata: bytes, images: bytes, version: bytes) -> Decoded:
    """Decode an event that inserts rows into a table of some types, without a snapshot."""
    return decoded(file_of_one_event(folder, types, metadata, images, version))


def file_of_one_event(folder: Path, types: list[int], metadata: bytes, images: bytes, version: bytes) -> Path:
    """Write a file with an event that inserts rows into a table of some types."""
    maker = forge.FileMaker(checksum=False, version=version)
    maker.begin()
    maker.table_map(types, metadata)
    maker.rows(30, len(types), images)
    maker.commit()
    maker.rotate()
    return maker.write(folder)


def reasons(kinds: Decoded) -> list[str]:
    return [row["reason"] for row in kinds["unsupported_events"]]


def values(kinds: Decoded) -> list[list[str | None]]:
    return [row["after_values"] for row in kinds["row_events"]]


MARIADB = b"5.5.68-MariaDB"
MOMENT = struct.pack("<Q", 20240229123456)
DATETIME_ROW = b"\xfe" + MOMENT


def test_a_datetime_shows_that_it_has_no_fraction(tmp_path: Path) -> None:
    kinds = one_event(tmp_path, [forge.OLD_DATETIME], b"", DATETIME_ROW * 3, MARIADB)
    assert values(kinds) == [["2024-02-29 12:34:56"]] * 3 and not reasons(kinds)


def test_a_zero_date_may_have_a_fraction(tmp_path: Path) -> None:
    zero = b"\xfe" + bytes(8)
    kinds = one_event(tmp_path, [forge.OLD_DATETIME], b"", zero, MARIADB)
    assert reasons(kinds) == [UNKNOWN] and not values(kinds)
    assert "snapshot" in kinds["unsupported_events"][0]["detail"]
    # Another row of the event decides between the readings.
    kinds = one_event(tmp_path, [forge.OLD_DATETIME], b"", zero + DATETIME_ROW, MARIADB)
    assert values(kinds) == [["0000-00-00 00:00:00"], ["2024-02-29 12:34:56"]]


@pytest.mark.parametrize("version", [b"5.5.62", b"5.1.67-MariaDB", b"5.2.14-MariaDB"])
def test_servers_that_have_no_fractions_leave_no_doubt(tmp_path: Path, version: bytes) -> None:
    kinds = one_event(tmp_path, [forge.OLD_DATETIME], b"", b"\xfe" + bytes(8), version)
    assert values(kinds) == [["0000-00-00 00:00:00"]]


def test_a_snapshot_from_after_an_upgrade_gives_mysql_no_fractions(tmp_path: Path) -> None:
    maker = forge.FileMaker(version=b"5.6.51-log")
    maker.begin()
    maker.table_map([forge.OLD_DATETIME], b"")
    maker.rows(30, 1, DATETIME_ROW)
    maker.commit()
    path = maker.write(tmp_path)
    assert values(decoded(path, known_as("datetime(6)"))) == [["2024-02-29 12:34:56"]]


def test_nulls_tell_nothing_and_need_not(tmp_path: Path) -> None:
    kinds = one_event(tmp_path, [forge.OLD_DATETIME, forge.OLD_TIME], b"", b"\xff" * 3, MARIADB)
    assert values(kinds) == [[None, None]] * 3


def test_a_timestamp_alone_fits_in_one_way(tmp_path: Path) -> None:
    row = b"\xfe" + struct.pack("<I", 1700000000)
    assert values(one_event(tmp_path, [forge.OLD_TIMESTAMP], b"", row, MARIADB)) == [["2023-11-14 22:13:20"]]


def test_a_row_that_fits_in_two_ways_is_not_decoded(tmp_path: Path) -> None:
    # A timestamp and an empty string, or a timestamp with the fraction 0.05 and the string "!".
    types, metadata = [forge.OLD_TIMESTAMP, forge.VARCHAR], struct.pack("<H", 99)
    plain = b"\xfc" + struct.pack("<I", 1700000000) + b"\x01" + b"!"
    assert values(one_event(tmp_path, types, metadata, plain, MARIADB)) == [["2023-11-14 22:13:20", "!"]]
    either = b"\xfc" + struct.pack("<I", 1700000000) + b"\x02" + b"\x01!"
    assert reasons(one_event(tmp_path, types, metadata, either, MARIADB)) == [UNKNOWN]
    fraction = b"\xfc" + struct.pack(">I", 1700000000) + b"\x05" + b"\x04!!!!"
    assert reasons(one_event(tmp_path, types, metadata, fraction, MARIADB)) == [UNKNOWN]


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (forge.OLD_TIME, (123).to_bytes(4, "big")),
        (forge.OLD_TIME, (3020400 * 10**6).to_bytes(6, "big")),
        (forge.OLD_TIME, (1_00_75).to_bytes(3, "little")),
        (forge.OLD_TIME, (839_00_00).to_bytes(3, "little")),
        (forge.OLD_DATETIME, bytes.fromhex("01027ac3c5959aff")),
        (forge.OLD_DATETIME, struct.pack("<Q", 20241301000000)),
        (forge.OLD_DATETIME, struct.pack("<Q", 20240229240000)),
        (forge.OLD_TIMESTAMP, struct.pack(">I", 1700000000) + b"\x63"),
    ],
)
def test_what_is_no_value_without_a_fraction_is_not_decoded(tmp_path: Path, kind: int, value: bytes) -> None:
    assert reasons(one_event(tmp_path, [kind], b"", b"\xfe" + value, MARIADB)) == [UNKNOWN]


def test_bits_of_no_column_must_be_set(tmp_path: Path) -> None:
    assert reasons(one_event(tmp_path, [forge.OLD_DATETIME], b"", b"\x00" + MOMENT, MARIADB)) == [UNKNOWN]


def test_too_many_columns_to_try_are_not_decoded(tmp_path: Path) -> None:
    row = b"\x80" + struct.pack("<I", 1700000000) * 7
    assert reasons(one_event(tmp_path, [forge.OLD_TIMESTAMP] * 7, b"", row, MARIADB)) == [UNKNOWN]
    row = bytes(5) + struct.pack("<I", 1700000000) * 40
    assert reasons(one_event(tmp_path, [forge.OLD_TIMESTAMP] * 40, b"", row, MARIADB)) == [UNKNOWN]


def test_hundreds_of_thousands_of_rows_that_fit_in_no_other_way_end_soon(tmp_path: Path) -> None:
    row = b"\xf8" + (1_00_00).to_bytes(3, "little") * 3
    path = file_of_one_event(tmp_path, [forge.OLD_TIME] * 3, b"", row * 300_000, MARIADB)
    rows = {"row_events": 0, "unsupported_events": 0}
    for kind, batch in open_binlog(path).batches():
        if kind in rows:
            rows[kind] += batch.num_rows
    assert rows in ({"row_events": 300_000, "unsupported_events": 0}, {"row_events": 0, "unsupported_events": 1})


# --- real servers ---


OLD_FORMATS = [Setting.of(server, mysql56_temporal_format="OFF") for server in ("mariadb", "mariadb118")]


@pytest.mark.parametrize("setting", each(OLD_FORMATS))
def test_a_snapshot_tells_the_fraction(request: pytest.FixtureRequest, setting: Setting, tmp_path: Path) -> None:
    server = server_of(request, setting)
    tables = [table for table in workload_tables.tables(server, []) if table.name == "temporals"]
    recording = recordings.record(server, setting, tables, tmp_path)
    assert_final_rows(recording, recording.decoded().committed_changes())


MOMENTS = tuple(
    f"'20{day:02}-0{day % 9 + 1}-{day % 28 + 1} {day % 24}:{day * 7 % 60}:{day * 3 % 60}'" for day in range(99)
)
FRACTIONS = tuple(f"'20{day:02}-03-{day % 28 + 1} 1:2:{day % 60}.{day * 7919 % 1000000:06}'" for day in range(99))
CLOCKS = tuple(
    f"'{'-' if hour % 3 else ''}{hour * 8}:{hour % 60}:{hour * 7 % 60}.{hour * 9973:06}'" for hour in range(99)
)
NAMES = tuple(f"'{'x' * (number % 7)}{number}'" for number in range(50))


def temporal_table(name: str, digits: int, moments: tuple[str, ...] = MOMENTS) -> Table:
    return Table(
        f"{name}{digits}",
        (
            Column("d", f"datetime({digits}) null", "datetime", (*moments, "null")),
            Column("n", "varchar(30) character set latin1", "text", NAMES, charset="latin1"),
            Column("t", f"time({digits}) null", "time", CLOCKS),
            Column("s", f"timestamp({digits}) null", "timestamp", (*moments[:90], "null")),
            Column("m", "decimal(9,3)", "decimal", ("1.5", "-2", "null")),
        ),
    )


@pytest.fixture(scope="module")
def recording(mariadb_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Recording:
    tables = [temporal_table("plain", 0)]
    tables += [temporal_table("fractions", digits, FRACTIONS) for digits in range(1, 7)]
    tables += [temporal_table("whole_seconds", digits) for digits in range(1, 7)]
    return recordings.record(mariadb_server, OLD_FORMATS[0], tables, tmp_path_factory.mktemp("old"))


def by_place(kinds: Decoded, table: str) -> Rows:
    found: Rows = {}
    for row in kinds["row_events"]:
        if row["table_name"].startswith(table):
            texts = {name: row[name] for name in ("before_values", "after_values")}
            found[row["start_pos"], row["row_ordinal"]] = texts
    return found


def test_without_a_snapshot_nothing_is_wrong_and_most_without_a_fraction_is_decoded(recording: Recording) -> None:
    known, unknown = decoded(recording.binlog, recording.hints()), decoded(recording.binlog)
    assert not known["unsupported_events"]
    assert {row["reason"] for row in unknown["unsupported_events"]} == {UNKNOWN}
    assert not by_place(unknown, "fractions") and not by_place(unknown, "whole_seconds")
    plain, all_plain = by_place(unknown, "plain"), by_place(known, "plain")
    assert plain.items() <= all_plain.items()
    assert len(plain) > 0.9 * len(all_plain) > 100
