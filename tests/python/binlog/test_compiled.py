"""The compiled code of the kernel's entry points, kept in files."""

import os
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from ingest.binlog.kernel import compiled, guard, packet_layout, processor, shipped
from ingest.binlog.kernel.compiled import load
from ingest.errors import PackagesMissingError
from tools import wheel

pytestmark = pytest.mark.slow


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


def test_code_is_compiled_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled._say_that_it_compiles.cache_clear()
    assert loaded_anew()
    assert capsys.readouterr().err.startswith("binloom: compiling the decoder for this machine, once")
    assert [path.name for path in folder.iterdir()] == ["packets.unpack"]
    monkeypatch.delattr(compiled, "_compile")
    assert loaded_anew()
    assert capsys.readouterr().err == ""


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
    monkeypatch.setattr(processor, "target", lambda: ("i386", ""))
    assert compiled._key() != before


def test_nobody_else_can_put_code_into_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled.tempfile, "tempdir", str(tmp_path))
    name = Path("kernel") / "1"
    own = tmp_path / f"binloom-{os.getuid()}"
    assert compiled._temporary_folder(name) == own / name
    own.chmod(0o777)
    other = compiled._temporary_folder(name)
    assert not other.is_relative_to(own) and other.stat().st_uid == os.getuid()


def test_a_machine_without_code_and_without_numba_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(package: str) -> str:
        raise PackageNotFoundError(package)

    monkeypatch.setattr(compiled, "version", missing)
    compiled._cache_folder.cache_clear()
    with pytest.raises(PackagesMissingError, match=r"compiled for this machine, and numba.*'binloom\[compile\]'"):
        loaded_anew()


def test_a_compiler_that_fails_is_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processor, "target", lambda: ("no such processor", ""))
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    with pytest.raises(RuntimeError, match=r"packets\.unpack could not be compiled: AttributeError"):
        loaded_anew()


@pytest.fixture
def wheel_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Let a library of the smallest entry point lie where a wheel has it; nothing can be compiled any more."""
    libraries = tmp_path / "libraries"
    with monkeypatch.context() as patch:
        patch.setattr(wheel, "ENTRY_POINTS", [("packets", "unpack", 1)])
        wheel._compiled(libraries)
    monkeypatch.setattr(shipped, "FOLDER", libraries)
    monkeypatch.setattr(compiled, "stored", lambda *_: pytest.fail("the library was not used"))
    _forget()
    yield libraries
    monkeypatch.undo()
    _forget()


def _forget() -> None:
    for cached in (shipped._manifest, shipped._fits, shipped.source_digest, processor.fits_baseline, load):
        cached.cache_clear()


def is_used() -> bool:
    """Return whether the library is used."""
    _forget()
    return shipped.shipped_address("packets", "unpack") is not None


@pytest.mark.skipif(not processor.fits_baseline(), reason="wheels have no code for this processor")
@pytest.mark.skipif(not shutil.which("ld"), reason="there is no linker (Debian: apt-get install binutils)")
class TestShipped:
    def test_the_library_of_a_wheel_runs_without_numba(self, wheel_folder: Path) -> None:
        assert is_used() and loaded_anew()

    def test_a_library_of_another_source_is_not_used(self, wheel_folder: Path) -> None:
        file = wheel_folder / shipped.MANIFEST
        file.write_text(file.read_text().replace(shipped.source_digest(), "0" * 64))
        assert not is_used()

    def test_a_processor_without_a_feature_does_not_get_it(
        self, wheel_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        flags = next(line for line in processor._PROCESSOR.read_text().splitlines() if line.startswith("flags"))
        described = tmp_path / "cpuinfo"
        monkeypatch.setattr(processor, "_PROCESSOR", described)
        described.write_text(f"processor\t: 0\n{flags}\n\nprocessor\t: 1\n{flags}\n")
        assert is_used()
        described.write_text(f"processor\t: 0\n{flags.replace(' pclmulqdq', '')}\n")
        assert not is_used()
        described.unlink()
        assert not is_used()

    def test_a_damaged_library_is_never_run(self, wheel_folder: Path) -> None:
        library = wheel_folder / "packets.unpack.so"
        library.write_bytes(library.read_bytes()[:-1] + b"x")
        assert not is_used()
        library.unlink()
        assert not is_used()

    def test_checked_accesses_are_compiled_here(self, wheel_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(guard, "IS_ON", True)
        assert not is_used()
