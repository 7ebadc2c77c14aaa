"""binloom's decoded rows equal the server's rows, and the output of the server's own tool.

One workload of every column type is run on each server under each setting that changes what is logged. Its binlog,
decoded and replayed onto empty tables in commit order, must give the rows that `SELECT` gives; and every row, value
by value, must be the one that `mysqlbinlog -vv` or `mariadb-binlog -vv` prints.
"""

import subprocess
import sys
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.binlog import scan_binlog
from ingest.binlog.text.charsets import canonical, charset_of
from tests.servers import Server, mysql56
from tests.servers.rows import table_rows
from tests.support.binlog import recordings, workload, workload_own, workload_tables
from tests.support.binlog.binlogtool_output import ToolChange
from tests.support.binlog.binlogtool_values import agrees, is_differences
from tests.support.binlog.recordings import (
    DEFAULTS,
    MATRIX,
    MIXED,
    OLD_TEMPORALS,
    OWN,
    WITHOUT_DOCUMENTS,
    Recording,
    Setting,
)
from tests.support.binlog.replay import ABSENT, Absent, Change, Decoded, Values, changes_of_lines, difference, replay
from tests.support.binlog.workload import Column, Table
from tools import record_formats

pytestmark = pytest.mark.slow

Recorder = Callable[[Setting], Recording]


def each(settings: Iterable[Setting]) -> list[Any]:
    """Return settings as parameters of a test that is marked with the server."""
    return [pytest.param(each, id=str(each), marks=getattr(pytest.mark, each.server)) for each in settings]


def server_of(request: pytest.FixtureRequest, setting: Setting) -> Server:
    server = request.getfixturevalue(f"{setting.server}_server")
    assert isinstance(server, Server)
    return server


@pytest.fixture(scope="session")
def recorder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Recorder:
    """Record the workload under a setting once, and keep the recording."""
    done: dict[Setting, Recording] = {}

    def record(setting: Setting) -> Recording:
        if setting not in done:
            server = server_of(request, setting)
            tables = workload_tables.tables(server, workload_tables.server_charsets(server))
            if setting["row_value_options"]:
                tables.append(workload_own.partly_changed_documents())
            if setting.transactions == "mixed":
                tables.append(workload_own.unsafe())
            done[setting] = recordings.record(server, setting, tables, tmp_path_factory.mktemp(f"shared-{setting}"))
        return done[setting]

    return record


def comparable(table: Table, rows: Iterable[Values]) -> list[tuple[object, ...]]:
    """Return rows in a form in which equal values are equal.

    A FLOAT is selected as a DOUBLE: its expected text is the shortest text of the 32-bit number.
    """
    kinds = [column.kind for column in table.all_columns]
    return [
        tuple(
            Decimal(str(np.float32(value))) if kind == "float" and isinstance(value, str) else value
            for kind, value in zip(kinds, row, strict=True)
        )
        for row in rows
    ]


def assert_final_rows(recording: Recording, changes: list[Change]) -> None:
    """Replay the changes of each table and compare with SELECT."""
    wrong = []
    for table in recording.tables:
        own = [change for change in changes if change.table == table.name]
        generated = {ordinal for ordinal, column in enumerate(table.all_columns) if column.is_generated}
        expected = comparable(table, recording.final_rows[table.name])
        assert expected, f"{table.name} is empty: the workload proves nothing"
        extra, missing = difference(comparable(table, replay(own, generated)), expected)
        if extra or missing:
            wrong.append(_difference(table, extra, missing))
        # MariaDB 11.8 leaves generated columns out of the images of UPDATE and DELETE.
        if recording.setting.has_full_images and not (generated and recording.setting.server == "mariadb118"):
            assert all(change.is_full for change in own), table.name
    assert not wrong, "\n".join(wrong)


def _difference(table: Table, extra: list[tuple[object, ...]], missing: list[tuple[object, ...]]) -> str:
    """Return the columns that differ, with their first different values."""
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


@pytest.mark.parametrize("setting", each([*MATRIX, *OLD_TEMPORALS]))
def test_replayed_rows_are_the_rows_that_select_gives(recorder: Recorder, setting: Setting) -> None:
    recording = recorder(setting)
    assert_final_rows(recording, recording.decoded().committed_changes())


