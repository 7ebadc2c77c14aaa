"""Changes of selected transactions that an undo would leave out, in small tables."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from ingest.warehouse.files import append_rows
from ingest.warehouse.segments import SegmentState
from ingest.warehouse.tables import SEGMENTS
from recover.sources.log import Log
from recover.undo.select.incomplete import left_out, never_landed
from recover.undo.select.selected import Selected

SELECTED = Selected("s", 1, 1, {("db", "t"): 1}, True, filtered=1)


def reasons(
    quarantined: Sequence[tuple[str, int, int | None, str | None]] = (),
    statements: Sequence[tuple[str, str, int]] = (),
    selected: Selected = SELECTED,
) -> list[str]:
    """Return the reasons for a transaction from position 100 to 200 of the file `log.000007` of source `s`.

    Parameters
    ----------
    quarantined
        Source, position, position of the transaction if it is known, and table if it is known.
    statements
        Source, file, and position of the transaction of an INSERT into `db.u` that is in the log as text.
    """
    with duckdb.connect() as connection:
        connection.execute(
            """create schema binloom; create schema binloom_staging;
            create table binloom.row_changes as select 's' as source_id, 0 as epoch, 7::bigint as file_sequence,
                'log.000007' as binlog_file, 100::bigint as transaction_pos;
            create table binloom.transactions as select 's' as source_id, 0 as epoch, 7::bigint as file_sequence,
                100::bigint as start_pos, 200::bigint as end_pos;
            create temp table selected_transactions as select * from binloom.row_changes;
            create table binloom.quarantined_row_events (source_id varchar, epoch integer, file_sequence bigint,
                start_pos bigint, transaction_pos bigint, schema_name varchar, table_name varchar);
            create table binloom_staging.stg_binlog__statements (source_id varchar, epoch integer,
                binlog_file varchar, transaction_pos bigint,
                dml_targets struct(verb varchar, schema_name varchar, table_name varchar)[])"""
        )
        for source, pos, transaction, table in quarantined:
            schema = None if table is None else "db"
            connection.execute(
                "insert into binloom.quarantined_row_events values (?, 0, 7, ?, ?, ?, ?)",
                [source, pos, transaction, schema, table],
            )
        for source, file, transaction in statements:
            connection.execute(
                "insert into binloom_staging.stg_binlog__statements values (?, 0, ?, ?, "
                "[{'verb': 'INSERT', 'schema_name': 'db', 'table_name': 'u'}])",
                [source, file, transaction],
            )
        return list(left_out(connection, selected))


def test_a_transaction_whose_rows_are_all_known_has_none() -> None:
    others = [("s", 300, 250, "t"), ("s", 250, None, "t"), ("s", 99, None, None), ("other", 150, 100, "t")]
    assert reasons(others, [("s", "log.000007", 250), ("s", "log.000008", 100), ("other", "log.000007", 100)]) == []


@pytest.mark.parametrize(
    ("quarantined", "beginning"),
    [
        ([("s", 150, 100, "u"), ("s", 160, 100, "u")], "row events of db.u in the selected transactions are in"),
        # An event that could not be decoded has a position, and no transaction.
        ([("s", 199, None, "u")], "row events of db.u in the selected"),
        ([("s", 100, None, None)], "row events of unknown tables in the selected"),
    ],
)
def test_rows_in_quarantine_are_named(
    quarantined: list[tuple[str, int, int | None, str | None]], beginning: str
) -> None:
    (reason,) = reasons(quarantined)
    assert reason.startswith(beginning)
    assert reasons(quarantined, selected=Selected("s", 1, 1, {("db", "t"): 1}, False, filtered=1)) == []


def test_statements_are_named() -> None:
    (reason,) = reasons(statements=[("s", "log.000007", 100)])
    assert reason.startswith("the selected transactions contain 1 statement without rows (INSERT of db.u)")


def test_tables_that_were_landed_alone_are_named(tmp_path: Path) -> None:
    landed = SegmentState(
        source_id="s", epoch=0, binlog_file="log.000007", segment_start=4, segment_end=300, status="completed",
        run_id="r", recorded_at=datetime(2026, 1, 1, tzinfo=UTC), table_filter="tables: db.t",
    )  # fmt: skip
    others = [
        replace(landed, binlog_file="log.000008", table_filter="tables: db.other"),
        replace(landed, source_id="other", table_filter="tables: db.other"),
        replace(landed, segment_start=300, segment_end=400, status="failed", table_filter="tables: db.other"),
    ]
    append_rows(SEGMENTS, [one.row for one in (landed, *others)], "one", tmp_path)
    with duckdb.connect() as connection:
        connection.execute(
            """create schema binloom; create table binloom.row_changes as select 's' as source_id, 0 as epoch,
                7::bigint as file_sequence, 'log.000007' as binlog_file, 100::bigint as transaction_pos;
            create temp table selected_transactions as select * from binloom.row_changes"""
        )
        log = Log(connection, (), home=tmp_path, is_landed=True)
        (warning,) = never_landed(log, SELECTED)
        assert warning.endswith("because the files were landed with a filter (tables: db.t)")
        assert list(never_landed(log, replace(SELECTED, is_whole=False))) == []
        assert list(never_landed(Log(connection, ()), SELECTED)) == []
