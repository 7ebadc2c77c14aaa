"""What binloom decodes is what the server has, and what the server's own tool prints.

One workload of every column type is run under each setting of metadata and checksum. Its binlog, decoded and
replayed onto empty tables, must give the rows that `SELECT` gives; and every row, value by value, must be the
one that `mysqlbinlog -vv` or `mariadb-binlog -vv` prints.
"""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from ingest.binlog import open_binlog, scan_binlog
from tests.python.binlog import recordings, workload
from tests.python.binlog.binlogtool_values import agrees
from tests.python.binlog.recordings import DEFAULTS, MATRIX, Change, Recording, Setting, Values
from tests.python.binlog.workload import Table
from tests.servers import Server

Recorder = Callable[[Setting], Recording]

EACH_SETTING = [
    pytest.param(setting, id=str(setting), marks=getattr(pytest.mark, setting.flavor)) for setting in MATRIX
]
EACH_DEFAULT = [
    pytest.param(setting, id=setting.flavor, marks=getattr(pytest.mark, setting.flavor))
    for setting in DEFAULTS.values()
]
FULL_METADATA = [
    pytest.param(setting, id=str(setting), marks=getattr(pytest.mark, setting.flavor))
    for setting in MATRIX
    if setting.metadata == "FULL"
]


@pytest.fixture(scope="session")
def recorder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """Record the workload under a setting, once."""
    done: dict[Setting, Recording] = {}

    def record(setting: Setting) -> Recording:
        if setting not in done:
            server = request.getfixturevalue(f"{setting.flavor}_server")
            tables = workload.tables(setting.flavor, workload.server_charsets(server))
            done[setting] = recordings.record(server, setting, tables, tmp_path_factory.mktemp(str(setting)))
        return done[setting]

    return record


def comparable(table: Table, rows: list[Values]) -> Counter[tuple[object, ...]]:
    """Count rows in a form in which equal values are equal.

    A FLOAT is selected as a DOUBLE: the shortest text of the 32-bit number is what it must be.
    """
    kinds = [column.kind for column in table.all_columns]
    counted: Counter[tuple[object, ...]] = Counter()
    for row in rows:
        assert len(row) == len(kinds), f"{table.name}: {len(row)} values for {len(kinds)} columns"
        counted[
            tuple(
                Decimal(str(np.float32(value))) if kind == "float" and value is not None else value
                for kind, value in zip(kinds, row, strict=True)
            )
        ] += 1
    return counted


def assert_final_rows(recording: Recording, changes: list[Change]) -> None:
    """Replay the changes of each table and compare with SELECT."""
    wrong = []
    for table in recording.tables:
        replayed = recordings.replay(table, [change for change in changes if change.table == table.name])
        expected = comparable(table, recording.final_rows[table.name])
        assert expected, f"{table.name} is empty: the workload proves nothing"
        found = comparable(table, replayed)
        if found != expected:
            wrong.append(_difference(table, found, expected))
    assert not wrong, "\n".join(wrong)


def _difference(table: Table, found: Counter[tuple[object, ...]], expected: Counter[tuple[object, ...]]) -> str:
    """Say which columns differ, with the first values that do."""
    extra, missing = list(found - expected), list(expected - found)
    if len(extra) != len(missing) or table.key != ("id",):
        return f"{table.name}: {len(extra)} rows too many, {len(missing)} missing; {extra[:1]} for {missing[:1]}"
    by_id = {row[0]: row for row in missing}
    columns = {}
    for row in extra:
        for column, ours, theirs in zip(table.all_columns, row, by_id.get(row[0], row), strict=True):
            if ours != theirs:
                columns.setdefault(
                    column.name, f"{table.name}.{column.name} of row {row[0]}: {ours!r} for {theirs!r}"[:300]
                )
    return "\n".join(columns.values())


@pytest.mark.parametrize("setting", EACH_SETTING)
def test_replayed_rows_are_the_rows_that_select_gives(recorder: Recorder, setting: Setting) -> None:
    recording = recorder(setting)
    assert_final_rows(recording, recording.changes())


@pytest.mark.parametrize("setting", FULL_METADATA)
def test_full_metadata_needs_no_snapshot(recorder: Recorder, setting: Setting) -> None:
    recording = recorder(setting)
    assert_final_rows(recording, recording.changes(with_hints=False))


@pytest.mark.parametrize("setting", EACH_SETTING)
def test_every_row_is_the_one_that_the_servers_tool_prints(recorder: Recorder, setting: Setting) -> None:
    recording = recorder(setting)
    changes, printed = recording.changes(), recording.tool_output.changes
    assert len(changes) == len(printed) > 2000
    wrong: dict[tuple[str, str], str] = {}
    for ours, theirs in zip(changes, printed, strict=True):
        assert (ours.event_type, ours.table) == (theirs.event_type, theirs.table)
        table = recording.table(ours.table)
        for values, texts in ((ours.before, theirs.before), (ours.after, theirs.after)):
            assert (values is None) == (texts is None)
            if values is None or texts is None:
                continue
            for column, value, text in zip(table.all_columns, values, texts, strict=True):
                if not agrees(column, value, text, setting.flavor):
                    wrong.setdefault((table.name, column.name), f"{value!r} for {text!r}"[:300])
    assert not wrong, "\n".join(f"{'.'.join(column)}: {values}" for column, values in wrong.items())


@pytest.mark.parametrize("setting", EACH_SETTING)
def test_every_event_and_transaction_is_accounted_for(recorder: Recorder, setting: Setting) -> None:
    recording = recorder(setting)
    scan = scan_binlog(recording.binlog)
    assert scan.defect is None
    assert scan.is_closed
    assert scan.checksum_failures == 0
    assert scan.bytes_covered == scan.file_size == scan.complete_end == recording.binlog.stat().st_size
    assert scan.events == len(recording.tool_output.event_positions)
    transactions = [
        row
        for kind, batch in open_binlog(recording.binlog).batches()
        if kind == "transactions"
        for row in batch.to_pylist()
    ]
    assert [row["gtid"] for row in transactions] == recording.tool_output.gtids
    assert sum(row["row_events"] for row in transactions) == len(recording.tool_output.changes)


@pytest.mark.parametrize("setting", EACH_DEFAULT)
def test_binloom_decode_prints_the_same_rows(recorder: Recorder, setting: Setting) -> None:
    recording = recorder(setting)
    command = [sys.executable, "-m", "ingest.cli", "decode", str(recording.binlog)]
    done = subprocess.run(
        [*command, "--snapshot-dir", str(recording.schema_dir)], capture_output=True, text=True, check=True
    )
    assert list(recordings.changes_of_lines(done.stdout.rstrip("\n").split("\n"))) == recording.changes()


@pytest.mark.parametrize("setting", EACH_DEFAULT)
def test_every_character_of_every_character_set(
    request: pytest.FixtureRequest, setting: Setting, tmp_path: Path
) -> None:
    """The server converts 65,000 characters to each set and back; so must binloom."""
    server = request.getfixturevalue(f"{setting.flavor}_server")
    tables = [workload.repertoire(charset) for charset in workload.server_charsets(server)]
    recording = recordings.record(server, setting, tables, tmp_path)
    assert_final_rows(recording, recording.changes())
