"""Measures a base installation from the wheel: `python -m benchmarks.install`.

It prints the size of the environment, and the seconds from nothing to the report of `binloom inspect`: once with
packages that are downloaded, and once with those that uv has kept.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

PROJECT = Path(__file__).resolve().parents[1]
SAMPLE = PROJECT / "samples" / "shop-mysql" / "binlog.000001"


def inspected(folder: Path, wheel: Path, *options: str) -> float:
    """Install the wheel into a new environment and inspect a file; return the seconds."""
    uv = Path(sys.executable).with_name("uv")
    locked = ["--constraint", PROJECT / "requirements.lock", wheel]
    begun = perf_counter()
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder], check=True)
    install = [uv, "pip", "install", "--quiet", "--python", folder / "bin" / "python"]
    subprocess.run([*install, *options, *locked], check=True)
    subprocess.run(
        [folder / "bin" / "binloom", "inspect", SAMPLE],
        env={"PATH": os.environ["PATH"], "HOME": str(folder)},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    return perf_counter() - begun


def size(folder: Path) -> int:
    """Return the bytes of the files in a folder, without what Python compiles when it first imports a module."""
    files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    return sum(path.stat().st_size for path in files if path.suffix != ".pyc")


def main() -> None:
    from tools.wheel import build

    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        wheel = build(work / "dist")
        downloaded = inspected(work / "downloaded", wheel, "--no-cache")
        kept = inspected(work / "kept", wheel)
        print(f"wheel             {wheel.stat().st_size / 1e6:.1f} MB")
        print(f"base environment  {size(work / 'kept') / 1e6:.0f} MB")
        print(f"to the report     {downloaded:.1f} s, with packages that uv has kept {kept:.1f} s")


if __name__ == "__main__":
    main()
