"""Scanning a growing file: resuming where the last scan ended finds the same as one scan of the whole file."""

import random
from pathlib import Path

import pytest

from ingest.binlog import open_binlog
from ingest.binlog.scan import Scanner, scan_binlog
from tests.support.places import FIXTURES, SAMPLES

FILES = sorted([*SAMPLES.glob("*/*.00000?"), *FIXTURES.glob("*.binlog")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_growing_by_any_steps(path: Path, tmp_path: Path) -> None:
    data = path.read_bytes()
    chance = random.Random(len(data))
    grown = tmp_path / path.name
    cuts = sorted(chance.sample(range(600, len(data)), min(20, max(0, len(data) - 600))))
    grown.write_bytes(data[: cuts[0]] if cuts else data)
    with Scanner(grown, segment_bytes=5000) as scanner:
        for cut in cuts:
            grown.write_bytes(data[:cut])
            expected = scan_binlog(grown, segment_bytes=5000)
            assert scanner.scan() == expected
        grown.write_bytes(data)
        assert scanner.scan() == scan_binlog(grown, segment_bytes=5000)


def cut_out(path: Path) -> tuple[bytes, int]:
    """Return a file without its fourth event, and the position of that event."""
    fourth = [event.position for event in open_binlog(path).events()][3:5]
    data = path.read_bytes()
    return data[: fourth[0]] + data[fourth[1] :], fourth[0]


@pytest.mark.parametrize("sample", ["shop-mysql", "shop-mariadb"])
def test_an_event_that_was_taken_out_is_told_by_the_next_one(sample: str, tmp_path: Path) -> None:
    whole = SAMPLES / sample / "binlog.000001"
    assert scan_binlog(whole).first_misplaced_pos is None
    cut = tmp_path / whole.name
    data, position = cut_out(whole)
    cut.write_bytes(data)
    scan = scan_binlog(cut)
    assert (scan.defect, scan.checksum_failures, scan.first_misplaced_pos) == (None, 0, position)


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_no_event_of_a_server_stands_elsewhere_than_it_says(path: Path) -> None:
    assert scan_binlog(path).first_misplaced_pos is None


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_a_file_begins_when_the_one_before_has_ended(flavor: str) -> None:
    first, second = (SAMPLES / f"shop-{flavor}" / name for name in ("binlog.000001", "binlog.000002"))
    ended = scan_binlog(first)
    assert ended.next_binlog_file == second.name
    assert ended.rotated_at == scan_binlog(second).first_event_at
