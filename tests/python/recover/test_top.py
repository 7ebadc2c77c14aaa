"""`binloom top` counts what is in the log: its sums are those of the rows one by one, from files as from a home."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ingest.binlog import open_binlog, scan_binlog
from ingest.binlog.batches import ROW_EVENTS
from ingest.landing.schema_history import SchemaHistory
from recover.questions.row_batches import changes_nothing
from recover.questions.sums import Sums
from recover.questions.top import Moment, Step, bars, spikes_of
from tests.servers import Server
from tests.servers.marked import marked
from tests.support.binlog.cut_files import cut_inside_a_transaction
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom, binloom_here
from tests.support.masking.shop import sample_files
from tests.support.places import FIXTURES, SAMPLES

FLAVORS = ("mysql", "mariadb")
RECORDINGS = sorted(FIXTURES.glob("*.binlog"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two shops that are landed; nothing is built."""
    home = tmp_path_factory.mktemp("home")
    for flavor in FLAVORS:
        binloom(home, "ingest", "--source", flavor, "--binlog-dir", str(SAMPLES / f"shop-{flavor}"), "--all")
    return home


def top(*options: object, home: Path | None = None, code: int = 0) -> dict[str, Any]:
    result = binloom_here("top", "--limit", "1000", "--format", "json", *map(str, options), home=home)
    assert result.returncode == code, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def is_idle(row: dict[str, Any]) -> bool:
    """Return whether an update changes nothing, by the rule of `changed_columns`, value by value."""
    everything = list(range(row["column_count"]))
    before, after = (everything if row[name] is None else row[name] for name in ("before_columns", "after_columns"))
    return not row["undecoded_columns"] and all(
        place in before and row["before_values"][place] == row["after_values"][place] for place in after
    )


@pytest.mark.parametrize("path", RECORDINGS, ids=[path.stem for path in RECORDINGS])
def test_the_sums_are_those_of_the_rows_one_by_one(path: Path) -> None:
    kinds: Counter[tuple[str, str, str]] = Counter()
    idle: Counter[tuple[str, str]] = Counter()
    minutes: Counter[str] = Counter()
    transactions: dict[tuple[str, str], set[int]] = {}
    sizes: list[int] = []
    scan, history = scan_binlog(path), SchemaHistory.of_snapshot(None)
    history.add_scan(0, path.name, scan)
    for kind, batch in open_binlog(path, hints=history.hints(0), end=scan.complete_end).batches():
        if kind == "transactions":
            sizes += [row["end_pos"] - row["start_pos"] for row in batch.to_pylist()]
        if kind != "row_events":
            continue
        for row in batch.to_pylist():
            table = (row["schema_name"], row["table_name"])
            kinds[*table, row["event_type"]] += 1
            idle[table] += row["event_type"] == "UPDATE" and is_idle(row)
            minutes[f"{row['event_timestamp']:%Y-%m-%dT%H:%M:00Z}"] += 1
            transactions.setdefault(table, set()).add(row["transaction_pos"])
    found = top("--files", path)
    assert {(one["schema_name"], one["table_name"]) for one in found["tables"]} == transactions.keys()
    for one in found["tables"]:
        table = (one["schema_name"], one["table_name"])
        assert [one[name] for name in ("inserts", "updates", "deletes")] == [
            kinds[*table, name] for name in ("INSERT", "UPDATE", "DELETE")
        ]
        assert one["changes"] == one["inserts"] + one["updates"] + one["deletes"]
        assert one["transactions"] == len(transactions[table])
        assert one["updates_without_change"] == idle[table]
    assert found["changes"] == kinds.total() == sum(one["changes"] for one in found["threads"])
    assert (found["transactions"], found["bytes"]) == (len(sizes), sum(sizes))
    assert {one["at"]: one["changes"] for one in found["timeline"] if one["changes"]} == minutes
    assert sum(one["transactions"] for one in found["timeline"]) == len(sizes)