@pytest.mark.parametrize("setting", each(setting for setting in MATRIX if setting["row_metadata"] == "FULL"))
def test_full_metadata_needs_no_snapshot(recorder: Recorder, setting: Setting) -> None:
    recording = recorder(setting)
    assert_final_rows(recording, recording.decoded(with_hints=False).committed_changes())


@pytest.mark.parametrize("setting", each([*MATRIX, *MIXED]))
def test_every_row_is_the_one_that_the_servers_tool_prints(recorder: Recorder, setting: Setting) -> None:
    recording = recorder(setting)
    assert_printed(recording, recording.decoded().changes())


def assert_printed(recording: Recording, changes: list[Change]) -> None:
    """Compare every change with the tool's output, value by value."""
    printed = recording.tool_output.changes
    assert len(changes) == len(printed)
    wrong: dict[tuple[str, str], str] = {}
    for ours, theirs in zip(changes, printed, strict=True):
        assert (ours.event_type, ours.table) == (theirs.event_type, theirs.table)
        table = recording.table(ours.table)
        for values, texts in ((ours.before, theirs.before), (ours.after, theirs.after)):
            for column, value, text in _side_by_side(table, values, texts):
                if not agrees(column, value, text, recording.setting.tool.flavor):
                    wrong.setdefault((table.name, column.name), f"{value!r} for {text!r}"[:300])
    assert not wrong, "\n".join(f"{'.'.join(column)}: {values}" for column, values in wrong.items())


def _side_by_side(
    table: Table, values: Values | None, texts: list[bytes | Absent | None] | None
) -> Iterable[tuple[Column, Any, bytes | Absent | None]]:
    assert (values is None) == (texts is None)
    if values is None or texts is None:
        return ()
    missing = len(table.all_columns) - len(texts)
    return zip(table.all_columns, values, texts + [ABSENT] * missing, strict=True)


@pytest.mark.parametrize("setting", each([*MATRIX, *MIXED]))
def test_every_event_and_transaction_is_accounted_for(recorder: Recorder, setting: Setting) -> None:
    recording = recorder(setting)
    scan = scan_binlog(recording.binlog)
    assert scan.defect is None
    assert scan.is_closed
    assert scan.checksum_failures == 0
    assert scan.bytes_covered == scan.file_size == scan.complete_end == recording.binlog.stat().st_size
    # The tool prints the events of a compressed transaction with the position of the compressed event.
    assert scan.events == len(set(recording.tool_output.event_positions))
    decoded = recording.decoded(with_hints=False)
    assert [row["gtid"] for row in decoded.transactions if row["gtid"]] == recording.tool_output.gtids
    assert sum(row["row_events"] for row in decoded.transactions) == len(recording.tool_output.changes)
    assert sum(row["kind"] == "QUERY" for row in decoded.statements) == recording.tool_output.queries


@pytest.mark.parametrize("setting", each(MIXED))
def test_changes_that_are_logged_as_statements_are_there(recorder: Recorder, setting: Setting) -> None:
    recording = recorder(setting)
    logged = {row["sql_text"] for row in recording.decoded().statements if row["kind"] == "QUERY"}
    for table in recording.tables:
        for number, group in enumerate(workload.groups(table)):
            match workload.BINLOG_FORMATS[number % 3]:
                case "ROW":
                    assert logged.isdisjoint(group)
                case "STATEMENT":
                    assert logged.issuperset(group)
                case "MIXED" if table.name == "unsafe":
                    assert logged.isdisjoint(statement for statement in group if "uuid()" in statement)
                case "MIXED" if table.name == "integers":
                    assert logged.issuperset(group)


@pytest.mark.parametrize("setting", each(DEFAULTS))
def test_binloom_decode_prints_the_same_rows(recorder: Recorder, setting: Setting) -> None:
    recording = recorder(setting)
    command = [sys.executable, "-m", "binloom.cli", "decode", str(recording.binlog)]
    done = subprocess.run(
        [*command, "--snapshot-dir", str(recording.schema_dir)], capture_output=True, text=True, check=True
    )
    assert list(changes_of_lines(done.stdout.rstrip("\n").split("\n"))) == recording.decoded().changes()


@pytest.mark.parametrize("setting", each(DEFAULTS))
def test_every_character_of_every_character_set(
    request: pytest.FixtureRequest, setting: Setting, tmp_path: Path
) -> None:
    """The server converts 65,000 characters to and from each set; binloom must do the same."""
    server = server_of(request, setting)
    tables = [workload_tables.repertoire(charset) for charset in workload_tables.server_charsets(server)]
    recording = recordings.record(server, setting, tables, tmp_path)
    assert_final_rows(recording, recording.decoded().committed_changes())


