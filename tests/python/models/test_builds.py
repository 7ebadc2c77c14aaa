"""Repeated builds: of a table with parts, only those are written whose inputs have changed.

The tests of this module are one story, told in order on one warehouse.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recover.sources.home.marts import open_marts
from recover.sources.log import VIEWS
from tests.support.models.raw import NOON, Change, RawTables, Table, XaEnd
from tests.support.models.readers import Answers, answers_beside, answers_of, readers_beside
from tests.support.recover.landed_marts import assert_late_rows_are_seen

pytestmark = [pytest.mark.spark, pytest.mark.slow]

Dbt = Callable[..., dict[str, str]]

HOUR = timedelta(hours=1)
NAMED = Table("customers", [("id", "int"), ("name", "varchar")], names_logged=True)
IN_SNAPSHOT = Table("orders", [("id", "int"), ("state", "varchar"), ("note", "text")])
IN_NO_SNAPSHOT = Table("mystery", [("id", "int"), ("what", "varchar")])
WIDER = Table("wider", [("id", "int"), ("a", "varchar"), ("b", "varchar")])
NARROWER_IN_SNAPSHOT = Table("wider", [("id", "int"), ("a", "varchar")])
RETYPED = Table("retyped", [("id", "int"), ("at", "datetime")])
RETYPED_IN_SNAPSHOT = Table("retyped", [("id", "int"), ("at", "varchar")])
LINES = Table("lines", [("id", "int"), ("state", "enum('new','paid')"), ("quantity", "int unsigned")])
LINES_WITHOUT_HINTS = replace(LINES, hints_known=False)

# A build makes all other marts anew.
MARTS = ["row_changes", "quarantined_row_events", "transactions", "table_activity_hourly"]
# The proofs use these counts, by file or by hour.
COUNTED = ["int_gtid_ranges", "int_transaction_checks", "int_row_change_counts", "int_statement_format_changes"]
LOOKED_AT = [f"+{model}" for model in [*MARTS, *COUNTED, "row_events_unaccounted_for"]]


def contents(spark: Any) -> dict[str, list[str]]:
    """Return all rows of all marts and counts, as sorted JSON texts."""
    tables = [f"binloom.{mart}" for mart in MARTS] + [f"binloom_intermediate.{model}" for model in COUNTED]
    return {
        table: sorted(row[0] for row in spark.sql(f"select to_json(struct(*)) from {table}").collect())
        for table in tables
    }


def hour_files(home: Path) -> dict[str, set[tuple[str, int]]]:
    """Return names and times of the files of each hour of row_changes."""
    files: dict[str, set[tuple[str, int]]] = defaultdict(set)
    for hour in (home / "warehouse" / "binloom.db" / "row_changes").glob("event_hour=*"):
        for file in hour.rglob("*.parquet"):
            files[hour.name.partition("=")[2]].add((file.name, file.stat().st_mtime_ns))
    return dict(files)


def rewritten(before: dict[str, set[tuple[str, int]]], after: dict[str, set[tuple[str, int]]]) -> set[str]:
    """Return the hours whose files differ from before."""
    return {hour for hour in before.keys() | after.keys() if before.get(hour, set()) != after.get(hour, set())}


def without_new_parts(home: Path) -> set[str]:
    """Return the models of the last run of whose parts none was written."""
    results = json.loads((home / "target" / "run_results.json").read_text())["results"]
    messages = {node["unique_id"].split(".")[2]: node["adapter_response"].get("_message") for node in results}
    return {name for name, message in messages.items() if message == "NOTHING NEW"}


def reasons(spark: Any) -> Counter[tuple[str, str]]:
    """Return the number of quarantined row events per table and reason."""
    rows = spark.sql("select table_name, reason from binloom.quarantined_row_events").collect()
    return Counter((row.table_name, row.reason) for row in rows)


def hours_of(spark: Any, table: str) -> list[str]:
    """Return the hours in which row_changes has rows of a table."""
    rows = spark.sql(f"select distinct event_hour from binloom.row_changes where table_name = '{table}'").collect()
    return sorted(row.event_hour for row in rows)


def violations(spark: Any, model: str) -> int:
    """Return the number of rows of a quality model."""
    return int(spark.sql(f"select count(*) from binloom_quality.{model}").first()[0])


def asked(home: Path, column: str, file: str) -> list[tuple[Any, ...]]:
    """Return a column of the row changes of a file, as questions see it that know of no good build."""
    with open_marts(home, VIEWS) as connection:
        return connection.execute(
            f"select {column} from binloom.row_changes where binlog_file = '{file}' order by start_pos"
        ).fetchall()


def assert_told_without_permission_to_write(home: Path) -> None:
    """Ask as somebody who cannot write the names of late rows: the answer is that of the build, and says so."""
    locks, told = home / "locks", list[str]()
    locks.rename(aside := home / "locks-aside")
    locks.touch()
    with open_marts(home, VIEWS, tell=told.append) as connection:
        found = connection.execute("select max(binlog_file) from binloom.row_changes").fetchall()
    locks.unlink()
    aside.rename(locks)
    assert found == [("binlog.000001",)]
    assert len(told) == 1 and "what has landed since the last build is not in this answer" in told[0]


@pytest.fixture(scope="module")
def first_build(raw: RawTables, dbt: Dbt) -> dict[str, str]:
    """Build two hours of seven tables: some tables cannot be named, and one event cannot be read."""
    raw.snapshot("s1", [IN_SNAPSHOT, NARROWER_IN_SNAPSHOT, RETYPED_IN_SNAPSHOT], ("binlog.000001", 4))
    raw.baseline("customers", "s1", ("binlog.000001", 4))
    raw.land(
        "binlog.000001",
        [
            Change(NAMED, NOON, after=["1", "Ann"]),
            Change(IN_SNAPSHOT, NOON, after=["7", "new", None]),
            Change(IN_SNAPSHOT, NOON + HOUR, ["7", "new", None], ["7", "paid", "x"]),
            Change(IN_NO_SNAPSHOT, NOON + HOUR, after=["1", "?"]),
            Change(WIDER, NOON + HOUR, after=["1", "a", "b"]),
            Change(RETYPED, NOON + HOUR, after=["1", "2026-11-01 12:00:00"]),
            Change(LINES_WITHOUT_HINTS, NOON + HOUR, after=["1", "2", "10"]),
        ],
        undecoded=[
            {"start_pos": 9000, "end_pos": 9100, "event_type": "PARTIAL_UPDATE_ROWS", "reason": "unsupported event"},
            {"start_pos": 9100, "end_pos": 9150, "event_type": "HEARTBEAT", "reason": "unsupported event"},
        ],
    )
    return dbt("build", "--exclude-resource-type", "unit_test")


def test_every_node_succeeds_and_findings_warn(first_build: dict[str, str]) -> None:
    states = Counter(first_build.values())
    assert states.keys() <= {"success", "pass", "warn"}, first_build
    assert {name for name, status in first_build.items() if status == "warn"} == {
        "is_empty_quarantined_tables_",
        "is_empty_rows_decoded_without_hints_",
        "is_empty_undecoded_events_",
    }


def test_every_unit_test_holds(first_build: dict[str, str], dbt: Dbt) -> None:
    # They need the tables of all models, and no rows.
    states = Counter(dbt("test", "--select", "test_type:unit").values())
    # The hooks succeed and the tests pass.
    assert states.keys() <= {"success", "pass"} and states["pass"] > 50, states


def test_rows_are_named_by_table_map_and_snapshot(first_build: dict[str, str], spark: Any) -> None:
    rows = spark.sql("select * from binloom.row_changes order by start_pos").collect()
    assert [(row.table_name, row.event_type, row.pk_values, row.changed_columns) for row in rows] == [
        ("customers", "INSERT", "1", None),
        ("orders", "INSERT", "7", None),
        ("orders", "UPDATE", "7", ["state", "note"]),
    ]
    assert rows[0].row_after == {"id": "1", "name": "Ann"}
    assert rows[2].row_before == {"id": "7", "state": "new", "note": None}
    assert rows[2].row_after == {"id": "7", "state": "paid", "note": "x"}
    assert {row.event_hour for row in rows} == {"2026-11-01-12", "2026-11-01-13"}
    assert {row.thread_id for row in rows} == {42}
    assert all(row.committed_at.microsecond == 123 for row in rows)


def test_what_cannot_be_named_is_quarantined_with_its_reason(first_build: dict[str, str], spark: Any) -> None:
    assert reasons(spark) == {
        ("mystery", "unknown_table"): 1,
        ("wider", "column_count_mismatch"): 1,
        ("retyped", "column_type_mismatch"): 1,
        # Its values are uncertain, too, but an unnamed table is the first reason.
        ("lines", "unknown_table"): 1,
        # The heartbeat is not quarantined: no row is missing because of it.
        (None, "decode_error"): 1,
    }
    assert violations(spark, "row_events_unaccounted_for") == 0


def test_rows_are_counted_by_what_they_were_decoded_with(first_build: dict[str, str], spark: Any) -> None:
    hints = spark.sql(
        "select table_name, hint, table_maps, array_join(unknown_hints, ' '), row_events from binloom.decoding_hints"
    ).collect()
    assert {tuple(row) for row in hints} == {
        ("customers", "metadata", 1, "", 1),
        ("orders", "none", 1, "", 2),
        ("mystery", "none", 1, "", 1),
        ("wider", "none", 1, "", 1),
        ("retyped", "none", 1, "", 1),
        ("lines", "none", 1, "labels sign", 1),
    }
    (row,) = spark.sql(
        "select table_name, row_events, first_binlog_file, first_pos, to_json(unknown_hints) "
        "from binloom_quality.rows_decoded_without_hints"
    ).collect()
    assert (*row[:4], [tuple(one.values()) for one in json.loads(row[4])]) == (
        *("lines", 1, "binlog.000001", 6300),
        [(0, "sign"), (1, "labels"), (2, "sign")],
    )


def test_building_again_writes_no_part(first_build: dict[str, str], spark: Any, dbt: Dbt, home: Path) -> None:
    marts, files = contents(spark), hour_files(home)
    feeding = ["int_completed_segments", "int_row_change_parts", "int_chain_files"]
    states = dbt("run", "--select", *feeding, "config.materialized:parts")
    assert set(states.values()) == {"success"}, states
    chain = {"int_chain_suspects", "int_chain_breaks"}
    assert without_new_parts(home) == {*COUNTED, *chain, "row_changes", "transactions"}
    assert contents(spark) == marts
    assert rewritten(files, hour_files(home)) == set()


def test_one_more_file_rewrites_only_its_hours(
    first_build: dict[str, str], raw: RawTables, spark: Any, dbt: Dbt, home: Path, tmp_path: Path
) -> None:
    files = hour_files(home)
    raw.land(
        "binlog.000002",
        [
            Change(NAMED, NOON + HOUR, ["1", "Ann"], ["1", None]),
            Change(IN_SNAPSHOT, NOON + 4 * HOUR, ["7", "paid", "x"]),
            Change(IN_NO_SNAPSHOT, NOON + 4 * HOUR, after=["2", "?"]),
            Change(IN_NO_SNAPSHOT, NOON + 5 * HOUR, after=["3", "?"]),
            Change(LINES_WITHOUT_HINTS, NOON + 5 * HOUR, after=["2", None, "10"]),
            Change(LINES_WITHOUT_HINTS, NOON + 5 * HOUR, ["2", None, "10"], ["2", "1", "10"]),
            Change(LINES_WITHOUT_HINTS, NOON + 6 * HOUR, after=["3", None, "-1"]),
        ],
    )
    assert_late_rows_are_seen(home, tmp_path)
    assert_told_without_permission_to_write(home)
    with readers_beside(home) as answers:
        dbt("run", "--select", *LOOKED_AT)
    assert answers
    assert rewritten(files, hour_files(home)) == {"2026-11-01-13", "2026-11-01-16"}
    assert hours_of(spark, "customers") == ["2026-11-01-12", "2026-11-01-13"]
    assert hours_of(spark, "orders") == ["2026-11-01-12", "2026-11-01-13", "2026-11-01-16"]
    assert violations(spark, "row_events_unaccounted_for") == 0


def test_a_late_snapshot_mends_the_hours_that_it_names(
    first_build: dict[str, str], raw: RawTables, spark: Any, dbt: Dbt, home: Path, tmp_path: Path
) -> None:
    files = hour_files(home)
    raw.snapshot("s2", [IN_NO_SNAPSHOT, IN_SNAPSHOT, LINES], ("binlog.000002", 4000))
    assert_late_rows_are_seen(home, tmp_path)
    with readers_beside(home):
        dbt("run", "--select", *LOOKED_AT, "table_versions", "foreign_keys", "segments_to_land_again")
    assert ("mystery", "unknown_table") not in reasons(spark)
    assert hours_of(spark, "mystery") == ["2026-11-01-13", "2026-11-01-16", "2026-11-01-17"]
    assert rewritten(files, hour_files(home)) == {"2026-11-01-13", "2026-11-01-16", "2026-11-01-17"}
    assert violations(spark, "row_events_unaccounted_for") == 0


def test_values_that_nobody_knew_are_shown_once_they_are_landed_again(
    first_build: dict[str, str], raw: RawTables, spark: Any, dbt: Dbt
) -> None:
    def lines() -> list[tuple[str, dict[str, str | None]]]:
        """Return files and images of the table's rows."""
        found = spark.sql(
            "select * from binloom.row_changes where table_name = 'lines' order by file_sequence, start_pos"
        )
        return [(row.binlog_file, row.row_after) for row in found.collect()]

    def to_land_again() -> list[tuple[str, list[str]]]:
        found = spark.sql("select binlog_file, differences from binloom_quality.segments_to_land_again order by 1")
        return [tuple(row) for row in found.collect()]

    # The snapshot has named the table: numbers without a sign and NULL are certain, all other values wait.
    assert lines() == [("binlog.000002", {"id": "2", "state": None, "quantity": "10"})]
    uncertain = spark.sql(
        "select binlog_file, detail, before_values, after_values from binloom.quarantined_row_events "
        "where reason = 'value_uncertain' order by file_sequence, start_pos"
    ).collect()
    detail = "nothing tells the sign of id, quantity and the labels of state at this position"
    assert [tuple(row) for row in uncertain] == [
        ("binlog.000001", detail, [None, None, None], ["1", "2", "10"]),
        ("binlog.000002", detail, ["2", None, "10"], ["2", "1", "10"]),
        ("binlog.000002", detail, [None, None, None], ["3", None, "-1"]),
    ]
    differences = ["id: signed", "quantity: unsigned", "state: enum('new','paid')"]
    assert to_land_again() == [("binlog.000001", differences), ("binlog.000002", differences)]
    raw.land(
        "binlog.000002",
        [
            Change(NAMED, NOON + HOUR, ["1", "Ann"], ["1", None]),
            Change(LINES, NOON + 5 * HOUR, after=["2", None, "10"]),
            Change(LINES, NOON + 5 * HOUR, ["2", None, "10"], ["2", "new", "10"]),
            Change(LINES, NOON + 6 * HOUR, after=["3", None, "4294967295"]),
        ],
    )
    dbt("run", "--select", *LOOKED_AT, "segments_to_land_again")
    assert lines() == [
        ("binlog.000002", {"id": "2", "state": None, "quantity": "10"}),
        ("binlog.000002", {"id": "2", "state": "new", "quantity": "10"}),
        ("binlog.000002", {"id": "3", "state": None, "quantity": "4294967295"}),
    ]
    assert reasons(spark)["lines", "value_uncertain"] == 1
    assert to_land_again() == [("binlog.000001", differences)]
    assert violations(spark, "row_events_unaccounted_for") == 0


