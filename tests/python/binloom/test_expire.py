"""`binloom expire` on a home that was built before, killed at each of its steps."""

from pathlib import Path

import pytest

from ingest.errors import StoreError
from ingest.landing import expiry
from ingest.landing.held import StreamLanding
from ingest.warehouse import expired
from ingest.warehouse.built import TableRecord
from ingest.warehouse.files import read_rows, segment_folder
from ingest.warehouse.record import SourceRecord
from ingest.warehouse.segments import SegmentState
from ingest.warehouse.tables import BASELINE_ROWS, BASELINES, SEGMENT_TABLES
from recover.sources.home import kept_files
from tests.support.command_line import assert_sentence
from tests.support.in_process import binloom_here
from tests.support.older_warehouse import FOLLOWED, unpack

pytestmark = pytest.mark.slow

EXPIRE = ("expire", "--source", FOLLOWED, "--before", "2100-01-01", "--apply")


def oldest(home: Path) -> list[SegmentState]:
    """Return the segments of the oldest file."""
    states = SourceRecord.load(FOLLOWED, home).states
    return states[min(states)]


def has_rows(home: Path) -> bool:
    """Return whether rows of the oldest file are in the warehouse."""
    tables = SEGMENT_TABLES.values()
    return any(segment_folder(table, state.segment, home).exists() for table in tables for state in oldest(home))


@pytest.mark.parametrize(
    ("where", "step", "has_expired"),
    [
        (StreamLanding, "record_states", False),
        (expiry, "expire", False),
        (expiry, "remove_replaced", True),
        (expiry, "_delete_folders", True),
    ],
    ids=lambda one: one if isinstance(one, str) else "",
)
def test_an_expiry_that_was_killed_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: object, step: str, has_expired: bool
) -> None:
    home = unpack(tmp_path)
    environment = {"BINLOOM_HOME": str(home)}

    def killed(*_: object) -> None:
        raise StoreError("killed", hint="")

    with monkeypatch.context() as patch:
        patch.setattr(where, step, killed)
        assert binloom_here(*EXPIRE, env=environment).returncode == 3
    carried = [read_rows(table, home) for table in (BASELINES, BASELINE_ROWS)]
    assert all(carried) and has_rows(home)
    assert {state.status for state in oldest(home)} == {"expired" if has_expired else "completed"}
    done = binloom_here(*EXPIRE, env=environment)
    assert done.returncode == 0, done.stderr
    assert {state.status for state in oldest(home)} == {"expired"} and not has_rows(home)
    assert [read_rows(table, home) for table in (BASELINES, BASELINE_ROWS)] == carried


def test_nothing_is_deleted_if_the_marts_cannot_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = unpack(tmp_path)
    environment = {"BINLOOM_HOME": str(home)}

    def killed(*_: object) -> None:
        raise StoreError("killed", hint="")

    with monkeypatch.context() as patch:
        patch.setattr(expiry, "_delete_folders", killed)
        assert binloom_here(*EXPIRE, env=environment).returncode == 3
    with monkeypatch.context() as patch:
        # There is an older baseline, and a build was killed: nobody knows whether a mart still lists it.
        patch.setattr(kept_files, "PATIENCE_SECONDS", -1)
        patch.setattr(expired, "expired_baselines", lambda home: {"older"})
        with TableRecord(home, "binloom", "baselines").changing(hides=True):
            assert binloom_here(*EXPIRE, env=environment).returncode == 3
    assert has_rows(home)
    TableRecord(home, "binloom", "baselines").end(is_whole=True)
    assert binloom_here(*EXPIRE, env=environment).returncode == 0 and not has_rows(home)


def test_files_before_a_file_expire(tmp_path: Path) -> None:
    environment = {"BINLOOM_HOME": str(unpack(tmp_path))}
    expire = ("expire", "--source", FOLLOWED, "--before-file")
    second = binloom_here(*expire, "binlog.000002", env=environment)
    assert second.returncode == 0 and "binlog.000001" in second.stdout, second.stderr
    assert [line.split()[-1] for line in second.stdout.splitlines() if line.startswith("binlog.000001")] == ["expires"]
    first = binloom_here(*expire, "0/binlog.000001", env=environment)
    assert "stays: it is the file of --before-file" in first.stdout and "expires" not in first.stdout
    assert_sentence(binloom_here(*expire, "binlog.000009", env=environment), 2, "has no landed file 'binlog.000009'")
    both = binloom_here(*expire, "binlog.000002", "--older-than", "1d", env=environment)
    assert_sentence(both, 2, "Several of --older-than, --before and --before-file are given")
    assert_sentence(binloom_here(*expire[:-1], env=environment), 2, "None of --older-than, .* are given")
