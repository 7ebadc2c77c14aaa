"""Binlogs of other projects' test suites: compare events and rows with FACTS.tsv, or the defect and its position.

They are not part of this repository: they are read from $BINLOOM_CORPUS, or from `shared/corpus` beside it.
"""

import csv
import os
from collections import Counter
from pathlib import Path

import pytest

from ingest.binlog import SchemaHints, open_binlog, scan_binlog
from ingest.errors import BinlogError
from tests.support.places import PROJECT

CORPUS = Path(os.environ.get("BINLOOM_CORPUS") or PROJECT.parent / "shared" / "corpus")
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
        # The facts count encrypted bytes as if they were events.
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
        # No other program reads these files to the end.
        assert error is not None or problems
    else:
        assert found == [facts[column] for column in ("inserts", "updates", "deletes")]
    unreadable = {name for name in problems if "ROWS" in name}
    assert unreadable <= {name for name in counts(facts["event_counts"]) if "_V0" in name} or facts[
        "row_counts_by"
    ].startswith("none")


@pytest.mark.parametrize("name", ["ver_5_1_17.001", "ver_5_1-telco.001"])
def test_rows_of_version_0_are_those_of_version_1(name: str) -> None:
    """The same workload ran on servers before and after 5.1.18."""
    assert changes(name) == changes("ver_5_1_23.001") != []


def test_rows_of_version_0_of_one_column() -> None:
    assert changes("bug32407.001", "a int") == [("INSERT", [None], ["1"])] * 2


def changes(name: str, columns: str = "a int, b char(50)") -> list[tuple[str, list[str | None], list[str | None]]]:
    """Decode the row changes of a log with a snapshot that gives its table `test.t1` these columns."""
    path = CORPUS / "mariadb-test" / "suite" / "binlog" / "std_data" / name
    snapshot = [
        {
            "schema_name": "test",
            "table_name": "t1",
            "column_name": name,
            "ordinal_position": ordinal,
            "data_type": column_type.partition("(")[0],
            "column_type": column_type,
            "character_set": "latin1" if "char" in column_type else None,
            "is_nullable": True,
        }
        for ordinal, (name, column_type) in enumerate((column.split() for column in columns.split(", ")), 1)
    ]
    found = []
    for kind, batch in open_binlog(path, hints=SchemaHints.from_columns(snapshot)).batches():
        assert kind != "unsupported_events"
        if kind == "row_events":
            found += [(row["event_type"], row["before_values"], row["after_values"]) for row in batch.to_pylist()]
    return found