def test_incremental_builds_equal_a_full_one(first_build: dict[str, str], spark: Any, dbt: Dbt) -> None:
    marts = contents(spark)
    dbt("run", "--full-refresh", "--select", *LOOKED_AT)
    assert contents(spark) == marts


def test_an_hour_whose_rows_are_uncertain_is_replaced_and_emptied(
    first_build: dict[str, str], raw: RawTables, spark: Any, dbt: Dbt, home: Path
) -> None:
    def keys(*rows: list[str | None]) -> list[str]:
        """Land a file with these rows; return the keys of those that are in row_changes then."""
        raw.land("binlog.000008", [Change(LINES_WITHOUT_HINTS, NOON + 30 * HOUR, after=row) for row in rows])
        models = ["int_completed_segments", "int_row_event_counts", "int_row_change_parts", "row_changes"]
        with readers_beside(home):
            dbt("run", "--select", *models)
        found = spark.sql("select row_after.id from binloom.row_changes where binlog_file = 'binlog.000008'").collect()
        return sorted(row.id for row in found)

    # Nothing tells the sign and the labels, on which only other numbers and labels depend.
    assert keys(["5", None, "10"]) == ["5"]
    assert keys(["5", None, "10"], ["6", None, "11"]) == ["5", "6"]
    assert keys(["5", None, "-1"]) == []


