"""Files that stay readable while another process replaces them, in the order in which Spark does."""

import itertools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ingest.warehouse.built import TableRecord
from recover.sources.home import kept_files
from recover.sources.home.kept_files import UnfinishedMartError
from recover.sources.home.marts import NoMartError, open_marts
from tests.support.freezing import frozen

MARTS = [("binloom", "transactions"), ("binloom", "servers")]
FILES, PARTS = 3, 4
# Replaces both tables again and again, and holds the metastore meanwhile.
WRITER = """
import fcntl, itertools, os, random, shutil, sys, time
from pathlib import Path
from ingest.warehouse.built import TableRecord

home, prepared = Path(sys.argv[1]), Path(sys.argv[2])
lock = open(home / "metastore" / "dbex.lck", "r+b")
fcntl.lockf(lock, fcntl.LOCK_EX)
tables = home / "warehouse" / "binloom.db"

def pause():
    time.sleep(random.uniform(0, 0.004))

def delete(folder):
    for path in folder.iterdir():
        delete(path) if path.is_dir() else path.unlink()
        pause()
    folder.rmdir()

def copy(version, folder):
    folder.mkdir(parents=True)
    for file in range(3):
        shutil.copy(prepared / f"{version}.parquet", folder / f"part-{file}-{next(numbers)}.parquet")

def create(version, table):
    copy(version, table / "_temporary" / "0")
    pause()
    for path in (table / "_temporary" / "0").iterdir():
        path.rename(table / path.name)
        pause()
    shutil.rmtree(table / "_temporary")
    (table / "_SUCCESS").touch()

def overwrite(version, table):
    staging = table / ".spark-staging-1"
    for part in range(4):
        copy(version, staging / "_temporary" / f"source_id={part}")
        pause()
    for part in range(4):
        (staging / "_temporary" / f"source_id={part}").rename(staging / f"source_id={part}")
        pause()
    for part in range(4):
        delete(table / f"source_id={part}")
        pause()
        (staging / f"source_id={part}").rename(table / f"source_id={part}")
    shutil.rmtree(staging)

numbers = itertools.count()
print("begun", flush=True)
for version in itertools.cycle((1, 2)):
    record = TableRecord(home, "binloom", "servers")
    with record.changing(hides=True):
        delete(tables / "servers")
    pause()
    with record.changing(hides=True):
        create(version, tables / "servers")
    record.end(is_whole=True)
    record = TableRecord(home, "binloom", "transactions")
    with record.changing(hides=False):
        overwrite(version, tables / "transactions")
    with record.changing(hides=True):
        copy(version, tables / "transactions" / "source_id=gone")
        delete(tables / "transactions" / "source_id=gone")
    record.end(is_whole=True)
    # Spark needs longer to write a table once more.
    time.sleep(0.3)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two tables, one of them with partitions, and two versions of their files."""
    prepared = tmp_path / "prepared"
    prepared.mkdir()
    for version in (1, 2):
        pq.write_table(pa.table({"version": [version] * 10}), prepared / f"{version}.parquet")
    tables = tmp_path / "warehouse" / "binloom.db"
    for folder in (tables / "servers", *(tables / "transactions" / f"source_id={part}" for part in range(PARTS))):
        folder.mkdir(parents=True)
        for file in range(FILES):
            shutil.copy(prepared / "2.parquet", folder / f"part-{file}.parquet")
    (tables / "servers" / "_SUCCESS").touch()
    (tmp_path / "metastore").mkdir()
    (tmp_path / "metastore" / "dbex.lck").touch()
    return tmp_path


@contextmanager
def writer(home: Path) -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(home), str(home / "prepared")], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        try:
            yield process
        finally:
            process.kill()


