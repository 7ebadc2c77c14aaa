"""The selected files of a directory, and their order."""

import os
from pathlib import Path

import pytest

from ingest.binlog.events.format import read_format
from ingest.errors import BinlogNotFoundError, BinlogNotReadableError, NotABinlogError, UsageError
from ingest.sources.files.directory import find_binlogs


def make(folder: Path, *names: str) -> Path:
    """Create empty files."""
    for name in names:
        (folder / name).touch()
    return folder


def test_all_are_ordered_by_base_name_and_number(tmp_path: Path) -> None:
    make(tmp_path, "binlog.1000000", "binlog.999999", "binlog.000002", "archive.000003", "binlog.index", "ibdata1")
    make(tmp_path, "binlog.000002.gz", "ib_16384_0.dblwr", "binlog.00001")
    (tmp_path / "folder.000001").mkdir()
    files = find_binlogs(tmp_path)
    assert [file.name for file in files] == ["archive.000003", "binlog.000002", "binlog.999999", "binlog.1000000"]
    assert [file.sequence for file in files] == [3, 2, 999_999, 1_000_000]
    assert files[-1].base == "binlog"


def test_named_files_are_taken_whatever_they_are_called(tmp_path: Path) -> None:
    make(tmp_path, "b.000002", "b.000001", "saved-copy")
    files = find_binlogs(tmp_path, ["b.000002", " b.000001", "saved-copy", "b.000002"])
    assert [(file.name, file.sequence) for file in files] == [("b.000001", 1), ("b.000002", 2), ("saved-copy", None)]


def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(BinlogNotFoundError, match="There is no directory"):
        find_binlogs(tmp_path / "nowhere")


def test_file_instead_of_a_directory(tmp_path: Path) -> None:
    make(tmp_path, "binlog.000001")
    with pytest.raises(UsageError, match="is a file, not a directory"):
        find_binlogs(tmp_path / "binlog.000001")


def test_directory_without_binlogs(tmp_path: Path) -> None:
    make(tmp_path, "readme.txt")
    with pytest.raises(BinlogNotFoundError, match="holds no binlog, no file with a name such as"):
        find_binlogs(tmp_path)


def test_unknown_file_says_which_there_are(tmp_path: Path) -> None:
    make(tmp_path, "binlog.000001", "binlog.000002")
    with pytest.raises(
        BinlogNotFoundError, match=r"no file binlog\.000009\. It holds binlog\.000001 to binlog\.000002"
    ):
        find_binlogs(tmp_path, ["binlog.000001", "binlog.000009"])


@pytest.mark.parametrize("name", ["../binlog.000001", "sub/binlog.000001", "", ".."])
def test_names_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError):
        find_binlogs(tmp_path, [name])


def test_no_names(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No file is named"):
        find_binlogs(tmp_path, [])


def test_directory_without_permission(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o000)
    user = os.geteuid()
    if user == 0:  # root can list every directory
        os.seteuid(65534)
    try:
        with pytest.raises(BinlogNotReadableError, match="cannot be listed: Permission denied"):
            find_binlogs(closed)
    finally:
        os.seteuid(user)


def test_files_of_a_data_folder_are_not_taken_for_binlogs(tmp_path: Path) -> None:
    """The folder of a MariaDB: the first bytes are those that the server writes."""
    for name, head in {
        "binlog.000001": b"\xfebin",
        "binlog.000002": b"damaged",
        "binlog.000003": b"\xfdbin",
        "aria_log.00000001": b"\xfe\xfe\x0c\x01MARIALOG",
        "aria_log_control": b"\xfe\xfe\x0b\x01",
        "ib_logfile0": b"\0" * 8,
        "binlog.index": b"./binlog.000001\n",
        "binlog.state": b"0-1-5\n",
    }.items():
        (tmp_path / name).write_bytes(head)
    # A damaged file of a series is not passed over.
    assert [file.name for file in find_binlogs(tmp_path)] == ["binlog.000001", "binlog.000002", "binlog.000003"]
    for number in (1, 2, 3):
        (tmp_path / f"binlog.{number:06d}").unlink()
    with pytest.raises(BinlogNotFoundError, match=r"holds no binlog: aria_log.00000001 does not begin like one"):
        find_binlogs(tmp_path)


def test_a_binlog_in_innodb_is_named_as_one(tmp_path: Path) -> None:
    path = tmp_path / "binlog-000000.ibb"
    path.write_bytes(b"\xfe\xfe\x0d\x01" + bytes(60))
    for read in (find_binlogs, lambda folder: read_format(folder / path.name)):
        with pytest.raises(NotABinlogError, match="keeps in InnoDB") as caught:
            read(tmp_path)
        assert caught.value.hint is not None and "binloom follow" in caught.value.hint
