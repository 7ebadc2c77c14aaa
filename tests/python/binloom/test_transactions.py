"""`binloom transactions` on marts that were built before: ranks, thresholds and sums."""

import json
from pathlib import Path
from typing import Any

import pytest

from recover.questions.statistics import Least, transactions_query
from recover.selection.filters import Filters
from recover.sources.log import Log
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.older_warehouse import unpack
from tests.support.places import SAMPLES

pytestmark = pytest.mark.slow

SHOP = SAMPLES / "shop-mysql"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with marts: `landed` is the first file of a shop, `followed` a few boats on MariaDB."""
    return unpack(tmp_path_factory.mktemp("[odd] 'home*"))


def rows(home: Path, *options: str) -> list[dict[str, Any]]:
    result = binloom_here("transactions", *options, "--format", "json", home=home, env={"JAVA_HOME": "/nonexistent"})
    assert result.returncode == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_the_first_ranks_by_rows_and_by_seconds_are_printed(home: Path) -> None:
    found = rows(home, "--top", "2")
    assert {1, 2} <= {row["rank_by_rows"] for row in found}
    assert {1, 2} <= {row["rank_by_seconds"] for row in found}
    assert all(row["rank_by_rows"] <= 2 or row["rank_by_seconds"] <= 2 for row in found)
    counts = [row["row_events"] for row in found]
    assert counts == sorted(counts, reverse=True)


def test_a_threshold_selects_all_transactions_that_reach_it(home: Path) -> None:
    every = rows(home, "--top", "100000")
    assert len(every) > 20
    assert rows(home, "--min-rows", "5") == [row for row in every if row["row_events"] >= 5]
    assert rows(home, "--min-bytes", "1000") == [row for row in every if row["bytes_in_file"] >= 1000]


def test_a_filter_selects_transactions_and_they_count_with_all_their_rows(home: Path) -> None:
    (found,) = rows(home, "--table", "boats", "--key", "1", "--type", "INSERT")
    assert (found["transaction_id"], found["selected_changes"], found["row_events"]) == (
        "followed/0/binlog.000001/858",
        1,
        2,
    )


def test_sums_by_hour_add_up_to_those_by_table(home: Path) -> None:
    tables = {(row["source_id"], row["table_name"]): row for row in rows(home, "--by", "table")}
    hours = rows(home, "--by", "hour")
    for name in ("changes", "inserts", "updates", "deletes", "event_bytes"):
        for table, row in tables.items():
            assert row[name] == sum(hour[name] for hour in hours if (hour["source_id"], hour["table_name"]) == table), (
                name,
                table,
            )
    assert tables["landed", "orders"]["changes"] == 62
    assert tables["followed", "boats"]["hot_keys"].split(", ")[0] == "1 (3)"


def test_a_commit_before_the_first_event_is_not_plausible(home: Path) -> None:
    log = Log.of_warehouse(home)
    rows = log.connection.execute("select * from binloom.transactions where source_id = 'followed'").to_arrow_table()
    log.connection.register("rows", rows)
    log.connection.execute("drop view binloom.transactions")
    log.connection.execute(
        """create table binloom.transactions as
        select * replace (started_at + interval (case when start_pos = 858 then 3 else -86400 end) second as started_at)
        from rows"""
    )
    query = transactions_query(log.select(Filters.of()), 10, Least()).sql("duckdb")
    answer = log.connection.execute(query).to_arrow_table().to_pylist()
    assert len(answer) > 2
    assert {(row["is_plausible"], row["seconds"], row["rank_by_seconds"]) for row in answer} == {(False, None, None)}


def test_a_threshold_that_nothing_reaches_and_an_unknown_table_are_sentences(home: Path) -> None:
    assert_sentence(binloom_here("transactions", "--min-rows", "100000", home=home), 0, "reaches a threshold")
    assert_sentence(binloom_here("transactions", "--table", "boat", home=home), 2, "boats")


def test_ranks_by_rows_and_by_seconds_are_told_and_sums_without_a_name_have_one(tmp_path: Path) -> None:
    files = ("--files", *sorted(SHOP.glob("binlog.0*")))
    told = binloom_here("transactions", *files, "--top", "3", home=tmp_path)
    assert len(told.stdout.splitlines()) == 2 + 6
    assert "these are the 3 transactions with the most rows, and the 3 that lasted longest." in told.stderr
    one = binloom_here("transactions", *files, "--top", "3", "--min-rows", "1", home=tmp_path)
    assert "lasted longest" not in one.stderr
    assert "(none)" in binloom_here("query", *files, "--by", "app", home=tmp_path).stdout.splitlines()[2]


@pytest.mark.parametrize("command", ["query", "transactions"])
def test_a_damaged_file_is_told(command: str, tmp_path: Path) -> None:
    cut = tmp_path / "binlog.000001"
    cut.write_bytes((SHOP / cut.name).read_bytes()[:30000])
    files = ("--files", cut, "--snapshot-dir", SHOP / "schema")
    shown = binloom_here(command, *files, "--by", "table", home=tmp_path)
    assert_sentence(shown, 3, "rows from position [0-9]+ on are missing")
    assert "shop" in shown.stdout
    # What is not found may be among the missing rows.
    for filters, why in ((("--table", "shop.nothing"), "no table"), (("--until", "2001-01-01"), "no row changes")):
        assert_sentence(binloom_here(command, *files, *filters, home=tmp_path), 3, "are missing.*\n.*" + why)


@pytest.mark.parametrize("command", ["query", "transactions"])
def test_rows_that_are_all_in_quarantine_are_no_answer(command: str, tmp_path: Path) -> None:
    files = ("--files", SHOP / "binlog.000002")
    for options in ((), ("--by", "table"), ("--type", "update"), ("--table", "shop.orders")):
        result = binloom_here(command, *files, *options, home=tmp_path)
        assert_sentence(result, 2, r"All selected row events are in quarantine: \d+ of shop\.", "--snapshot-dir")
    result = binloom_here(command, *files, "--thread", "10", home=tmp_path)
    assert_sentence(result, 0, "in quarantine are not shown: ", "No row change fits")


def test_rows_in_quarantine_may_reach_a_threshold(tmp_path: Path) -> None:
    result = binloom_here("transactions", "--files", SHOP / "binlog.000002", "--min-rows", "2", home=tmp_path)
    assert_sentence(result, 0, "in quarantine are not shown: ", "reaches a threshold")
