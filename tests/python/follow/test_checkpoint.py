"""The checkpoint of a followed server: written atomically, and unchanged after reading."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ingest.errors import StoreError
from ingest.follow.checkpoint import CHECKPOINT, Checkpoint, ServerEnd, spool_folder

NOW = datetime(2026, 11, 20, 12, 0, 0, 123456, tzinfo=UTC)
END = ServerEnd("binlog.000007", 4000, "u:1-9", NOW, 3000)
RECEIVED = Checkpoint(1, "binlog.000007", 1000, "u", 3, "mysql", "9.7.4", "db1", 3306, NOW, END)


def test_it_comes_back_as_it_was_written(tmp_path: Path) -> None:
    folder = tmp_path / "spool" / "shop"
    assert Checkpoint.read(folder) is None
    RECEIVED.write(folder)
    assert Checkpoint.read(folder) == RECEIVED
    before_any_question = replace(RECEIVED, server_uuid=None, server=None)
    before_any_question.write(folder)
    assert Checkpoint.read(folder) == before_any_question
    assert [path.name for path in folder.iterdir()] == [CHECKPOINT]


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"{", b'{"epoch": 0, "server": null}', b"\xff"])
def test_one_that_is_broken_is_a_sentence(tmp_path: Path, content: bytes) -> None:
    (tmp_path / CHECKPOINT).write_bytes(content)
    with pytest.raises(StoreError, match=r"checkpoint\.json cannot be read"):
        Checkpoint.read(tmp_path)


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "spool").write_text("in the way")
    with pytest.raises(StoreError, match=r"checkpoint\.json cannot be written"):
        RECEIVED.write(tmp_path / "spool" / "shop")


def test_every_source_has_a_spool_of_its_own(tmp_path: Path) -> None:
    names = ["shop", "a/b", "a%2Fb", ".", "..", "Ä"]
    folders = [spool_folder(name, tmp_path) for name in names]
    assert len(set(folders)) == len(names)
    assert {folder.resolve().parent for folder in folders} == {tmp_path.resolve() / "spool"}
