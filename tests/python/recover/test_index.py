"""An index lets questions read less of binlog files, and changes no answer."""

import gzip
import os
import random
import shutil
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.sources.files.named import log_files
from ingest.sources.files.sidecars import sidecar_of, write_sidecar
from ingest.sources.snapshots.snapshot_files import read_snapshot_dir
from recover.index.indexing import index_of
from recover.index.opened import Index
from recover.index.sidecar import Sidecar, encoded
from recover.selection.filters import Filters
from recover.sources.log import Log
from tests.support.archives import compressed
from tests.support.command_line import assert_sentence
from tests.support.depth import at_depth, is_full
from tests.support.in_process import binloom_here
from tests.support.places import FIXTURES, SAMPLES
from tests.support.recover.indexed import answer, indexed, questions, questions_through_time

pytestmark = pytest.mark.slow

SHOP = SAMPLES / "shop-mysql"
SHOP_FILES = sorted(SHOP.glob("binlog.0*"))
# XA, images with only some columns, unknown signs and character sets, no checksums, a compressed transaction.
ODD = [
    *("mysql-xa", "mysql-row-image-minimal", "mariadb-compressed-columns", "mariadb-checksum-none"),
    "mysql-transaction-payload",
]
EVERY = [path.stem for path in sorted(FIXTURES.glob("*.binlog")) if "relay-log" not in path.name]
ORDER = Filters.of(tables=["shop.orders"], keys=["1007"])


@pytest.mark.parametrize("has_definitions", [False, True])
def test_an_index_changes_no_answer_on_a_log(has_definitions: bool, tmp_path: Path) -> None:
    snapshot = read_snapshot_dir(SHOP / "schema") if has_definitions else None
    _, whole = answer(SHOP_FILES, Filters(), snapshot)
    assert whole is not None
    index, saved = indexed(SHOP_FILES, tmp_path), 0
    for question in questions(whole, random.Random(7), at_depth(1, 60)):
        expected, _ = answer(SHOP_FILES, question, snapshot)
        found, log = answer(SHOP_FILES, question, snapshot, index)
        assert found == expected, question
        assert log is not None and log.notes[-1].startswith("read "), question
        saved += not log.notes[-1].startswith("read 86.7 KB")
    assert saved > 2


@pytest.mark.parametrize("name", EVERY if is_full() else ODD)
def test_an_index_changes_no_answer_on_odd_logs(name: str, tmp_path: Path) -> None:
    file, schema = FIXTURES / f"{name}.binlog", FIXTURES / f"{name}-schema"
    snapshot = read_snapshot_dir(schema) if schema.is_dir() else None
    _, whole = answer([file], Filters(), snapshot)
    assert whole is not None
    index = indexed([file], tmp_path)
    for question in questions(whole, random.Random(name), at_depth(1, 20)):
        assert answer([file], question, snapshot, index)[0] == answer([file], question, snapshot)[0], question


@pytest.mark.parametrize("name", ["shop", *(EVERY if is_full() else ["mariadb-mixed"])])
def test_an_index_changes_no_row_through_time(name: str, tmp_path: Path) -> None:
    files = SHOP_FILES if name == "shop" else [FIXTURES / f"{name}.binlog"]
    schema = SHOP / "schema" if name == "shop" else FIXTURES / f"{name}-schema"
    _, whole = answer(files, Filters(), read_snapshot_dir(schema) if schema.is_dir() else None)
    assert whole is not None
    indexed(files, tmp_path)
    query = (
        "select schema_name || '.' || table_name, coalesce(min(pk_values), '1'), any_value(gtid) from"
        " binloom.row_changes group by 1 order by 1"
    )
    found = whole.connection.execute(query).fetchall()
    asked = list(questions_through_time(found, random.Random(name), at_depth(4, 200)))
    given = ["--snapshot-dir", schema] if schema.is_dir() else []
    for question in asked:
        expected = binloom_here(*question, *given, "--files", *files)
        indexed_too = binloom_here(*question, *given, "--index-dir", tmp_path, "--files", *files)
        read, *others = indexed_too.stderr.splitlines(keepends=True)
        assert read.startswith("binloom: read "), indexed_too.stderr
        assert indexed_too.stdout == expected.stdout, question
        assert (indexed_too.returncode, "".join(others)) == (expected.returncode, expected.stderr), question


def test_bytes_do_not_depend_on_the_place(tmp_path: Path) -> None:
    copy = shutil.copy(SHOP_FILES[0], tmp_path / "other.000009")
    assert index_of(Path(copy), 600) == index_of(SHOP_FILES[0], 600)


def test_the_command_writes_beside_the_files_once(tmp_path: Path) -> None:
    for file in SHOP_FILES:
        shutil.copy(file, tmp_path)
    done = binloom_here("index", tmp_path)
    assert (done.returncode, done.stdout.count("of index")) == (0, 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        *("binlog.000001", "binlog.000001.binloom-index", "binlog.000002", "binlog.000002.binloom-index")
    ]
    again = binloom_here("index", tmp_path)
    assert (again.stdout, again.stderr) == ("", "binloom: 2 files had an index already.\n")
    # A pattern of the shell names the sidecars, too.
    question = ("query", "--table", "shop.orders", "--format", "json", "--files")
    asked, plain = binloom_here(*question, *tmp_path.iterdir()), binloom_here(*question, *SHOP_FILES)
    assert (asked.returncode, asked.stdout) == (0, plain.stdout)
    assert "of the index." in asked.stderr


