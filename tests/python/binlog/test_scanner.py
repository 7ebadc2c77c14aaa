"""A scan of a growing file: going on where the last one ended finds what one scan of the whole file does."""

import random
from pathlib import Path

import pytest

from ingest.binlog.scan import Scanner, scan_binlog

REPO = Path(__file__).parents[3]
FILES = sorted([*(REPO / "samples").glob("*/*.00000?"), *(REPO / "tests/fixtures").glob("*.binlog")])


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