@pytest.mark.parametrize("flavor", FLAVORS)
def test_a_home_answers_as_its_files_and_as_its_marts(home: Path, flavor: str) -> None:
    sample = SAMPLES / f"shop-{flavor}"
    files = ["--files", *(sample / name for name in sample_files(sample))]
    landed = top("--source", flavor, home=home)
    decoded = top("--source", flavor, *files)
    assert {**landed, "lacks": None} == {**decoded, "lacks": None}
    # The time of the first event has no fraction of a second, so a duration has none.
    assert all(isinstance(one["seconds"], int) for one in landed["biggest"])
    words = ("transactions", "--by", "table", "--source", flavor, "--format", "json")
    rows = [json.loads(line) for line in binloom_here(*words, home=home).stdout.splitlines()]
    assert len(rows) == len(landed["tables"]) > 2
    hot = {(one["table_name"], one["pk_values"]): one["writes"] for one in landed["hot_rows"]}
    for row in rows:
        (own,) = [one for one in landed["tables"] if one["table_name"] == row["table_name"]]
        assert {name: row[name] for name in own.keys() & row.keys()} == {
            name: own[name] for name in own.keys() & row.keys()
        }
        for told in filter(None, row["hot_keys"].split(", ")):
            key, _, count = told.removesuffix(")").partition(" (")
            assert hot.get((row["table_name"], key), 1) == int(count)


def test_filters_leave_out_rows_and_transactions_without_them(home: Path) -> None:
    words = ("--source", "mysql", "--table", "shop.orders", "--since", "2026-11-17T10:00:00")
    found = top(*words, home=home)
    counted = binloom_here("query", *words, "--by", "hour", "--format", "json", home=home)
    hours = [json.loads(line) for line in counted.stdout.splitlines()]
    assert found["changes"] == sum(hour["changes"] for hour in hours) == sum(one["changes"] for one in found["biggest"])
    assert found["transactions"] == sum(hour["transactions"] for hour in hours) == len(found["biggest"])
    assert [one["table_name"] for one in found["tables"]] == ["orders"]


REMOVING = (
    "drop database if exists removing",
    "create database removing",
    "use removing",
    "create table orders (id int primary key, note varchar(20), left_out int)"
    " partition by range (id) (partition low values less than (10), partition high values less than (100))",
    "create table customers (id int primary key)",
    "insert into orders values (1, 'a', 1), (20, 'b', 2)",
    "create temporary table scratch (id int)",
    "drop temporary table scratch",
    "alter table orders drop partition low",
    "alter table orders drop column note, drop column left_out, add column more int",
    "insert into orders values (30, 3)",
    "truncate table orders",
    "drop table orders, customers",
    "create table customers (id int primary key)",
    "drop database removing",
)
REMOVED = [
    ("ALTER TABLE", ["removing.orders"]),
    ("ALTER TABLE", ["removing.orders.note", "removing.orders.left_out"]),
    ("TRUNCATE TABLE", ["removing.orders"]),
    ("DROP TABLE", ["removing.orders", "removing.customers"]),
    ("DROP DATABASE", ["removing"]),
]


