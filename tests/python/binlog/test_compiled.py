"""The compiled code of the kernel's entry points, kept in files."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from ingest.binlog.kernel import compiled, packet_layout
from ingest.binlog.kernel.compiled import load


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder that the code is kept in during a test."""
    monkeypatch.setattr(compiled, "_cache_folder", lambda: tmp_path)
    return tmp_path


def loaded_anew() -> bool:
    """Load the smallest entry point once more, and return whether it runs."""
    load.cache_clear()
    context = np.zeros(len(packet_layout.WORDS), dtype=np.int64)
    return load("packets", "unpack", 1)(context.ctypes.data) == packet_layout.MORE


def test_code_is_compiled_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded_anew()
    assert [path.name for path in folder.iterdir()] == ["packets.unpack"]
    monkeypatch.delattr(compiled, "_compile")
    assert loaded_anew()


def test_a_process_waits_for_the_code_that_another_one_compiles(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = compiled._compile("packets", "unpack", 1)
    monkeypatch.delattr(compiled, "_compile")
    with ThreadPoolExecutor(1) as pool:
        with compiled._one_at_a_time(folder):
            waiting = pool.submit(loaded_anew)
            with pytest.raises(TimeoutError):
                waiting.result(timeout=0.5)
            compiled._write(folder / "packets.unpack", *stored)
        assert waiting.result()


def test_a_damaged_file_is_never_run(folder: Path) -> None:
    assert loaded_anew()
    path = folder / "packets.unpack"
    whole = path.read_bytes()
    assert compiled._read(path) is not None
    for damaged in (b"", whole[:40], whole[:900], whole[:-1], whole[:-1] + b"x", b"x" + whole[1:]):
        path.write_bytes(damaged)
        assert compiled._read(path) is None
    assert loaded_anew()
    assert compiled._read(path) is not None


def test_another_source_or_processor_has_another_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    before = compiled._key()
    assert compiled._key() == before
    monkeypatch.setattr(compiled.binding, "get_host_cpu_name", lambda: "i386")
    assert compiled._key() != before


def test_nobody_else_can_put_code_into_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled.tempfile, "tempdir", str(tmp_path))
    name = Path("kernel") / "1"
    own = tmp_path / f"binloom-{os.getuid()}"
    assert compiled._temporary_folder(name) == own / name
    own.chmod(0o777)
    other = compiled._temporary_folder(name)
    assert not other.is_relative_to(own) and other.stat().st_uid == os.getuid()
