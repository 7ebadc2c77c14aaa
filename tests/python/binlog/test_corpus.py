"""Binlogs of other projects' test suites: events and rows as FACTS.tsv counts them, or the defect and where it is.

They are no part of this repository: they are read where $BINLOOM_CORPUS says, or from `shared/corpus` beside it.
"""

import csv
import os
from collections import Counter
from pathlib import Path

import pytest

from ingest.binlog import open_binlog, scan_binlog
from ingest.errors import BinlogError

CORPUS = Path(os.environ.get("BINLOOM_CORPUS") or Path(__file__).resolve().parents[4] / "shared" / "corpus")
FACTS = CORPUS / "FACTS.tsv"
ROWS = list(csv.DictReader(FACTS.open(), delimiter="\t")) if FACTS.is_file() else []

pytestmark = pytest.mark.skipif(not ROWS, reason=f"there is no corpus at {CORPUS}; $BINLOOM_CORPUS says where one is")

EACH = pytest.mark.parametrize("facts", ROWS, ids=[row["file"] for row in ROWS])


def counts(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in (item.split(":") for item in text.split())}


@EACH
def test_events(facts: dict[str, str]) -> None:
    scan = scan_binlog(CORPUS / facts["file"])
    expected = counts(facts["event_counts"])
    assert (scan.format.server_version, scan.format.format_version) == (
        facts["server_version"],
        int(facts["binlog_version"][1:]),
    )
    if scan.is_encrypted:
        # The facts count what encrypted bytes look like.
        assert scan.defect is not None and "encrypted" in scan.defect.reason
        assert scan.event_counts.items() <= expected.items()
    else:
        assert scan.event_counts == expected
    remarks = dict(item.split("=") for item in facts["remarks"].split() if "=" in item and "inside" not in item)
    if not scan.is_encrypted:
        assert scan.checksum_failures == int(remarks.get("badcrc", 0))
    if "truncated_at" in remarks:
        assert scan.defect is not None and scan.defect.position == int(remarks["truncated_at"])
    elif "badcrc" not in remarks:
        assert scan.defect is None and scan.bytes_covered == scan.file_size


@EACH
def test_rows(facts: dict[str, str]) -> None:
    scan = scan_binlog(CORPUS / facts["file"])
    rows: Counter[str] = Counter()
    problems: Counter[str] = Counter()
    error = None
    try:
        for kind, batch in open_binlog(CORPUS / facts["file"]).batches():
            if kind == "row_events":
                rows.update(batch.column("event_type").to_pylist())
            elif kind == "unsupported_events":
                assert all(row["start_pos"] >= 4 and row["detail"] for row in batch.to_pylist())
                problems.update(batch.column("event_type").to_pylist())
    except BinlogError as caught:
        error = caught
    assert (error is None) == (scan.defect is None)
    assert error is None or scan.defect is None or error.position == scan.defect.position
    found = [str(rows[kind]) for kind in ("INSERT", "UPDATE", "DELETE")]
    if facts["row_counts_by"].startswith("none"):
        # No other program reads these files whole.
        assert error is not None or problems
    else:
        assert found == [facts[column] for column in ("inserts", "updates", "deletes")]
    unreadable = {name for name in problems if "ROWS" in name}
    assert unreadable <= {name for name in counts(facts["event_counts"]) if "_V0" in name} or facts[
        "row_counts_by"
    ].startswith("none")
