"""Recorded gaps of a followed server: once each, with their latest status."""

from dataclasses import replace
from pathlib import Path

from ingest.warehouse.files import read_rows
from ingest.warehouse.gaps import Gap, gaps, record_gap
from ingest.warehouse.tables import STREAM_GAPS

PURGED = Gap(0, "b.000002", 900, "u:1-5", 0, "b.000005", 4, "u:1-9", "u:6-9", "purged", "b.000002 is gone", "u")


def test_a_gap_is_recorded_once_and_then_what_became_of_it(tmp_path: Path) -> None:
    assert gaps("shop", tmp_path) == []
    assert record_gap("shop", PURGED, "found", tmp_path)
    assert not record_gap("shop", PURGED, "found", tmp_path)
    assert [gap["status"] for gap in gaps("shop", tmp_path)] == ["found"]
    # The server purged more files meanwhile, so the gap has grown.
    assert record_gap("shop", replace(PURGED, to_file="b.000006"), "found", tmp_path)
    assert record_gap("shop", replace(PURGED, to_file="b.000006"), "accepted", tmp_path)
    (gap,) = gaps("shop", tmp_path)
    assert (gap["status"], gap["to_file"], gap["missing_gtids"]) == ("accepted", "b.000006", "u:6-9")
    assert len(read_rows(STREAM_GAPS, tmp_path)) == 3


def test_gaps_of_other_places_and_sources_are_others(tmp_path: Path) -> None:
    first = replace(PURGED, from_pos=400)
    for source, gap in (("shop", PURGED), ("shop", first), ("other", PURGED)):
        assert record_gap(source, gap, "unproven", tmp_path)
    assert [gap["from_pos"] for gap in gaps("shop", tmp_path)] == [900, 400]
    assert len({PURGED.gap_id("shop"), first.gap_id("shop"), PURGED.gap_id("other")}) == 3