def test_an_hour_that_becomes_empty_is_emptied(
    first_build: dict[str, str], raw: RawTables, spark: Any, dbt: Dbt, home: Path, tmp_path: Path
) -> None:
    raw.land("binlog.000002", [Change(NAMED, NOON + HOUR, ["1", "Ann"], ["1", None])])
    raw.land("binlog.000003", [Change(NAMED, NOON + 9 * HOUR, after=["9", "Zoe"])], status="in_progress")
    assert_late_rows_are_seen(home, tmp_path)
    dbt("run", "--select", *LOOKED_AT, "failed_segments")
    assert hour_files(home).keys() == {"2026-11-01-12", "2026-11-01-13"}
    assert violations(spark, "row_events_unaccounted_for") == 0
    assert violations(spark, "failed_segments") == 1


def test_lost_and_doubled_rows_are_violations(first_build: dict[str, str], spark: Any, dbt: Dbt) -> None:
    spark.sql("alter table binloom.row_changes drop partition (event_hour = '2026-11-01-12')")
    spark.sql("insert into binloom.row_changes select * from binloom.row_changes where table_name = 'customers'")
    # Models that are not selected are not counted again automatically.
    models = ["int_row_change_counts", "row_events_unaccounted_for", "duplicate_row_changes"]
    states = dbt("build", "--full-refresh", "--select", *models)
    assert states["is_empty_row_events_unaccounted_for_"] == states["is_empty_duplicate_row_changes_"] == "fail"
    rows = spark.sql(
        "select table_name, event_hour, landed, in_row_changes from binloom_quality.row_events_unaccounted_for"
    ).collect()
    assert {tuple(row) for row in rows} == {
        ("customers", "2026-11-01-12", 1, 0),
        ("orders", "2026-11-01-12", 1, 0),
        ("customers", "2026-11-01-13", 1, 2),
    }