def whole_versions(home: Path) -> list[int]:
    """Return the version of the unpartitioned table and of each partition, all rows of which must be there."""
    with open_marts(home, MARTS) as connection:
        rows = connection.execute(
            "select null as source_id, count(*), min(version), max(version) from binloom.servers union all"
            " select source_id, count(*), min(version), max(version) from binloom.transactions group by source_id"
        ).fetchall()
    assert len(rows) == 1 + PARTS
    for _, count, first, last in rows:
        assert (count, first) == (10 * FILES, last)
    return [first for _, _, first, _ in rows]


def test_each_part_is_old_or_new_beside_a_writer(home: Path) -> None:
    seen: set[int] = set()
    with writer(home):
        for reads in itertools.count(1):
            seen.update(whole_versions(home))
            if reads >= 12 and seen == {1, 2}:
                break


def test_what_a_killed_writer_leaves_is_whole_or_refused(home: Path) -> None:
    for _ in range(6):
        with writer(home) as process:
            time.sleep(0.05)
            process.send_signal(signal.SIGKILL)
        try:
            whole_versions(home)
        except (UnfinishedMartError, NoMartError):
            break


def handles(folder: Path) -> int:
    """Return the number of files and folders below a folder that this process has open."""
    found = 0
    for handle in os.listdir("/proc/self/fd"):
        # The list itself is open while it is read.
        with suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{handle}").startswith(f"{folder}/")
    return found


