"""The compiled decoder. Import `run` from here, so that the compile cache is set up first.

numba stamps a cached function with the content of its own file only, so the cache folder carries a hash
of all of the kernel's files and of numba's version: a change anywhere compiles anew.
"""

import hashlib
import os
from pathlib import Path

import numba


def _cache_folder() -> Path:
    """A folder under $BINLOOM_CACHE, else $XDG_CACHE_HOME or ~/.cache, or else the temporary folder."""
    digest = hashlib.sha256(numba.__version__.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    name = Path("binloom") / "kernel" / digest.hexdigest()[:16]
    roots = [os.environ.get("BINLOOM_CACHE"), os.environ.get("XDG_CACHE_HOME"), "~/.cache"]
    for root in filter(None, roots):
        folder = Path(root).expanduser() / name
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:
            continue
        if os.access(folder, os.W_OK):
            return folder
    import tempfile

    return Path(tempfile.gettempdir()) / f"binloom-{os.getuid()}" / name


numba.config.CACHE_DIR = str(_cache_folder())

from ingest.binlog.kernel.walk import run  # noqa: E402

__all__ = ["run"]
