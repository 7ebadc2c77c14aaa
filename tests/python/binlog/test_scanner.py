"""Scanning a growing file: resuming where the last scan ended finds the same as one scan of the whole file."""

import random
import struct
from pathlib import Path

import pytest

from ingest.binlog import open_binlog
from ingest.binlog.scan import Scanner, scan_binlog
from tests.support.binlog.forge import FileMaker
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


@pytest.mark.parametrize(
    "text",
    [
        "drop table t",
        "\v/* x */ \tDROP TABLE t",
        "-- x\n drop table t",
        "/*!40000 drop table t */",
        "/*M!100000 drop table t */",
        "/* x *//*M! drop */ table t",
        "/* x */\xa0drop table t",
    ],
)
def test_statements_that_define_tables_are_found_behind_blanks_and_comments(text: str, tmp_path: Path) -> None:
    maker = FileMaker()
    latin1 = struct.pack("<BHHH", 4, 8, 8, 8)
    for one in ("insert into t values (1)", text):
        maker.event(2, struct.pack("<IIBHH", 7, 0, 0, 0, len(latin1)) + latin1 + b"\0" + one.encode("latin1"))
    scan = scan_binlog(maker.write(tmp_path))
    assert [row["sql_text"] for batch in scan.ddl_statements for row in batch.to_pylist()] == [text]
