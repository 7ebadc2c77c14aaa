"""Formats that few servers write, from files recorded once: `python -m tools.record_formats`."""

import json

import pytest

from ingest.binlog import SchemaHints, scan_binlog
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from tests.support.binlog.replay import Decoded, difference, replay
from tests.support.places import FIXTURES

NAMES = sorted(path.name.removesuffix(".rows.json") for path in FIXTURES.glob("*.rows.json"))
# These have changes of documents, and no image with the document: the final rows do not follow from the file.
WITHOUT_DOCUMENTS = "mysql-partial-json-minimal"


def hints(name: str) -> SchemaHints:
    return SchemaHints.from_columns(read_snapshot_dir(FIXTURES / f"{name}-schema").columns)


@pytest.mark.parametrize("name", [name for name in NAMES if name != WITHOUT_DOCUMENTS])
def test_replayed_rows_are_those_that_the_server_had(name: str) -> None:
    path = FIXTURES / f"{name}.binlog"
    decoded = Decoded.of(path, hints(name))
    assert decoded.unsupported_events == []
    changes = decoded.committed_changes()
    assert changes
    generated = {
        (row["schema_name"], row["table_name"], row["ordinal_position"] - 1)
        for row in read_snapshot_dir(FIXTURES / f"{name}-schema").columns
        if row["is_generated"]
    }
    for table, expected in json.loads((FIXTURES / f"{name}.rows.json").read_text()).items():
        own = [change for change in changes if f"{change.schema}.{change.table}" == table]
        ordinals = {ordinal for schema, name, ordinal in generated if f"{schema}.{name}" == table}
        rows = replay(own, ordinals)
        assert difference(rows, map(tuple, expected["rows"])) == ([], []), table


@pytest.mark.parametrize("name", NAMES)
def test_every_byte_is_accounted_for(name: str) -> None:
    scan = scan_binlog(FIXTURES / f"{name}.binlog")
    assert scan.defect is None and scan.checksum_failures == 0
    assert scan.bytes_covered == scan.file_size


def test_a_change_of_a_document_without_the_document_lands_as_the_change() -> None:
    decoded = Decoded.of(FIXTURES / f"{WITHOUT_DOCUMENTS}.binlog", hints(WITHOUT_DOCUMENTS))
    assert decoded.unsupported_events == []
    untold = [row for row in decoded.row_events if row["event_type"] == "UPDATE"]
    inserted = [row["after_values"] for row in decoded.row_events if row["event_type"] == "INSERT"]
    assert len(inserted) == 6
    changed = [row for row in untold if row["undecoded_columns"]]
    assert changed and len(untold) == sum(row["updates"] for row in decoded.transactions)
    for row in changed:
        assert {change["column_ordinal"] for change in row["json_changes"]} == {*row["undecoded_columns"]}
        assert not {*row["undecoded_columns"]} & {*row["after_columns"]}
        assert all(row["after_values"][ordinal] is None for ordinal in row["undecoded_columns"])
    assert all(row["json_changes"] is None for row in untold if row not in changed)
    # A statement that replaced the whole document logged the whole document.
    documents = [row["after_values"][3] for row in untold if 3 in (row["after_columns"] or ())]
    assert '["first", [0, 1, 22], [], {"k": [true, "nested", 1.5]}]' in documents
