"""Rows events of MariaDB 12.3 in fragments, and events that their server lets readers ignore."""

import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from ingest.binlog import open_binlog, scan_binlog
from tests.python.binlog.test_decoder import everything
from tests.support.binlog.forge import LONG, FileMaker

IGNORABLE = 0x80
VALUES = list(range(40))


def rows_event(maker: FileMaker, values: list[int]) -> bytes:
    """Return an event that inserts rows into a table of one INT column."""
    other = FileMaker(checksum=maker.checksum, version=maker.version)
    at = len(other.data)
    images = b"".join(b"\0" + struct.pack("<i", value) for value in values)
    other.event(23, struct.pack("<IHH", 1, 0, 1) + b"\1\xff" + images)
    return bytes(other.data[at:])


def fragments(maker: FileMaker, order: list[int], *, count: int = 4, size: int | None = None) -> list[int]:
    """Append fragments of a rows event, by their numbers; return their positions."""
    event = rows_event(maker, VALUES)
    step = -(-len(event) // count)
    places = []
    for number in order:
        head = struct.pack("<IIB", count, number, number == 1)
        if number == 1:
            head += struct.pack("<Q", len(event) if size is None else size)
        places.append(maker.event(172, head + event[(number - 1) * step : number * step]))
    return places


def maker_of(checksum: bool = True) -> FileMaker:
    maker = FileMaker(version=b"12.3.1-MariaDB-log", checksum=checksum)
    maker.begin()
    maker.table_map([LONG], b"", b"\1\1\0")
    return maker


def finished(maker: FileMaker, folder: Path) -> tuple[Path, dict[str, Any]]:
    maker.commit()
    maker.rotate()
    path = maker.write(folder)
    return path, everything(path)


@pytest.mark.parametrize("checksum", [True, False])
def test_fragments_are_put_together(checksum: bool, tmp_path: Path) -> None:
    maker = maker_of(checksum)
    places = fragments(maker, [1, 2, 3, 4])
    end = len(maker.data)
    path, found = finished(maker, tmp_path)
    rows = found["row_events"]
    assert [row["after_values"] for row in rows] == [[str(value)] for value in VALUES]
    # The rows have the positions from the first fragment to the end of the last.
    assert {(row["start_pos"], row["end_pos"]) for row in rows} == {(places[0], end)}
    assert not found.get("unsupported_events")
    assert scan_binlog(path).event_counts["PARTIAL_ROW_DATA"] == 4
    listed = [event.detail["fragment"] for event in open_binlog(path).events() if event.type_code == 172]
    assert listed == [1, 2, 3, 4]


@pytest.mark.parametrize("order", [[1], [1, 2, 3], [1, 3, 4], [2, 3, 4], [1, 2, 2, 3, 4], [1, 2, 1, 2, 3, 4]])
def test_fragments_that_do_not_fit_are_damage(order: list[int], tmp_path: Path) -> None:
    maker = maker_of()
    places = fragments(maker, order)
    _, found = finished(maker, tmp_path)
    problems = found["unsupported_events"]
    assert {problem["reason"] for problem in problems} == {"malformed_fragments"}
    assert {problem["start_pos"] for problem in problems} <= set(places)
    assert not found.get("row_events")


def test_another_event_between_fragments_is_damage(tmp_path: Path) -> None:
    maker = maker_of()
    places = fragments(maker, [1, 2])
    maker.event(160, b"insert")
    fragments(maker, [3, 4])
    _, found = finished(maker, tmp_path)
    assert not found.get("row_events")
    assert found["unsupported_events"][0]["start_pos"] == places[1]


@pytest.mark.parametrize("size", [0, 1, 1 << 32, (1 << 64) - 1])
def test_a_size_that_is_not_that_of_the_event(size: int, tmp_path: Path) -> None:
    maker = maker_of()
    fragments(maker, [1, 2, 3, 4], size=size)
    _, found = finished(maker, tmp_path)
    assert not found.get("row_events")
    assert {problem["reason"] for problem in found["unsupported_events"]} == {"malformed_fragments"}


@pytest.mark.parametrize("flags", [0, IGNORABLE])
def test_events_that_a_reader_may_ignore(flags: int, tmp_path: Path) -> None:
    """Aurora writes types of its own with this flag, between transactions and inside of them."""
    maker = FileMaker(version=b"5.7.12-log")
    maker.begin()
    at = maker.event(101, b"of Aurora")
    # The checksum covers the flags.
    event = bytearray(maker.data[at:-4])
    event[17:19] = flags.to_bytes(2, "little")
    maker.data[at:] = event + zlib.crc32(bytes(event)).to_bytes(4, "little")
    maker.table_map([LONG], b"", b"\1\1\0")
    maker.rows(30, 1, b"\0" + struct.pack("<i", 7))
    path, found = finished(maker, tmp_path)
    assert [row["after_values"] for row in found["row_events"]] == [["7"]]
    assert [problem["reason"] for problem in found.get("unsupported_events", [])] == (
        [] if flags else ["unknown_event_type"]
    )
    assert scan_binlog(path).event_counts["101"] == 1
    (listed,) = (event.detail for event in open_binlog(path).events() if event.type_code == 101)
    assert bool(listed) == bool(flags)
