"""Names of sources and files are kept unchanged, or refused with a sentence; none leads out of its folder."""

import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from jinja2.sandbox import SandboxedEnvironment

from ingest.binlog.events.types import FORMAT_DESCRIPTION, ROTATE
from ingest.binlog.packets import Packets, Run, Special
from ingest.errors import BrokenStreamError, SourceError, UsageError
from ingest.follow.checkpoint import CHECKPOINT, Checkpoint
from ingest.follow.receiver import Receiver
from ingest.follow.spool import Spool
from ingest.landing import ingest, land_snapshot
from ingest.landing.held import StreamLanding
from ingest.sources.files.directory import BinlogPath
from ingest.sources.servers.address import ServerAddress
from ingest.sources.servers.replication import Replica
from ingest.sources.snapshots.snapshot import SchemaSnapshot
from ingest.warehouse.catalog import sql_literal
from ingest.warehouse.files import read_rows, segment_folder
from ingest.warehouse.names import require_file_name, require_server_file, require_source_name
from ingest.warehouse.segments import Segment
from ingest.warehouse.tables import ROW_EVENTS, SOURCES
from tests.python.binlog.test_packets import made_up, packets_of
from tests.support.binlog import forge
from tests.support.places import PROJECT

# Unusual names that are all valid.
KEPT = [
    "it's",
    '"q"',
    "../../x",
    "..",
    "a/b=c%2F",
    "\x1b[2J\x9b\n",
    "${spark.app.name}",
    "{{ 1 }}{% raw %}{#",
    "a\\b\\'",
    "=1+1",
    "null",
    "007",
    " lead",
    "é日😀",
    "-- x /* y */;",
    "_shop",
    ".hidden",
    "x" * 245,
]
REFUSED = {
    "": "empty",
    " \n": "empty",
    "__HIVE_DEFAULT_PARTITION__": "reads it as NULL",
    "a\0b": "not text",
    "a\udcff": "not text",
    "a'b\"c": "both kinds of quotes",
    "a\\": "a backslash at its end",
    "x" * 246: "too long",
    "%" * 82: "too long",
}
NOT_OF_A_SERVER = [
    "../../etc/x.000001",
    "/etc/x.000001",
    "a/b.000001",
    "..",
    ".",
    "",
    "a\0.000001",
    CHECKPOINT,
    "binlog",
    "binlog.000001/",
    "both'\".000001",
    "x" * 300 + ".000001",
]
NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
RECEIVED = Checkpoint(0, "binlog.000001", 4, "u", 3, "mysql", "9.7.4", "db1", 3306, NOW)


@pytest.mark.parametrize("name", KEPT)
def test_a_name_that_is_odd_is_one_folder(name: str, tmp_path: Path) -> None:
    require_source_name(name)
    require_file_name(tmp_path / name.replace("/", ":")[:200])
    folder = segment_folder(ROW_EVENTS, Segment(name, 0, name[:200], 4, 9), tmp_path)
    assert tmp_path in folder.resolve().parents
    assert [part.partition("=")[0] for part in folder.parts[-4:]] == list(ROW_EVENTS.partition)
    folder.mkdir(parents=True)


@pytest.mark.parametrize("name", KEPT)
def test_what_is_recorded_of_a_source_is_found_again(name: str, tmp_path: Path) -> None:
    with StreamLanding(name, tmp_path) as landing:
        landing.open_epoch({"epoch": 0, "server_id": 1})
    assert [row["source_id"] for row in read_rows(SOURCES, tmp_path, source_id=name)] == [name]
    with StreamLanding(name, tmp_path) as landing:
        assert landing.record.opening(0) is not None