@pytest.mark.parametrize("setting", each(DEFAULTS))
def test_every_collation_belongs_to_its_character_set(request: pytest.FixtureRequest, setting: Setting) -> None:
    server = server_of(request, setting)
    # MariaDB lists collations here that several character sets share under one name.
    view = "collation_character_set_applicability" if server.flavor == "mariadb" else "collations"
    of_server = server.execute(f"select id, character_set_name from information_schema.{view} where id > 0")
    assert len(of_server) > 200
    assert {number: charset_of(number) for number, _ in of_server} == {
        number: canonical(charset) for number, charset in of_server
    }


@pytest.mark.parametrize("setting", each(OWN))
def test_types_that_not_every_server_has(request: pytest.FixtureRequest, setting: Setting, tmp_path: Path) -> None:
    server = server_of(request, setting)
    recording = recordings.record(server, setting, workload_own.tables(server), tmp_path)
    assert_final_rows(recording, recording.decoded().committed_changes())


@pytest.mark.parametrize("setting", each(DEFAULTS))
def test_the_widest_tables_and_rows_of_many_megabytes(
    request: pytest.FixtureRequest, setting: Setting, tmp_path: Path
) -> None:
    server = server_of(request, setting)
    tables = [*workload_own.widest_tables(server), workload_own.large_rows()]
    recording = recordings.record(server, setting, tables, tmp_path)
    decoded = recording.decoded()
    assert_final_rows(recording, decoded.committed_changes())
    assert_printed(recording, decoded.changes())


@pytest.mark.parametrize("setting", each([WITHOUT_DOCUMENTS]))
def test_a_change_of_a_document_without_the_document_lands_as_the_change(
    request: pytest.FixtureRequest, setting: Setting, tmp_path: Path
) -> None:
    server = server_of(request, setting)
    recording = recordings.record(server, setting, [workload_own.partly_changed_documents()], tmp_path)
    decoded = Decoded.of(recording.binlog, recording.hints())
    assert decoded.unsupported_events == []
    in_part = [row["undecoded_columns"] is not None for row in decoded.row_events]
    assert in_part == [_has_differences(change) for change in recording.tool_output.changes]
    # The tool prints the changes in place of the document; all other columns are as in any row.
    for row, change in zip(decoded.row_events, recording.tool_output.changes, strict=True):
        for ordinal in row["undecoded_columns"] or ():
            assert change.after is not None and is_differences(change.after[ordinal])
            change.after[ordinal] = ABSENT
    assert_printed(recording, decoded.changes())
    assert sum(in_part) > 20


def _has_differences(change: ToolChange) -> bool:
    return any(isinstance(value, bytes) and is_differences(value) for value in change.after or ())


@pytest.mark.parametrize("setting", each(setting for setting in MATRIX if setting.transactions == "xa"))
def test_xa_transactions_with_others_between(request: pytest.FixtureRequest, setting: Setting) -> None:
    server = server_of(request, setting)
    server.execute(f"drop database if exists {record_formats.SCHEMA}", f"create database {record_formats.SCHEMA}")
    with setting.applied(server):
        server.flush()
        record_formats.two_phases(server)
        binlog = server.flush()
    _, expected = table_rows(server, record_formats.SCHEMA, "numbers")
    server.execute(record_formats.UNDO_XA, f"drop database {record_formats.SCHEMA}")
    decoded = Decoded.of(binlog)
    assert not decoded.unsupported_events
    assert difference(replay(decoded.committed_changes()), expected) == ([], [])
    # Transactions that were rolled back or never ended are in the file, but not among the committed ones.
    assert len(decoded.changes()) == len(decoded.committed_changes()) + 2


@pytest.mark.mysql56
def test_gtids_of_mysql56(tmp_path: Path) -> None:
    """These GTIDs can only be enabled for the whole life of the server."""
    with mysql56.start(tmp_path / "server", record_formats.GTIDS) as server:
        tables = [table for table in workload_tables.tables(server, []) if table.name in ("integers", "composite_key")]
        recording = recordings.record(server, Setting("mysql56"), tables, tmp_path)
    decoded = recording.decoded()
    assert_final_rows(recording, decoded.committed_changes())
    assert [row["gtid"] for row in decoded.transactions] == recording.tool_output.gtids != []