@pytest.mark.parametrize("server", marked("mariadb", "mysql"))
def test_statements_that_took_something_away(server: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    live: Server = request.getfixturevalue(f"{server}_server")
    live.flush()
    live.execute(*REMOVING)
    log = live.flush()
    home = tmp_path / "home"
    binloom(home, "ingest", "--source", "live", "--binlog-dir", str(log.parent), "--files", log.name)

    def removed(*words: object) -> list[tuple[str, list[str]]]:
        found = top("--files", log, *words)
        landed = top(*words, home=home)
        assert [{**one, "source_id": ""} for one in found["removals"]] == [
            {**one, "source_id": ""} for one in landed["removals"]
        ]
        return [(one["statement"], one["removed"]) for one in found["removals"] if "removing" in str(one["removed"])]

    assert removed()[-len(REMOVED) :] == REMOVED
    of_customers = [("DROP TABLE", ["removing.customers"]), ("DROP DATABASE", ["removing"])]
    assert removed("--table", "removing.customers")[-2:] == of_customers
    binloom_here("index", str(log))
    assert removed("--table", "removing.customers")[-2:] == of_customers
    assert removed("--schema", "other") == removed("--since", "2099-01-01") == []

    (emptied,) = [one for one in top("--files", log)["removals"] if one["statement"] == "TRUNCATE TABLE"][-1:]
    state = binloom_here("state", "removing.orders", "--as-of", emptied["position"], "--format", "json", "--files", log)
    # The log does not tell in which partition a row was.
    assert [json.loads(line)["id"] for line in state.stdout.splitlines()] == ["1", "20", "30"]

    def told(*words: object) -> str:
        return binloom_here(*words, "--files", log).stderr

    nothing = told("query", "--transaction", emptied["position"])
    assert re.search(rf"changed no row that the log lists: truncate table orders \(at {log.name}:\d+\)", nothing)
    report = told("incident", "--table", "removing.orders", "--output", tmp_path / "incident.html")
    assert re.search(rf"TRUNCATE TABLE at {log.name}:\d+ removed rows .* list: removing.orders", report)


def test_what_is_before_a_damage_counts_and_the_damage_is_told(tmp_path: Path) -> None:
    whole = SAMPLES / "shop-mysql" / "binlog.000001"
    cut = tmp_path / "binlog.000001"
    cut.write_bytes(whole.read_bytes()[:9000])
    found = top("--files", cut, code=3)
    every = top("--files", whole)
    assert 0 < found["changes"] < every["changes"]
    assert found["biggest"][0] in every["biggest"]
    (lack,) = found["lacks"]
    assert "Rows are missing" in lack
    assert "rows from position" in lack


def test_gaps_are_told_as_by_query(tmp_path: Path) -> None:
    """A file is missing, and another one ends inside a transaction."""
    shop, files = SAMPLES / "shop-mysql", [tmp_path / f"binlog.00000{number}" for number in (1, 3, 5)]
    for file in files:
        shutil.copy(shop / "binlog.000002", file)
    shutil.copy(shop / "binlog.000001", files[0])
    end = cut_inside_a_transaction(files[1])
    breaks = [
        f"he log has a gap at {one.name}: the files between it and {other.name} are not known."
        for one, other in pairwise(files)
    ]
    gap = f"he log has a gap at {files[1].name}:{end}: a part of the file was not read."
    found = top("--files", *files)
    assert found["lacks"] == [f"T{breaks[0]}", f"T{breaks[1]}", f"T{gap}", *found["lacks"][3:]]
    told = binloom_here("query", "--limit", "0", "--files", *files).stderr
    assert all(f"binloom: t{one}" in told for one in (*breaks, gap))
    text = binloom_here("top", "--files", *files).stdout
    assert f"T{gap}" in text.splitlines()
    # What is missing between files is from before the later one.
    assert not any("gap" in one for one in top("--files", *files, "--since", "2027-01-01")["lacks"])


def test_options_that_do_not_fit_are_refused(home: Path) -> None:
    file = str(SAMPLES / "shop-mysql" / "binlog.000001")
    assert_sentence(binloom_here("top", "--every", "2s", "--files", file), 2, "--every is about what lands")
    assert_sentence(binloom_here("top", "--source", "shop", home=home), 2, "shop", "mysql")
    for where in (("--files", file), ()):
        unknown = binloom_here("top", "--table", "shop.order", *where, home=home)
        assert_sentence(unknown, 2, "There is no table 'shop.order'", "nearest .* shop.orders")
    cluster = binloom_here("top", home=home, env={"BINLOOM_TARGET": "thrift"})
    assert_sentence(cluster, 2, "does not ask a cluster", "--files")


def test_an_answer_that_is_repeated_has_what_has_landed_since(tmp_path: Path) -> None:
    sample = SAMPLES / "shop-mysql"
    first, second = sample_files(sample)
    binloom(tmp_path, "ingest", "--source", "shop", "--binlog-dir", str(sample), "--files", first)
    words = ["top", "--every", "0.2s", "--format", "json"]
    process = subprocess.Popen(
        [sys.executable, "-m", "binloom.cli", *words],
        stdout=subprocess.PIPE,
        env={**os.environ, "BINLOOM_HOME": str(tmp_path)},
        text=True,
    )
    assert process.stdout is not None
    try:
        before = json.loads(process.stdout.readline())
        binloom(tmp_path, "ingest", "--source", "shop", "--binlog-dir", str(sample), "--files", second)
        # Each segment counts once, also as a part of a compacted one.
        binloom(tmp_path, "compact", "--source", "shop")
        expected = top(home=tmp_path)
        after = before
        while after["changes"] < expected["changes"]:
            after = json.loads(process.stdout.readline())
        process.stdout.readline()
        again = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.stdout.close()
    assert before["changes"] < expected["changes"] == after["changes"] == again["changes"]
    assert again["tables"] == expected["tables"]


def test_an_update_changes_nothing_only_if_no_written_value_is_new() -> None:
    def row(before: list[Any], after: list[Any], **more: Any) -> dict[str, Any]:
        told = {"before_values": before, "after_values": after, "column_count": 2, **more}
        names = {"event_type": "UPDATE", "schema_name": "a", "table_name": "t", "table_map_id": "1"}
        numbers = dict.fromkeys(("start_pos", "end_pos", "payload_ordinal", "row_ordinal", "transaction_pos"), 0)
        return {**numbers, "server_id": 1, "event_timestamp": datetime(2026, 1, 1, tzinfo=UTC), **names, **told}

    cases = [
        (row(["1", None], ["1", None]), True),
        (row(["1", None], ["1", ""]), False),
        (row(["1", "a"], ["1", "A"]), False),
        (row(["1", None], [None, "x"], before_columns=[0], after_columns=[1]), False),
        (row(["1", "x"], [None, "x"], before_columns=[0, 1], after_columns=[1]), True),
        (row(["1", "x"], [None, None], before_columns=[0, 1], after_columns=[]), True),
        (row(["1", "x"], ["1", None], after_columns=[0], undecoded_columns=[1]), False),
    ]
    batch = pa.RecordBatch.from_pylist([case for case, _ in cases], schema=ROW_EVENTS)
    assert changes_nothing(batch).tolist() == [expected for _, expected in cases]
    assert changes_nothing(batch.slice(3, 3)).tolist() == [expected for _, expected in cases[3:6]]


def test_sums_of_few_keys_are_at_most_their_error_too_low() -> None:
    sums, exact = Sums(["key"], ["writes"], most=20), Counter[int]()
    for part in range(50):
        keys = [*range(5), *range(100 + part * 30, 130 + part * 30), 7, 7]
        exact.update(keys)
        sums.add({"key": pa.array(keys), "writes": pa.array([1] * len(keys))})
        sums.table()
    found = {row["key"]: row["writes"] for row in sums.rows()}
    assert len(found) <= 20
    assert 0 < sums.error <= exact.total() / 20
    for key, count in exact.items():
        assert found.get(key, 0) <= count <= found.get(key, 0) + sums.error
    assert sums.largest(1)[0]["key"] == 7


def test_spikes_are_steps_with_far_more_changes_than_the_median() -> None:
    names = [("s", "a", "quiet"), ("s", "a", "loud")]
    changes = {number: {0: 10} for number in range(9)} | {20: {0: 10, 1: 90}, 21: {0: 49}}
    middle, (spike,) = spikes_of(changes, names, Step.MINUTE, 10)
    assert (middle, spike.changes, spike.times_median, spike.table_name, spike.table_changes) == (
        10,
        100,
        10,
        "loud",
        90,
    )
    assert spike.at == datetime(1970, 1, 1, 0, 20, tzinfo=UTC)


def test_a_plot_has_the_highest_step_of_each_column() -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    timeline = [Moment(start + timedelta(hours=n), changes, 0, 0) for n, changes in ((0, 16), (1, 1), (3, 8))]
    assert bars(timeline, Step.HOUR, 10, 2) == ["█   ", "█▁ █"]
    assert bars(timeline, Step.HOUR, 2, 2) == ["█ ", "██"]
