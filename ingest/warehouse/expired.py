"""Expired data: the files whose rows were dropped, and the baselines that were taken in them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ingest.warehouse.files import read_rows
from ingest.warehouse.segments import log_place
from ingest.warehouse.tables import BASELINES, SCHEMA_SNAPSHOTS, SEGMENTS


def expired_baselines(home: Path) -> Iterator[str]:
    """Yield the identifiers of baselines that the log does not continue: the files that follow them expired."""
    ends: dict[str, tuple[int, int]] = {}
    for row in read_rows(SEGMENTS, home, ["source_id", "epoch", "binlog_file"], status="expired"):
        ends[row["source_id"]] = max(ends.get(row["source_id"], _place(row)), _place(row))
    epochs = {row["snapshot_id"]: row["epoch"] for row in read_rows(SCHEMA_SNAPSHOTS, home)}
    for row in read_rows(BASELINES, home):
        end = ends.get(row["source_id"])
        if end is None or row["binlog_file"] is None:
            continue
        epoch = epochs.get(row["snapshot_id"])
        # A baseline of an unknown epoch is compared only while there is one epoch.
        if (epoch is not None or end[0] == 0) and _place({**row, "epoch": epoch or 0}) <= end:
            yield row["baseline_id"]


def _place(row: dict[str, Any]) -> tuple[int, int]:
    return row["epoch"], log_place(row["binlog_file"], 0)[0]