def test_an_index_in_a_folder_of_its_own(tmp_path: Path) -> None:
    assert binloom_here("index", "--to", tmp_path / "index", *SHOP_FILES).returncode == 0
    question = ("transactions", "--index-dir", tmp_path / "index", "--format", "json", "--files", *SHOP_FILES)
    asked = binloom_here(*question)
    assert asked.stdout == binloom_here("transactions", "--format", "json", "--files", *SHOP_FILES).stdout
    assert "of the index." in asked.stderr
    refused = binloom_here("query", "--index-dir", tmp_path)
    assert_sentence(refused, 2, "--index-dir is for files.")


def _grown(file: Path, sidecar: Path) -> None:
    with file.open("ab") as end:
        end.write(SHOP_FILES[1].read_bytes()[:30])


def _of_another_file(file: Path, sidecar: Path) -> None:
    sidecar.write_bytes(index_of(SHOP_FILES[1], 600))


def _cut(file: Path, sidecar: Path) -> None:
    os.truncate(sidecar, 500)


def _without_a_segment(file: Path, sidecar: Path) -> None:
    """Write an index that is whole by its checksums, and lacks a range."""
    contents = Sidecar.read(sidecar, file).contents
    sidecar.write_bytes(encoded(replace(contents, segments=contents.segments[:3] + contents.segments[4:]), b"", b""))


def _damaged(file: Path, sidecar: Path) -> None:
    _flip(sidecar, 100)


def _damaged_filter(file: Path, sidecar: Path) -> None:
    for place in range(1, 30):
        _flip(sidecar, -1024 * place)


def _changed_row(file: Path, sidecar: Path) -> None:
    # Inside a row event: the checksum of the event does not fit.
    for place in range(2000, 30_000, 500):
        _flip(file, place)


def _flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 0xFF
    path.write_bytes(data)


CHANGES = [_grown, _of_another_file, _cut, _without_a_segment, _damaged, _damaged_filter, _changed_row]


@pytest.mark.parametrize("change", CHANGES)
def test_a_sidecar_that_does_not_fit_is_not_used(change: object, tmp_path: Path) -> None:
    file = Path(shutil.copy(SHOP_FILES[0], tmp_path))
    indexed([file], tmp_path)
    assert callable(change)
    change(file, tmp_path / f"{file.name}.binloom-index")
    found, log = answer([file], ORDER, index=Index())
    assert log is not None and log.notes[0].startswith(f"the index of {file} is not used: ")
    assert found == answer([file], ORDER)[0]


def test_a_compressed_file_is_opened_only_for_an_answer(tmp_path: Path) -> None:
    packed = compressed(SHOP_FILES[0], tmp_path, ".gz")
    (file,) = log_files([packed])
    place = sidecar_of(file)
    assert isinstance(place, Path)
    write_sidecar(file, place, index_of(file, 600))
    log = Log.of_files(log_files([packed]), Filters.of(tables=["shop.orders"], since="2099-01-01"), index=Index())
    assert log.notes[0].startswith("read 0 bytes of ")
    expected = answer([SHOP_FILES[0]], ORDER)[0]
    assert answer(log_files([packed]), ORDER, index=Index())[0] == expected  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_files_in_an_archive_have_an_index_beside_it(suffix: str, tmp_path: Path) -> None:
    archive = tmp_path / "backup.tar"
    with tarfile.open(archive, "w") as tar:
        for file in SHOP_FILES:
            tar.add(compressed(file, tmp_path, suffix) if suffix else file, f"db1/{file.name}{suffix}")
    assert binloom_here("index", archive).returncode == 0
    assert (tmp_path / f"backup.tar.binlog.000001{suffix}.binloom-index").is_file()
    assert "2 files had an index already." in binloom_here("index", archive).stderr
    question = ("query", "--table", "shop.orders", "--key", "1007", "--format", "json", "--files")
    asked, plain = binloom_here(*question, archive), binloom_here(*question, *SHOP_FILES)
    assert (asked.returncode, asked.stdout) == (0, plain.stdout)
    assert "of the index." in asked.stderr
    nothing = binloom_here("query", "--since", "2099-01-01", "--files", archive)
    assert "read 0 bytes of " in nothing.stderr
    packed = tmp_path / "packed.tar.gz"
    packed.write_bytes(gzip.compress(archive.read_bytes()))
    assert_sentence(binloom_here("index", packed), 1, "is in a compressed archive or a pipe")


def test_files_without_an_index(tmp_path: Path) -> None:
    cut = tmp_path / "binlog.000001"
    cut.write_bytes(SHOP_FILES[0].read_bytes()[:-40])
    for file in (cut, FIXTURES / "mysql-relay-log-checksum-ends.binlog"):
        assert_sentence(binloom_here("index", "--to", tmp_path / "index", file), 1, str(file))
    assert not (tmp_path / "index").exists()


def test_nothing_is_left_of_a_sidecar_that_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    file = Path(shutil.copy(SHOP_FILES[0], tmp_path))
    monkeypatch.setattr(os, "fsync", full)
    assert_sentence(binloom_here("index", file), 3, "cannot be written: No space left on device")
    assert list(tmp_path.iterdir()) == [file]