@pytest.mark.parametrize("name", REFUSED)
def test_a_name_that_cannot_be_kept_is_refused_by_all_that_land(name: str, tmp_path: Path) -> None:
    for land in (
        lambda: ingest(name, [], home=tmp_path),
        lambda: land_snapshot(name, SchemaSnapshot("files", NOW), tmp_path),
        lambda: StreamLanding(name, tmp_path),
    ):
        with pytest.raises(UsageError, match=REFUSED[name]) as refusal:
            land()
        assert str(refusal.value).isprintable()
    if name.strip():
        with pytest.raises(UsageError, match=REFUSED[name]):
            ingest("shop", [BinlogPath(tmp_path / name, name, 1)], home=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", NOT_OF_A_SERVER)
def test_a_server_names_no_file_outside_of_the_spool(name: str, tmp_path: Path) -> None:
    with pytest.raises(BrokenStreamError, match="The server names its binlog file") as refusal:
        require_server_file(name)
    assert str(refusal.value).isprintable()
    spool = Spool("shop", tmp_path)
    with pytest.raises(BrokenStreamError):
        spool.path(0, name)
    with pytest.raises(BrokenStreamError):
        spool.write_checkpoint(replace(RECEIVED, binlog_file=name))
    assert list(tmp_path.iterdir()) == []


def test_a_checkpoint_that_was_changed_deletes_nothing_outside(tmp_path: Path) -> None:
    spool = Spool("shop", tmp_path)
    spool.write_checkpoint(RECEIVED)
    (tmp_path / "x.000001").write_bytes(b"mine")
    path = spool.folder / CHECKPOINT
    path.write_text(json.dumps({**json.loads(path.read_text()), "binlog_file": "../../x.000001"}))
    with pytest.raises(BrokenStreamError, match="not a plain file name"):
        Spool("shop", tmp_path).drop_unsynced()
    assert (tmp_path / "x.000001").read_bytes() == b"mine"


class Sent:
    """The data that a server sent on a finished stream."""

    def __init__(self, data: bytes) -> None:
        self.packets = Packets(4)
        self._data = data

    def receive(self) -> Iterator[Run | Special]:
        room = self.packets.room()
        room[: len(self._data)] = self._data
        self.packets.received(len(self._data))
        for piece in self.packets.pieces():
            assert isinstance(piece, Run | Special)
            yield piece


def test_a_rotate_that_names_a_path_begins_no_file(tmp_path: Path) -> None:
    home = tmp_path / "home"
    spool = Spool("shop", home)
    spool.write_checkpoint(RECEIVED)
    receiver = Receiver(
        spool,
        ServerAddress("db1"),
        Replica(4_000_000_000, "5ca1ab1e-0000-4000-8000-0000b1d1003e"),
        RECEIVED,
        lambda: None,
    )
    format_event = bytes(forge.FileMaker().data[4:])
    assert format_event[4] == FORMAT_DESCRIPTION
    rotate = made_up(ROTATE, struct.pack("<Q", 4) + b"../../../x.000002")
    stream: Any = Sent(packets_of(b"\0" + event for event in (rotate, format_event)))
    with pytest.raises(SourceError, match=r"names a log file .\.\./\.\./\.\./x\.000002"):
        receiver._take(stream)
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {CHECKPOINT}


# --- as SQL ---


def macro(*names: str) -> Any:
    """Return macros as dbt renders them: its Jinja is sandboxed, too."""
    text = "".join(path.read_text() for name in names for path in (PROJECT / "macros").rglob(f"{name}.sql"))
    return (
        SandboxedEnvironment(extensions=["jinja2.ext.do"])
        .from_string(text)
        .make_module({"var": {"literal_files_limit": 9}.get})
    )


def test_a_literal_of_a_macro_is_that_of_python_and_is_rendered_but_once() -> None:
    for name in KEPT:
        literal = macro("text_literal").text_literal(name).strip("\n")
        assert literal == sql_literal(name)
        assert SandboxedEnvironment().from_string(literal).render() == literal
        assert literal.isprintable()


def test_files_whose_names_differ_by_case_are_all_named() -> None:
    files = [{"source_id": "s", "epoch": 0, "binlog_file": name} for name in ("A.000001", "a.000001", "a.000001")]
    condition = macro("text_literal", "in_files").in_files(files)
    assert "binlog_file in ('A.000001', 'a.000001')" in " ".join(condition.split())
