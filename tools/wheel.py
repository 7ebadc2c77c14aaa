"""Builds the source distribution and this platform's wheel, with the decoder compiled: `python -m tools.wheel [DIR]`.

The wheel is built from the source distribution, so neither has what only lies about in a clone. The decoder is compiled
on x86-64 Linux, by `make setup` or here; other platforms compile it when it is first used, and this program then makes
a wheel without it. The linker is that of Debian's package binutils.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from ingest.binlog.kernel import ENTRY_POINTS, shipped
from ingest.binlog.kernel.compiled import stored
from ingest.binlog.kernel.processor import fits_baseline
from tests.support.places import PROJECT

KERNEL_VARIABLE = "BINLOOM_COMPILED_KERNEL"


def build(folder: Path) -> Path:
    """Write both distributions into a folder, and return the path of the wheel."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        # setuptools describes the package in a folder beside the source, unless it is told another place.
        source = _built("sdist", PROJECT, work / "source", options=["egg_info", "--egg-base", temporary])
        with tarfile.open(source) as archive:
            archive.extractall(work / "unpacked", filter="data")
        (unpacked,) = (work / "unpacked").iterdir()
        wheel = _built("wheel", unpacked, work / "wheel", variables=_compiled(work / "kernel"))
        for built in (source, wheel):
            shutil.move(built, folder / built.name)
    return folder / wheel.name


def _compiled(folder: Path) -> dict[str, str]:
    """Make libraries of the compiled decoder, and return the variable that tells `setup.py` where they are."""
    if not fits_baseline():
        return {}
    folder.mkdir()
    manifest = shipped.manifest([_library(folder, *entry_point) for entry_point in ENTRY_POINTS])
    (folder / shipped.MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")
    return {KERNEL_VARIABLE: str(folder)}


def _library(folder: Path, module: str, name: str, arguments: int) -> Path:
    """Link the object code of an entry point; functions such as memcpy are those that a process has from libc."""
    symbol, code = stored(module, name, arguments)
    path = folder / shipped.library_name(module, name)
    with tempfile.NamedTemporaryFile(suffix=".o") as file:
        file.write(code)
        file.flush()
        options = ["-shared", "-Bsymbolic", "--strip-all", "--build-id=none", "-z", "noexecstack"]
        subprocess.run(["ld", *options, f"--defsym={shipped.SYMBOL}={symbol}", "-o", path, file.name], check=True)
    return path


def _built(
    kind: str, project: Path, folder: Path, options: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> Path:
    """Build a distribution into a folder, and return its file."""
    folder.mkdir()
    settings = {"--global-option": list(options)}
    program = f"from setuptools import build_meta; build_meta.build_{kind}({str(folder)!r}, {settings})"
    environment = {**os.environ, **(variables or {})}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"The {kind} could not be built:\n{done.stdout}{done.stderr}")
    (built,) = folder.iterdir()
    return built


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("dist"))
    print(build(parser.parse_args().folder))


if __name__ == "__main__":
    main()