def test_an_open_table_can_be_deleted_and_its_files_are_closed_at_the_end(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    links = home / "links"
    links.mkdir()
    monkeypatch.setattr(kept_files, "_MEMORY", links)

    connection = open_marts(home, MARTS)
    shutil.rmtree(home / "warehouse")
    # One is the lock of the links.
    assert handles(home) == FILES * (1 + PARTS) + 1
    for table, files in (("servers", FILES), ("transactions", FILES * PARTS)):
        assert connection.execute(f"select count(*) from binloom.{table}").fetchone() == (10 * files,)
    assert len(list(links.iterdir())) == 1
    del connection
    assert handles(home) == 0
    assert list(links.iterdir()) == []


def test_tables_of_more_files_than_may_be_open_are_read(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links = home / "links"
    links.mkdir()
    monkeypatch.setattr(kept_files, "_MEMORY", links)
    monkeypatch.setattr(kept_files, "_has_room", lambda files: False)
    connection = open_marts(home, MARTS)
    assert handles(home) == 1
    assert connection.execute("select count(*) from binloom.servers").fetchone() == (10 * FILES,)


def test_links_of_a_killed_reader_are_deleted_by_the_next_one(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    links = home / "links"
    links.mkdir()
    monkeypatch.setattr(kept_files, "_MEMORY", links)
    monkeypatch.setattr(kept_files, "_YOUNG_SECONDS", -1)
    reader = f"""
import os, signal
from pathlib import Path
from recover.sources.home import kept_files
kept_files._MEMORY = Path({str(links)!r})
kept_files.KeptFiles(Path({str(home)!r}), print).mart("binloom", "transactions")
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", reader], check=False).returncode == -signal.SIGKILL
    (left,) = links.iterdir()
    first, second = open_marts(home, MARTS), open_marts(home, MARTS)
    assert len(list(links.iterdir())) == 2 and not left.exists()
    assert first.execute("select count(*) from binloom.servers").fetchone() == (10 * FILES,)
    del first, second


def cut_short(home: Path, table: str, *, hides: bool) -> None:
    """Begin to build a table, and kill the build."""
    build = f"""
import os, signal
from pathlib import Path
from ingest.warehouse.built import TableRecord
with TableRecord(Path({str(home)!r}), "binloom", {table!r}).changing(hides={hides}):
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", build], check=False).returncode == -signal.SIGKILL


@pytest.mark.parametrize("hides", [False, True])
def test_a_table_whose_build_was_killed_is_refused_until_it_is_built(home: Path, hides: bool) -> None:
    cut_short(home, "transactions", hides=hides)
    for _ in range(2):
        with pytest.raises(UnfinishedMartError, match=r"binloom.transactions has not ended.*run `binloom build`"):
            whole_versions(home)
        # Another build ends, of another table.
        TableRecord(home, "binloom", "servers").end(is_whole=True)
    TableRecord(home, "binloom", "transactions").end(is_whole=True)
    whole_versions(home)


def test_what_a_killed_build_left_is_not_read_while_it_is_repaired(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_files, "PATIENCE_SECONDS", -1)
    cut_short(home, "transactions", hides=True)
    record = TableRecord(home, "binloom", "transactions")
    with record.changing(hides=False), pytest.raises(UnfinishedMartError):
        whole_versions(home)
    with pytest.raises(UnfinishedMartError):
        whole_versions(home)
    record.end(is_whole=True)
    whole_versions(home)


def test_a_table_is_read_while_its_new_rows_are_computed_but_not_while_some_are_deleted(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_files, "PATIENCE_SECONDS", -1)
    record = TableRecord(home, "binloom", "transactions")
    with record.changing(hides=False):
        whole_versions(home)
    with record.changing(hides=True), pytest.raises(UnfinishedMartError):
        whole_versions(home)
    whole_versions(home)
    record.end(is_whole=False)
    with pytest.raises(UnfinishedMartError):
        whole_versions(home)


def test_a_dropped_table_whose_build_was_killed_is_not_called_missing(home: Path) -> None:
    cut_short(home, "servers", hides=True)
    shutil.rmtree(home / "warehouse" / "binloom.db" / "servers")
    with pytest.raises(UnfinishedMartError):
        whole_versions(home)


def test_a_table_without_rows_has_the_columns_of_its_record(home: Path) -> None:
    # Spark writes no file for a table with partitions that has no rows.
    for folder in (home / "warehouse" / "binloom.db" / "transactions").iterdir():
        shutil.rmtree(folder)
    columns = (("at", "timestamp"), ("row", "map<string,string>"), ("parts", "array<struct<at:bigint,text:string>>"))
    record = TableRecord(home, "binloom", "transactions")
    with record.changing(hides=True):
        pass
    record.end(is_whole=True, columns_if_empty=lambda: columns)

    def asked() -> list[tuple[str, str]]:
        with open_marts(home, MARTS) as connection:
            rows = connection.execute("select * from binloom.transactions")
            found = [(column[0], str(column[1])) for column in rows.description or ()]
            assert rows.fetchall() == []
        return found

    types = ["TIMESTAMP WITH TIME ZONE", "MAP(VARCHAR, VARCHAR)", 'STRUCT("at" BIGINT, "text" VARCHAR)[]']
    assert asked() == list(zip([name for name, _ in columns], types, strict=True))
    # A build may be about to write the first rows.
    record = TableRecord(home, "binloom", "transactions")
    with record.changing(hides=False):
        assert len(asked()) == 3
    record.end(is_whole=False)


def test_times_of_folders_do_not_matter(home: Path) -> None:
    # The next build clears leftovers of a killed one in the folders of all tables.
    for folder in (home / "warehouse" / "binloom.db").rglob("*/"):
        os.utime(folder, (time.time() + 60, time.time() + 60))
    whole_versions(home)


def test_a_table_that_nobody_builds_is_not_waited_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_files, "_PAUSE_SECONDS", -1)  # Sleeping for it is an error.
    with pytest.raises(NoMartError):
        open_marts(home, [("binloom", "row_changes")])


def test_a_wait_is_told_and_ends(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_files, "PATIENCE_SECONDS", 0.3)
    monkeypatch.setattr(kept_files, "_SILENT_SECONDS", 0.1)
    told: list[str] = []
    with writer(home) as process, frozen(process.pid):
        (home / "warehouse" / "binloom.db" / "servers" / "_temporary").mkdir(parents=True, exist_ok=True)
        with pytest.raises(UnfinishedMartError):
            open_marts(home, [("binloom", "servers")], tell=told.append)
    assert told == ["waiting until a build has written binloom.servers."]
