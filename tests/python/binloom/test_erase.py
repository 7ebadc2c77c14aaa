"""`binloom erase` on a home that was built before: the values leave the raw tables, and the rows stay."""

import json
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest.errors import StoreError
from ingest.landing import erasure as erasing
from ingest.landing.baselines import land_baseline
from ingest.landing.held import StreamLanding
from ingest.sources.baselines.baseline_tables import BaselineTable
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from ingest.warehouse.files import read_rows
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import SegmentState
from ingest.warehouse.tables import ERASURES
from ingest.warehouse.tokens import TOKEN
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.landing.binlogs import SHOP
from tests.support.older_warehouse import LANDED, unpack

pytestmark = pytest.mark.slow

ERASE = ("erase", "--source", LANDED, "--table", "shop.customers", "--key", "3")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return unpack(tmp_path)


def rows(home: Path, table: str) -> list[dict[str, object]]:
    folder = home / "warehouse" / "binlog_raw.db" / table
    # The files are those of an older commit, which did not have these columns.
    newer = {"undecoded_columns": None, "json_changes": None}
    paths = sorted(folder.rglob("*.parquet"))
    return [newer | row for path in paths for row in pq.ParquetFile(path).read().to_pylist()]


def customer(home: Path) -> list[dict[str, object]]:
    """Return the row events of customer 3."""
    return [
        row
        for row in rows(home, "row_events")
        if row["table_name"] == "customers"
        and any(values and values[0] == "3" for values in (row["before_values"], row["after_values"]))  # type: ignore
    ]


def personal(events: list[dict[str, object]]) -> set[str]:
    """Return the values that only this person has."""
    return {
        value for row in events for value in (*row["before_values"], *row["after_values"]) if value and "@" in value
    }  # type: ignore


def tokens(home: Path) -> set[str]:
    """Return the tokens that are keys of customers."""
    images = [
        row[f"{image}_values"]
        for row in rows(home, "row_events")
        for image in ("before", "after")
        if row["table_name"] == "customers"
    ]
    return {values[0] for values in images if values and values[0] and TOKEN.fullmatch(values[0])}  # type: ignore


def states_with(home: Path, events: list[dict[str, object]]) -> list[SegmentState]:
    """Return the states of the segments with some row events."""
    positions = {row["start_pos"] for row in events}
    states = [one for states in SourceRecord.load(LANDED, home).states.values() for one in states]
    return [
        one
        for one in states
        if any(one.segment_start <= position < one.segment_end for position in positions)  # type: ignore
    ]


def texts(home: Path) -> Iterator[str]:
    for table in ("row_events", "statements", "baseline_rows"):
        yield from (json.dumps(row, default=str, ensure_ascii=False) for row in rows(home, table))


def test_the_values_go_and_the_rows_stay(home: Path) -> None:
    environment = {"BINLOOM_HOME": str(home)}
    before, events = rows(home, "row_events"), customer(home)
    values = personal(events)
    assert values and any(value in text for text in texts(home) for value in values)
    dry = binloom_here(*ERASE, env=environment)
    assert dry.returncode == 0, dry.stderr
    assert "nothing was erased" in dry.stderr and rows(home, "row_events") == before
    done = binloom_here(*ERASE, "--apply", "--reason", "ticket 42", env=environment | {"LOGNAME": "somebody else"})
    assert done.returncode == 0, done.stderr
    after = rows(home, "row_events")
    assert customer(home) == [] and not any(value in text for text in texts(home) for value in values)
    changed = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
    assert [old for old, _ in changed] == events
    tokens = {value for _, new in changed for name in ("before", "after") for value in new[f"{name}_values"] if value}  # type: ignore
    assert len(tokens) == 1 and TOKEN.fullmatch(tokens.pop())
    for old, new in changed:
        # The key is known, all other columns are absent from the image, as in a partial image.
        assert new["after_columns"] == ([0] if old["after_values"] else None)
        same = [
            name for name in old if name not in {f"{i}_{k}" for i in ("before", "after") for k in ("values", "columns")}
        ]
        assert {name: new[name] for name in same} == {name: old[name] for name in same}
    (recorded,) = read_rows(ERASURES, home)
    assert recorded["row_events"] == len(events)
    assert "3" not in recorded["selection_hash"].split("$")
    assert (recorded["erased_by"], recorded["erasure_reason"]) == (pwd.getpwuid(os.getuid()).pw_name, "ticket 42")
    assert SourceRecord.load(LANDED, home).erased == {(0, "binlog.000001")}
    assert not erasing.plan_path(LANDED, home).exists()