def test_lost_events_and_bytes_are_violations(
    first_build: dict[str, str], raw: RawTables, spark: Any, dbt: Dbt
) -> None:
    raw.land("binlog.000004", [Change(NAMED, NOON, after=["5", "Eve"])] * 3, lost_rows=1, lost_bytes=500)
    states = dbt(
        "build",
        "--select",
        "int_completed_segments",
        "int_transaction_checks",
        "uncovered_bytes",
        "transaction_count_mismatches",
    )
    assert states["is_empty_uncovered_bytes_"] == states["is_empty_transaction_count_mismatches_"] == "fail"
    (gap,) = spark.sql(
        "select binlog_file, range_start, range_end, defect from binloom_quality.uncovered_bytes"
    ).collect()
    assert tuple(gap) == ("binlog.000004", 3200, 3700, "gap")
    (mismatch,) = spark.sql(
        "select binlog_file, transaction_pos, row_events_of_transaction, row_events_landed "
        "from binloom_quality.transaction_count_mismatches"
    ).collect()
    assert tuple(mismatch) == ("binlog.000004", 2200, 1, 0)


def test_lost_events_fail_and_are_no_undecoded_ones(
    first_build: dict[str, str], raw: RawTables, spark: Any, dbt: Dbt
) -> None:
    incident = {"start_pos": 300, "end_pos": 330, "event_type": "INCIDENT", "reason": "incident", "detail": "lost"}
    raw.land("binlog.000007", [Change(NAMED, NOON, after=["8", "Liv"])], undecoded=[incident])
    states = dbt("build", "--select", "lost_events", "undecoded_events")
    assert states["is_empty_lost_events_"] == "fail"
    (lost,) = spark.sql("select binlog_file, start_pos, detail from binloom_quality.lost_events").collect()
    assert tuple(lost) == ("binlog.000007", 300, "lost")
    assert spark.sql("select 1 from binloom_quality.undecoded_events where reason = 'incident'").count() == 0