@pytest.mark.parametrize(
    ("where", "step"),
    [
        (erasing, "_erase_segment"),
        (erasing, "_without_texts"),
        (erasing, "_erase_baselines"),
        (erasing, "_record"),
        (StreamLanding, "record_states"),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_an_erasure_that_was_killed_is_finished_with_the_same_tokens(
    home: Path, monkeypatch: pytest.MonkeyPatch, where: object, step: str
) -> None:
    environment = {"BINLOOM_HOME": str(home)}
    events, values = customer(home), personal(customer(home))

    def killed(*_: object) -> None:
        raise StoreError("killed", hint="")

    with monkeypatch.context() as patch:
        patch.setattr(where, step, killed)
        assert binloom_here(*ERASE, "--apply", env=environment).returncode == 3
    plan = erasing.plan_path(LANDED, home)
    assert not any(value in plan.read_text() for value in values) and plan.stat().st_mode & 0o077 == 0
    half_way = tokens(home)
    assert bool(half_way) == (step != "_erase_segment")
    done = binloom_here(*ERASE, "--apply", env=environment)
    assert_sentence(done, 0, "an earlier erasure was interrupted and is finished now")
    assert customer(home) == [] and not any(value in text for text in texts(home) for value in values)
    assert len(tokens(home)) == 1 and half_way <= tokens(home)
    (recorded,) = read_rows(ERASURES, home)
    assert recorded["row_events"] == len(events) and not plan.exists()
    assert not any(state.recorded_at < recorded["recorded_at"] for state in states_with(home, events))


def test_rows_of_a_baseline_that_was_not_completed_are_deleted(home: Path) -> None:
    table = BaselineTable("shop", "customers", ("id", "email"), ("int", "varchar"), (0,))

    def killed() -> None:
        raise StoreError("killed", hint="")

    snapshot = read_snapshot_dir(SHOP / "schema")
    given = pa.array([["3", "left@behind.example"]], pa.list_(pa.string()))
    with pytest.raises(StoreError):
        land_baseline(LANDED, snapshot, [table], lambda _: iter([given]), finish=killed, home=home)
    assert any("left@behind.example" in text for text in texts(home))
    assert binloom_here(*ERASE, "--apply", env={"BINLOOM_HOME": str(home)}).returncode == 0
    assert not any("left@behind.example" in text for text in texts(home))


def test_erased_rows_are_not_landed_again(home: Path) -> None:
    assert binloom_here(*ERASE, "--apply", env={"BINLOOM_HOME": str(home)}).returncode == 0
    with StreamLanding(LANDED, home) as landing:
        assert not landing.is_stale(0, "binlog.000001")


def test_unknown_rows_and_stale_marts_are_sentences(home: Path) -> None:
    environment = {"BINLOOM_HOME": str(home)}
    unknown = binloom_here(*ERASE[:-1], "300000", "--apply", env=environment)
    assert_sentence(unknown, 2, "The log contains no change of row 300000 .* nearest keys")
    # A key of whole numbers is a hash where it is masked, and a token where it was erased.
    for key in ("0123456789abcdef" * 2, "1" * 32, f"erased/{'a' * 32}"):
        masked = binloom_here(*ERASE[:-1], key, env=environment)
        assert_sentence(masked, 2, f"The log contains no change of row {key} ")
    assert_sentence(binloom_here(*ERASE[:-1], "abc", env=environment), 2, "'abc' is not a number")
    assert binloom_here(*ERASE, "--apply", env=environment).returncode == 0
    assert_sentence(binloom_here(*ERASE, env=environment), 2, "The marts are older than the landed rows of file binlog")