def test_how_a_prepared_transaction_ended_is_known_when_its_end_has_landed(
    first_build: dict[str, str], raw: RawTables, spark: Any, dbt: Dbt, home: Path
) -> None:
    models = ["int_completed_segments", "int_row_event_counts", "int_xa_transactions", "int_row_change_parts"]
    at, xid = NOON + 20 * HOUR, "X'6162',X'',1"
    raw.land("binlog.000005", [Change(NAMED, at, after=["6", "Max"], outcome="xa_prepare", xa_xid=xid)])

    def ended() -> list[tuple[Any, ...]]:
        dbt("run", "--select", *models, "row_changes", "transactions")
        change = "select outcome, committed_at from binloom.row_changes where event_hour = '2026-11-02-08'"
        transaction = (
            "select outcome, committed_at, xa_end_transaction_id from binloom.transactions "
            "where binlog_file = 'binlog.000005'"
        )
        return [tuple(row) for row in [*spark.sql(change).collect(), *spark.sql(transaction).collect()]]

    assert ended() == [("xa_prepare", None), ("xa_prepare", None, None)]
    files = hour_files(home)
    raw.land("binlog.000006", [XaEnd(at + HOUR, xid, "rollback")])
    # A question knows it before the build.
    assert asked(home, "outcome", "binlog.000005") == [("rollback",)]
    assert ended() == [("rollback", None), ("rollback", None, "shop/0/binlog.000006/200")]
    assert rewritten(files, hour_files(home)) == {"2026-11-02-08"}
    # The file is landed again with another end of the transaction.
    raw.land("binlog.000006", [XaEnd(at + HOUR, xid, "commit")])
    committed_at = (at + HOUR + timedelta(microseconds=123)).replace(tzinfo=None)
    assert ended() == [("commit", committed_at), ("commit", committed_at, "shop/0/binlog.000006/200")]
    raw.land("binlog.000006", [XaEnd(at + HOUR, xid, "commit")], status="in_progress")
    assert ended() == [("xa_prepare", None), ("xa_prepare", None, None)]


def test_readers_see_every_row_while_a_compacted_file_gets_other_parts(
    first_build: dict[str, str], raw: RawTables, spark: Any, dbt: Dbt, home: Path
) -> None:
    """A part is 64 MiB of a file by the starts of its segments, and a compacted segment starts at its beginning."""
    file, starts = "binlog.000031", [4, 70_000_000]
    for number, start in enumerate(starts):
        raw.land(file, [Change(NAMED, NOON + 40 * HOUR, after=[f"compacted {number}", "Ann"])], start=start)
    models = ["int_completed_segments", "int_row_event_counts", "int_row_change_parts", "row_changes"]
    dbt("run", "--select", "+row_changes")

    def of_file(answers: Answers) -> set[str]:
        return {part for part in answers if file in part and part.startswith("row_changes")}

    before = answers_of(home)
    assert len(of_file(before)) == len(starts)
    raw.compact(file, starts)
    assert asked(home, "row_after['id']", file) == [("compacted 0",), ("compacted 1",)]
    with answers_beside(home) as seen:
        dbt("run", "--select", *models)
    after = answers_of(home)
    assert len(of_file(after)) == 1
    found = spark.sql(f"select row_after.id from binloom.row_changes where binlog_file = '{file}' order by 1").collect()
    assert [row.id for row in found] == ["compacted 0", "compacted 1"]
    # Both parts are there until the new one has the rows of both.
    for answers in seen:
        assert of_file(answers) == of_file(before) or all(answers[part] == after[part] for part in of_file(after))
